package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.Test;

class AttributionTest extends ScopedTest {
  private static double sum(double[] values) {
    return Arrays.stream(values).sum();
  }

  private static double[] contributions(Explanation explanation) {
    return explanation.contributions().stream().mapToDouble(Contribution::value).toArray();
  }

  @Test
  void findsBackwardWhatDecomposingFindsForward() {
    final Model model = Models.load(Models.DIGITS);
    final Tensor image = Models.sample(Models.DIGITS);
    final Request asked = Request.of(Input.of(image).splitAlong(2, 3).baseline(0))
        .target(Target.element(8))
        .target(Target.difference(new long[] {0, 8}, new long[] {0, 3}));
    final Attribution found = model.attribute(asked);
    final Results decomposed = model.decompose(asked);
    assertEquals(2, found.size());
    assertArrayEquals(new long[] {2, 1, 1, 8, 8}, found.input(0).shape());
    final double[] elements = found.input("image").toDoubleArray();
    int position = 0;
    for (Target target : List.of(Target.element(8), Target.parse("8-3"))) {
      final Explanation expected = decomposed.explain(target);
      final Explanation explanation = found.explain(position);
      assertEquals(expected.target(), explanation.target());
      assertEquals(expected.value(), explanation.value(), 1e-5);
      assertArrayEquals(contributions(expected), contributions(explanation), 1e-5);
      assertArrayEquals(
          contributions(expected), Arrays.copyOfRange(elements, position * 64, position * 64 + 64), 1e-5);
      assertEquals(expected.contributions().get(9).name(), explanation.contributions().get(9).name());
      position++;
    }
    assertEquals("[0, 8]", found.explain(0).target());
    assertEquals("[0, 8] minus [0, 3]", found.explanations().get(1).target());
    assertArrayEquals(model.run(image).tensor(0).toFloatArray(), found.value().toFloatArray());
    assertEquals("[0, 8]", model.attribute(Request.of(Input.of(image).splitAlong(2))).explain(0).target());
  }

  @Test
  void explainsWhatASoftmaxSays() {
    final Model model = Models.load(Models.DIGITS);
    final Tensor image = Models.sample(Models.DIGITS);
    Request asked = Request.of(Input.of(image).splitAlong(2, 3).baseline(0));
    final List<Target> targets = List.of(
        Target.logProbability(8), Target.probability(), Target.entropy(), Target.sum(Target.element(3), Target.entropy()));
    for (Target target : targets) {
      asked = asked.target(target);
    }
    final Attribution found = model.attribute(asked);
    final Results decomposed = model.decompose(asked);
    final double[] logits = found.value().toDoubleArray();
    final double total = Math.log(Arrays.stream(logits).map(Math::exp).sum());
    final double[] logarithms = Arrays.stream(logits).map(x -> x - total).toArray();
    final double entropy = -Arrays.stream(logarithms).map(x -> Math.exp(x) * x).sum();
    final double[] values = {logarithms[8], Math.exp(logarithms[8]), entropy, logits[3] + entropy};
    for (int k = 0; k < values.length; k++) {
      final Explanation expected = decomposed.explain(targets.get(k));
      assertEquals(values[k], found.explain(k).value(), 1e-5);
      assertEquals(expected.target(), found.explain(k).target());
      assertArrayEquals(contributions(expected), contributions(found.explain(k)), 1e-5);
      assertEquals(found.explain(k).value(), found.explain(k).recovery(), 1e-4);
      assertEquals(targets.get(k), Target.parse(targets.get(k).toString()));
    }
    assertEquals("log-probability of [0, 8]", found.explain(0).target());
    assertEquals("log_probability:0,8", Target.logProbability(0, 8).toString());
    assertEquals("probability:top1", Target.probability().toString());
    assertEquals("entropy:5", Target.entropy(5).toString());
    assertEquals("continuation:12,55,7", Target.continuation(12, 55, 7).toString());
    assertEquals("sum:3+entropy", targets.get(3).toString());
    assertThrows(IllegalArgumentException.class, () -> Target.continuation());
    assertThrows(IllegalArgumentException.class, () -> Target.sum());
  }

