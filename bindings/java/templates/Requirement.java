// Generated from bindings/java/templates/Requirement.java and core/explain/fields.txt; do not edit.
package dev.addend;

import java.util.List;
import java.util.Map;

// fields: Requirement_comment
public final class Requirement {
  // fields: Requirement_members

  private Requirement(Map<?, ?> record) {
    // fields: Requirement_reads
  }

  /** Reads requirements from the JSON of the C interface. */
  static List<Requirement> read(String json) {
    return JsonReader.list(JsonReader.object(json).get("unmet"), Requirement::new);
  }

  // fields: Requirement_getters

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
