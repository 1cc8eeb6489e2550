package dev.addend;

import java.util.Objects;

/**
 * Records every LibTorch operator that this thread calls until it ends, whoever calls it, as a {@link Program}: a model
 * written with {@link Addend#call} on plain tensors, with Java's own control flow. Each operator stands under the lines of
 * Java that called it.
 *
 * <pre>{@code
 * try (RecordingScope scope = new RecordingScope(Request.of(Input.of(x)))) {
 *   scope.addOutput(Addend.call("aten::relu", x).tensor(0));
 *   Program program = scope.end();
 *   System.out.println(program.code());
 * }
 * }</pre>
 *
 * It belongs to the thread that begins it, and has to be ended or closed there.
 */
public final class RecordingScope extends ModuleScope {
  private final FramesCallback frames; // null: there are none

  /**
   * Begins to record.
   *
   * @param request its inputs are the live tensors, known by their memory: contiguous, each on memory of its own. They
   *     become those of the program, its parameters are known by their names, and tensors that come from elsewhere are
   *     constants. How inputs are split is not looked at.
   */
  public RecordingScope(Request request) {
    this(request, true);
  }

  /**
   * Begins to record.
   *
   * @param request its inputs are the live tensors
   * @param lines whether every operator knows the lines of Java that called it, which takes a walk over the stack for each
   */
  public RecordingScope(Request request, boolean lines) {
    this(request, lines ? FramesCallback.ofThisThread() : null);
  }

  RecordingScope(Request request, FramesCallback frames) {
    super("recording scope", begin(Objects.requireNonNull(request, "request"), frames));
    this.frames = frames;
  }

  /**
   * Makes a live tensor, which is known by its memory, the program's next output.
   *
   * @param tensor what a recorded operator gave
   */
  public void addOutput(Tensor tensor) {
    try (Borrow borrow = new Borrow()) {
      AddendNative.addend_trace_add_output(
          borrow.of(this), "output", borrow.of(Objects.requireNonNull(tensor, "tensor")));
    }
  }

  /**
   * Stops recording.
   *
   * @return the program
   */
  public Program end() {
    try {
      return new Program(handle().made(AddendNative::addend_trace_end_program));
    } catch (AddendException e) {
      if (frames != null) {
        frames.rethrow(e);
      }
      throw e;
    }
  }

  private static long begin(Request request, FramesCallback frames) {
    try (Borrow borrow = new Borrow()) {
      final long r = borrow.of(request);
      return Out.handle(out -> AddendNative.addend_trace_record(r, frames, out));
    }
  }
}
