package conformance;

import dev.addend.Addend;
import dev.addend.DType;
import dev.addend.Tensor;
import dev.addend.TensorFile;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;

/** A request or an answer: tensors and texts in a frame. Numbers go through Java's own arrays in both directions. */
final class Message {
  private final TensorFile file;
  private final String device;
  private final Set<String> names;
  private final Set<String> complex = new LinkedHashSet<>();
  private final Set<String> host = new HashSet<>();

  /** A fault of a request itself, and not of what it asks. */
  static final class ProtocolException extends RuntimeException {
    private static final long serialVersionUID = 1;

    ProtocolException(String message) {
      super(message);
    }
  }

  private Message(TensorFile file, String device) {
    this.file = file;
    this.device = device;
    this.names = Set.copyOf(file.names());
    this.complex.addAll(lines("complex"));
    this.host.addAll(lines("host"));
  }

  /** An empty answer. */
  Message() {
    this(new TensorFile(), "cpu");
  }

  /** The bytes of the next frame; null at the end. */
  static byte[] read(InputStream in) throws IOException {
    final byte[] length = in.readNBytes(4);
    if (length.length == 0) {
      return null;
    }
    return in.readNBytes(ByteBuffer.wrap(length).order(ByteOrder.LITTLE_ENDIAN).getInt());
  }

  /** A request, whose tensors are wanted on a device. */
  static Message decode(byte[] blob, String device) {
    return new Message(TensorFile.decode(ByteBuffer.wrap(blob), "request"), device);
  }

  void write(OutputStream out) throws IOException {
    if (!complex.isEmpty()) {
      put("complex", String.join("\n", complex));
    }
    final byte[] blob = file.encode();
    new DataOutputStream(out).writeInt(Integer.reverseBytes(blob.length));
    out.write(blob);
    out.flush();
  }

  // Texts

  boolean has(String key) {
    return !text(key).isEmpty();
  }

  String text(String key) {
    return file.metadata(key).orElse("");
  }

  List<String> lines(String key) {
    return has(key) ? List.of(text(key).split("\n", -1)) : List.of();
  }

  /** The entries of a list with so many fields. */
  List<String[]> fields(String key, int count) {
    final List<String[]> entries = lines(key).stream().map(line -> line.split("\t", -1)).collect(Collectors.toList());
    entries.stream().filter(entry -> entry.length != count).findAny().ifPresent(entry -> {
      throw new ProtocolException(key + " has entries of " + entry.length + " fields instead of " + count);
    });
    return entries;
  }

  static long[] integers(String text) {
    return text.isEmpty() ? new long[0] : List.of(text.split(",")).stream().mapToLong(Long::parseLong).toArray();
  }

  long integer(String key, long absent) {
    return has(key) ? Long.parseLong(text(key)) : absent;
  }

  static double number(String text) {
    return Double.longBitsToDouble(Long.parseUnsignedLong(text, 16));
  }

  static String text(double number) {
    return String.format("%016x", Double.doubleToRawLongBits(number));
  }

  static DType dtype(String name) {
    return DType.valueOf(name.toUpperCase(Locale.ROOT));
  }

  void put(String key, String text) {
    file.metadata(key, text);
  }

  // Tensors

  List<String> names() {
    return new ArrayList<>(file.names());
  }

  /** The tensor of a name; null where there is none. */
  Tensor find(String name) {
    if (!names.contains(name)) {
      return null;
    }
    final Tensor real = throughJava(file.tensor(name)).to(host.contains(name) ? "cpu" : device);
    return complex.contains(name) ? Addend.call("aten::view_as_complex", real).tensor(0) : real;
  }

  Tensor tensor(String name) {
    final Tensor tensor = find(name);
    if (tensor == null) {
      throw new ProtocolException("the request lacks the tensor " + name);
    }
    return tensor;
  }

  /** The bytes of a tensor. */
  byte[] bytes(String name) {
    final ByteBuffer buffer = file.tensor(name).asByteBuffer();
    final byte[] bytes = new byte[buffer.remaining()];
    buffer.get(bytes);
    return bytes;
  }

  void put(String name, Tensor tensor) {
    Tensor real = tensor.to("cpu");
    if (tensor.dtype() == DType.COMPLEX64 || tensor.dtype() == DType.COMPLEX128) {
      real = Addend.call("aten::view_as_real", Addend.call("aten::resolve_conj", real).tensor(0)).tensor(0);
      complex.add(name);
    }
    file.add(name, throughJava(real));
  }

  /** Copies numbers: reads them into an array of Java and makes it a tensor again. */
  private static Tensor throughJava(Tensor tensor) {
    final long[] shape = tensor.shape();
    final Tensor copy;
    switch (tensor.dtype()) {
      case FLOAT64:
        copy = Tensor.of(tensor.toDoubleArray(), shape);
        break;
      case FLOAT32:
        copy = Tensor.of(tensor.toFloatArray(), shape);
        break;
      case INT64:
        copy = Tensor.of(tensor.toLongArray(), shape);
        break;
      case INT32:
        copy = Tensor.of(integers(tensor), shape);
        break;
      case BOOL:
        copy = Tensor.of(tensor.toBooleanArray(), shape);
        break;
      case INT16:
      case INT8:
      case UINT8:
        copy = Tensor.of(tensor.asByteBuffer(), tensor.dtype(), shape);
        break;
      default:
        return tensor; // types without an array
    }
    return shaped(copy, shape);
  }

  /** The tensor in a shape without dimensions, for which the face's constructors make one of size 1. */
  static Tensor shaped(Tensor tensor, long[] shape) {
    return shape.length > 0 ? tensor : Addend.call("aten::reshape", tensor, shape).tensor(0);
  }

  private static int[] integers(Tensor tensor) {
    final int[] values = new int[(int) tensor.numel()];
    tensor.asIntBuffer().get(values);
    return values;
  }
}
