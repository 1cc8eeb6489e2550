package dev.addend;

import java.util.Collections;
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
  private final Split split;
  private final Tensor baseline;
  private final Double baselineNumber;
  private final long firstComponent;
  private final List<String> names;

  private Input(
      Tensor value, Split split, Tensor baseline, Double baselineNumber, long firstComponent, List<String> names) {
    this.value = Objects.requireNonNull(value, "value");
    this.split = split;
    this.baseline = baseline;
    this.baselineNumber = baselineNumber;
    this.firstComponent = firstComponent;
    this.names = names;
  }

  /** Tells a native request how its last input is split. */
  @FunctionalInterface
  private interface Split {
    void apply(long request, Borrow borrow);
  }

  /**
   * A plain input.
   *
   * @param value the tensor, open as long as the input is used
   * @return the input
   */
  public static Input of(Tensor value) {
    return new Input(value, (request, borrow) -> {}, null, null, -1, Collections.emptyList());
  }

  /**
   * One component for each position along some dimensions.
   *
   * @param dims the dimensions; negative ones count from the end
   * @return the changed copy
   */
  public Input splitAlong(long... dims) {
    final long[] copy = dims.clone();
    return with((request, borrow) -> AddendNative.addend_request_split_dims(request, copy));
  }

  /**
   * One component for each label: segments, words, super-pixels.
   *
   * @param labels integers of the input's shape, or of its leading dimensions; -1 for no component
   * @return the changed copy
   */
  public Input splitByLabels(Tensor labels) {
    Objects.requireNonNull(labels, "labels");
    return with((request, borrow) -> AddendNative.addend_request_split_labels(request, borrow.of(labels)));
  }

  /**
   * Components as given; the rest of the input is its reference.
   *
   * @param parts [numc, *shape]
   * @return the changed copy
   */
  public Input splitIntoParts(Tensor parts) {
    Objects.requireNonNull(parts, "parts");
    return with((request, borrow) -> AddendNative.addend_request_split_parts(request, borrow.of(parts)));
  }

  /**
   * What means "nothing"; zero unless given.
   *
   * @param baseline a tensor that broadcasts to the input
   * @return the changed copy
   */
  public Input baseline(Tensor baseline) {
    Objects.requireNonNull(baseline, "baseline");
    return new Input(value, split, baseline, null, firstComponent, names);
  }

  /**
   * What means "nothing", as one number; zero unless given.
   *
   * @param baseline the number; for ids, a token
   * @return the changed copy
   */
  public Input baseline(double baseline) {
    return new Input(value, split, null, baseline, firstComponent, names);
  }

  /**
   * Where the components begin on the axis that all inputs share: right behind those of the inputs before it unless
   * given.
   *
   * @param first the first component
   * @return the changed copy
   */
  public Input firstComponent(long first) {
    return new Input(value, split, baseline, baselineNumber, first, names);
  }

  /**
   * What the components are called; those without name are called by their position.
   *
   * @param names in their order
   * @return the changed copy
   */
  public Input names(List<String> names) {
    return new Input(value, split, baseline, baselineNumber, firstComponent, List.copyOf(names));
  }

  private Input with(Split split) {
    return new Input(value, split, baseline, baselineNumber, firstComponent, names);
  }

  /** Adds this to a native request. */
  void addTo(long request, String name, Borrow borrow) {
    AddendNative.addend_request_add_input(request, name, borrow.of(value));
    split.apply(request, borrow);
    if (baseline != null) {
      AddendNative.addend_request_set_baseline(request, borrow.of(baseline));
    } else if (baselineNumber != null) {
      AddendNative.addend_request_set_baseline_number(request, baselineNumber);
    }
    if (firstComponent != -1) {
      AddendNative.addend_request_set_first_component(request, firstComponent);
    }
    for (String component : names) {
      AddendNative.addend_request_add_name(request, component);
    }
  }
}
