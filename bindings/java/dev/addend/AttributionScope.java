package dev.addend;

/**
 * Records every LibTorch operator that this thread calls until it ends, whoever calls it, and attributes the targets of a
 * request: what each element of the live inputs gave to them.
 *
 * <pre>{@code
 * Request request = Request.of(Input.of(x).splitAlong(0).baseline(0)).target(Target.element(0));
 * try (AttributionScope scope = new AttributionScope(request); Results h = Addend.call("aten::tanh", x)) {
 *   scope.addOutput("h", h.tensor(0));
 *   try (Attribution attribution = scope.end()) {
 *     System.out.println(attribution.explain(0));
 *   }
 * }
 * }</pre>
 *
 * It belongs to the thread that begins it, and has to be ended or closed there.
 */
public final class AttributionScope extends LiveScope {
  private final Request request;

  /**
   * Begins to record, under the default context.
   *
   * @param request its inputs are the live tensors, known by their memory: contiguous, each on memory of its own. Its
   *     targets are elements of the first output that is named, unless {@link Request#at} says otherwise; probes are not
   *     looked at.
   */
  public AttributionScope(Request request) {
    this(request, null);
  }

  /**
   * Begins to record.
   *
   * @param request its inputs are the live tensors, and its targets the numbers to explain
   * @param context policy and listeners, open until the end; {@code null} for the defaults
   */
  public AttributionScope(Request request, Context context) {
    this(request, context, FramesCallback.ofThisThread());
  }

  private AttributionScope(Request request, Context context, FramesCallback frames) {
    super("attribution scope", AddendNative::addend_trace_begin_attribution, request, context, frames);
    this.request = request;
  }

  /**
   * Stops recording and attributes the targets.
   *
   * @return an explanation for each target, and a tensor for each input
   */
  public Attribution end() {
    return Thrown.run(() -> new Attribution(
        handle().made(AddendNative::addend_trace_end_attribution),
        request.ownNames(),
        request.insideSelectors()));
  }

  /**
   * Stops recording and plans attributions for inputs of the same sizes.
   *
   * @return a plan, whose requests give the inputs in the order of this scope's request
   */
  public Plan endPlan() {
    return Thrown.run(() -> new Plan(
        handle().made(AddendNative::addend_trace_end_plan), request.ownNames()));
  }
}
