package dev.addend;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.Objects;
import java.util.function.Function;

/**
 * Numbers in rows and columns, as models take them and give them.
 *
 * <p>{@code of} copies arrays and buffers; {@code wrap} shares the memory of direct buffers, which then must not change
 * as long as something computes with the tensor. Where a shape is left out, the tensor has one dimension; an empty shape is
 * that of a single number.
 */
public final class Tensor extends NativeObject implements Operand {
  private final boolean readOnly;

  Tensor(long address) {
    this(address, false);
  }

  private Tensor(long address, boolean readOnly) {
    super("tensor", address, AddendNative::addend_tensor_release);
    this.readOnly = readOnly;
  }

  /** Whether it wraps a buffer that is for reading only. */
  boolean isReadOnly() {
    return readOnly;
  }

  /**
   * Copies an array.
   *
   * @param values the elements, the last dimension moving fastest
   * @return a one-dimensional {@link DType#FLOAT32} tensor
   */
  public static Tensor of(float[] values) {
    return of(values, values.length);
  }

  /**
   * Copies an array.
   *
   * @param values the elements, the last dimension moving fastest
   * @param shape the sizes of the dimensions
   * @return a {@link DType#FLOAT32} tensor
   */
  public static Tensor of(float[] values, long... shape) {
    return of(FloatBuffer.wrap(values), shape);
  }

  /**
   * Copies an array.
   *
   * @param values the elements, the last dimension moving fastest
   * @return a one-dimensional {@link DType#FLOAT64} tensor
   */
  public static Tensor of(double[] values) {
    return of(values, values.length);
  }

  /**
   * Copies an array.
   *
   * @param values the elements, the last dimension moving fastest
   * @param shape the sizes of the dimensions
   * @return a {@link DType#FLOAT64} tensor
   */
  public static Tensor of(double[] values, long... shape) {
    return of(DoubleBuffer.wrap(values), shape);
  }

  /**
   * Copies an array.
   *
   * @param values the elements, the last dimension moving fastest
   * @return a one-dimensional {@link DType#INT64} tensor
   */
  public static Tensor of(long[] values) {
    return of(values, values.length);
  }

  /**
   * Copies an array.
   *
   * @param values the elements, the last dimension moving fastest
   * @param shape the sizes of the dimensions
   * @return an {@link DType#INT64} tensor
   */
  public static Tensor of(long[] values, long... shape) {
    final ByteBuffer memory = allocate(values.length, DType.INT64);
    memory.asLongBuffer().put(values);
    return share(memory, DType.INT64, shape);
  }

  /**
   * Copies an array.
   *
   * @param values the elements, the last dimension moving fastest
   * @return a one-dimensional {@link DType#INT32} tensor
   */
  public static Tensor of(int[] values) {
    return of(values, values.length);
  }

  /**
   * Copies an array.
   *
   * @param values the elements, the last dimension moving fastest
   * @param shape the sizes of the dimensions
   * @return an {@link DType#INT32} tensor
   */
  public static Tensor of(int[] values, long... shape) {
    final ByteBuffer memory = allocate(values.length, DType.INT32);
    memory.asIntBuffer().put(values);
    return share(memory, DType.INT32, shape);
  }

  /**
   * Copies an array.
   *
   * @param values the elements, the last dimension moving fastest
   * @return a one-dimensional {@link DType#BOOL} tensor
   */
  public static Tensor of(boolean[] values) {
    return of(values, values.length);
  }

  /**
   * Copies an array.
   *
   * @param values the elements, the last dimension moving fastest
   * @param shape the sizes of the dimensions
   * @return a {@link DType#BOOL} tensor
   */
  public static Tensor of(boolean[] values, long... shape) {
    final ByteBuffer memory = allocate(values.length, DType.BOOL);
    for (int i = 0; i < values.length; i++) {
      memory.put(i, (byte) (values[i] ? 1 : 0));
    }
    return share(memory, DType.BOOL, shape);
  }

  /**
   * Copies what is between a buffer's position and limit, neither of which changes.
   *
   * @param values the elements, the last dimension moving fastest
   * @return a one-dimensional {@link DType#FLOAT32} tensor
   */
  public static Tensor of(FloatBuffer values) {
    return of(values, values.remaining());
  }

