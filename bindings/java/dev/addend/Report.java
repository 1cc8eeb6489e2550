package dev.addend;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** What a run says about itself. */
public final class Report {
  private final long operators;
  private final long nodes;
  private final double worstRecoveryError;
  private final double worstBracket;
  private final double conditioning;
  private final double leftoverShare;
  private final String referenceIsModelOnBaseline;
  private final String referenceReason;
  private final double referenceError;
  private final boolean backward;
  private final long failures;
  private final long absorbed;
  private final long absorbedFailures;
  private final long pathRuled;
  private final long standInReferences;
  private final long unattributed;
  private final Duration traceTime;
  private final Duration linearizeTime;
  private final Duration sweepTime;
  private final List<String> notes;

  Report(long results) {
    operators = count(results, "operators");
    nodes = count(results, "nodes");
    worstRecoveryError = AddendNative.addend_results_report_number(results, "worst_recovery_error");
    worstBracket = AddendNative.addend_results_report_number(results, "worst_bracket");
    conditioning = AddendNative.addend_results_report_number(results, "conditioning");
    leftoverShare = AddendNative.addend_results_report_number(results, "leftover_share");
    referenceIsModelOnBaseline = AddendNative.addend_results_report_text(results, "reference_is_model_on_baseline");
    referenceReason = AddendNative.addend_results_report_text(results, "reference_reason");
    referenceError = AddendNative.addend_results_report_number(results, "reference_error");
    backward = count(results, "backward") != 0;
    failures = count(results, "failures");
    absorbed = count(results, "absorbed");
    absorbedFailures = count(results, "absorbed_failures");
    pathRuled = count(results, "path_ruled");
    standInReferences = count(results, "stand_in_references");
    unattributed = count(results, "unattributed");
    traceTime = time(results, "trace_seconds");
    linearizeTime = time(results, "linearize_seconds");
    sweepTime = time(results, "sweep_seconds");
    final List<String> lines = new ArrayList<>();
    for (String note; (note = AddendNative.addend_results_note(results, lines.size())) != null; ) {
      lines.add(note);
    }
    notes = Collections.unmodifiableList(lines);
  }

  private static long count(long results, String key) {
    return Math.round(AddendNative.addend_results_report_number(results, key));
  }

  private static Duration time(long results, String key) {
    return Duration.ofNanos(Math.round(AddendNative.addend_results_report_number(results, key) * 1e9));
  }

  /**
   * How many operators were recorded.
   *
   * @return the count
   */
  public long operators() {
    return operators;
  }

  /**
   * How many nodes their linearization has.
   *
   * @return the count
   */
  public long nodes() {
    return nodes;
  }

  /**
   * The largest difference between the sum of an operator's parts and its value, over the largest magnitude there, of all
   * operators that were checked.
   *
   * @return some roundings of the dtype where all is well
   */
  public double worstRecoveryError() {
    return worstRecoveryError;
  }

  /**
   * The largest leftover that an operator made whose rule claims to leave nothing, over the largest magnitude there.
   *
   * @return some roundings of the dtype where all is well
   */
  public double worstBracket() {
    return worstBracket;
  }

  /**
   * The magnitudes of all parts over the move that they sum to, of the result where that is the largest.
   *
   * @return 1 where nothing cancels
   */
  public double conditioning() {
    return conditioning;
  }

  /**
   * The same of the leftover alone.
   *
   * @return 0 where nothing is left over
   */
  public double leftoverShare() {
    return leftoverShare;
  }

  /**
   * Whether the reference is what the model computes on the baseline.
   *
   * @return "yes", "no", or "unknown" where the model reads a number that is another on the baseline
   */
  public String referenceIsModelOnBaseline() {
    return referenceIsModelOnBaseline;
  }

  /**
   * Why the reference is not what the model computes on the baseline.
   *
   * @return the reason; empty where it is
   */
  public String referenceReason() {
    return referenceReason;
  }

  /**
   * How far the reference is from what the model gives on the baseline, over the largest magnitude there.
   *
   * @return NaN unless {@link Request#verifyReference(boolean)} asked for it
   */
  public double referenceError() {
    return referenceError;
  }

  /**
   * Whether components were found backward; see {@link Direction}.
   *
   * @return false where they went forward
   */
  public boolean backward() {
    return backward;
  }

  /**
   * How many operators failed a check.
   *
   * @return the count
   */
  public long failures() {
    return failures;
  }

  /**
   * How many operators had no rule and became leftover.
   *
   * @return the count
   */
  public long absorbed() {
    return absorbed;
  }

  /**
   * How many tracing failures became leftover.
   *
   * @return the count
   */
  public long absorbedFailures() {
    return absorbedFailures;
  }

  /**
   * How many operators without a rule of their own took the path rule.
   *
   * @return the count
   */
  public long pathRuled() {
    return pathRuled;
  }

  /**
   * How many tensors have a stand-in for a reference that is not finite.
   *
   * @return the count
   */
  public long standInReferences() {
    return standInReferences;
  }

  /**
   * How many tensors took numbers from ids outside an embedding.
   *
   * @return the count
   */
  public long unattributed() {
    return unattributed;
  }

  /**
   * How long recording took.
   *
   * @return the time
   */
  public Duration traceTime() {
    return traceTime;
  }

  /**
   * How long coefficients took.
   *
   * @return the time
   */
  public Duration linearizeTime() {
    return linearizeTime;
  }

  /**
   * How long moving the rows took.
   *
   * @return the time
   */
  public Duration sweepTime() {
    return sweepTime;
  }

  /**
   * What a reader has to know.
   *
   * @return one line each
   */
  public List<String> notes() {
    return notes;
  }
}
