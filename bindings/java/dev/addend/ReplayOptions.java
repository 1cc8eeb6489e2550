package dev.addend;

import java.util.Map;

/** How {@link Program#replay(Request, ReplayOptions)} runs. Immutable: each method gives a changed copy. */
public final class ReplayOptions extends Options<ReplayOptions> {
  private static final ReplayOptions DEFAULTS = new ReplayOptions(Map.of());

  private ReplayOptions(Map<String, String> members) {
    super(members, ReplayOptions::new);
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
    return with("values", names);
  }

  /**
   * Whether all inner tensors are wanted.
   *
   * @param everyValue whether they are
   * @return the changed copy
   */
  public ReplayOptions everyValue(boolean everyValue) {
    return with("every_value", everyValue);
  }

  /**
   * Whether a number that left the tensors and is another one than in the recording stops the run. Without, the run follows
   * the branch of the recording, right or wrong.
   *
   * @param guards whether it does
   * @return the changed copy
   */
  public ReplayOptions guards(boolean guards) {
    return with("guards", guards);
  }

  /**
   * Sets the tolerated difference of floating-point numbers that left the tensors.
   *
   * @param tolerance relative; 0 unless said
   * @return the changed copy
   */
  public ReplayOptions guardTolerance(double tolerance) {
    return withJson("guard_tolerance", JsonObject.number("guard_tolerance", tolerance));
  }

  /**
   * Whether every write goes into a copy of the memory, so that inner tensors are as they were made.
   *
   * @param outOfPlace whether it does
   * @return the changed copy
   */
  public ReplayOptions outOfPlace(boolean outOfPlace) {
    return with("out_of_place", outOfPlace);
  }
}
