package dev.addend;

/** What an operator gives that looks for elements: what it found, and where. */
public final class ValuesAndIndices {
  private final Composition values;
  private final Tensor indices;

  ValuesAndIndices(Composition values, Tensor indices) {
    this.values = values;
    this.indices = indices;
  }

  /**
   * What was found.
   *
   * @return the elements
   */
  public Composition values() {
    return values;
  }

  /**
   * Where it was found.
   *
   * @return positions along the dimension
   */
  public Tensor indices() {
    return indices;
  }
}
