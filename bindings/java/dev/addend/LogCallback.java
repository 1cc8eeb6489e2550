package dev.addend;

import java.util.Objects;

/**
 * The callback that native code calls in place of a {@link LogListener}: it keeps what the listener throws until the
 * run ends.
 */
final class LogCallback {
  private final LogListener listener;

  LogCallback(LogListener listener) {
    this.listener = Objects.requireNonNull(listener, "listener");
  }

  /** Called by native code. */
  void log(int level, byte[] message) {
    try {
      listener.onLog(
          level == AddendLogLevel.ADDEND_LOG_WARNING ? LogListener.Level.WARNING : LogListener.Level.INFO,
          Text.decode(message));
    } catch (Throwable thrown) {
      Thrown.keep(thrown);
    }
  }
}
