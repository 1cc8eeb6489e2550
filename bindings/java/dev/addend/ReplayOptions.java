package dev.addend;

import java.util.Collections;
import java.util.List;

/** How {@link Program#replay(Request, ReplayOptions)} runs. Immutable: each method gives a changed copy. */
public final class ReplayOptions {
  private static final ReplayOptions DEFAULTS = new ReplayOptions(Collections.emptyList(), false, true, 0, false);

  private final List<String> values;
  private final boolean everyValue;
  private final boolean guards;
  private final double guardTolerance;
  private final boolean outOfPlace;

  private ReplayOptions(
      List<String> values, boolean everyValue, boolean guards, double guardTolerance, boolean outOfPlace) {
    this.values = values;
    this.everyValue = everyValue;
    this.guards = guards;
    this.guardTolerance = guardTolerance;
    this.outOfPlace = outOfPlace;
  }

  /**
   * Outputs only, and every guard has to hold exactly.
   *
   * @return the options
   */
  public static ReplayOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Asks for inner tensors too.
   *
   * @param names as {@link Program#names()} has them
   * @return the changed copy
   */
  public ReplayOptions values(String... names) {
    return new ReplayOptions(List.of(names), everyValue, guards, guardTolerance, outOfPlace);
  }

  /**
   * Whether all inner tensors are wanted.
   *
   * @param everyValue whether they are
   * @return the changed copy
   */
  public ReplayOptions everyValue(boolean everyValue) {
    return new ReplayOptions(values, everyValue, guards, guardTolerance, outOfPlace);
  }

  /**
   * Whether a number that left the tensors and is another one than in the recording stops the run. Without, the run follows
   * the branch of the recording, right or wrong.
   *
   * @param guards whether it does
   * @return the changed copy
   */
  public ReplayOptions guards(boolean guards) {
    return new ReplayOptions(values, everyValue, guards, guardTolerance, outOfPlace);
  }

  /**
   * Sets the tolerated difference of floating-point numbers that left the tensors.
   *
   * @param tolerance relative; 0 unless said
   * @return the changed copy
   */
  public ReplayOptions guardTolerance(double tolerance) {
    return new ReplayOptions(values, everyValue, guards, tolerance, outOfPlace);
  }

  /**
   * Whether every write goes into a copy of the memory, so that inner tensors are as they were made.
   *
   * @param outOfPlace whether it does
   * @return the changed copy
   */
  public ReplayOptions outOfPlace(boolean outOfPlace) {
    return new ReplayOptions(values, everyValue, guards, guardTolerance, outOfPlace);
  }

  String toJson() {
    return new JsonObject().put("values", values).put("every_value", everyValue).put("guards", guards)
        .put("guard_tolerance", guardTolerance).put("out_of_place", outOfPlace).toString();
  }
}
