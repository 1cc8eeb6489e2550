package dev.addend;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;

/** Whether a recording is the model, as {@link Model#checkTrace} has found. */
public final class TraceCheck {
  private final boolean ok;
  private final double worstError;
  private final List<Finding> findings;

  private TraceCheck(boolean ok, double worstError, List<Finding> findings) {
    this.ok = ok;
    this.worstError = worstError;
    this.findings = findings;
  }

  /** What the C interface tells of a check. */
  static TraceCheck read(String json) {
    final Map<?, ?> record = JsonReader.object(json);
    final List<Finding> findings = new ArrayList<>();
    for (Object finding : (List<?>) record.get("findings")) {
      findings.add(new Finding((Map<?, ?>) finding));
    }
    return new TraceCheck(
        (Boolean) record.get("ok"),
        JsonReader.number(record.get("worst_error")),
        Collections.unmodifiableList(findings));
  }

  /**
   * Whether no finding is an error.
   *
   * @return whether the recording is the model
   */
  public boolean ok() {
    return ok;
  }

  /**
   * The largest difference between a replay and the model.
   *
   * @return relative to the model's result
   */
  public double worstError() {
    return worstError;
  }

  /**
   * Errors, and what is worth knowing.
   *
   * @return in the order in which they were found
   */
  public List<Finding> findings() {
    return findings;
  }

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

  /** Something that a check of a recording has found. */
  public static final class Finding {
    private final String kind;
    private final boolean error;
    private final OptionalInt inputSet;
    private final String position;
    private final String message;

    private Finding(Map<?, ?> record) {
      kind = (String) record.get("kind");
      error = (Boolean) record.get("error");
      final Double set = (Double) record.get("input_set");
      inputSet = set == null ? OptionalInt.empty() : OptionalInt.of(set.intValue());
      position = String.valueOf(record.get("position"));
      message = (String) record.get("message");
    }

    /**
     * What it is.
     *
     * @return {@code graph} (another run calls other operators), {@code value} (results differ), {@code guard} (a number
     *     that left the tensors is another one), {@code constant}, {@code random}, {@code training}, {@code state} (the
     *     model overwrites its own parameters) or {@code output}
     */
    public String kind() {
      return kind;
    }

    /**
     * Whether the program gives something else than the model.
     *
     * @return false for what is only worth knowing
     */
    public boolean isError() {
      return error;
    }

    /**
     * Which further example showed it.
     *
     * @return its position among them; nothing where the inputs of the recording did
     */
    public OptionalInt inputSet() {
      return inputSet;
    }

    /**
     * The operator to blame.
     *
     * @return its name and place; empty where none is to blame
     */
    public String position() {
      return position;
    }

    /**
     * What was found, for people.
     *
     * @return one line
     */
    public String message() {
      return message;
    }

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
