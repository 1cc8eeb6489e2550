package dev.addend;

/**
 * Records every LibTorch operator that this thread calls until it ends, whoever calls it, and decomposes what was
 * computed: a model of a native library, or one written with {@link Addend#call} on plain tensors, with Java's own control
 * flow.
 *
 * <pre>{@code
 * try (TracingScope scope = new TracingScope(Request.of(Input.of(x).splitAlong(0).baseline(0)))) {
 *   Tensor y = Addend.call("aten::relu", x).tensor(0);
 *   scope.addOutput("y", y);
 *   Composition composition = scope.end().composition("y");
 * }
 * }</pre>
 *
 * It belongs to the thread that begins it, and has to be ended or closed there.
 */
public final class TracingScope extends LiveScope {
  /**
   * Begins to record, under the default context.
   *
   * @param request its inputs are the live tensors, known by their memory: contiguous, each on memory of its own
   */
  public TracingScope(Request request) {
    this(request, null);
  }

  /**
   * Begins to record.
   *
   * @param request its inputs are the live tensors, known by their memory: contiguous, each on memory of its own
   * @param context policy and listeners, open until the end; {@code null} for the defaults
   */
  public TracingScope(Request request, Context context) {
    this(request, context, FramesCallback.ofThisThread());
  }

  private TracingScope(Request request, Context context, FramesCallback frames) {
    super("tracing scope", AddendNative::addend_trace_begin, request, context, frames);
  }

  /**
   * Stops recording and decomposes the outputs.
   *
   * @return the outputs in order, then the probes
   */
  public Results end() {
    return Thrown.run(() -> new Results(handle().made(AddendNative::addend_trace_end)));
  }
}
