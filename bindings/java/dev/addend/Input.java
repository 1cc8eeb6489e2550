package dev.addend;

import java.util.List;
import java.util.Objects;

/**
 * A tensor that a model is given, how it is split into components, and its baseline. Plain, without components, unless
 * one of the splits is chosen. Immutable: each method gives a changed copy.
 *
 * <pre>{@code
 * Input words = Input.of(ids).splitAlong(1).baseline(maskToken).names(List.of("not", "bad"));
 * }</pre>
 */
public final class Input {
  private final Tensor value;
  private final Division division;

  private Input(Tensor value, Division division) {
    this.value = Objects.requireNonNull(value, "value");
    this.division = division;
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
   * One component for each position along some dimensions.
   *
   * @param dims the dimensions; negative ones count from the end
   * @return the changed copy
   */
  public Input splitAlong(long... dims) {
    return new Input(value, division.along(dims));
  }

  /**
   * One component for each label: segments, words, super-pixels.
   *
   * @param labels integers of the input's shape, or of its leading dimensions; -1 for no component
   * @return the changed copy
   */
  public Input splitByLabels(Tensor labels) {
    return new Input(value, division.byLabels(labels));
  }

  /**
   * Components as given; the rest of the input is its reference.
   *
   * @param parts [numc, *shape]
   * @return the changed copy
   */
  public Input splitIntoParts(Tensor parts) {
    return new Input(value, division.intoParts(parts));
  }

  /**
   * What means "nothing"; zero unless given.
   *
   * @param baseline a tensor that broadcasts to the input
   * @return the changed copy
   */
  public Input baseline(Tensor baseline) {
    return new Input(value, division.baseline(baseline));
  }

  /**
   * What means "nothing", as one number; zero unless given.
   *
   * @param baseline the number; for ids, a token
   * @return the changed copy
   */
  public Input baseline(double baseline) {
    return new Input(value, division.baseline(baseline));
  }

  /**
   * What means "nothing", by a word; zero unless given.
   *
   * @param word "mean:FILE" or "median:FILE" of a file of rows (.npy or .safetensors), "buffer:NAME" of the model
   *     (the running mean of a batch normalization of this input), "mean" of each channel of an image, "blur" or
   *     "blur:SIGMA" of an image
   * @return the changed copy
   */
  public Input baseline(String word) {
    return new Input(value, division.baseline(word));
  }

  /**
   * Where the components begin on the axis that all inputs share: right behind those of the inputs before it unless
   * given.
   *
   * @param first the first component
   * @return the changed copy
   */
  public Input firstComponent(long first) {
    return new Input(value, division.firstComponent(first));
  }

  /**
   * What the components are called; those without name are called by their position.
   *
   * @param names in their order
   * @return the changed copy
   */
  public Input names(List<String> names) {
    return new Input(value, division.names(names));
  }

  /** Adds this to a native request. */
  void addTo(long request, String name, Borrow borrow) {
    AddendNative.addend_request_add_input(request, name, borrow.of(value));
    division.addTo(request, borrow);
  }
}
