package dev.addend;

import java.util.Objects;

/**
 * The callback that native code calls in place of a {@link ProgressListener}: it keeps what the listener throws until
 * the run ends.
 */
final class ProgressCallback {
  private final ProgressListener listener;

  ProgressCallback(ProgressListener listener) {
    this.listener = Objects.requireNonNull(listener, "listener");
  }

  /** Called by native code; anything but 0 ends the run. */
  int progress(byte[] stage, long done, long total) {
    try {
      return listener.onProgress(Text.decode(stage), done, total) ? 0 : 1;
    } catch (Throwable thrown) {
      Thrown.keep(thrown);
      return -1;
    }
  }
}