  /**
   * Copies what is between a buffer's position and limit, neither of which changes.
   *
   * @param values the elements, the last dimension moving fastest
   * @param shape the sizes of the dimensions
   * @return a {@link DType#FLOAT32} tensor
   */
  public static Tensor of(FloatBuffer values, long... shape) {
    final ByteBuffer memory = allocate(values.remaining(), DType.FLOAT32);
    memory.asFloatBuffer().put(values.duplicate());
    return share(memory, DType.FLOAT32, shape);
  }

  /**
   * Copies what is between a buffer's position and limit, neither of which changes.
   *
   * @param values the elements, the last dimension moving fastest
   * @return a one-dimensional {@link DType#FLOAT64} tensor
   */
  public static Tensor of(DoubleBuffer values) {
    return of(values, values.remaining());
  }

  /**
   * Copies what is between a buffer's position and limit, neither of which changes.
   *
   * @param values the elements, the last dimension moving fastest
   * @param shape the sizes of the dimensions
   * @return a {@link DType#FLOAT64} tensor
   */
  public static Tensor of(DoubleBuffer values, long... shape) {
    final ByteBuffer memory = allocate(values.remaining(), DType.FLOAT64);
    memory.asDoubleBuffer().put(values.duplicate());
    return share(memory, DType.FLOAT64, shape);
  }

  /**
   * Copies the bytes between a buffer's position and limit, neither of which changes.
   *
   * @param bytes the elements in this machine's byte order, the last dimension moving fastest
   * @param dtype what they are
   * @return a one-dimensional tensor
   */
  public static Tensor of(ByteBuffer bytes, DType dtype) {
    return of(bytes, dtype, bytes.remaining() / dtype.bytes());
  }

  /**
   * Copies the bytes between a buffer's position and limit, neither of which changes.
   *
   * @param bytes the elements in this machine's byte order, the last dimension moving fastest
   * @param dtype what they are
   * @param shape the sizes of the dimensions
   * @return the tensor
   */
  public static Tensor of(ByteBuffer bytes, DType dtype, long... shape) {
    checkOrder(bytes.order(), dtype);
    final ByteBuffer memory = ByteBuffer.allocateDirect(bytes.remaining());
    memory.put(bytes.duplicate()).flip();
    return share(memory, dtype, shape);
  }

  /**
   * One number, without dimensions.
   *
   * @param value the number
   * @return a {@link DType#FLOAT64} tensor of shape {@code []}
   */
  public static Tensor scalar(double value) {
    final ByteBuffer memory = allocate(1, DType.FLOAT64);
    memory.asDoubleBuffer().put(value);
    return share(memory, DType.FLOAT64, new long[0]);
  }

  /**
   * Shares what is between a direct buffer's position and limit; nothing is copied, and the memory stays alive as long as
   * something needs it.
   *
   * @param values the elements, the last dimension moving fastest
   * @return a one-dimensional {@link DType#FLOAT32} tensor
   */
  public static Tensor wrap(FloatBuffer values) {
    return wrap(values, values.remaining());
  }

  /**
   * Shares what is between a direct buffer's position and limit; nothing is copied, and the memory stays alive as long as
   * something needs it.
   *
   * @param values the elements, the last dimension moving fastest
   * @param shape the sizes of the dimensions
   * @return a {@link DType#FLOAT32} tensor
   */
  public static Tensor wrap(FloatBuffer values, long... shape) {
    return wrap(values, values.order(), DType.FLOAT32, shape);
  }

  /**
   * Shares what is between a direct buffer's position and limit; nothing is copied, and the memory stays alive as long as
   * something needs it.
   *
   * @param values the elements, the last dimension moving fastest
   * @return a one-dimensional {@link DType#FLOAT64} tensor
   */
  public static Tensor wrap(DoubleBuffer values) {
    return wrap(values, values.remaining());
  }

