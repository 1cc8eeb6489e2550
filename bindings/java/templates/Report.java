// Generated from bindings/java/templates/Report.java and core/explain/fields.txt; do not edit.
package dev.addend;

import java.time.Duration;
import java.util.List;
import java.util.Locale;

// fields: Report_comment
public final class Report {
  // fields: Report_members

  Report(Handle results) {
    // fields: Report_reads
  }

  private static double number(Handle results, String key) {
    return results.tell(address -> AddendNative.addend_results_report_number(address, key));
  }

  private static String text(Handle results, String key) {
    return results.tell(address -> AddendNative.addend_results_report_text(address, key));
  }

  // fields: Report_getters

  /**
   * Counts and errors in one line, then the warnings.
   *
   * @return a line for the counts, and one for each warning
   */
  @Override
  public String toString() {
    final String counts = String.format(
        Locale.ROOT,
        "%d operators, worst recovery error %.2g, conditioning %.3g, leftover share %.2g, %d failures",
        operators, worstRecoveryError, conditioning, leftoverShare, failures);
    return Text.lines(List.of(counts), warnings);
  }
}
