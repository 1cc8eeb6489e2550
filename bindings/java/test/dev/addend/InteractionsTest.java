package dev.addend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Locale;
import org.junit.jupiter.api.Test;

/** Interactions and several baselines, against attributions that are asked for one by one. */
class InteractionsTest extends ScopedTest {
  private static final String TENS = "{\"format\": \"addend.concepts\", \"version\": 1, \"concepts\": ["
      + "{\"name\": \"Tens\", \"components\": [\"column 1*\"]}, {\"name\": \"Rest\", \"components\": [\"column 2*\"]}]}";

  private final Model model = Model.load(Models.BREAST_CANCER.resolve("model.pt"), DType.FLOAT64);
  private final double[] all = Models.heldOut(Models.BREAST_CANCER).toDoubleArray();

  private Input row(int number) {
    return Input.of(Tensor.of(Arrays.copyOfRange(all, number * 30, number * 30 + 30), 1, 30)).splitAlong(1);
  }

  private Explanation explain(Input input) {
    return model.attribute(Request.of(input).target(Target.element(1))).explain(0);
  }

  @Test
  void rowsAddUpAndEntriesAreDifferences() {
    final Interactions found =
        model.interactions(Request.of(row(0).baseline(0)).target(Target.element(1)), Concepts.read(TENS));
    final Explanation whole = explain(row(0).baseline(0));
    assertEquals("Tens", found.names().get(0));
    assertEquals(2 + 30 - 11 - 11, found.names().size());
    final double[] without = Arrays.copyOf(all, 30);
    Arrays.fill(without, 10, 20, 0);
    without[1] = 0;
    final Explanation other = explain(Input.of(Tensor.of(without, 1, 30)).splitAlong(1).baseline(0));
    double rest = whole.contributions().get(2).value() - other.contributions().get(2).value();
    for (int column = 20; column < 30; column++) {
      rest += whole.contributions().get(column).value() - other.contributions().get(column).value();
    }
    assertEquals(rest, found.row(1)[0], 1e-9);
    for (int group = 0; group < found.names().size(); group++) {
      assertEquals(found.contributions()[group], Arrays.stream(found.row(group)).sum(), 1e-12);
    }
    assertTrue(found.asymmetry() >= 0 && found.asymmetry() <= 1);
    assertTrue(found.toString().startsWith(String.format(Locale.ROOT, "Tens %.4g, ", found.contributions()[0])), found.toString());
    assertTrue(found.toJson().contains("\"format\":\"addend.interactions\""));
    assertTrue(found.toHtml().contains("addend.interactions"));
  }

  @Test
  void severalBaselinesGiveMeans() {
    final Tensor both = Tensor.of(Arrays.copyOfRange(all, 30, 90), 2, 30);
    final Explanation mean = explain(row(0).baselines(both));
    final Explanation one = explain(row(0).baseline(Tensor.of(Arrays.copyOfRange(all, 30, 60), 1, 30)));
    final Explanation other = explain(row(0).baseline(Tensor.of(Arrays.copyOfRange(all, 60, 90), 1, 30)));
    assertEquals(2, mean.numBaselines());
    assertEquals(1, one.numBaselines());
    assertTrue(Double.isNaN(one.standardErrors()[0]));
    assertEquals((one.reference() + other.reference()) / 2, mean.reference(), 1e-9);
    for (int column = 0; column < 30; column++) {
      final double a = one.contributions().get(column).value();
      final double b = other.contributions().get(column).value();
      assertEquals((a + b) / 2, mean.contributions().get(column).value(), 1e-9);
      assertEquals(Math.abs(a - b) / 2, mean.standardErrors()[column], 1e-9);
      assertEquals(a * b > 0 ? 1 : 0.5, mean.sameSign()[column], a == 0 || b == 0 ? 0.5 : 0);
    }
    final Request decomposed = Request.of(row(0).baselines(both));
    assertThrows(AddendException.class, () -> model.decompose(decomposed));
  }
}
