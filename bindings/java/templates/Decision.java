// Generated from bindings/java/templates/Decision.java and core/explain/fields.txt; do not edit.
package dev.addend;

import java.util.List;
import java.util.Map;

// fields: Decision_comment
public final class Decision {
  // fields: Decision_members

  Decision(Map<?, ?> record) {
    // fields: Decision_reads
  }

  // fields: Decision_getters

  /**
   * The number and its reasons.
   *
   * @return a line for the number and one for each reason
   */
  @Override
  public String toString() {
    final StringBuilder text = new StringBuilder(name + " = " + value + ", " + outcome);
    reasons.forEach(reason -> text.append('\n').append(reason));
    return text.toString();
  }
}
