package dev.addend;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/** Tensors in a file: {@code .safetensors} and {@code .npy} are read, {@code .safetensors} is written. */
public final class TensorFile extends NativeObject {
  private TensorFile(long address) {
    super("tensor file", address, AddendNative::addend_tensor_file_release);
  }

  /** An empty file, to be filled and written. */
  public TensorFile() {
    this(Out.handle(AddendNative::addend_tensor_file_create));
  }

  /**
   * Reads a file.
   *
   * @param path the file
   * @return its tensors
   */
  public static TensorFile read(Path path) {
    return new TensorFile(Out.handle(out -> AddendNative.addend_tensor_file_read(Text.of(path), out)));
  }

  /**
   * Reads the bytes of a file.
   *
   * @param bytes what is between position and limit, neither of which changes; read before this returns
   * @param name what stands for the path in messages
   * @return its tensors
   */
  public static TensorFile decode(ByteBuffer bytes, String name) {
    final ByteBuffer direct = Memory.direct(bytes);
    return new TensorFile(
        Out.handle(out -> AddendNative.addend_tensor_file_decode(direct, direct.remaining(), name, out)));
  }

  /**
   * The names of the tensors.
   *
   * @return them in order; empty text for that of a {@code .npy} file
   */
  public List<String> names() {
    return handle().texts(AddendNative::addend_tensor_file_size, AddendNative::addend_tensor_file_name);
  }

  /**
   * The first tensor.
   *
   * @return the tensor
   */
  public Tensor tensor() {
    return tensor(null);
  }

  /**
   * A tensor.
   *
   * @param name its name; {@code null} for the first one
   * @return the tensor
   */
  public Tensor tensor(String name) {
    return new Tensor(handle().made((file, out) -> AddendNative.addend_tensor_file_tensor(file, name, out)));
  }

  /**
   * The text that the file's metadata has under a key.
   *
   * @param key the key
   * @return the text, if there is one
   */
  public Optional<String> metadata(String key) {
    Objects.requireNonNull(key, "key");
    return Optional.ofNullable(handle().tell(file -> AddendNative.addend_tensor_file_metadata(file, key)));
  }

  /**
   * Adds a tensor, or replaces that of the same name.
   *
   * @param name its name
   * @param tensor the tensor
   * @return this file
   */
  public TensorFile add(String name, Tensor tensor) {
    try (Borrow borrow = new Borrow()) {
      AddendNative.addend_tensor_file_add(borrow.of(this), name, borrow.of(tensor));
    }
    return this;
  }

  /**
   * Says something under a key.
   *
   * @param key the key
   * @param value the text
   * @return this file
   */
  public TensorFile metadata(String key, String value) {
    handle().run(object -> AddendNative.addend_tensor_file_set_metadata(object, key, value));
    return this;
  }

  /**
   * Writes all of it, or nothing.
   *
   * @param path a {@code .safetensors} file
   */
  public void write(Path path) {
    handle().run(object -> AddendNative.addend_tensor_file_write(object, Text.of(path)));
  }

  /**
   * The bytes that {@link #write} would write.
   *
   * @return a new array
   * @throws UnsupportedOperationException if an array cannot hold them
   */
  public byte[] encode() {
    return handle().tell(file -> Out.bytes(
        out -> AddendNative.addend_tensor_file_encode(file, out), "write(path) writes all of it"));
  }
}
