package dev.addend;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The choices that rules and sweeps consult. Immutable: each method gives a changed copy.
 *
 * <pre>{@code
 * Policy policy = Policy.defaults().preset(Policy.Preset.FAITHFUL).segments(4);
 * }</pre>
 *
 * <p>What is left alone keeps its default, which the page on policies explains.
 */
public final class Policy {
  private static final Policy DEFAULTS = new Policy(Collections.emptyMap());

  private final Map<String, String> choices;

  private Policy(Map<String, String> choices) {
    this.choices = choices;
  }

  /** A policy in one word. */
  public enum Preset {
    /** Faithful where a baseline was given, else fast. */
    AUTO,
    /** The path rule everywhere: nothing is left over but quadrature errors. */
    FAITHFUL,
    /** Attention weights and normalizers frozen; some leftover, which is reported. */
    FAST
  }

  /** How elementwise functions of one tensor are linearized. */
  public enum Nonlinearity {
    /** The mean slope between reference and value. */
    PATH,
    /** Shares by magnitude. */
    ABS_AFFINE,
    /** By magnitude where components cancel, by the path elsewhere. Takes a threshold. */
    HYBRID_AFFINE,
    /** Value times share of the input. */
    SCALING,
    /** The slope at the value. */
    GRADIENT,
    /** Nothing passes. */
    NONE
  }

  /** Who receives a constant. */
  public enum Bias {
    /** The residual. */
    RESIDUAL,
    /** Components, by magnitude. */
    ABS,
    /** By magnitude where components cancel, by value elsewhere. Takes a threshold. */
    HYBRID,
    /** By value above a threshold, by magnitude below it. */
    HYBRID_THRESHOLD,
    /** By value, unless components cancel. Takes a threshold. */
    SIGN,
    /** By value above a threshold. */
    SIGN_THRESHOLD,
    /** By the norm over the last dimension. Takes the order of the norm. */
    NORM
  }

  /** Kinds of coefficients: what may be frozen, or move before content. */
  public enum Freeze {
    /** Results of softmax. */
    ATTENTION,
    /** Standard deviations and their reciprocals. */
    NORMALIZER,
    /** What is divided by. */
    DENOMINATOR,
    /** Results of sigmoid, and of what multiplies by one (silu, gelu): gates. */
    GATE
  }

  /** Whose masks and indices the reference takes. */
  public enum Conditions {
    /** Those of the value. */
    VALUE,
    /** Those of the baseline: the reference is the model on the baseline. */
    BASELINE
  }

  /** What operators take as reference. */
  public enum Anchor {
    /** What the model computes on the baseline. */
    BASELINE,
    /** The residual itself. */
    RESIDUAL
  }

  /** What an operator without a rule does. */
  public enum MissingRule {
    /** An error that names it. */
    ERROR,
    /** The path rule through its derivative. */
    PATH,
    /** All of it becomes leftover. */
    ABSORB
  }

  /** What a tracing failure does. */
  public enum OnFailure {
    /** An error that names the operator. */
    ERROR,
    /** A message to the log listener. */
    WARN,
    /** The difference becomes leftover, and is counted. */
    ABSORB,
    /** It is listed in the report, without a note or a message to the log. */
    IGNORE
  }

  /** When recovery is compared with value. */
  public enum Check {
    /** After every operator. */
    EVERY_OP,
    /** At the outputs. */
    OUTPUTS,
    /** Never. */
    OFF
  }

  /**
   * The defaults.
   *
   * @return a policy without any choice
   */
  public static Policy defaults() {
    return DEFAULTS;
  }

  /**
   * A policy in one word, which other choices refine.
   *
   * @param preset the word
   * @return the changed copy
   */
  public Policy preset(Preset preset) {
    return choose("preset", preset);
  }

  /**
   * Cuts the line from baseline to input into pieces.
   *
   * @param segments how many
   * @return the changed copy
   */
  public Policy segments(int segments) {
    return with("segments", Integer.toString(segments));
  }

  /**
   * How elementwise functions of one tensor are linearized.
   *
   * @param nonlinearity the choice
   * @return the changed copy
   */
  public Policy nonlinearity(Nonlinearity nonlinearity) {
    return choose("nonlinearity", nonlinearity);
  }