  /**
   * Shares what is between a direct buffer's position and limit; nothing is copied, and the memory stays alive as long as
   * something needs it.
   *
   * @param values the elements, the last dimension moving fastest
   * @param shape the sizes of the dimensions
   * @return a {@link DType#FLOAT64} tensor
   */
  public static Tensor wrap(DoubleBuffer values, long... shape) {
    return wrap(values, values.order(), DType.FLOAT64, shape);
  }

  /**
   * Shares the bytes between a direct buffer's position and limit; nothing is copied, and the memory stays alive as long
   * as something needs it.
   *
   * @param bytes the elements in this machine's byte order, the last dimension moving fastest
   * @param dtype what they are
   * @return a one-dimensional tensor
   */
  public static Tensor wrap(ByteBuffer bytes, DType dtype) {
    return wrap(bytes, dtype, bytes.remaining() / dtype.bytes());
  }

  /**
   * Shares the bytes between a direct buffer's position and limit; nothing is copied, and the memory stays alive as long
   * as something needs it.
   *
   * @param bytes the elements in this machine's byte order, the last dimension moving fastest
   * @param dtype what they are
   * @param shape the sizes of the dimensions
   * @return the tensor
   */
  public static Tensor wrap(ByteBuffer bytes, DType dtype, long... shape) {
    return wrap(bytes, bytes.order(), dtype, shape);
  }

  /**
   * Takes over a DLPack tensor of another native library in this process.
   *
   * @param address of a {@code DLManagedTensor}, whose deleter is called when nothing needs it any more; after an
   *     exception it stays the caller's
   * @param versioned whether it is a {@code DLManagedTensorVersioned} instead
   * @return a tensor that shares its memory
   */
  public static Tensor fromDlpack(long address, boolean versioned) {
    return new Tensor(Out.handle(out -> AddendNative.addend_tensor_from_dlpack(address, versioned ? 1 : 0, out)));
  }

  /**
   * Shares this tensor with another native library in this process, as {@link #toDlpack(boolean)} does.
   *
   * @return the address of a new {@code DLManagedTensor}, whose deleter the other library calls once
   */
  public long toDlpack() {
    return toDlpack(false);
  }

  /**
   * Shares this tensor with another native library in this process, without a copy. The memory must not be written.
   *
   * @param versioned whether to give a {@code DLManagedTensorVersioned}; the older struct has no bool, which becomes
   *     uint8
   * @return the address of a new struct, whose deleter the other library calls once
   */
  public long toDlpack(boolean versioned) {
    return handle().made(
        (tensor, out) -> AddendNative.addend_tensor_to_dlpack(tensor, versioned ? 1 : 0, out, new int[1]));
  }

  /**
   * The tensor of another native library in this process that computes with the same LibTorch, without a copy: the same
   * storage with its strides and device, and the same place in autograd's graph.
   *
   * @param atTensor the address of an {@code at::Tensor}: the handle of an NDArray of DJL's PyTorch engine. What it refers
   *     to is shared.
   * @return a new tensor
   */
  public static Tensor fromLibTorch(long atTensor) {
    return new Tensor(Out.handle(out -> AddendNative.addend_tensor_from_libtorch(atTensor, out)));
  }

  /**
   * Gives this tensor to such a library, without a copy. The memory must not be written.
   *
   * @return the address of a new {@code at::Tensor}, which a library takes over or {@link #releaseLibTorch} deletes
   */
  public long toLibTorch() {
    return handle().made(AddendNative::addend_tensor_to_libtorch);
  }

  /**
   * Deletes what {@link #toLibTorch} gave, where nobody has taken it over.
   *
   * @param atTensor the address; 0 does nothing
   */
  public static void releaseLibTorch(long atTensor) {
    AddendNative.addend_libtorch_tensor_release(atTensor);
  }

  @Override
  public long[] shape() {
    return handle().numbers(AddendNative::addend_tensor_num_dims, AddendNative::addend_tensor_size);
  }

  /**
   * How many elements there are.
   *
   * @return the product of {@link #shape}
   */
  public long numel() {
    long numel = 1;
    for (long size : shape()) {
      numel *= size;
    }
    return numel;
  }

  /**
   * How many elements each dimension moves by.
   *
   * @return a number for each dimension
   */
  public long[] strides() {
    return handle().numbers(AddendNative::addend_tensor_num_dims, AddendNative::addend_tensor_stride);
  }

