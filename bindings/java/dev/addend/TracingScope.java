package dev.addend;

import java.util.Collections;
import java.util.Objects;

/**
 * Records every LibTorch operator that this thread calls until it ends, whoever calls it, and decomposes what was
 * computed: a model written with {@link Addend#call} on plain tensors, with Java's own control flow.
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
public final class TracingScope extends NativeObject {
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
    super(
        "tracing scope",
        begin(Objects.requireNonNull(request, "request"), context, frames),
        AddendNative::addend_trace_release);
  }

  /**
   * Says where in the model the thread is now, for reports, probes and policies.
   *
   * @param modulePath the path, as {@code encoder.layers.3}; empty outside
   */
  public void setModule(String modulePath) {
    try (Borrow borrow = new Borrow()) {
      AddendNative.addend_trace_set_module(borrow.of(this), Objects.requireNonNull(modulePath, "modulePath"));
    }
  }

  /**
   * Asks for the composition of a live tensor, which is known by its memory.
   *
   * @param name what the result is called
   * @param tensor what a recorded operator gave
   */
  public void addOutput(String name, Tensor tensor) {
    try (Borrow borrow = new Borrow()) {
      AddendNative.addend_trace_add_output(
          borrow.of(this),
          Objects.requireNonNull(name, "name"),
          borrow.of(Objects.requireNonNull(tensor, "tensor")));
    }
  }

  /**
   * Stops recording and decomposes the outputs.
   *
   * @return the outputs in order, then the probes
   */
  public Results end() {
    try (Borrow borrow = new Borrow()) {
      final long trace = borrow.of(this);
      return new Results(Out.handle(out -> AddendNative.addend_trace_end(trace, out)));
    }
  }

  /**
   * What the model would be given as the baseline of an input. Ends the recording, so that the model can be run there and
   * {@link #addOnBaseline} be told what it gave; the report then says how far the reference is from that.
   *
   * @param input the number of the input
   * @return the baseline
   */
  public Tensor baseline(int input) {
    try (Borrow borrow = new Borrow()) {
      final long trace = borrow.of(this);
      return new Tensor(Out.handle(out -> AddendNative.addend_trace_baseline(trace, input, out)));
    }
  }

  /**
   * Tells what the model gave on the baseline.
   *
   * @param name of an output that is named already
   * @param tensor what the model gave there for it
   */
  public void addOnBaseline(String name, Tensor tensor) {
    try (Borrow borrow = new Borrow()) {
      AddendNative.addend_trace_add_on_baseline(
          borrow.of(this),
          Objects.requireNonNull(name, "name"),
          borrow.of(Objects.requireNonNull(tensor, "tensor")));
    }
  }

  private static long begin(Request request, Context context, FramesCallback frames) {
    if (!request.insideSelectors().isEmpty()) {
      throw new AddendException(
          AddendException.Code.INVALID_ARGUMENT,
          request.insideSelectors().get(0) + " is inside the model, which has to run once more to be found; a scope sees "
              + "one run: decompose a Model, or split the scope's inputs",
          "",
          Collections.emptyMap());
    }
    try (Borrow borrow = new Borrow()) {
      final long c = borrow.of(context);
      final long r = request.create(Collections.emptyList(), borrow);
      try {
        final long trace = Out.handle(out -> AddendNative.addend_trace_begin(c, r, out));
        // Notes tell the lines of Java at which the model makes conditions and indices.
        AddendNative.addend_trace_set_frames(trace, frames);
        return trace;
      } finally {
        AddendNative.addend_request_release(r);
      }
    }
  }
}
