package dev.addend;

/**
 * The operand of an operator: a {@link Composition}, or a {@link Tensor} beside it. No other class may implement it.
 */
public interface Operand {
  /**
   * The sizes of the dimensions.
   *
   * @return a new array
   */
  long[] shape();

  /**
   * The dtype of the elements; of a composition, that of its value.
   *
   * @return the dtype
   */
  DType dtype();
}
