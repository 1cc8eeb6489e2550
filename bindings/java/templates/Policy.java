// Generated from bindings/java/templates/Policy.java and core/base/policy_choices.txt; do not edit.
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

  // policy: enumerations

  /**
   * The defaults.
   *
   * @return a policy without any choice
   */
  public static Policy defaults() {
    return DEFAULTS;
  }

  // policy: methods

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

  private static String word(Enum<?> choice) {
    return choice.name().toLowerCase(Locale.ROOT);
  }

  private static String words(Freeze[] kinds) {
    final String words = Stream.of(kinds).map(Policy::word).collect(Collectors.joining("+"));
    return words.isEmpty() ? "none" : words;
  }
}
