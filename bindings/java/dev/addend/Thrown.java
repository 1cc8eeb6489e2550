package dev.addend;

import java.util.function.Supplier;

/**
 * Exceptions that listeners throw during a run. Nothing may be thrown through native code, so the exception is kept for
 * the run, on whose thread listeners are called, and thrown when the run has ended. Every call that may reach a
 * listener is a {@link #run}; a run inside of a listener keeps its own exception.
 */
final class Thrown {
  private static final ThreadLocal<Thrown> INNERMOST = new ThreadLocal<>();

  private Throwable first; // null: nothing yet

  private Thrown() {}

  /** Keeps what a listener threw, for the innermost run of this thread; the first of several counts. */
  static void keep(Throwable thrown) {
    final Thrown run = INNERMOST.get();
    if (run != null && run.first == null) {
      run.first = thrown;
    }
  }

  /** A run from its beginning to its end: its result, unless the run failed or a listener threw. */
  static <T> T run(Supplier<T> call) {
    final Thrown outer = INNERMOST.get();
    final Thrown own = new Thrown();
    INNERMOST.set(own);
    final T result;
    try {
      result = call.get();
    } catch (AddendException error) {
      throw own.endedBy(error);
    } finally {
      INNERMOST.set(outer);
    }
    if (own.first != null) {
      if (result instanceof NativeObject) {
        ((NativeObject) result).close();
      }
      throw Thrown.<RuntimeException>unchecked(own.first);
    }
    return result;
  }

  /** The end of a run that failed: throws what a listener threw if that ended the run, else gives the error. */
  private AddendException endedBy(AddendException error) {
    if (first == null) {
      return error;
    }
    if (error.code() == AddendException.Code.CANCELLED) {
      first.addSuppressed(error);
      throw Thrown.<RuntimeException>unchecked(first);
    }
    error.addSuppressed(first);
    return error;
  }

  /**
   * Anything that was thrown, to be thrown on as it is. Other languages, such as Kotlin, throw checked exceptions that
   * nobody declares.
   */
  @SuppressWarnings("unchecked")
  static <E extends Throwable> E unchecked(Throwable thrown) throws E {
    throw (E) thrown;
  }
}
