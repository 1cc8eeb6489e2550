package dev.addend;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** A tuple among the arguments of a model; see {@link Request#ofArguments(Object...)}. */
public final class Tuple {
  private final List<Object> elements;

  private Tuple(Object[] elements) {
    this.elements = Collections.unmodifiableList(Arrays.asList(elements.clone()));
  }

  /**
   * A tuple.
   *
   * @param elements what an argument may be
   * @return the tuple
   */
  public static Tuple of(Object... elements) {
    return new Tuple(elements);
  }

  /**
   * The elements of the tuple.
   *
   * @return the elements in order
   */
  public List<Object> elements() {
    return elements;
  }
}
