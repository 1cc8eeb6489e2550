package dev.addend;

import java.util.Collections;
import java.util.List;

/** How {@link Program#code(CodeOptions)} writes. Immutable: each method gives a changed copy. */
public final class CodeOptions {
  private static final CodeOptions DEFAULTS =
      new CodeOptions(true, false, false, false, Collections.emptyList(), null, Collections.emptyList());

  private final boolean succinct;
  private final boolean color;
  private final boolean names;
  private final boolean marks;
  private final List<String> include;
  private final List<String> exclude; // null: what the library leaves out
  private final List<CallNumbers> numbers;

  private CodeOptions(
      boolean succinct, boolean color, boolean names, boolean marks, List<String> include, List<String> exclude,
      List<CallNumbers> numbers) {
    this.succinct = succinct;
    this.color = color;
    this.names = names;
    this.marks = marks;
    this.include = include;
    this.exclude = exclude;
    this.numbers = numbers;
  }

  /**
   * A line once for all its expressions; without colours, names, marks and numbers; all files but the inside of PyTorch.
   *
   * @return the options
   */
  public static CodeOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Whether a line stands once for all its expressions.
   *
   * @param succinct whether it does
   * @return the changed copy
   */
  public CodeOptions succinct(boolean succinct) {
    return new CodeOptions(succinct, color, names, marks, include, exclude, numbers);
  }

  /**
   * Whether there are colours, by the escapes of terminals.
   *
   * @param color whether there are
   * @return the changed copy
   */
  public CodeOptions color(boolean color) {
    return new CodeOptions(succinct, color, names, marks, include, exclude, numbers);
  }

  /**
   * Whether tensors have their names.
   *
   * @param names whether they do
   * @return the changed copy
   */
  public CodeOptions names(boolean names) {
    return new CodeOptions(succinct, color, names, marks, include, exclude, numbers);
  }

  /**
   * Whether tensors that share memory have the number of their storage, and {@code !} where it is written.
   *
   * @param marks whether they do
   * @return the changed copy
   */
  public CodeOptions marks(boolean marks) {
    return new CodeOptions(succinct, color, names, marks, include, exclude, numbers);
  }

  /**
   * The files whose lines are shown; all unless said.
   *
   * @param patterns paths in which a star stands for anything
   * @return the changed copy
   */
  public CodeOptions include(String... patterns) {
    return new CodeOptions(succinct, color, names, marks, List.of(patterns), exclude, numbers);
  }

  /**
   * The files whose lines are not shown; the inside of PyTorch unless said.
   *
   * @param patterns paths in which a star stands for anything
   * @return the changed copy
   */
  public CodeOptions exclude(String... patterns) {
    return new CodeOptions(succinct, color, names, marks, include, List.of(patterns), numbers);
  }

  /**
   * Sets the numbers that are shown behind each operator.
   *
   * @param numbers the numbers
   * @return the changed copy
   */
  public CodeOptions numbers(CallNumbers... numbers) {
    return new CodeOptions(succinct, color, names, marks, include, exclude, List.of(numbers));
  }

  String toJson() {
    final JsonObject options =
        new JsonObject().put("succinct", succinct).put("color", color).put("names", names).put("marks", marks);
    options.put("include", include);
    if (exclude != null) {
      options.put("exclude", exclude);
    }
    CallNumbers.put(options, numbers);
    return options.toString();
  }
}
