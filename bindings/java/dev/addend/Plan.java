package dev.addend;

import java.util.List;
import java.util.stream.Stream;

/**
 * An attribution made ready for many rows: model, sizes, splits, baselines, targets and policy are fixed, and nothing is
 * looked up again. It gives what {@link Model#attribute(Request)} would give, bit for bit, or refuses. Any number of
 * threads may use one.
 *
 * <pre>{@code
 * FloatBuffer row = ByteBuffer.allocateDirect(4 * columns).order(ByteOrder.nativeOrder()).asFloatBuffer();
 * Request request = Request.of(Input.of(Tensor.wrap(row, 1, columns)).splitAlong(1).baseline(0)).target(Target.element(2));
 * try (Plan plan = model.plan(request); Tensor parts = Tensor.wrap(buffer, 1, columns)) {
 *   row.duplicate().put(values);
 *   plan.attributeInto(request, parts, null);
 * }
 * }</pre>
 */
public final class Plan extends NativeObject {
  private final List<String> inputNames;

  Plan(long address, List<String> inputNames) {
    super("plan", address, AddendNative::addend_plan_release);
    this.inputNames = inputNames;
  }

  /**
   * Attributes the plan's targets for the inputs of a request.
   *
   * @param request whose values and cancellation are taken; how they are split is the plan's
   * @return an explanation for each target, and a tensor for each input
   * @throws AddendException if an input has another size or type, or the model would take another branch
   */
  public Attribution attribute(Request request) {
    try (Borrow borrow = new Borrow()) {
      final long plan = borrow.of(this);
      final long r = borrow.of(request);
      return Thrown.run(() -> new Attribution(
          Out.handle(out -> AddendNative.addend_plan_attribute(plan, r, out)), inputNames, List.of()));
    }
  }

  /**
   * Attributes the plan's targets for tensors.
   *
   * @param inputs in the order of the model's arguments; how they are split is the plan's
   * @return an explanation for each target, and a tensor for each input
   * @throws AddendException as for a request
   */
  public Attribution attribute(Tensor... inputs) {
    return attribute(Request.of(Stream.of(inputs).map(Input::of).toArray(Input[]::new)));
  }

  /**
   * Attributes as {@link #attribute(Request)} does, into the caller's memory and without objects for the result.
   *
   * @param request whose values and cancellation are taken
   * @param contributions double, contiguous, one number for each target and component
   * @param sums double, contiguous, gets value, reference and leftover of each target; {@code null} for none
   * @throws AddendException as for {@link #attribute(Request)}, and if a tensor does not fit
   * @throws IllegalArgumentException if a tensor wraps a buffer that is for reading only
   */
  public void attributeInto(Request request, Tensor contributions, Tensor sums) {
    requireWritable(contributions, "contributions");
    requireWritable(sums, "sums");
    try (Borrow borrow = new Borrow()) {
      final long plan = borrow.of(this);
      final long parts = borrow.of(contributions);
      final long more = borrow.of(sums);
      final long r = borrow.of(request);
      Thrown.run(() -> {
        AddendNative.addend_plan_attribute_into(plan, r, parts, more);
        return null;
      });
    }
  }

  private static void requireWritable(Tensor tensor, String name) {
    if (tensor != null && tensor.isReadOnly()) {
      throw new IllegalArgumentException(
          name + " wraps a read-only buffer, which is not written: wrap one that may be");
    }
  }
}
