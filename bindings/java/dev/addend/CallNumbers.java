package dev.addend;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** Numbers that are shown behind each operator of a program: a time, a contribution. */
public final class CallNumbers {
  private final String name;
  private final String unit;
  private final double[] values;

  private CallNumbers(String name, String unit, double[] values) {
    this.name = Objects.requireNonNull(name, "name");
    this.unit = unit;
    this.values = values.clone();
  }

  /**
   * Numbers without a unit.
   *
   * @param name what they are, as {@code contribution}
   * @param values one for each operator; NaN where there is none
   * @return the numbers
   */
  public static CallNumbers of(String name, double... values) {
    return new CallNumbers(name, "", values);
  }

  /**
   * Durations.
   *
   * @param name what they are, as {@code time}
   * @param values seconds for each operator; NaN where there are none
   * @return the numbers
   */
  public static CallNumbers seconds(String name, double... values) {
    return new CallNumbers(name, "seconds", values);
  }

  /**
   * Amounts of memory.
   *
   * @param name what they are, as {@code memory}
   * @param values bytes for each operator; NaN where there are none
   * @return the numbers
   */
  public static CallNumbers bytes(String name, double... values) {
    return new CallNumbers(name, "bytes", values);
  }

  static String toJson(CallNumbers... numbers) {
    final List<JsonObject> listed = new ArrayList<>();
    for (CallNumbers one : numbers) {
      listed.add(new JsonObject().put("name", one.name).put("unit", one.unit).put("values", one.values));
    }
    return listed.toString();
  }
}
