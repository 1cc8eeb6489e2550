package dev.addend;

/**
 * What operators compute with: a {@link Composition}, or a {@link Tensor} beside it. No other class may implement it.
 */
public interface Operand {
  /**
   * The sizes of the dimensions.
   *
   * @return a new array
   */
  long[] shape();

  /**
   * What the elements are; of a composition, those of its value.
   *
   * @return the dtype
   */
  DType dtype();
}