  /**
   * How elementwise functions of one tensor are linearized.
   *
   * @param nonlinearity a choice that takes a number
   * @param number its number
   * @return the changed copy
   */
  public Policy nonlinearity(Nonlinearity nonlinearity, double number) {
    return with("nonlinearity", word(nonlinearity) + "(" + number + ")");
  }

  /**
   * Who receives a constant.
   *
   * @param bias the choice
   * @return the changed copy
   */
  public Policy bias(Bias bias) {
    return choose("bias", bias);
  }

  /**
   * Who receives a constant.
   *
   * @param bias a choice that takes a number
   * @param number its number
   * @return the changed copy
   */
  public Policy bias(Bias bias, double number) {
    return with("bias", word(bias) + "(" + number + ")");
  }

  /**
   * What is used as a plain coefficient, instead of what the preset says.
   *
   * @param frozen the choices; without any nothing is
   * @return the changed copy
   */
  public Policy freeze(Freeze... frozen) {
    return with("freeze", words(frozen));
  }

  /**
   * Which coefficients move while the content that they multiply is the reference's, before the content moves. All other
   * products share by half.
   *
   * @param coefficients the choices; without any every product shares by half
   * @return the changed copy
   */
  public Policy contentFirst(Freeze... coefficients) {
    return with("content_first", words(coefficients));
  }

  /**
   * Whose masks and indices the reference takes.
   *
   * @param conditions the choice
   * @return the changed copy
   */
  public Policy conditions(Conditions conditions) {
    return choose("conditions", conditions);
  }

  /**
   * What operators take as reference.
   *
   * @param anchor the choice
   * @return the changed copy
   */
  public Policy anchor(Anchor anchor) {
    return choose("anchor", anchor);
  }

  /**
   * What an operator without a rule does.
   *
   * @param missingRule the choice
   * @return the changed copy
   */
  public Policy missingRule(MissingRule missingRule) {
    return choose("missing_rule", missingRule);
  }

  /**
   * What a tracing failure does.
   *
   * @param onFailure the choice
   * @return the changed copy
   */
  public Policy onFailure(OnFailure onFailure) {
    return choose("on_failure", onFailure);
  }

  /**
   * When recovery is compared with value.
   *
   * @param check the choice
   * @return the changed copy
   */
  public Policy check(Check check) {
    return choose("check", check);
  }

  /**
   * How much recovery may differ from value.
   *
   * @param tolerance a relative error
   * @return the changed copy
   */
  public Policy tolerance(double tolerance) {
    return with("tolerance", Double.toString(tolerance));
  }

  /**
   * Other choices for a part of the model.
   *
   * @param selector an operator ({@code aten::softmax}), or a module path with all that is inside
   * @param policy what to choose there; its own parts are not looked at
   * @return the changed copy
   */
  public Policy at(String selector, Policy policy) {
    Policy changed = this;
    for (Map.Entry<String, String> choice : policy.choices.entrySet()) {
      if (choice.getKey().indexOf('@') < 0) {
        changed = changed.with(choice.getKey() + "@" + selector, choice.getValue());
      }
    }
    return changed;
  }

  /**
   * A choice as text, as the command line takes it.
   *
   * @param key for example {@code segments}, or {@code segments@encoder.0} for a part of the model
   * @param value for example {@code 4}
   * @return the changed copy
   */
  public Policy with(String key, String value) {
    final Map<String, String> changed = new LinkedHashMap<>(choices);
    changed.put(Objects.requireNonNull(key, "key"), Objects.requireNonNull(value, "value"));
    return new Policy(Collections.unmodifiableMap(changed));
  }

  /**
   * The choices as text.
   *
   * @return an unmodifiable map from keys to values
   */
  public Map<String, String> choices() {
    return choices;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Policy && ((Policy) other).choices.equals(choices);
  }

  @Override
  public int hashCode() {
    return choices.hashCode();
  }

  /**
   * The choices as text.
   *
   * @return for example <code>{preset=faithful}</code>
   */
  @Override
  public String toString() {
    return choices.toString();
  }

  private Policy choose(String key, Enum<?> choice) {
    return with(key, word(choice));
  }

  private static String word(Enum<?> choice) {
    return choice.name().toLowerCase(Locale.ROOT);
  }

  private static String words(Freeze[] kinds) {
    final String words = Stream.of(kinds).map(Policy::word).collect(Collectors.joining("+"));
    return words.isEmpty() ? "none" : words;
  }
}
