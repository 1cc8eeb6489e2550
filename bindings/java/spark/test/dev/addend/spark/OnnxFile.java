package dev.addend.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** An ONNX model, y = x w, with w in a file beside it: written as ONNX has it in Protocol Buffers. */
final class OnnxFile {
  private static final int FLOAT = 1;
  private static final int EXTERNAL = 1;

  private OnnxFile() {}

  /**
   * Writes the model and its weights.
   *
   * @param weights rows of w, one for each number of x
   * @return the file of the weights
   */
  static Path write(Path model, float[][] weights) throws IOException {
    final Path beside = model.resolveSibling(model.getFileName() + ".data");
    final int columns = weights.length;
    final int outputs = weights[0].length;
    final byte[] node = message(text(1, "x"), text(1, "w"), text(2, "y"), text(4, "MatMul"));
    final byte[] external = message(text(1, "location"), text(2, beside.getFileName().toString()));
    final byte[] w = message(number(1, columns), number(1, outputs), number(2, FLOAT), text(8, "w"), bytes(13, external),
        number(14, EXTERNAL));
    final byte[] graph = message(bytes(1, node), text(2, "two_files"), bytes(5, w), bytes(11, value("x", columns)),
        bytes(12, value("y", outputs)));
    Files.write(model, message(number(1, 8), bytes(7, graph), bytes(8, message(text(1, ""), number(2, 17)))));
    final ByteBuffer numbers = ByteBuffer.allocate(columns * outputs * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    for (float[] row : weights) {
      for (float number : row) {
        numbers.putFloat(number);
      }
    }
    return Files.write(beside, numbers.array());
  }

  /** The type of an input or of an output: [rows, count]. */
  private static byte[] value(String name, int count) {
    final byte[] shape = message(bytes(1, text(2, "rows")), bytes(1, number(1, count)));
    return message(text(1, name), bytes(2, bytes(1, message(number(1, FLOAT), bytes(2, shape)))));
  }

  private static byte[] message(byte[]... fields) {
    final ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (byte[] field : fields) {
      all.writeBytes(field);
    }
    return all.toByteArray();
  }

  private static byte[] text(int field, String text) {
    return bytes(field, text.getBytes(StandardCharsets.UTF_8));
  }

  private static byte[] bytes(int field, byte[] content) {
    return message(varint(field << 3 | 2), varint(content.length), content);
  }

  private static byte[] number(int field, int number) {
    return message(varint(field << 3), varint(number));
  }

  private static byte[] varint(int number) {
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    int left = number;
    for (; left > 127; left >>>= 7) {
      bytes.write(left & 127 | 128);
    }
    bytes.write(left);
    return bytes.toByteArray();
  }
}
