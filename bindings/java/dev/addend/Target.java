package dev.addend;

import java.util.Objects;

/** The number that is explained: an element of a tensor, its largest one, or the difference of two. */
public final class Target {
  private static final Target LARGEST = new Target("top1");

  private final String text;

  private Target(String text) {
    this.text = text;
  }

  /**
   * The largest element of a vector, or of a batch of one.
   *
   * @return the target
   */
  public static Target largest() {
    return LARGEST;
  }

  /**
   * One element.
   *
   * @param index its position in each dimension, at least one: the only element of a tensor without dimensions is its
   *     {@link #largest} one
   * @return the target
   */
  public static Target element(long... index) {
    return new Target(join(index));
  }

  /**
   * The difference of two elements: why this one and not that one?
   *
   * @param index the first one's position in each dimension
   * @param subtracted the position of the one that is subtracted
   * @return the target
   */
  public static Target difference(long[] index, long[] subtracted) {
    return new Target(join(index) + "-" + join(subtracted));
  }

  /**
   * Reads what {@link #toString} gives: {@code top1}, {@code 2}, {@code 0,2}, {@code 2-7}, {@code 0,2-0,7}.
   *
   * @param text the text
   * @return the target
   */
  public static Target parse(String text) {
    return new Target(Objects.requireNonNull(text, "text"));
  }

  private static String join(long[] index) {
    if (index.length == 0) {
      throw new IllegalArgumentException("an element has at least one index");
    }
    final StringBuilder text = new StringBuilder();
    for (long position : index) {
      text.append(text.length() > 0 ? "," : "").append(position);
    }
    return text.toString();
  }

  /**
   * The target as text.
   *
   * @return for example {@code 0,2}
   */
  @Override
  public String toString() {
    return text;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Target && ((Target) other).text.equals(text);
  }

  @Override
  public int hashCode() {
    return text.hashCode();
  }
}
