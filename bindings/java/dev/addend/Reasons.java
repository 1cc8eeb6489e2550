package dev.addend;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The reasons of some decisions. A value: it stays readable whatever is closed. */
public final class Reasons {
  private final String json;
  private final List<Decision> decisions;
  private final List<String> notes;
  private final List<String> warnings;

  Reasons(String json) {
    this.json = json;
    final Map<?, ?> record = JsonReader.object(json);
    decisions = JsonReader.list(record.get("decisions"), Decision::new);
    notes = JsonReader.texts(record.get("notes"));
    warnings = JsonReader.texts(record.get("warnings"));
  }

  /**
   * The decisions.
   *
   * @return one for each target, or for each example
   */
  public List<Decision> decisions() {
    return decisions;
  }

  /**
   * The notes of the run that the numbers are of, which a reader has to know. Those of a single decision are in the
   * decision.
   *
   * @return one line each
   */
  public List<String> notes() {
    return notes;
  }

  /**
   * The notes that say that numbers may not mean what a reader takes them for.
   *
   * @return one line each
   */
  public List<String> warnings() {
    return warnings;
  }

  /**
   * All of it as data.
   *
   * @return a JSON object
   */
  public String toJson() {
    return json;
  }

  /**
   * All of it for a browser.
   *
   * @return a page that needs nothing else
   */
  public String toHtml() {
    return Out.text(out -> AddendNative.addend_reasons_html(json, out));
  }

  /**
   * The decisions with their reasons, and the warnings.
   *
   * @return some lines for each decision, and one for each warning
   */
  @Override
  public String toString() {
    return Text.lines(decisions.stream().map(Decision::toString).collect(Collectors.toList()), warnings);
  }
}
