// Generated from bindings/java/templates/Reason.java and core/explain/fields.txt; do not edit.
package dev.addend;

import java.util.Locale;
import java.util.Map;

// fields: Reason_comment
public final class Reason {
  // fields: Reason_members

  Reason(Map<?, ?> record) {
    // fields: Reason_reads
  }

  // fields: Reason_getters

  /**
   * The reason in words with its contribution.
   *
   * @return one line
   */
  @Override
  public String toString() {
    return String.format(Locale.ROOT, "%+.4g  %s", contribution, text);
  }
}
