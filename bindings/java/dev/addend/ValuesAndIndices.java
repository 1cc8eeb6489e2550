package dev.addend;

/** The result of an operator that looks for elements: the elements, and their positions. */
public final class ValuesAndIndices {
  private final Composition values;
  private final Tensor indices;

  ValuesAndIndices(Composition values, Tensor indices) {
    this.values = values;
    this.indices = indices;
  }

  /**
   * The elements that were found.
   *
   * @return their values
   */
  public Composition values() {
    return values;
  }

  /**
   * The positions at which they were found.
   *
   * @return positions along the dimension
   */
  public Tensor indices() {
    return indices;
  }
}
