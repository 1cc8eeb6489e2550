package dev.addend;

import java.util.Objects;

/**
 * The number that is explained: an element of a tensor, its largest one, the difference of two, or what a softmax over
 * the last dimension says: a probability, its logarithm, the entropy, the log-probability of a continuation.
 */
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
   * @param index its position in each dimension; none is the only element of a tensor without dimensions
   * @return the target
   */
  public static Target element(long... index) {
    return new Target(index.length == 0 ? "()" : join(index));
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
   * The probability of an element under softmax over the last dimension.
   *
   * @param index its position in each dimension; a class alone is that of the last position; none is the largest element
   * @return the target
   */
  public static Target probability(long... index) {
    return new Target("probability:" + (index.length == 0 ? LARGEST.text : join(index)));
  }

  /**
   * The logarithm of the probability of an element under softmax over the last dimension.
   *
   * @param index its position in each dimension; a class alone is that of the last position; none is the largest element
   * @return the target
   */
  public static Target logProbability(long... index) {
    return new Target("log_probability:" + (index.length == 0 ? LARGEST.text : join(index)));
  }

  /**
   * The entropy, in nats, of the softmax over the last dimension.
   *
   * @param position the position in each dimension but the last; none is the last position of a sequence
   * @return the target
   */
  public static Target entropy(long... position) {
    return new Target("entropy" + (position.length == 0 ? "" : ":" + join(position)));
  }

  /**
   * The log-probability of a continuation, each id given those before it. The model is given prompt and continuation in
   * one, and its output has a row of classes for each position.
   *
   * @param ids the last ids of the input, at least one
   * @return the target
   */
  public static Target continuation(long... ids) {
    return new Target("continuation:" + join(ids));
  }

  /**
   * The sum of several targets, as one number.
   *
   * @param targets at least one, none of which is a sum
   * @return the target
   */
  public static Target sum(Target... targets) {
    if (targets.length == 0) {
      throw new IllegalArgumentException("a sum has at least one target");
    }
    final StringBuilder text = new StringBuilder("sum:");
    for (int i = 0; i < targets.length; i++) {
      text.append(i > 0 ? "+" : "").append(targets[i].text);
    }
    return new Target(text.toString());
  }

  /**
   * Reads what {@link #toString} gives: {@code top1}, {@code 2}, {@code 0,2}, {@code 2-7}, {@code 0,2-0,7}, {@code
   * log_probability:7}, {@code entropy}, {@code sum:2+7}; {@code sum:0,2,:,10:20} is the sum of a region.
   *
   * @param text the text
   * @return the target
   */
  public static Target parse(String text) {
    return new Target(Objects.requireNonNull(text, "text"));
  }

  private static String join(long[] index) {
    if (index.length == 0) {
      throw new IllegalArgumentException("there is at least one number");
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
