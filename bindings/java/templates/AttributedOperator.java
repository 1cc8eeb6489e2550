// Generated from bindings/java/templates/AttributedOperator.java and core/explain/fields.txt; do not edit.
package dev.addend;

import java.util.Map;

// fields: AttributedOperator_comment
public final class AttributedOperator {
  // fields: AttributedOperator_members

  AttributedOperator(Map<?, ?> record) {
    // fields: AttributedOperator_reads
  }

  // fields: AttributedOperator_getters

  /**
   * Name and place.
   *
   * @return for example {@code aten::linear in encoder.fc1}
   */
  @Override
  public String toString() {
    return operator + (modulePath.isEmpty() ? "" : " in " + modulePath);
  }
}
