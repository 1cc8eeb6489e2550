package dev.addend;

/**
 * Gets what a reader should know about a run, on the thread that runs. What it throws reaches the caller of the run, which
 * goes on to its end before.
 */
@FunctionalInterface
public interface LogListener {
  /** How urgent a message is. */
  enum Level {
    /** Good to know. */
    INFO,
    /** A result may mean less than it seems. */
    WARNING
  }

  /**
   * Gets a message.
   *
   * @param level how urgent it is
   * @param message one line
   */
  void onLog(Level level, String message);
}
