// Generated from bindings/java/templates/Report.java and core/explain/fields.txt; do not edit.
package dev.addend;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

// fields: Report_comment
public final class Report {
  // fields: Report_members

  Report(long results) {
    // fields: Report_reads
  }

  private static long count(long results, String key) {
    return Math.round(AddendNative.addend_results_report_number(results, key));
  }

  private static Duration time(long results, String key) {
    return Duration.ofNanos(Math.round(AddendNative.addend_results_report_number(results, key) * 1e9));
  }

  static List<String> notes(long results) {
    final List<String> lines = new ArrayList<>();
    for (String note; (note = AddendNative.addend_results_note(results, lines.size())) != null; ) {
      lines.add(note);
    }
    return Collections.unmodifiableList(lines);
  }

  static List<String> warnings(long results) {
    final List<String> lines = new ArrayList<>();
    for (String warning; (warning = AddendNative.addend_results_warning(results, lines.size())) != null; ) {
      lines.add(warning);
    }
    return Collections.unmodifiableList(lines);
  }

  // fields: Report_getters
}