  @Test
  void givesEachExampleATargetOfItsOwn() {
    final Model model = Model.load(Models.BREAST_CANCER.resolve("model.pt"), DType.FLOAT64);
    final double[] all = Models.heldOut(Models.BREAST_CANCER).toDoubleArray();
    final Tensor rows = Tensor.of(Arrays.copyOf(all, 4 * 30), 4, 30);
    final int[] targets = {0, 1, 1, 0};
    Request asked = Request.of(Input.of(rows).splitAlong(1).baseline(2)).eachExample(true);
    final Attribution one = model.attribute(asked.target(Target.element(1)));
    for (int target : targets) {
      asked = asked.target(Target.element(target));
    }
    final Attribution found = model.attribute(asked);
    assertEquals(4, found.size());
    assertArrayEquals(new long[] {4, 30}, found.input(0).shape());
    final double[] elements = found.input(0).toDoubleArray();
    for (int row = 0; row < 4; row++) {
      final Tensor alone = Tensor.of(Arrays.copyOfRange(all, row * 30, row * 30 + 30), 1, 30);
      final Explanation expected = model.decompose(Input.of(alone).splitAlong(1).baseline(2))
          .explain(Target.element(0, targets[row]));
      final double[] own = Arrays.copyOfRange(elements, row * 30, row * 30 + 30);
      assertArrayEquals(contributions(expected), own, 1e-9);
      assertEquals(expected.leftover(), found.explain(row).leftover(), 1e-9);
      assertEquals(expected.value() - expected.reference(), sum(own) + expected.leftover(), 1e-9);
    }
    assertArrayEquals(
        Arrays.copyOfRange(elements, 30, 90), Arrays.copyOfRange(one.input(0).toDoubleArray(), 30, 90), 1e-12);
    final Attribution every = model.attribute(Request.of(Input.of(rows).splitAlong(1).baseline(2))
        .eachExample(true).everyTarget(true).target(Target.element(0)).target(Target.element(1)));
    assertEquals(8, every.size());
    assertArrayEquals(new long[] {2, 4, 30}, every.input(0).shape());
    final double[] ofEvery = every.input(0).toDoubleArray();
    for (int row = 0; row < 4; row++) {
      final int own = (targets[row] * 4 + row) * 30;
      assertArrayEquals(Arrays.copyOfRange(elements, row * 30, row * 30 + 30),
          Arrays.copyOfRange(ofEvery, own, own + 30), 1e-12);
    }
    final Request wrong = Request.of(Input.of(rows).splitAlong(1)).eachExample(true)
        .target(Target.element(0)).target(Target.element(1));
    assertThrows(AddendException.class, () -> model.attribute(wrong));
  }

  @Test
  void explainsInnerTensorsAndOperators() {
    final Model model = Models.load(Models.BREAST_CANCER);
    final Request asked = Request.of(Input.of(Models.sample(Models.BREAST_CANCER)).splitAlong(1).baseline(0));
    final Attribution inner = model.attribute(asked.at("aten::relu:0").target(Target.element(0, 3)).operators(true));
    final Explanation expected = model.decompose(asked.probe("aten::relu:0")).explain("aten::relu:0", Target.element(0, 3));
    assertArrayEquals(contributions(expected), contributions(inner.explain(0)), 1e-4);
    assertEquals("aten::relu:0", inner.results().names().get(0));
    final List<AttributedOperator> operators = inner.operators();
    final AttributedOperator first = operators.get(0);
    assertEquals("aten::sub", first.op());
    assertEquals(0, first.output());
    assertTrue(first.call().startsWith("sub.Tensor(f32[1, 30]"), first.call());
    assertEquals("", first.module());
    // In a chain all of it passes through every operator.
    assertEquals(1, first.passed().length);
    assertEquals(expected.value() - expected.reference(), first.passed()[0], 1e-4);
    assertEquals(1, first.leftover().length);
    final AttributedOperator linear =
        operators.stream().filter(operator -> operator.op().equals("aten::linear")).findFirst().orElseThrow();
    assertEquals("aten::linear in layers.0", linear.toString());
    assertTrue(linear.index() > first.index());
    assertEquals(List.of(), model.attribute(asked).operators());
  }

  @Test
  void hasATensorForEachInput() {
    final Model model = Model.load(Models.CONFORMANCE.resolve("oracle_two_inputs.pt"), DType.FLOAT64);
    final Tensor a = Tensor.of(new double[] {1, 2, 3}, 1, 3);
    final Tensor b = Tensor.of(new double[] {0.5, 4, 7}, 1, 3);
    final Attribution both = model.attribute(
        Request.of(Map.of("b", Input.of(b).splitAlong(1), "a", Input.of(a).splitAlong(1))).target(Target.element(0, 0)));
    // relu(3 a0 + a1) + relu(2 b0 + 3 b1), all of it positive.
    assertArrayEquals(new long[] {1, 1, 3}, both.input("a").shape());
    assertArrayEquals(new double[] {3, 2, 0}, both.input("a").toDoubleArray(), 1e-12);
    assertArrayEquals(new double[] {1, 12, 0}, both.input(1).toDoubleArray(), 1e-12);
    assertEquals(18, both.explain(0).value(), 1e-12);
    // Plain inputs get no attribution.
    final Attribution left = model.attribute(Request.of(Input.of(a).splitAlong(1), Input.of(b)));
    assertSame(Results.Kind.NONE, left.results().kind(2));
    assertThrows(AddendException.class, () -> left.input("b"));
    assertThrows(IndexOutOfBoundsException.class, () -> left.input(2));
    assertThrows(IndexOutOfBoundsException.class, () -> left.input(-1));
    assertThrows(NoSuchElementException.class, () -> left.input("c"));
  }

