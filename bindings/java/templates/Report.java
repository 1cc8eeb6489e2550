// Generated from bindings/java/templates/Report.java and core/explain/fields.txt; do not edit.
package dev.addend;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.function.IntFunction;

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
    return lines(index -> AddendNative.addend_results_note(results, index));
  }

  static List<String> warnings(long results) {
    return lines(index -> AddendNative.addend_results_warning(results, index));
  }

  private static List<String> lines(IntFunction<String> lineAt) {
    final List<String> lines = new ArrayList<>();
    for (String line; (line = lineAt.apply(lines.size())) != null; ) {
      lines.add(line);
    }
    return Collections.unmodifiableList(lines);
  }

  // fields: Report_getters

  /**
   * Counts and errors in one line, then the warnings.
   *
   * @return a line for the counts, and one for each warning
   */
  @Override
  public String toString() {
    final List<String> lines = new ArrayList<>();
    lines.add(String.format(
        Locale.ROOT,
        "%d operators, worst recovery error %.2g, conditioning %.3g, leftover share %.2g, %d failures",
        operators, worstRecoveryError, conditioning, leftoverShare, failures));
    warnings.forEach(warning -> lines.add("Warning: " + warning));
    return String.join("\n", lines);
  }
}
