package dev.addend;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** A construct of tests/doors: a model with rows and a baseline, and what PyTorch says of the answer. */
final class Construct {
  private static final Path FOLDER = Path.of("tests/doors/cases");

  final String name;
  final Path file;
  final List<List<?>> rows;
  final int columns;
  final long target;
  final String at;
  final String output;
  final List<String> names = new ArrayList<>();
  final List<String> refused;
  private final Map<?, ?> record; // its keys are those of Construct.record in tests/doors/constructs.py
  private final boolean together;
  private final List<String> says;
  private final double tolerance;

  private Construct(Map<?, ?> record) {
    this.record = record;
    name = JsonReader.text(record.get("name"));
    file = FOLDER.resolve(JsonReader.text(record.get("file")));
    rows = lists("rows");
    columns = rows.get(0).size();
    target = JsonReader.count(record.get("target"));
    at = JsonReader.text(record.get("at"));
    output = JsonReader.text(record.get("output"));
    refused = JsonReader.texts(record.get("refused"));
    together = (Boolean) record.get("together");
    says = JsonReader.texts(record.get("says"));
    tolerance = JsonReader.number(record.get("tolerance"));
    for (int column = 0; column < columns; column++) {
      names.add("part " + column);
    }
  }

  static List<Construct> all() {
    return Reading.cases(FOLDER, Construct::new);
  }

  @Override
  public String toString() {
    return name;
  }

  /** A regular expression of the error with which a door may stop; empty if it may not. */
  String mayStop(String door) {
    return JsonReader.text(((Map<?, ?>) record.get("may_stop")).get(door));
  }

  /** Why a door is not right yet; empty if it is. */
  String known(String door) {
    return JsonReader.text(((Map<?, ?>) record.get("known")).get(door));
  }

  Tensor tensor(List<? extends List<?>> of) {
    final double[] numbers = of.stream().flatMapToDouble(row -> Arrays.stream(JsonReader.numbers(row))).toArray();
    final DType dtype = DType.valueOf(JsonReader.text(record.get("dtype")).toUpperCase(Locale.ROOT));
    return Tensor.of(numbers, of.size(), columns).to(dtype);
  }

  Input input(List<List<?>> of) {
    return Input.of(tensor(of)).splitAlong(1).names(names).baseline(tensor(lists("baseline")));
  }

  Input inputWithSeveralBaselines() {
    return input(rows).baselines(tensor(lists("baselines")));
  }

  /** The number of each row. */
  Request ofEachRow(Input input) {
    return where(input).eachExample(true).target(Target.element(target));
  }

  /** The number of one row, alone or among all where it has another number among others. */
  Request ofRow(int row) {
    return where(input(asked(row))).target(targetOfRow(row));
  }

  List<List<?>> asked(int row) {
    return together ? rows : rows.subList(row, row + 1);
  }

  Target targetOfRow(int row) {
    return Target.element(together ? row : 0, target);
  }

  Request where(Input input) {
    final Request request = output.isEmpty() ? Request.of(input) : Request.of(input).output(output);
    return at.isEmpty() ? request : request.at(at);
  }

  /** Fails unless numbers are those of PyTorch, or the answer says that they are not. */
  void judge(Answer answer) {
    final double[] onBaseline = JsonReader.numbers(record.get("on_baseline"));
    answer.claimed.forEach((row, reference) -> assertTrue(Math.abs(reference - onBaseline[row]) <= tolerance,
        "the reference is said to be the model on the baseline: " + reference + " for " + onBaseline[row]));
    final String wrong = wrong(answer);
    if (says.isEmpty()) {
      assertTrue(wrong.isEmpty(), wrong);
      assertTrue(answer.said.isEmpty(), "numbers are right, and the door says otherwise: " + answer.said);
    } else if (!wrong.isEmpty() && answer.said.stream().noneMatch(line -> says.stream().anyMatch(line::contains))) {
      fail(wrong + ", and nothing says it: " + answer.said);
    }
  }

  /** The fault of numbers; empty if there is none. */
  private String wrong(Answer answer) {
    final String of = answer.several ? "_of_several" : "";
    final Object contributions = record.get("contributions" + of);
    // All rows together have no other rows beside them.
    final boolean whole = together && answer.ofBatch;
    if (contributions == null && !whole && !(Boolean) record.get("complete")) {
      return "these numbers need a word";
    }
    final boolean sums = contributions == null || whole;
    final double[] moves = JsonReader.numbers(record.get("move" + of));
    for (int row = 0; row < rows.size(); row++) {
      final double[] found = answer.contributions[row];
      final double[] wanted =
          sums ? new double[] {moves[row]} : JsonReader.numbers(((List<?>) contributions).get(row));
      final double[] given = sums ? new double[] {Arrays.stream(found).sum()} : found;
      for (int k = 0; k < wanted.length; k++) {
        if (!(Math.abs(given[k] - wanted[k]) <= tolerance)) {
          return (sums ? "the sum is " : "contributions are ") + Arrays.toString(given) + " for "
              + Arrays.toString(wanted);
        }
      }
    }
    return "";
  }

  private List<List<?>> lists(String key) {
    final List<List<?>> lists = new ArrayList<>();
    ((List<?>) record.get(key)).forEach(list -> lists.add((List<?>) list));
    return lists;
  }

  /** The answer of a door. */
  static final class Answer {
    final double[][] contributions; // [rows][columns]
    final Map<Integer, Double> claimed = new HashMap<>(); // by row the reference that is said to be the model's
    final List<String> said = new ArrayList<>(); // what a reader has to know before any number is read
    private final boolean several; // whether these are means over all baselines
    private final boolean ofBatch; // whether a contribution is that of a column of all rows

    private Answer(Construct construct, boolean several, boolean ofBatch) {
      contributions = new double[construct.rows.size()][];
      this.several = several;
      this.ofBatch = ofBatch;
    }
  }

  /** An answer for all rows by one question. */
  Answer forEachRow() {
    return new Answer(this, false, false);
  }

  /** An answer for all rows by a question for each. */
  Answer rowByRow() {
    return new Answer(this, false, together);
  }

  Answer ofSeveralBaselines() {
    return new Answer(this, true, false);
  }
}
