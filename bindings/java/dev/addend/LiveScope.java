package dev.addend;

import java.util.Objects;

/**
 * A scope in which every LibTorch operator that this thread calls is recorded, whoever calls it: {@link Addend#call},
 * or a native library that computes with the same LibTorch. It is the base of {@link TracingScope} and
 * {@link AttributionScope}. Inputs, parameters, buffers and outputs are live tensors, known by their memory.
 */
public abstract class LiveScope extends ModuleScope {
  /** The function of the C interface that begins a scope. */
  @FunctionalInterface
  interface Begins {
    void begin(long context, long request, long[] out);
  }

  LiveScope(String noun, Begins begins, Request request, Context context, FramesCallback frames) {
    super(noun, begin(begins, Objects.requireNonNull(request, "request"), context, frames));
  }

  /**
   * Names a live tensor, which is known by its memory, as an output.
   *
   * @param name what the output is called
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
   * Adds a line to the notes of the report: what was done to the model, for example.
   *
   * @param note the line
   */
  public void addNote(String note) {
    handle().run(object -> AddendNative.addend_trace_add_note(object, Objects.requireNonNull(note, "note")));
  }

  /**
   * Begins the second run of the model, where the request splits a tensor {@linkplain Request#inside inside} the model. The
   * first run has found that tensor, and its outputs were named. The model now runs once more with the same numbers, and
   * its outputs are named again.
   */
  public void runAgain() {
    handle().run(AddendNative::addend_trace_again);
  }

  /**
   * The baseline of an input, as the model would be given it. Ends the recording, so that the model can be run on it
   * and its outputs passed to {@link #addOnBaseline}; the report then says how far the reference is from them.
   *
   * @param input the number of the input
   * @return the baseline
   */
  public Tensor baseline(int input) {
    return new Tensor(handle().made((trace, out) -> AddendNative.addend_trace_baseline(trace, input, out)));
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

  private static long begin(Begins begins, Request request, Context context, FramesCallback frames) {
    try (Borrow borrow = new Borrow()) {
      final long c = borrow.of(context);
      final long r = borrow.of(request);
      final long trace = Out.handle(out -> begins.begin(c, r, out));
      // Notes tell the lines of Java at which the model makes conditions and indices.
      AddendNative.addend_trace_set_frames(trace, frames);
      return trace;
    }
  }
}
