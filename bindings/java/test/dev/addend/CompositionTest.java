package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class CompositionTest extends ScopedTest {
  @Test
  void diagonalSplitsAlongDimensions() {
    final Tensor value = Tensor.of(new double[] {1, 2, 3, 4}, 2, 2);
    final Composition rows = Composition.diagonal(value, null, 0);
    assertEquals(2, rows.numc());
    assertArrayEquals(new long[] {2, 2}, rows.shape());
    assertEquals(DType.FLOAT64, rows.dtype());
    assertEquals("cpu", rows.device());
    assertArrayEquals(new double[] {1, 2, 0, 0, 0, 0, 3, 4}, rows.components().toDoubleArray());
    assertArrayEquals(new long[] {2, 2, 2}, rows.components().shape());
    assertArrayEquals(new double[] {0, 0, 3, 4}, rows.component(1).toDoubleArray());
    assertArrayEquals(new double[4], rows.residual().toDoubleArray());
  }

  @Test
  void diagonalTakesBaselineAndPlace() {
    final Tensor value = Tensor.of(new double[] {1, 2});
    final Tensor baseline = Tensor.of(new double[] {0.5, 0.5});
    final Composition x = Composition.diagonal(value, baseline, 1, 4, new long[] {0});
    assertArrayEquals(new double[] {0, 0, 0.5, 0, 0, 1.5, 0, 0}, x.components().toDoubleArray());
    assertArrayEquals(new double[] {0.5, 0.5}, x.reference().toDoubleArray());
    assertArrayEquals(new double[] {0, 0}, x.leftover().toDoubleArray());
    assertArrayEquals(new double[] {1, 2}, x.recovery().toDoubleArray());
    assertArrayEquals(new double[] {1, 2}, x.value().toDoubleArray());
  }

  @Test
  void labelsGroupElements() {
    final Tensor value = Tensor.of(new float[] {1, 2, 3});
    final Tensor labels = Tensor.of(new long[] {1, -1, 1});
    final Composition x = Composition.fromLabels(value, labels, null);
    assertArrayEquals(new float[] {0, 0, 0, 1, 0, 3}, x.components().toFloatArray());
    assertArrayEquals(new float[] {0, 2, 0}, x.reference().toFloatArray());
    assertEquals(5, Composition.fromLabels(value, labels, null, 5).numc());
  }

  @Test
  void partsAreTakenAsGiven() {
    final Composition x = Composition.of(
        Tensor.of(new double[] {1, 2, 3, 4}, 2, 2), Tensor.of(new double[] {10, 20}), Tensor.of(new double[] {5, 6}));
    assertArrayEquals(new double[] {15, 26}, x.residual().toDoubleArray());
    assertArrayEquals(new double[] {19, 32}, x.recovery().toDoubleArray());
    final Composition second = x.selectComponents(-1);
    assertEquals(1, second.numc());
    assertArrayEquals(new double[] {18, 30}, second.recovery().toDoubleArray());
    assertArrayEquals(new double[] {3, 4}, x.selectComponentsAlone(1).recovery().toDoubleArray());
  }

  @Test
  void operatorsDistributeOverParts() {
    final Composition x = Composition.diagonal(Tensor.of(new double[] {1, 2}), null, 0);
    final Tensor weight = Tensor.of(new double[] {1, 2, 3, 4, 5, 6}, 3, 2);
    final Tensor bias = Tensor.of(new double[] {0.5, 0.25, 0.125});
    final Composition y = x.linear(weight, bias);
    // Column i of the weight times x_i; the bias is the reference.
    assertArrayEquals(new double[] {1, 3, 5, 4, 8, 12}, y.components().toDoubleArray());
    assertArrayEquals(new double[] {0.5, 0.25, 0.125}, y.reference().toDoubleArray());
    // A power of one variable: the secant slope from zero is x^2 / x.
    assertArrayEquals(new double[] {1, 0, 0, 4}, x.square().components().toDoubleArray(), 1e-12);
  }

  @Test
  void explanationsAreSums() {
    final Composition x = Composition.diagonal(Tensor.of(new double[] {1, -3, 2}), null, 0);
    final Explanation e = x.mul(2).add(1).sum().explain(Target.largest());
    assertEquals(3, e.value(), 1e-12);
    assertEquals(3, e.reference(), 1e-12);
    assertEquals(0, e.leftover(), 1e-12);
    assertEquals(e.value(), e.recovery(), 1e-12);
    assertEquals(e.recovery() - e.value(), e.recoveryError(), 1e-12);
    assertEquals(15, e.mass(), 1e-12);
    assertEquals(3, e.contributions().size());
    assertEquals(-6, e.top(1).get(0).value(), 1e-12);
    assertEquals(1, e.top(1).get(0).component());
    assertEquals(2, e.top(2).get(1).component());
    assertEquals(3, e.top(99).size());
    assertTrue(e.toJson().startsWith("{"), e.toJson());
    assertTrue(e.toHtml().contains("<html"), "no page");
    assertTrue(e.toSvg().startsWith("<svg ") && e.toSvg().endsWith("</svg>\n"), e.toSvg());
    assertTrue(e.toString().contains("3 contributions"), e.toString());
  }

  @Test
  void differencesAreExplained() {
    final Composition x = Composition.diagonal(Tensor.of(new double[] {1, 4}), null, 0);
    final Explanation e = x.explain(Target.difference(new long[] {1}, new long[] {0}));
    assertEquals(3, e.value());
    assertEquals(-1, e.contributions().get(0).value());
    assertEquals(0, e.leftover());
    assertEquals("1-0", Target.difference(new long[] {1}, new long[] {0}).toString());
    assertEquals(Target.largest(), Target.parse("top1"));
  }

  @Test
  void explanationsOutliveWhatTheyExplain() {
    final Explanation e;
    try (Composition x = Composition.diagonal(Tensor.of(new double[] {1, 4}), null, 0)) {
      e = x.explain(Target.largest());
    }
    assertEquals(4, e.value());
    assertEquals("[1]", e.target());
    assertTrue(e.toJson().contains("4"));
  }

  @Test
  void gradientsAreThoseOfFiniteDifferences() {
    final double[] values = {0.3, -0.7, 1.1};
    final Composition x = Composition.inGraph(
        Tensor.of(new double[] {0.1, -0.2, 0.3, 0.2, -0.5, 0.8}, 2, 3), Tensor.of(new double[3]), null);
    final Tensor cotangentParts = Tensor.of(new double[] {1, 2, 3, 1, 2, 3}, 2, 3);
    final Composition ones = Composition.of(
        cotangentParts, Tensor.of(new double[] {1, 2, 3}), Tensor.of(new double[] {1, 2, 3}));
    final Composition gradient = x.mul(x).grad(x, ones);
    // With equal cotangents for all parts, the sum of the parts is value^2: its gradient is 2 value.
    final double[] component = gradient.component(0).toDoubleArray();
    for (int i = 0; i < 3; i++) {
      final double h = 1e-6;
      final double numeric =
          (i + 1) * (Math.pow(values[i] + h, 2) - Math.pow(values[i] - h, 2)) / (2 * h);
      assertEquals(numeric, component[i], 1e-8);
    }
  }

  @Test
  void gradientsNeedAGraph() {
    final Composition x = Composition.diagonal(Tensor.of(new double[] {1, 4}), null, 0);
    final Composition y = x.mul(2);
    final AddendException error = assertThrows(AddendException.class, () -> y.grad(x, y));
    assertEquals(AddendException.Code.FAILED_PRECONDITION, error.code());
  }

  @Test
  void closedCompositionsSaySo() {
    final Composition x = Composition.diagonal(Tensor.of(new double[] {1, 4}), null, 0);
    final Composition y = Composition.diagonal(Tensor.of(new double[] {1, 4}), null, 0);
    x.close();
    assertEquals(
        "the composition is closed", assertThrows(IllegalStateException.class, x::numc).getMessage());
    assertThrows(IllegalStateException.class, () -> x.softmax(0));
    assertThrows(IllegalStateException.class, () -> y.add(x));
    assertThrows(IllegalStateException.class, () -> y.grad(x, y));
    assertEquals("closed composition", x.toString());
    assertTrue(y.toString().startsWith("composition 0:"), y.toString());
  }

  @Test
  void positionsAreChecked() {
    final Composition x = Composition.diagonal(Tensor.of(new double[] {1, 4}), null, 0);
    assertEquals(
        AddendException.Code.OUT_OF_RANGE,
        assertThrows(AddendException.class, () -> x.component(2)).code());
    assertThrows(AddendException.class, () -> x.explain(Target.parse("nonsense")));
    assertThrows(AddendException.class, () -> x.explain(Target.element(9)));
    assertEquals("()", Target.element().toString());
    assertThrows(AddendException.class, () -> x.explain(Target.element()));
    assertThrows(AddendException.class, () -> Composition.diagonal(Tensor.of(new double[2]), null, 5));
    assertThrows(AddendException.class, () -> Composition.of(null, null));
  }
}
