package dev.addend;

/**
 * What listeners throw while a run goes on. Nothing may be thrown through native code: it is kept for the thread, on which
 * listeners are called, and thrown when the run has ended.
 */
final class Thrown {
  private static final ThreadLocal<Throwable> KEPT = new ThreadLocal<>();

  private Thrown() {}

  /** Keeps what a listener threw; the first of several counts. */
  static void keep(Throwable thrown) {
    if (KEPT.get() == null) {
      KEPT.set(thrown);
    }
  }

  /** The end of a run that failed: throws what a listener threw if that ended it, else the error. */
  static AddendException endedBy(AddendException error) {
    final Throwable thrown = take();
    if (thrown != null && error.code() == AddendException.Code.CANCELLED) {
      thrown.addSuppressed(error);
      throwUnchecked(thrown);
    }
    if (thrown != null) {
      error.addSuppressed(thrown);
    }
    return error;
  }

  /** The end of a run that did not fail: its result, unless a listener threw. */
  static <T extends NativeObject> T finished(T result) {
    final Throwable thrown = take();
    if (thrown != null) {
      result.close();
      throwUnchecked(thrown);
    }
    return result;
  }

  private static Throwable take() {
    final Throwable thrown = KEPT.get();
    KEPT.remove();
    return thrown;
  }

  /** Listeners declare no checked exceptions. */
  private static void throwUnchecked(Throwable thrown) {
    if (thrown instanceof Error) {
      throw (Error) thrown;
    }
    throw (RuntimeException) thrown;
  }
}