  /**
   * How many bytes the elements take, one behind the other.
   *
   * @return the number of bytes
   */
  public long numBytes() {
    return handle().number(AddendNative::addend_tensor_num_bytes);
  }

  @Override
  public DType dtype() {
    return DType.of(handle().tell(AddendNative::addend_tensor_dtype));
  }

  /**
   * The device of the elements.
   *
   * @return for example {@code cpu} or {@code cuda:0}
   */
  public String device() {
    return handle().tell(AddendNative::addend_tensor_device);
  }

  /**
   * Converts the elements to another dtype.
   *
   * @param dtype the dtype
   * @return a contiguous tensor, which shares memory where there is nothing to convert
   */
  public Tensor to(DType dtype) {
    return new Tensor(converted(dtype.number(), null));
  }

  /**
   * Moves the elements to another device.
   *
   * @param device for example {@code cpu} or {@code cuda:0}
   * @return a contiguous tensor, which shares memory where there is nothing to move
   */
  public Tensor to(String device) {
    return new Tensor(converted(0, device));
  }

  /**
   * The only element.
   *
   * @return its value, converted to {@code double}
   */
  public double item() {
    final long numel = numel();
    if (numel != 1) {
      throw new IllegalStateException("item() needs a tensor of one element, this one has " + numel);
    }
    return toDoubleArray()[0];
  }

  /**
   * Copies the elements.
   *
   * @return them in order, the last dimension moving fastest, converted to {@code float}
   */
  public float[] toFloatArray() {
    return read(DType.FLOAT32, bytes -> {
      final float[] values = new float[bytes.remaining() / Float.BYTES];
      bytes.asFloatBuffer().get(values);
      return values;
    });
  }

  /**
   * Copies the elements.
   *
   * @return them in order, the last dimension moving fastest, converted to {@code double}
   */
  public double[] toDoubleArray() {
    return read(DType.FLOAT64, bytes -> {
      final double[] values = new double[bytes.remaining() / Double.BYTES];
      bytes.asDoubleBuffer().get(values);
      return values;
    });
  }

  /**
   * Copies the elements.
   *
   * @return them in order, the last dimension moving fastest, converted to {@code long}
   */
  public long[] toLongArray() {
    return read(DType.INT64, bytes -> {
      final long[] values = new long[bytes.remaining() / Long.BYTES];
      bytes.asLongBuffer().get(values);
      return values;
    });
  }

  /**
   * Copies the elements.
   *
   * @return them in order, the last dimension moving fastest; {@code false} for zero
   */
  public boolean[] toBooleanArray() {
    return read(DType.BOOL, bytes -> {
      final boolean[] values = new boolean[bytes.remaining()];
      for (int i = 0; i < values.length; i++) {
        values[i] = bytes.get(i) != 0;
      }
      return values;
    });
  }

  /**
   * The elements of a {@link DType#FLOAT32} tensor, without copying where they are contiguous and on the CPU. The memory
   * stays alive as long as the buffer does, also after {@link #close}.
   *
   * @return a read-only buffer
   */
  public FloatBuffer asFloatBuffer() {
    return view(DType.FLOAT32).asFloatBuffer();
  }

  /**
   * The elements of a {@link DType#FLOAT64} tensor, without copying where they are contiguous and on the CPU. The memory
   * stays alive as long as the buffer does, also after {@link #close}.
   *
   * @return a read-only buffer
   */
  public DoubleBuffer asDoubleBuffer() {
    return view(DType.FLOAT64).asDoubleBuffer();
  }

  /**
   * The elements of an {@link DType#INT64} tensor, without copying where they are contiguous and on the CPU. The memory
   * stays alive as long as the buffer does, also after {@link #close}.
   *
   * @return a read-only buffer
   */
  public LongBuffer asLongBuffer() {
    return view(DType.INT64).asLongBuffer();
  }

  /**
   * The elements of an {@link DType#INT32} tensor, without copying where they are contiguous and on the CPU. The memory
   * stays alive as long as the buffer does, also after {@link #close}.
   *
   * @return a read-only buffer
   */
  public IntBuffer asIntBuffer() {
    return view(DType.INT32).asIntBuffer();
  }

