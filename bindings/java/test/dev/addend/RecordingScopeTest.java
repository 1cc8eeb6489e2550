package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class RecordingScopeTest extends ScopedTest {
  private final Tensor x = Tensor.of(new double[] {1, -2, 3}, 3);
  private final Tensor weight = Tensor.of(new double[] {2, 2, 2}, 3);

  private Request asked() {
    return Request.of(Map.of("x", Input.of(x))).parameter("scale.weight", weight);
  }

  /** The line of this file that calls this. */
  private static int here() {
    return new Throwable().getStackTrace()[1].getLineNumber();
  }

  private Tensor network(Tensor given) {
    return Addend.call("aten::relu", Addend.call("aten::mul", given, weight).tensor(0)).tensor(0);
  }

  @Test
  void becomesAProgram() {
    final RecordingScope scope = new RecordingScope(asked());
    scope.setModule("scale");
    final Tensor y = network(x);
    scope.setModule("");
    scope.addOutput(y);
    final Program program = scope.end();
    assertEquals(2, program.numOperators());
    assertEquals(List.of("x"), program.names(Program.ValueKind.INPUT));
    assertEquals(List.of("scale.weight"), program.names(Program.ValueKind.PARAMETER));
    final Tensor other = Tensor.of(new double[] {-4, 0.5, 8}, 3);
    assertArrayEquals(new double[] {0, 1, 16}, program.replay(other).tensor(0).toDoubleArray());
    final Composition parts =
        program.model().decompose(Input.of(other).splitAlong(0).baseline(0)).composition(0);
    assertArrayEquals(new double[] {0, 0, 0, 0, 1, 0, 0, 0, 16}, parts.components().toDoubleArray(), 1e-12);
  }

  @Test
  void buffersAreToldFromParameters() {
    final Request buffered = Request.of(Map.of("x", Input.of(x))).buffer("scale.mean", weight);
    final RecordingScope scope = new RecordingScope(buffered);
    scope.addOutput(network(x));
    final Program program = scope.end();
    assertEquals(List.of("scale.mean"), program.names(Program.ValueKind.BUFFER));
    assertEquals(List.of(), program.names(Program.ValueKind.PARAMETER));
  }

  @Test
  void operatorsStandUnderTheLinesThatCalledThem() {
    final RecordingScope scope = new RecordingScope(asked());
    final int line = here() + 1;
    final Tensor y = network(x);
    scope.addOutput(y);
    final Program program = scope.end();
    final Map<?, ?> code = JsonReader.object(program.codeJson(CodeOptions.defaults()));
    final String text = program.code();
    assertTrue(text.contains("dev/addend/RecordingScopeTest.java:" + line), text);
    // The lines of this method and of network() are shown, but none of Addend's own or of the test runner's.
    assertTrue(text.contains("operatorsStandUnderTheLinesThatCalledThem"), text);
    assertTrue(text.contains("network"), text);
    for (String stranger : List.of("junit", "Arguments.java", "Addend.java", "AddendNative", "reflect")) {
      assertFalse(text.contains(stranger), text);
    }
    assertEquals(2, ((List<?>) code.get("calls")).size());
  }

  @Test
  void linesMayBeLeftOut() {
    final RecordingScope scope = new RecordingScope(asked(), false);
    scope.addOutput(network(x));
    final String text = scope.end().code();
    assertFalse(text.contains("RecordingScopeTest"), text);
    assertTrue(text.contains("relu"), text);
  }

  @Test
  void whatTheLinesThrowReachesTheCaller() {
    final RuntimeException own = new IllegalStateException("no lines today");
    final RecordingScope scope = new RecordingScope(asked(), new FramesCallback(() -> {
      throw own;
    }));
    final AddendException ended = assertThrows(AddendException.class, () -> network(x));
    assertEquals(AddendException.Code.UNKNOWN, ended.code());
    assertSame(own, assertThrows(IllegalStateException.class, scope::end));
    // A recording that failed does not keep others from beginning.
    new RecordingScope(asked()).close();
    final IOException checked = new IOException("no lines today");
    final RecordingScope other = new RecordingScope(asked(), new FramesCallback(() -> {
      throw ContextTest.<RuntimeException>unchecked(checked);
    }));
    assertThrows(AddendException.class, () -> network(x));
    assertSame(checked, assertThrows(IOException.class, other::end));
  }

  @Test
  void aThreadHasOneAtATime() {
    try (RecordingScope first = new RecordingScope(asked())) {
      final AddendException error = assertThrows(AddendException.class, () -> new RecordingScope(asked()));
      assertEquals(AddendException.Code.FAILED_PRECONDITION, error.code());
      assertThrows(AddendException.class, () -> new TracingScope(asked()));
      assertThrows(NullPointerException.class, () -> first.addOutput(null));
      final AddendException none = assertThrows(AddendException.class, first::end);
      assertEquals(AddendException.Code.INVALID_ARGUMENT, none.code());
    }
    assertThrows(NullPointerException.class, () -> new RecordingScope(null));
    new RecordingScope(asked()).close();
  }
}
