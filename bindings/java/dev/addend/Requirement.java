package dev.addend;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Something that a run lacks, as {@link Model#requirements} and {@link Program#requirements} tell it before the run. */
public final class Requirement {
  private final String kind;
  private final boolean error;
  private final String position;
  private final String message;

  private Requirement(Map<?, ?> record) {
    kind = (String) record.get("kind");
    error = (Boolean) record.get("error");
    position = (String) record.get("position");
    message = (String) record.get("message");
  }

  /** What the C interface tells of requirements. */
  static List<Requirement> read(String json) {
    final List<Requirement> unmet = new ArrayList<>();
    for (Object record : (List<?>) JsonReader.object(json).get("unmet")) {
      unmet.add(new Requirement((Map<?, ?>) record));
    }
    return Collections.unmodifiableList(unmet);
  }

  /**
   * What it is about.
   *
   * @return {@code input} (number, shape, dtype or device of what is given), {@code mode} (something runs as in training)
   *     or {@code operator} (it has no rule)
   */
  public String kind() {
    return kind;
  }

  /**
   * Whether the run would fail.
   *
   * @return false for what is only worth knowing
   */
  public boolean isError() {
    return error;
  }

  /**
   * The first operator concerned.
   *
   * @return its name and place; empty for inputs
   */
  public String position() {
    return position;
  }

  /**
   * What is missing, for people.
   *
   * @return one line
   */
  public String message() {
    return message;
  }

  /**
   * Kind and message.
   *
   * @return one line
   */
  @Override
  public String toString() {
    return (error ? "error" : "hint") + ", " + kind + ": " + message;
  }
}