  /**
   * The bytes of the elements, without copying where they are contiguous and on the CPU. The memory stays alive as long
   * as the buffer does, also after {@link #close}.
   *
   * @return a read-only buffer in this machine's byte order
   */
  public ByteBuffer asByteBuffer() {
    return view(dtype());
  }

  /**
   * The tensor as PyTorch prints it.
   *
   * @return several lines
   */
  @Override
  public String toString() {
    if (isClosed()) {
      return "closed tensor";
    }
    return handle().text(AddendNative::addend_tensor_to_string);
  }

  private static ByteBuffer allocate(int numel, DType dtype) {
    return ByteBuffer.allocateDirect(Math.multiplyExact(numel, dtype.bytes())).order(ByteOrder.nativeOrder());
  }

  private static void checkOrder(ByteOrder order, DType dtype) {
    if (order != ByteOrder.nativeOrder() && dtype.bytes() > 1) {
      throw new IllegalArgumentException("buffer is " + order + ", tensors are " + ByteOrder.nativeOrder()
          + ": call order(ByteOrder.nativeOrder()) before it is filled");
    }
  }

  private static Tensor wrap(Buffer buffer, ByteOrder order, DType dtype, long[] shape) {
    if (!buffer.isDirect()) {
      throw new IllegalArgumentException("buffer is not direct, its memory cannot be shared: use Tensor.of");
    }
    checkOrder(order, dtype);
    return share(buffer.slice(), dtype, shape);
  }

  /** Shares a direct buffer from its first element on. */
  private static Tensor share(Buffer memory, DType dtype, long[] shape) {
    Objects.requireNonNull(shape, "shape");
    final int elementBytes = memory instanceof ByteBuffer ? 1 : dtype.bytes();
    final long bytes = (long) memory.remaining() * elementBytes;
    final long tensor = Out.handle(
        out -> AddendNative.addend_tensor_wrap(memory, bytes, dtype.number(), shape, null, memory, out));
    return new Tensor(tensor, memory.isReadOnly());
  }

  private long converted(int dtype, String device) {
    return handle().made((tensor, out) -> AddendNative.addend_tensor_to(tensor, dtype, device, out));
  }

  /** The elements, converted; what {@code reader} is given must not leave it. */
  private <T> T read(DType dtype, Function<ByteBuffer, T> reader) {
    final long converted = converted(dtype.number(), "cpu");
    try {
      return reader.apply(memory(converted));
    } finally {
      AddendNative.addend_tensor_release(converted);
    }
  }

  private ByteBuffer view(DType dtype) {
    if (dtype() != dtype) {
      throw new IllegalStateException("tensor is " + dtype() + ": convert it with to(DType." + dtype.name() + ")");
    }
    final long contiguous = converted(0, "cpu");
    final ByteBuffer memory;
    try {
      memory = memory(contiguous);
    } catch (RuntimeException | Error e) {
      AddendNative.addend_tensor_release(contiguous);
      throw e;
    }
    // Every buffer that is made from this one keeps this one alive.
    Handle.whenCollected(memory, () -> AddendNative.addend_tensor_release(contiguous));
    return memory.asReadOnlyBuffer().order(ByteOrder.nativeOrder());
  }

  /** The memory of a contiguous tensor on the CPU, known by its handle. */
  private static ByteBuffer memory(long tensor) {
    long bytes = AddendNative.addend_tensor_dtype(tensor) / 256 / 8;
    for (long dim = 0; dim < AddendNative.addend_tensor_num_dims(tensor); dim++) {
      bytes *= AddendNative.addend_tensor_size(tensor, dim);
    }
    if (bytes > Integer.MAX_VALUE) {
      throw new UnsupportedOperationException(
          "tensor has " + bytes + " bytes, a buffer holds " + Integer.MAX_VALUE + ": narrow it first");
    }
    final ByteBuffer memory = AddendNative.addend_tensor_data(tensor);
    return (memory == null ? ByteBuffer.allocateDirect(0) : memory).order(ByteOrder.nativeOrder());
  }
}
