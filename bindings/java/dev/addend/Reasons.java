package dev.addend;

import java.util.List;
import java.util.stream.Collectors;

/** The reasons of some decisions. A value: it stays readable whatever is closed. */
public final class Reasons {
  private final String json;
  private final List<Decision> decisions;

  Reasons(String json) {
    this.json = json;
    decisions = JsonReader.list(JsonReader.object(json).get("decisions"), Decision::new);
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
   * The decisions with their reasons.
   *
   * @return some lines for each
   */
  @Override
  public String toString() {
    return decisions.stream().map(Decision::toString).collect(Collectors.joining("\n"));
  }
}
