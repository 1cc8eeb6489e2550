package dev.addend;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Interactions of groups of components; {@link Model#interactions} returns them. A value: it stays readable whatever is
 * closed.
 */
public final class Interactions {
  private final String json;
  private final List<String> names = new ArrayList<>();
  private final double[] contributions;
  private final double[][] matrix;
  private final double asymmetry;
  private final List<String> notes;
  private final List<String> warnings;

  Interactions(String json) {
    this.json = json;
    final Map<?, ?> record = JsonReader.object(json);
    final List<?> groups = (List<?>) record.get("groups");
    contributions = new double[groups.size()];
    matrix = new double[groups.size()][];
    for (int k = 0; k < matrix.length; k++) {
      final Map<?, ?> group = (Map<?, ?>) groups.get(k);
      names.add(JsonReader.text(group.get("name")));
      contributions[k] = JsonReader.number(group.get("contribution"));
      matrix[k] = JsonReader.numbers(group.get("interactions"));
    }
    asymmetry = JsonReader.number(record.get("asymmetry"));
    notes = JsonReader.texts(record.get("notes"));
    warnings = JsonReader.texts(record.get("warnings"));
  }

  /**
   * The names of the groups.
   *
   * @return in their order
   */
  public List<String> names() {
    return Collections.unmodifiableList(names);
  }

  /**
   * The contributions of the groups to the number that is explained.
   *
   * @return a new array
   */
  public double[] contributions() {
    return contributions.clone();
  }

  /**
   * The parts of a group's contribution. An entry off the diagonal is the part that would be gone with the group of
   * that position at its baseline.
   *
   * @param group its position
   * @return a new array, which adds up to the contribution
   */
  public double[] row(int group) {
    return matrix[group].clone();
  }

  /**
   * How far the matrix is from a symmetric one.
   *
   * @return 0 where it is one, 1 where of each pair one entry is 0 or has the other sign
   */
  public double asymmetry() {
    return asymmetry;
  }

  /**
   * The notes of the run, which a reader has to know.
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
   * The groups with their contributions, then the warnings.
   *
   * @return a line for the groups, and one for each warning
   */
  @Override
  public String toString() {
    final List<String> groups = new ArrayList<>();
    for (int k = 0; k < contributions.length; k++) {
      groups.add(String.format(Locale.ROOT, "%s %.4g", names.get(k), contributions[k]));
    }
    return Text.lines(List.of(String.join(", ", groups)), warnings);
  }

  /**
   * All of it for a browser.
   *
   * @return a page that needs nothing else
   */
  public String toHtml() {
    return Out.text(out -> AddendNative.addend_interactions_html(json, out));
  }
}