  @Test
  void isDataAndAPage() {
    final Model model = Models.load(Models.DIGITS);
    final Attribution found = model.attribute(
        Request.of(Input.of(Models.sample(Models.DIGITS)).splitAlong(2, 3).baseline(0)).target(Target.element(8)));
    assertTrue(found.toHtml().contains("</html>"));
    assertEquals(1, ((List<?>) JsonReader.object(found.toJson()).get("targets")).size());
    final Report report = found.results().report();
    assertTrue(report.operators() > 5);
    assertTrue(report.notes().stream().anyMatch(note -> note.contains("preset auto")), report.notes().toString());
  }

  @Test
  void saysWhatAReaderHasToKnow() {
    final Model model = Model.load(Models.CONFORMANCE.resolve("oracle_two_inputs.pt"), DType.FLOAT64);
    final Tensor a = Tensor.of(new double[] {1, 2, Double.NaN}, 1, 3);
    final Tensor b = Tensor.of(new double[] {0.5, 4, 7}, 1, 3);
    final Attribution found = model.attribute(
        Request.of(Input.of(a).splitAlong(1).baseline(0), Input.of(b)).target(Target.element(0, 0)));
    assertEquals(found.results().notes(), found.notes());
    assertTrue(found.notes().stream().anyMatch(note -> note.startsWith("preset auto")), found.notes().toString());
    // The preset is a remark.
    assertTrue(found.warnings().stream().noneMatch(note -> note.startsWith("preset auto")), found.warnings().toString());
    assertTrue(found.warnings().stream().anyMatch(note -> note.contains("holds NaN")), found.warnings().toString());
    assertEquals(found.results().report().warnings(), found.warnings());
    assertTrue(found.toString().startsWith(found.explain(0).toString()), found.toString());
    assertTrue(found.toString().contains("Warning: " + found.warnings().get(0)), found.toString());
  }

  @Test
  void refusesWhatItCannotExplain() {
    final Model model = Models.load(Models.DIGITS);
    final Request asked = Request.of(Input.of(Models.sample(Models.DIGITS)).splitAlong(2).baseline(0));
    for (String target : List.of("", "99", "0,0,0", "8-", "nonsense", "\u4e2d")) {
      final AddendException error =
          assertThrows(AddendException.class, () -> model.attribute(asked.target(Target.parse(target))), target);
      assertEquals(AddendException.Code.INVALID_ARGUMENT, error.code());
    }
    assertThrows(AddendException.class, () -> model.attribute(asked.at("no.such.module")));
    assertThrows(AddendException.class, () -> model.attribute(asked.eachExample(true).target(Target.element(0, 8))));
    assertThrows(NullPointerException.class, () -> model.attribute(null));
    assertThrows(NullPointerException.class, () -> asked.target(null));
    final Context together = Context.of(Policy.defaults().with("bias", "abs"));
    assertEquals(
        AddendException.Code.FAILED_PRECONDITION,
        assertThrows(AddendException.class, () -> model.attribute(asked, together)).code());
    final Attribution found = model.attribute(asked);
    assertThrows(AddendException.class, () -> found.explain(1));
    assertThrows(AddendException.class, () -> found.explain(-1));
    found.close();
    assertThrows(IllegalStateException.class, found::size);
    assertThrows(IllegalStateException.class, () -> found.input(0));
    assertThrows(IllegalStateException.class, found::toJson);
  }

  @Test
  void progressEndsTheRun() {
    final Model model = Models.load(Models.DIGITS);
    final Request asked = Request.of(Input.of(Models.sample(Models.DIGITS)).splitAlong(2).baseline(0));
    final Context context = Context.builder().onProgress((stage, done, total) -> {
      if (stage.equals("sweep")) {
        throw new UnsupportedOperationException("enough");
      }
      return true;
    }).build();
    assertEquals(
        "enough",
        assertThrows(UnsupportedOperationException.class, () -> model.attribute(asked, context)).getMessage());
    final Cancellation cancellation = new Cancellation();
    cancellation.cancel();
    assertEquals(
        AddendException.Code.CANCELLED,
        assertThrows(AddendException.class, () -> model.attribute(asked.cancellation(cancellation))).code());
  }
}
