package dev.addend;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;

/**
 * One number and what it is made of: value = reference + contributions + leftover, up to the recovery error. A value: it
 * stays readable whatever is closed.
 */
public final class Explanation {
  private final Handle handle;
  private final String target;
  private final double[] numbers = new double[AddendNumber.ADDEND_NUMBER_MASS + 1];
  private final List<Contribution> contributions;
  private final List<Contribution> ranked;
  private final long numBaselines;
  private final double[] standardErrors;
  private final double[] sameSign;

  Explanation(long address) {
    handle = new Handle("explanation", address, AddendNative::addend_explanation_release);
    try (Borrow borrow = new Borrow()) {
      final long explanation = borrow.of(handle);
      target = AddendNative.addend_explanation_target(explanation);
      for (int number = 0; number < numbers.length; number++) {
        numbers[number] = AddendNative.addend_explanation_number(explanation, number);
      }
      contributions = Collections.unmodifiableList(readContributions(explanation));
      ranked = Collections.unmodifiableList(rank(explanation, contributions));
      numBaselines = AddendNative.addend_explanation_num_baselines(explanation);
      standardErrors = new double[contributions.size()];
      sameSign = new double[contributions.size()];
      for (int component = 0; component < sameSign.length; component++) {
        standardErrors[component] = AddendNative.addend_explanation_standard_error(explanation, component);
        sameSign[component] = AddendNative.addend_explanation_same_sign(explanation, component);
      }
    }
  }

  private static List<Contribution> readContributions(long explanation) {
    final long numc = AddendNative.addend_explanation_numc(explanation);
    final List<Contribution> contributions = new ArrayList<>(Math.toIntExact(numc));
    for (long component = 0; component < numc; component++) {
      contributions.add(new Contribution(
          component,
          AddendNative.addend_explanation_name(explanation, component),
          AddendNative.addend_explanation_contribution(explanation, component)));
    }
    return contributions;
  }

  private static List<Contribution> rank(long explanation, List<Contribution> contributions) {
    final List<Contribution> ranked = new ArrayList<>(contributions.size());
    for (int rank = 0; rank < contributions.size(); rank++) {
      ranked.add(contributions.get((int) AddendNative.addend_explanation_ranked(explanation, rank)));
    }
    return ranked;
  }

  /**
   * Which number is explained.
   *
   * @return for example {@code [0, 7]}, or {@code [0, 7] minus [0, 2]}
   */
  public String target() {
    return target;
  }

  /**
   * The value that the model computed.
   *
   * @return the explained number
   */
  public double value() {
    return numbers[AddendNumber.ADDEND_NUMBER_VALUE];
  }

  /**
   * The reference: the value on the baseline.
   *
   * @return the number that contributions are added to
   */
  public double reference() {
    return numbers[AddendNumber.ADDEND_NUMBER_REFERENCE];
  }

  /**
   * The leftover: what the policy could not attribute.
   *
   * @return the summand that belongs to no component
   */
  public double leftover() {
    return numbers[AddendNumber.ADDEND_NUMBER_LEFTOVER];
  }

  /**
   * The sum of reference, contributions and leftover.
   *
   * @return the recovery
   */
  public double recovery() {
    return numbers[AddendNumber.ADDEND_NUMBER_RECOVERY];
  }

  /**
   * Recovery minus value.
   *
   * @return rounding, unless something is wrong
   */
  public double recoveryError() {
    return numbers[AddendNumber.ADDEND_NUMBER_RECOVERY_ERROR];
  }

  /**
   * How much cancels: the larger of sum |c| + |leftover| and |reference|, over the smaller of |value| and |value -
   * reference|.
   *
   * @return 1 where nothing does
   */
  public double conditioning() {
    return numbers[AddendNumber.ADDEND_NUMBER_CONDITIONING];
  }

  /**
   * The sum of magnitudes that rounding is measured against: sum |c| + |leftover| + |reference|.
   *
   * @return the sum of magnitudes
   */
  public double mass() {
    return numbers[AddendNumber.ADDEND_NUMBER_MASS];
  }

  /**
   * All contributions.
   *
   * @return one for each component, in their order
   */
  public List<Contribution> contributions() {
    return contributions;
  }

  /**
   * How many baselines the numbers are means over.
   *
   * @return 1 where there was one
   */
  public long numBaselines() {
    return numBaselines;
  }

  /**
   * The standard errors of the contributions, which are means over several baselines.
   *
   * @return one for each component, in a new array; NaN where there was one baseline
   */
  public double[] standardErrors() {
    return standardErrors.clone();
  }

  /**
   * The share of baselines under which a contribution has the sign of their mean.
   *
   * @return one for each component, in a new array; NaN where there was one baseline
   */
  public double[] sameSign() {
    return sameSign.clone();
  }

  /**
   * The largest contributions.
   *
   * @param count how many at most
   * @return the largest magnitude first
   */
  public List<Contribution> top(int count) {
    return ranked.subList(0, Math.min(count, ranked.size()));
  }

  /**
   * The concepts that moved it the way that they describe, the largest first.
   *
   * @param concepts what people are told of
   * @return its reasons, as one decision
   * @throws AddendException if a concept names no component, two claim one, or a text asks for a value that is no number
   *     of an input
   */
  public Reasons reasons(Concepts concepts) {
    try (Borrow borrow = new Borrow()) {
      final long own = borrow.of(concepts);
      return new Reasons(handle.text((of, out) -> AddendNative.addend_explanation_reasons(of, own, out)));
    }
  }

  /**
   * All of it as data.
   *
   * @return a JSON object
   */
  public String toJson() {
    return handle.text(AddendNative::addend_explanation_json);
  }

  /**
   * All of it for a browser.
   *
   * @return a page that needs nothing else
   */
  public String toHtml() {
    return handle.text(AddendNative::addend_explanation_html);
  }

  /**
   * A picture for reports and e-mails: the way from the reference to the value, a bar for each of the largest
   * contributions, one for the others, and all notes.
   *
   * @return SVG that needs nothing else
   * @throws AddendException if a number is not finite
   */
  public String toSvg() {
    return handle.text(AddendNative::addend_explanation_svg);
  }

  /**
   * The explained number as a sum.
   *
   * @return one line
   */
  @Override
  public String toString() {
    return String.format(
        Locale.ROOT,
        "%s: value %.6g = reference %.6g + %d contributions %.6g + leftover %.6g",
        target, value(), reference(), contributions.size(), recovery() - reference() - leftover(), leftover());
  }
}
