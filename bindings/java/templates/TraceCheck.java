// Generated from bindings/java/templates/TraceCheck.java and core/explain/fields.txt; do not edit.
package dev.addend;

import java.util.List;
import java.util.Map;
import java.util.OptionalInt;

// fields: TraceCheck_comment
public final class TraceCheck {
  // fields: TraceCheck_members

  private TraceCheck(Map<?, ?> record) {
    // fields: TraceCheck_reads
  }

  /** Reads a check from the JSON of the C interface. */
  static TraceCheck read(String json) {
    return new TraceCheck(JsonReader.object(json));
  }

  // fields: TraceCheck_getters

  /**
   * Verdict and findings.
   *
   * @return a line for each
   */
  @Override
  public String toString() {
    final StringBuilder text = new StringBuilder(ok ? "the recording is the model" : "the recording is not the model");
    findings.forEach(finding -> text.append('\n').append(finding));
    return text.toString();
  }

  // fields: Finding_comment
  public static final class Finding {
    // fields: Finding_members

    private Finding(Map<?, ?> record) {
      // fields: Finding_reads
    }

    // fields: Finding_getters

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
}
