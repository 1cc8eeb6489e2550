package dev.addend;

import java.util.Objects;

/**
 * A tensor that a model is given, how it is split into components, and its baseline.
 *
 * <pre>{@code
 * Input words = Input.of(ids).splitAlong(1).baseline(maskToken).names(List.of("not", "bad"));
 * }</pre>
 */
public final class Input extends SplitTensor<Input> {
  private final Tensor value;

  private Input(Tensor value, Division division) {
    super(division);
    this.value = Objects.requireNonNull(value, "value");
  }

  /**
   * A plain input.
   *
   * @param value the tensor, open as long as the input is used
   * @return the input
   */
  public static Input of(Tensor value) {
    return new Input(value, Division.NONE);
  }

  /**
   * Components as given; the rest of the input is its reference.
   *
   * @param parts [numc, *shape]
   * @return the changed copy
   */
  public Input splitIntoParts(Tensor parts) {
    return with(division().intoParts(parts));
  }

  @Override
  Input with(Division changed) {
    return new Input(value, changed);
  }

  /** Adds this to a native request. */
  void addTo(long request, String name, Borrow borrow) {
    AddendNative.addend_request_add_input(request, name, borrow.of(value));
    division().addTo(request, borrow);
  }
}
