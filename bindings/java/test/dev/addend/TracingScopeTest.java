package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class TracingScopeTest extends ScopedTest {
  private final Tensor x = Tensor.of(new double[] {1, -2, 3}, 3);

  private Request asked() {
    return Request.of(Input.of(x).splitAlong(0).baseline(0));
  }

  @Test
  void decomposesAModelThatJavaRuns() {
    final Tensor weight = Tensor.of(new double[] {2, 2, 2}, 3);
    final TracingScope tracing = new TracingScope(asked().parameter("scale.weight", weight));
    tracing.setModule("scale");
    final Tensor doubled = Addend.call("aten::mul", x, weight).tensor(0);
    // A branch on what was computed.
    final Tensor y = doubled.toDoubleArray()[0] > 0 ? Addend.call("aten::relu", doubled).tensor(0) : doubled;
    tracing.addOutput("y", y);
    final Results results = tracing.end();
    assertEquals(List.of("y"), results.names());
    final Composition composition = results.composition("y");
    assertArrayEquals(new double[] {2, 0, 0, 0, 0, 0, 0, 0, 6}, composition.components().toDoubleArray(), 1e-12);
    assertArrayEquals(new double[] {2, 0, 6}, composition.value().toDoubleArray());
    assertTrue(results.reportJson().contains("scale.weight"), results.reportJson());
  }

  @Test
  void modulesMeanWhatTheyReturned() {
    final TracingScope tracing = new TracingScope(asked().probe("pair:0").probe("pair"));
    final Tensor doubled = Addend.call("aten::mul", x, 2.0).tensor(0);
    final Tensor tripled = Addend.call("aten::mul", x, 3.0).tensor(0);
    tracing.addModuleOutputs("pair", tripled, doubled);
    tracing.addModuleOutputs("none");
    tracing.addOutput("y", Addend.call("aten::relu", doubled).tensor(0));
    final Results results = tracing.end();
    assertArrayEquals(new double[] {3, -6, 9}, results.composition("pair:0").value().toDoubleArray());
    // The other one is read.
    assertArrayEquals(new double[] {2, -4, 6}, results.composition("pair").value().toDoubleArray());
  }

  @Test
  void notesTellTheLinesAndTheReferenceIsVerified() {
    try (TracingScope tracing = new TracingScope(asked())) {
      final Tensor above = Addend.call("aten::gt", x, 1.5).tensor(0);
      final Tensor y = Addend.call("aten::add", Addend.call("aten::mul", x, above).tensor(0), 2.0).tensor(0);
      tracing.addOutput("y", y);
      final Tensor baseline = tracing.baseline(0);
      assertArrayEquals(new double[] {0, 0, 0}, baseline.toDoubleArray());
      tracing.addOnBaseline("y", Addend.call("aten::add", baseline, 3.0).tensor(0));
      final Report report = tracing.end().report();
      assertTrue(String.join(" ", report.notes()).contains("TracingScopeTest.java:"), report.notes().toString());
      assertEquals("no", report.referenceIsModelOnBaseline());
      assertEquals(1.0 / 3, report.referenceError(), 1e-12);
    }
  }

  @Test
  void aThreadHasOneAtATime() {
    try (TracingScope first = new TracingScope(asked())) {
      final AddendException error = assertThrows(AddendException.class, () -> new TracingScope(asked()));
      assertEquals(AddendException.Code.FAILED_PRECONDITION, error.code());
      assertThrows(AddendException.class, () -> Composition.diagonal(x, null, 0).relu());
    }
    new TracingScope(asked()).close();
  }

  @Test
  void outputsHaveToBeWhatOperatorsMet() {
    final Tensor other = Tensor.of(new double[] {4, 5}, 2);
    try (TracingScope tracing = new TracingScope(asked())) {
      final AddendException error = assertThrows(AddendException.class, () -> tracing.addOutput("other", other));
      assertEquals(AddendException.Code.NOT_FOUND, error.code());
      assertThrows(NullPointerException.class, () -> tracing.addOutput(null, other));
      assertThrows(AddendException.class, tracing::end);
    }
  }
}
