package dev.addend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class ReasonsTest extends ScopedTest {
  private static final String TENS = "{\"format\": \"addend.concepts\", \"version\": 1, \"at_most\": 30, \"concepts\": ["
      + "{\"name\": \"Tens\", \"components\": [\"column 1*\"], \"text\": \"{concept} {contribution}\"},"
      + "{\"name\": \"Rest\", \"components\": [\"column 2*\", \"column 3\"]}]";

  private static Attribution rows(int count) {
    final Model model = Model.load(Models.BREAST_CANCER.resolve("model.pt"), DType.FLOAT64);
    final double[] all = Models.heldOut(Models.BREAST_CANCER).toDoubleArray();
    final Tensor rows = Tensor.of(Arrays.copyOf(all, count * 30), count, 30);
    return model.attribute(
        Request.of(Input.of(rows).splitAlong(1).baseline(0)).eachExample(true).target(Target.element(1)));
  }

  @Test
  void sumsConceptsInOrderOfSize() {
    final Attribution found = rows(4);
    final Reasons reasons = found.reasons(Concepts.read(TENS + "}"));
    assertEquals(4, reasons.decisions().size());
    for (int row = 0; row < 4; row++) {
      final Decision decision = reasons.decisions().get(row);
      final List<Contribution> columns = found.explain(row).contributions();
      double tens = columns.get(1).value();
      double rest = columns.get(2).value() + columns.get(3).value();
      for (int column = 10; column < 20; column++) {
        tens += columns.get(column).value();
        rest += columns.get(column + 10).value();
      }
      double given = 0;
      double before = Double.NEGATIVE_INFINITY;
      for (Reason reason : decision.reasons()) {
        final double contribution = reason.contribution();
        assertTrue(contribution < 0 && contribution >= before, reason.toString());
        before = contribution;
        given += contribution;
        if (reason.concept().equals("Tens")) {
          assertEquals(tens, contribution, 1e-9);
          assertTrue(reason.text().startsWith("Tens -"));
        } else if (reason.concept().equals("Rest")) {
          assertEquals(rest, contribution, 1e-9);
        }
      }
      assertEquals(decision.reasons().size(), decision.passing());
      assertEquals("reasons", decision.outcome());
      assertEquals(decision.value(),
          decision.reference() + given + decision.others() + decision.leftover() - decision.recoveryError(), 1e-9);
      final Reasons alone = found.explain(row).reasons(Concepts.read(TENS + "}"));
      assertEquals(decision.toString(), alone.decisions().get(0).toString());
    }
  }

  @Test
  void fillsNothingUpBelowTheThreshold() {
    final Decision none = rows(1).reasons(Concepts.read(TENS + ", \"threshold\": 1e6}")).decisions().get(0);
    assertEquals("no_principal_reason", none.outcome());
    assertEquals(List.of(), none.reasons());
    assertTrue(none.notes().get(0).startsWith("no principal reason"));
  }

  @Test
  void reasonsAreDataAndAPage() {
    final Reasons reasons = rows(1).reasons(Concepts.read(TENS + "}"));
    assertTrue(reasons.toJson().contains("\"format\":\"addend.reasons\""));
    assertTrue(reasons.toHtml().contains("addend.reasons"));
  }

  @Test
  void refusesDescriptionsAtReading() {
    for (String wrong : List.of("{", TENS + ", \"text\": \"{vlaue}\"}", TENS + ", \"thresold\": 1}")) {
      assertThrows(AddendException.class, () -> Concepts.read(wrong));
    }
    final Concepts other = Concepts.read("{\"format\": \"addend.concepts\", \"version\": 1, \"concepts\": "
        + "[{\"name\": \"A\", \"components\": [\"a\"]}]}");
    final AddendException thrown = assertThrows(AddendException.class, () -> rows(1).reasons(other));
    assertTrue(thrown.getMessage().contains("names the component a, which does not exist"));
  }
}
