package dev.addend;

import java.util.Collections;
import java.util.List;
import java.util.Objects;

/** How a tensor is split into components, and its baseline. Immutable: each method gives a changed copy. */
final class Division {
  /** Not split, against zero. */
  static final Division NONE = new Division((request, borrow) -> {}, (request, borrow) -> {}, -1, Collections.emptyList());

  private final Tell split;
  private final Tell baseline;
  private final long firstComponent;
  private final List<String> names;

  private Division(Tell split, Tell baseline, long firstComponent, List<String> names) {
    this.split = split;
    this.baseline = baseline;
    this.firstComponent = firstComponent;
    this.names = names;
  }

  /** Tells a native request how its last input is split, or what its baseline is. */
  @FunctionalInterface
  private interface Tell {
    void apply(long request, Borrow borrow);
  }

  Division along(long... dims) {
    final long[] copy = dims.clone();
    return with((request, borrow) -> AddendNative.addend_request_split_dims(request, copy));
  }

  Division byLabels(Tensor labels) {
    Objects.requireNonNull(labels, "labels");
    return with((request, borrow) -> AddendNative.addend_request_split_labels(request, borrow.of(labels)));
  }

  Division intoParts(Tensor parts) {
    Objects.requireNonNull(parts, "parts");
    return with((request, borrow) -> AddendNative.addend_request_split_parts(request, borrow.of(parts)));
  }

  Division baseline(Tensor baseline) {
    Objects.requireNonNull(baseline, "baseline");
    return from((request, borrow) -> AddendNative.addend_request_set_baseline(request, borrow.of(baseline)));
  }

  Division baselines(Tensor baselines) {
    Objects.requireNonNull(baselines, "baselines");
    return from((request, borrow) -> AddendNative.addend_request_set_baselines(request, borrow.of(baselines)));
  }

  Division baseline(double baseline) {
    return from((request, borrow) -> AddendNative.addend_request_set_baseline_number(request, baseline));
  }

  Division baseline(String word) {
    Objects.requireNonNull(word, "word");
    return from((request, borrow) -> AddendNative.addend_request_set_baseline_word(request, word));
  }

  Division firstComponent(long first) {
    return new Division(split, baseline, first, names);
  }

  Division names(List<String> names) {
    return new Division(split, baseline, firstComponent, List.copyOf(names));
  }

  private Division with(Tell split) {
    return new Division(split, baseline, firstComponent, names);
  }

  private Division from(Tell baseline) {
    return new Division(split, baseline, firstComponent, names);
  }

  /** Says all of it about the last input of a native request. */
  void addTo(long request, Borrow borrow) {
    split.apply(request, borrow);
    baseline.apply(request, borrow);
    if (firstComponent != -1) {
      AddendNative.addend_request_set_first_component(request, firstComponent);
    }
    for (String component : names) {
      AddendNative.addend_request_add_name(request, component);
    }
  }
}
