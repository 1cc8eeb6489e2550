package dev.addend;

import java.util.Locale;

/** Which way components are found. */
public enum Direction {
  /** Backward where there are few numbers and much to save, else forward. */
  AUTO,
  /** Every component goes through every operator. */
  FORWARD,
  /**
   * Components come back from the numbers that are asked for, while the sum of all goes forward and is checked after
   * every operator.
   */
  BACKWARD;

  String text() {
    return name().toLowerCase(Locale.ROOT);
  }
}
