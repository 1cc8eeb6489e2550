package dev.addend;

import java.util.List;
import java.util.Objects;

/**
 * A tensor inside a model at which components begin, how it is split, and its baseline: the heads of an attention,
 * neurons, experts. What the model computes before it is the same for all of them, and its arguments are plain.
 * Immutable: each method gives a changed copy.
 *
 * <pre>{@code
 * Inside heads = Inside.of("aten::contiguous").splitAlong(1).baseline(0);
 * Results results = model.decompose(Request.of(Input.of(x)).inside(heads));
 * }</pre>
 */
public final class Inside {
  private final String selector;
  private final Division division;

  private Inside(String selector, Division division) {
    this.selector = selector;
    this.division = division;
  }

  /**
   * A tensor that is not split yet.
   *
   * @param selector which floating-point tensor, told as for {@link Request#probe}
   * @return the tensor
   */
  public static Inside of(String selector) {
    return new Inside(Objects.requireNonNull(selector, "selector"), Division.NONE);
  }

  /**
   * One component for each position along some dimensions.
   *
   * @param dims the dimensions of the tensor; negative ones count from the end
   * @return the changed copy
   */
  public Inside splitAlong(long... dims) {
    return new Inside(selector, division.along(dims));
  }

  /**
   * One component for each label.
   *
   * @param labels integers of the tensor's shape, or of its leading dimensions; -1 for no component
   * @return the changed copy
   */
  public Inside splitByLabels(Tensor labels) {
    return new Inside(selector, division.byLabels(labels));
  }

  /**
   * What means "nothing" there; zero unless given.
   *
   * @param baseline a tensor that broadcasts to the one inside
   * @return the changed copy
   */
  public Inside baseline(Tensor baseline) {
    return new Inside(selector, division.baseline(baseline));
  }

  /**
   * What means "nothing" there, as one number; zero unless given.
   *
   * @param baseline the number
   * @return the changed copy
   */
  public Inside baseline(double baseline) {
    return new Inside(selector, division.baseline(baseline));
  }

  /**
   * What means "nothing", by a word; zero unless given.
   *
   * @param word "mean:FILE" or "median:FILE" of a file of rows (.npy or .safetensors), "buffer:NAME" of the model
   * @return the changed copy
   */
  public Inside baseline(String word) {
    return new Inside(selector, division.baseline(word));
  }

  /**
   * Where the components begin on the axis that all inputs share: right behind those before unless given.
   *
   * @param first the first component
   * @return the changed copy
   */
  public Inside firstComponent(long first) {
    return new Inside(selector, division.firstComponent(first));
  }

  /**
   * What the components are called; those without name are called by their position.
   *
   * @param names in their order
   * @return the changed copy
   */
  public Inside names(List<String> names) {
    return new Inside(selector, division.names(names));
  }

  String selector() {
    return selector;
  }

  /** Adds this to a native request. */
  void addTo(long request, Borrow borrow) {
    AddendNative.addend_request_add_inside(request, selector);
    division.addTo(request, borrow);
  }
}
