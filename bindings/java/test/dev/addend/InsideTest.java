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

/** Splits that start inside a model, beside what plain PyTorch has computed of its second half. */
class InsideTest extends ScopedTest {
  private static final String HEADS = "aten::contiguous";

  private final Model model = Model.load(Models.CONFORMANCE.resolve("heads.pt"), DType.FLOAT64);
  private final Tensor table = Tensor.of(expected("table"), 4, 6);
  private final Tensor baseline = Tensor.of(expected("baseline"), 2, 3);
  private final Inside heads = Inside.of(HEADS).splitAlong(1).baseline(baseline);

  private static double[] expected(String name) {
    try (TensorFile file = TensorFile.read(Models.CONFORMANCE.resolve("heads.safetensors"))) {
      return file.tensor(name).toDoubleArray();
    }
  }

  private static void expect(double[] expected, Tensor found) {
    assertArrayEquals(expected, found.toDoubleArray(), 1e-6);
  }

  private Request asked() {
    return Request.of(Input.of(table));
  }

  @Test
  void isTheSecondHalfOfTheModel() {
    final Results results = model.decompose(asked().inside(heads.names(List.of("left"))).probe(HEADS));
    final Composition output = results.composition(0);
    assertEquals(2, output.numc());
    expect(expected("output"), output.value());
    expect(expected("reference"), output.reference());
    expect(expected("components"), output.components());
    expect(new double[8], output.leftover());
    expect(expected("heads"), results.tensor(1));
    final List<Contribution> contributions = results.explain(Target.element(0, 1)).contributions();
    assertEquals("left", contributions.get(0).name());
    assertEquals("position 1", contributions.get(1).name());
    // Inputs by name; a plain run and a recording use only the arguments and ignore the split inside.
    final Request named = Request.of(Map.of("table", Input.of(table))).inside(heads);
    expect(expected("components"), model.decompose(named).composition(0).components());
    expect(expected("output"), model.run(named).tensor(0));
    expect(expected("components"), model.record(named).model().decompose(named).composition(0).components());
  }

  @Test
  void isAttributedElementByElement() {
    final double[] elements = expected("elements"); // [2, 4, 2, 3]
    final Attribution rows = model.attribute(asked().inside(heads).eachExample(true).target(Target.element(1)));
    assertArrayEquals(new long[] {4, 2, 3}, rows.inside(0).shape());
    expect(Arrays.copyOfRange(elements, 24, 48), rows.inside(HEADS));
    assertSame(Results.Kind.NONE, rows.results().kind(1));
    assertThrows(AddendException.class, () -> rows.input("table"));
    assertThrows(IndexOutOfBoundsException.class, () -> rows.inside(1));
    assertThrows(IndexOutOfBoundsException.class, () -> rows.input(1));
    assertThrows(NoSuchElementException.class, () -> rows.inside("#0"));
    final Attribution one = model.attribute(asked().inside(heads).target(Target.element(2, 1)));
    assertArrayEquals(new long[] {1, 4, 2, 3}, one.inside(0).shape());
    final double[] own = new double[24];
    System.arraycopy(elements, 24 + 12, own, 12, 6);
    expect(own, one.inside(0));
    final double[] components = expected("components"); // [2, 4, 2]
    assertEquals(components[8 + 2 * 2 + 1], one.explain(0).contributions().get(1).value(), 1e-6);
  }

  @Test
  void splitsAreThoseOfTheTensorInside() {
    final double[] elements = expected("elements");
    final Inside neurons = Inside.of(HEADS).splitAlong(-2, -1).baseline(baseline);
    final double[] six = model.decompose(asked().inside(neurons)).composition(0).components().toDoubleArray();
    final Tensor labels = Tensor.of(new long[] {0, 1, 2, 3, 4, 5}, 1, 2, 3);
    final Inside labelled = Inside.of(HEADS).splitByLabels(labels).baseline(baseline).firstComponent(1);
    final double[] seven = model.decompose(asked().inside(labelled)).composition(0).components().toDoubleArray();
    assertEquals(7 * 8, seven.length);
    for (int k = 0; k < 6 * 8; k++) {
      final int component = k / 8;
      final int row = k / 2 % 4;
      final int column = k % 2;
      assertEquals(elements[column * 24 + row * 6 + component], six[k], 1e-6);
      assertEquals(six[k], seven[8 + k], 1e-12);
    }
  }

  @Test
  void tellsWhatDoesNotFit() {
    refused("nothing inside the model is called nowhere", asked().inside(Inside.of("nowhere").splitAlong(1)));
    refused("does not call aten::conv2d", asked().inside(Inside.of("aten::conv2d").splitAlong(1)));
    refused("split along dimensions or by labels", asked().inside(Inside.of(HEADS).baseline(0)));
    refused("of shape f64[4, 2, 3] has no dimension 3", asked().inside(Inside.of(HEADS).splitAlong(3)));
    refused("a baseline of shape f64[4, 6]", asked().inside(Inside.of(HEADS).splitAlong(1).baseline(table)));
    refused("the arguments are plain", Request.of(Input.of(table).splitAlong(1)).inside(heads));
    refused("the arguments are plain", Request.of(Input.of(table).splitIntoParts(Tensor.of(expected("table"), 1, 4, 6)))
        .inside(heads));
    refused("depends on another split", asked().inside(heads).inside(Inside.of("aten::softmax").splitAlong(0)));
    refused("already", asked().inside(heads).inside(heads));
    final AddendException shapley =
        assertThrows(AddendException.class, () -> model.shapley(asked().inside(heads)));
    assertTrue(shapley.getMessage().contains("is inside the model"), shapley.getMessage());
    assertThrows(NullPointerException.class, () -> Inside.of(null));
    assertThrows(NullPointerException.class, () -> asked().inside(null));
    assertThrows(NullPointerException.class, () -> heads.splitByLabels(null));
  }

  private void refused(String message, Request request) {
    final Request targeted = request.target(Target.element(0, 0));
    for (final AddendException error : List.of(
        assertThrows(AddendException.class, () -> model.decompose(targeted)),
        assertThrows(AddendException.class, () -> model.attribute(targeted)))) {
      assertTrue(error.getMessage().contains(message), error.getMessage());
    }
  }
}
