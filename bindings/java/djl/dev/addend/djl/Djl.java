package dev.addend.djl;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;
import dev.addend.Tensor;
import java.lang.ref.Reference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.Objects;
import java.util.Set;

/**
 * Conversions between DJL and Addend: arrays, without a copy, and the file of a model.
 *
 * <pre>{@code
 * try (NDManager manager = NDManager.newBaseManager();
 *     Tensor row = Djl.toAddend(manager.create(numbers).expandDims(0));
 *     Attribution attribution = model.attribute(Request.of(Input.of(row).splitAlong(1).baseline(0)));
 *     Tensor parts = attribution.input(0)) {
 *   System.out.println(Djl.toDjl(parts, manager).argMax());
 * }
 * }</pre>
 */
public final class Djl {
  /** DJL's name of the engine that computes with LibTorch. */
  static final String ENGINE = "PyTorch";

  private Djl() {}

  /**
   * The tensor of an array: the same memory, strides and device, without a copy. What one side writes, the other reads.
   *
   * <p>An array that DJL made of numbers of Java does not own its memory, nor does any view of it: the array that was made
   * first keeps the memory, until it or its manager is closed, or it is given other numbers by {@code set(Buffer)}, which
   * are on other memory. So close the tensor, and whatever was made with it, before that: a {@link dev.addend.Plan} keeps its
   * baseline, for example. {@link #copyToAddend} is for what stays longer.
   *
   * @param array a dense array of DJL's PyTorch engine, which no other thread closes meanwhile
   * @return a new tensor
   * @throws IllegalArgumentException if the array is of another engine, or holds texts
   * @throws IllegalStateException if the array is closed
   */
  public static Tensor toAddend(NDArray array) {
    Objects.requireNonNull(array, "array");
    if (!(array instanceof PtNDArray)) {
      throw new IllegalArgumentException("array is a " + array.getClass().getName() + ", not one of DJL's PyTorch engine");
    }
    final long address = ((PtNDArray) array).getHandle();
    // An array of texts has no tensor, and this number in place of an address.
    if (address == -1) {
      throw new IllegalArgumentException("array holds texts");
    }
    try {
      return Tensor.fromLibTorch(address);
    } finally {
      Reference.reachabilityFence(array);
    }
  }

  /**
   * A tensor with the numbers of an array, on memory of its own: for what stays longer than the array's manager.
   *
   * @param array a dense array of DJL's PyTorch engine, which no other thread closes meanwhile
   * @return a new tensor
   * @throws IllegalArgumentException if the array is of another engine, or holds texts
   * @throws IllegalStateException if the array is closed
   */
  public static Tensor copyToAddend(NDArray array) {
    Objects.requireNonNull(array, "array");
    if (array.getDataType() == DataType.STRING) {
      throw new IllegalArgumentException("array holds texts");
    }
    try (NDArray copy = array.duplicate()) {
      return toAddend(copy);
    }
  }

  /**
   * The array of a tensor: the same memory, strides and device, without a copy. It must not be written.
   *
   * @param tensor a tensor, which may be closed before the array is
   * @param manager of DJL's PyTorch engine, which closes the array
   * @return a new array
   * @throws IllegalArgumentException if the manager is of another engine
   * @throws IllegalStateException if the tensor or the manager is closed
   */
  public static NDArray toDjl(Tensor tensor, NDManager manager) {
    Objects.requireNonNull(tensor, "tensor");
    Objects.requireNonNull(manager, "manager");
    if (!(manager instanceof PtNDManager)) {
      throw new IllegalArgumentException("manager is a " + manager.getClass().getName() + ", not one of DJL's PyTorch engine");
    }
    if (!manager.isOpen()) {
      throw new IllegalStateException("manager is closed");
    }
    final long address = tensor.toLibTorch();
    try {
      // The array deletes the at::Tensor when it is closed.
      return new PtNDArray((PtNDManager) manager, address);
    } catch (RuntimeException | Error e) {
      Tensor.releaseLibTorch(address);
      throw e;
    }
  }

  /**
   * The TorchScript file that DJL's PyTorch engine has loaded a model from: {@code Model.load(Djl.modelFile(served))} is the
   * same model for Addend.
   *
   * @param served a model that was loaded from a file
   * @return the file
   * @throws IllegalArgumentException if there is no such file where DJL looks for it
   */
  public static Path modelFile(Model served) {
    final Path folder = served.getModelPath();
    if (folder == null) {
      throw new IllegalArgumentException("model " + served.getName() + " was not loaded from a file");
    }
    // In DJL's order.
    final Set<String> names = new LinkedHashSet<>();
    for (String name : new String[] {served.getName(), String.valueOf(folder.getFileName()), "model.pt"}) {
      names.add(name);
      names.add(name.endsWith(".pt") ? name : name + ".pt");
    }
    for (String name : names) {
      if (Files.isRegularFile(folder.resolve(name))) {
        return folder.resolve(name);
      }
    }
    throw new IllegalArgumentException("model " + served.getName() + ": " + folder + " holds none of " + names);
  }
}
