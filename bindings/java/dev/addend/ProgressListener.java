package dev.addend;

/** Hears how far a run is, on the thread that runs, and may end it. What it throws ends the run and reaches its caller. */
@FunctionalInterface
public interface ProgressListener {
  /**
   * Gets how far the run is.
   *
   * @param stage {@code trace}, {@code linearize} or {@code sweep}
   * @param done steps that are done
   * @param total how many steps there are; 0 where that is not known
   * @return whether to go on; if not, the run throws an {@link AddendException} with
   *     {@link AddendException.Code#CANCELLED}
   */
  boolean onProgress(String stage, long done, long total);
}
