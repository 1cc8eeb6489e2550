package dev.addend;

/** The contribution of one component to an explained number. */
public final class Contribution {
  private final long component;
  private final String name;
  private final double value;

  Contribution(long component, String name, double value) {
    this.component = component;
    this.name = name;
    this.value = value;
  }

  /**
   * Which component it is.
   *
   * @return its position on the component axis
   */
  public long component() {
    return component;
  }

  /**
   * The component's name, for people.
   *
   * @return a word, a pixel, a column; its position where nothing better is known
   */
  public String name() {
    return name;
  }

  /**
   * How much it adds.
   *
   * @return a summand of the explained number
   */
  public double value() {
    return value;
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof Contribution)) {
      return false;
    }
    final Contribution that = (Contribution) other;
    return component == that.component
        && name.equals(that.name)
        && Double.compare(value, that.value) == 0;
  }

  @Override
  public int hashCode() {
    return Long.hashCode(component) * 31 + Double.hashCode(value);
  }

  /**
   * Name and value.
   *
   * @return for example {@code row 3: 0.25}
   */
  @Override
  public String toString() {
    return name + ": " + value;
  }
}
