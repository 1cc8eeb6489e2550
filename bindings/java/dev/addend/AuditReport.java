package dev.addend;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The result of {@link AuditLog#verify}. */
public final class AuditReport {
  private final String json;
  private final Map<?, ?> members;

  AuditReport(String json) {
    this.json = json;
    this.members = JsonReader.object(json);
  }

  /**
   * Whether nothing is wrong with the log, and whatever was to be computed again has the same bits.
   *
   * @return whether it is so
   */
  public boolean verified() {
    return (Boolean) members.get("verified");
  }

  /**
   * How many records are as they were written.
   *
   * @return their number
   */
  public long records() {
    return JsonReader.count(members.get("records"));
  }

  /**
   * Deviations from what was written, one line each, which names record and line.
   *
   * @return the lines; none where all is well
   */
  public List<String> problems() {
    return JsonReader.list(members.get("problems"), problem -> JsonReader.text(problem.get("message")));
  }

  /**
   * Whether the log is as it was written, how many records are, and the problems.
   *
   * @return a line for the verdict, and one for each problem
   */
  @Override
  public String toString() {
    final List<String> lines = new ArrayList<>(problems());
    lines.add(0, (verified() ? "verified" : "not verified") + ", " + records() + " records");
    return String.join("\n", lines);
  }

  /**
   * All of it.
   *
   * @return the JSON document that docs/schemas calls audit
   */
  public String toJson() {
    return json;
  }
}
