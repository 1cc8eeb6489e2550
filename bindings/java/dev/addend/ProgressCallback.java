package dev.addend;

import java.util.Objects;

/** What native code calls in place of a {@link ProgressListener}: it keeps what the listener throws until the run ends. */
final class ProgressCallback {
  private static final ThreadLocal<Throwable> THROWN = new ThreadLocal<>();

  private final ProgressListener listener;

  ProgressCallback(ProgressListener listener) {
    this.listener = Objects.requireNonNull(listener, "listener");
  }

  /** Called by native code; anything but 0 ends the run. */
  int progress(byte[] stage, long done, long total) {
    try {
      return listener.onProgress(Text.decode(stage), done, total) ? 0 : 1;
    } catch (Throwable thrown) {
      THROWN.set(thrown);
      return -1;
    }
  }

  /** Throws what the listener threw during a run of this thread that ended with {@code error}, if it did. */
  static void rethrow(AddendException error) {
    final Throwable thrown = THROWN.get();
    if (thrown == null) {
      return;
    }
    THROWN.remove();
    thrown.addSuppressed(error);
    if (thrown instanceof Error) {
      throw (Error) thrown;
    }
    throw (RuntimeException) thrown;
  }
}
