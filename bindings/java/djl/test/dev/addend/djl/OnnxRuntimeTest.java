package dev.addend.djl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtSession;
import dev.addend.Contribution;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Request;
import dev.addend.Target;
import dev.addend.Tensor;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** ONNX Runtime computes in the same process, between two attributions that stay the same. */
class OnnxRuntimeTest extends Beside {
  private static List<Double> attribute() {
    try (Model model = Model.load(BREAST_CANCER.resolve("model.pt")); Tensor row = Tensor.of(rows()[0], 1, COLUMNS)) {
      return model.attribute(Request.of(Input.of(row).splitAlong(1).baseline(0)).target(Target.element(0, 1)))
          .explain(0)
          .contributions()
          .stream()
          .map(Contribution::value)
          .collect(Collectors.toList());
    }
  }

  @Test
  void onnxRuntimeComputesBesideAddend() throws Exception {
    final List<Double> before = attribute();
    final OrtEnvironment environment = OrtEnvironment.getEnvironment();
    try (OrtSession session = environment.createSession(reluOfMinus(4));
        OnnxTensor x = OnnxTensor.createTensor(environment, new float[][] {{1, -2, 0.5f, -4}});
        OrtSession.Result result = session.run(Map.of("x", x))) {
      assertArrayEquals(new float[] {0, 2, 0, 4}, ((float[][]) result.get(0).getValue())[0]);
    }
    assertEquals(before, attribute());
  }

  /** A model file of ONNX: y = Relu(Neg(x)) of x [1, columns]. Numbers are those of fields in ONNX's protocol buffers. */
  private static byte[] reluOfMinus(int columns) {
    final byte[] graph = message(
        field(1, node("Neg", "x", "h")),
        field(1, node("Relu", "h", "y")),
        field(2, text("graph")),
        field(11, value("x", columns)),
        field(12, value("y", columns)));
    return message(number(1, 8), field(8, message(number(2, 13))), field(7, graph));
  }

  private static byte[] node(String operator, String input, String output) {
    return message(field(1, text(input)), field(2, text(output)), field(4, text(operator)));
  }

  private static byte[] value(String name, int columns) {
    final byte[] shape = message(field(1, message(number(1, 1))), field(1, message(number(1, columns))));
    final byte[] tensor = message(number(1, 1), field(2, shape)); // of floats
    return message(field(1, text(name)), field(2, message(field(1, tensor))));
  }

  private static byte[] text(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** Values here are below 128, one byte each; so are lengths but that of the graph. */
  private static byte[] number(int field, int value) {
    return new byte[] {(byte) (field << 3), (byte) value};
  }

  private static byte[] field(int field, byte[] contents) {
    final ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(field << 3 | 2);
    int length = contents.length;
    for (; length > 127; length >>= 7) {
      out.write(length & 127 | 128);
    }
    out.write(length);
    out.writeBytes(contents);
    return out.toByteArray();
  }

  private static byte[] message(byte[]... fields) {
    final ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (byte[] field : fields) {
      out.writeBytes(field);
    }
    return out.toByteArray();
  }
}
