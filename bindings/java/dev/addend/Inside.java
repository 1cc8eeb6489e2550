package dev.addend;

import java.util.Objects;

/**
 * A tensor inside a model at which components begin, how it is split, and its baseline: the heads of an attention,
 * neurons, experts. What the model computes before it is the same for all of them, and its arguments are plain.
 *
 * <pre>{@code
 * Inside heads = Inside.of("aten::contiguous").splitAlong(1).baseline(0);
 * Results results = model.decompose(Request.of(Input.of(x)).inside(heads));
 * }</pre>
 */
public final class Inside extends SplitTensor<Inside> {
  private final String selector;

  private Inside(String selector, Division division) {
    super(division);
    this.selector = selector;
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

  @Override
  Inside with(Division changed) {
    return new Inside(selector, changed);
  }

  String selector() {
    return selector;
  }

  /** Adds this to a native request. */
  void addTo(long request, Borrow borrow) {
    AddendNative.addend_request_add_inside(request, selector);
    division().addTo(request, borrow);
  }
}
