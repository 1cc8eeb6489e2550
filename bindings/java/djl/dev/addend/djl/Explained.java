package dev.addend.djl;

import dev.addend.Explanation;
import dev.addend.Reasons;
import java.util.List;
import java.util.Optional;

/**
 * A prediction and why: what {@link ExplainingTranslator} gives. A value: it stays readable whatever is closed.
 *
 * @param <O> what the prediction is
 */
public final class Explained<O> {
  private final O prediction;
  private final List<Explanation> explanations;
  private final Reasons reasons;

  Explained(O prediction, List<Explanation> explanations, Reasons reasons) {
    this.prediction = prediction;
    this.explanations = List.copyOf(explanations);
    this.reasons = reasons;
  }

  /**
   * The prediction of the model.
   *
   * @return the output of the translator that was given
   */
  public O prediction() {
    return prediction;
  }

  /**
   * The contributions of the components of the input.
   *
   * @return one explanation for each target
   */
  public List<Explanation> explanations() {
    return explanations;
  }

  /**
   * The decisions in words.
   *
   * @return the reasons, where the translator was given concepts
   */
  public Optional<Reasons> reasons() {
    return Optional.ofNullable(reasons);
  }

  /**
   * The prediction, and the reasons or else the explanations.
   *
   * @return some lines
   */
  @Override
  public String toString() {
    final StringBuilder text = new StringBuilder(String.valueOf(prediction));
    if (reasons != null) {
      return text.append('\n').append(reasons).toString();
    }
    explanations.forEach(explanation -> text.append('\n').append(explanation));
    return text.toString();
  }
}
