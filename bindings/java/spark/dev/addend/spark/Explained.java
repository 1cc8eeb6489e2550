package dev.addend.spark;

import dev.addend.Reason;
import java.util.ArrayList;
import java.util.List;

/** The result of a row: its numbers, or why it has none. */
final class Explained {
  /** Why the row has no attribution; {@code null} if it has one. Everything else is empty then. */
  final String refused;
  final String target;
  final double value;
  final double reference;
  final double leftover;
  final double[] contributions;
  /** The outcome of the decision; {@code null} where no concepts are told. */
  final String outcome;
  final List<Reason> reasons;
  final List<String> notes;
  final List<String> warnings;

  Explained(String target, double value, double reference, double leftover, double[] contributions, String outcome,
      List<Reason> reasons, List<String> notes, List<String> warnings) {
    this(null, target, value, reference, leftover, contributions, outcome, reasons, notes, warnings);
  }

  private Explained(String refused, String target, double value, double reference, double leftover, double[] contributions,
      String outcome, List<Reason> reasons, List<String> notes, List<String> warnings) {
    this.refused = refused;
    this.target = target;
    this.value = value;
    this.reference = reference;
    this.leftover = leftover;
    this.contributions = contributions;
    this.outcome = outcome;
    this.reasons = reasons;
    this.notes = notes;
    this.warnings = warnings;
  }

  /** A copy with notes of this row before those of its run. */
  Explained noted(List<String> ofRow) {
    if (ofRow.isEmpty()) {
      return this;
    }
    final List<String> all = new ArrayList<>(ofRow);
    all.addAll(notes);
    return new Explained(
        refused, target, value, reference, leftover, contributions, outcome, reasons, all, warnings);
  }

  static Explained refused(String why) {
    return new Explained(why, null, 0, 0, 0, null, null, List.of(), List.of(), List.of());
  }
}
