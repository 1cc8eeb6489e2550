package dev.addend;

import java.util.Map;

/** How {@link Program#code(CodeOptions)} writes. Immutable: each method gives a changed copy. */
public final class CodeOptions extends Options<CodeOptions> {
  private static final CodeOptions DEFAULTS = new CodeOptions(Map.of());

  private CodeOptions(Map<String, String> members) {
    super(members, CodeOptions::new);
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
    return with("succinct", succinct);
  }

  /**
   * Whether there are colours, by the escapes of terminals.
   *
   * @param color whether there are
   * @return the changed copy
   */
  public CodeOptions color(boolean color) {
    return with("color", color);
  }

  /**
   * Whether tensors have their names.
   *
   * @param names whether they do
   * @return the changed copy
   */
  public CodeOptions names(boolean names) {
    return with("names", names);
  }

  /**
   * Whether tensors that share memory have the number of their storage, and {@code !} where it is written.
   *
   * @param marks whether they do
   * @return the changed copy
   */
  public CodeOptions marks(boolean marks) {
    return with("marks", marks);
  }

  /**
   * The files whose lines are shown; all unless said.
   *
   * @param patterns paths in which a star stands for anything
   * @return the changed copy
   */
  public CodeOptions include(String... patterns) {
    return with("include", patterns);
  }

  /**
   * The files whose lines are not shown; the inside of PyTorch unless said.
   *
   * @param patterns paths in which a star stands for anything
   * @return the changed copy
   */
  public CodeOptions exclude(String... patterns) {
    return with("exclude", patterns);
  }

  /**
   * Sets the numbers that are shown behind each operator.
   *
   * @param numbers the numbers
   * @return the changed copy
   */
  public CodeOptions numbers(CallNumbers... numbers) {
    return withJson("numbers", CallNumbers.toJson(numbers));
  }
}
