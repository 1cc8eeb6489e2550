package dev.addend;

import java.util.List;

/**
 * A tensor with its split and its baseline: an {@link Input} of a model, or one {@link Inside} it. Plain, without
 * components, unless one of the splits is chosen. Immutable: each method gives a changed copy.
 *
 * @param <S> the type itself
 */
public abstract class SplitTensor<S extends SplitTensor<S>> {
  private final Division division;

  SplitTensor(Division division) {
    this.division = division;
  }

  /** A copy that is divided in another way. */
  abstract S with(Division changed);

  /** How it is divided. */
  final Division division() {
    return division;
  }

  /**
   * One component for each position along some dimensions.
   *
   * @param dims the dimensions of the tensor; negative ones count from the end
   * @return the changed copy
   */
  public final S splitAlong(long... dims) {
    return with(division.along(dims));
  }

  /**
   * One component for each label: segments, words, super-pixels.
   *
   * @param labels integers of the tensor's shape, or of its leading dimensions; -1 for no component
   * @return the changed copy
   */
  public final S splitByLabels(Tensor labels) {
    return with(division.byLabels(labels));
  }

  /**
   * Sets the value that means "nothing"; zero unless given.
   *
   * @param baseline a tensor that broadcasts to this one
   * @return the changed copy
   */
  public final S baseline(Tensor baseline) {
    return with(division.baseline(baseline));
  }

  /**
   * Several baselines, for {@link Model#attribute} alone: it gives means over all of them, which add up to the value
   * minus the mean of the model on the baselines.
   *
   * @param baselines [K, *]: each broadcasts to this tensor, or to one example of it where each has a target
   * @return the changed copy
   */
  public final S baselines(Tensor baselines) {
    return with(division.baselines(baselines));
  }

  /**
   * Sets the number that means "nothing"; zero unless given.
   *
   * @param baseline the number; for ids, a token
   * @return the changed copy
   */
  public final S baseline(double baseline) {
    return with(division.baseline(baseline));
  }

  /**
   * Sets by a word the value that means "nothing"; zero unless given.
   *
   * @param word "mean:FILE" or "median:FILE" of a file of rows (.npy or .safetensors), "buffer:NAME" of the model
   *     (the running mean of a batch normalization of an input); for inputs also "mean" of each channel of an image,
   *     "blur" or "blur:SIGMA" of an image; for attributions also several baselines, "rows:FILE" (all rows of a file)
   *     or "nearest:10:FILE" (those nearest to the input by standardized Euclidean distance)
   * @return the changed copy
   */
  public final S baseline(String word) {
    return with(division.baseline(word));
  }

  /**
   * Sets the position of the first component on the axis that all inputs share: right behind those before unless given.
   *
   * @param first the first component
   * @return the changed copy
   */
  public final S firstComponent(long first) {
    return with(division.firstComponent(first));
  }

  /**
   * Sets the names of the components; those without name are called by their position.
   *
   * @param names in their order
   * @return the changed copy
   */
  public final S names(List<String> names) {
    return with(division.names(names));
  }
}
