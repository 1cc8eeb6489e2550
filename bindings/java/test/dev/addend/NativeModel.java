package dev.addend;

import java.io.File;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The model of tests/native_model, a native library that computes with LibTorch, as any wrapper of such a library has it:
 * tensors are the addresses of {@code at::Tensor} objects.
 */
final class NativeModel implements AutoCloseable {
  static {
    System.load(new File("tests/native_model/libnative_model_jni.so").getAbsolutePath());
  }

  private final long address = create();

  /** A new tensor, which releaseTensor() deletes. */
  static native long tensor(float[] numbers, long... sizes);

  static native void releaseTensor(long tensor);

  /** Runs the model, and tells `entered` the path of the module that runs from now on; a new tensor. */
  long forward(long x, Consumer<String> entered) {
    return forward(address, x, entered);
  }

  /** The addresses of parameters (learned), or of buffers, by their names. */
  Map<String, Long> tensors(boolean learned) {
    final Map<String, Long> tensors = new LinkedHashMap<>();
    for (int index = 0; index < numTensors(address); index++) {
      if (isLearned(address, index) == learned) {
        tensors.put(tensorName(address, index), tensorAt(address, index));
      }
    }
    return tensors;
  }

  @Override
  public void close() {
    release(address);
  }

  private static native long create();

  private static native void release(long model);

  private static native int numTensors(long model);

  private static native String tensorName(long model, int index);

  private static native boolean isLearned(long model, int index);

  private static native long tensorAt(long model, int index);

  private static native long forward(long model, long x, Consumer<String> entered);
}
