package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import dev.addend.Construct.Answer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every door of the library with every construct of tests/doors: numbers are right, or the door says that they are not.
 * A door is a way to ask what the columns of rows give to one number of each row; tests/doors/cells.py names them.
 */
class DoorsTest extends ScopedTest {
  private static final Map<String, BiFunction<DoorsTest, Construct, List<Answer>>> DOORS = new TreeMap<>(Map.of(
      "explain of a file", DoorsTest::explain,
      "decompose of a file", DoorsTest::decompose,
      "plan of a file", DoorsTest::plan,
      "job", DoorsTest::job,
      "reasons of a file", DoorsTest::reasons,
      "interactions of a file", DoorsTest::interactions,
      "baselines of a file", DoorsTest::baselines,
      "page of a file", DoorsTest::page,
      "picture of a file", DoorsTest::picture));
  private static final Map<String, Integer> SIDES = Map.of("adverse", -1, "favourable", 1);

  @TempDir Path folder;

  static Stream<Arguments> cells() {
    final List<Construct> constructs = Construct.all();
    return DOORS.keySet().stream().flatMap(door -> constructs.stream().map(construct -> Arguments.of(door, construct)));
  }

  @ParameterizedTest(name = "{0}: {1}")
  @MethodSource("cells")
  void everyCellIsRightOrSaysSo(String door, Construct construct) {
    final String known = construct.known(door);
    if (known.isEmpty()) {
      judge(door, construct);
      return;
    }
    try {
      judge(door, construct);
    } catch (AssertionError | AddendException expected) {
      return;
    }
    fail("works now; take it out of KNOWN in tests/doors/cells.py: " + known);
  }

  private void judge(String door, Construct construct) {
    final List<Answer> answers;
    try {
      answers = DOORS.get(door).apply(this, construct);
    } catch (AddendException error) {
      final String mayStop = construct.mayStop(door);
      if (mayStop.isEmpty() && construct.refused.isEmpty()) {
        throw error;
      }
      final String said = mayStop.isEmpty() ? String.join("|", construct.refused) : mayStop;
      assertTrue(Pattern.compile(said).matcher(error.getMessage()).find(), error.getMessage());
      return;
    }
    assertEquals(List.of(), construct.refused, "the door does not stop");
    assertFalse(answers.isEmpty());
    answers.forEach(construct::judge);
  }

  private List<Answer> explain(Construct construct) {
    final Model model = Model.load(construct.file);
    final Attribution found = model.attribute(construct.ofEachRow(construct.input(construct.rows)));
    final Answer each = construct.forEachRow();
    add(found, each);
    final double[] elements = found.input(0).toDoubleArray();
    assertEquals(construct.rows.size() * construct.columns, elements.length);
    for (int k = 0; k < elements.length; k++) {
      final double component = each.contributions[k / construct.columns][k % construct.columns];
      assertTrue((float) component == (float) elements[k], "elements are other than components");
    }
    final Answer alone = construct.rowByRow();
    for (int row = 0; row < construct.rows.size(); row++) {
      final Attribution one = model.attribute(construct.ofRow(row));
      add(one.explain(0), one.results(), row, alone);
      requireToldEverywhere(one);
    }
    return List.of(each, alone);
  }

  private List<Answer> decompose(Construct construct) {
    final Model model = Model.load(construct.file);
    final Answer answer = construct.rowByRow();
    for (int row = 0; row < construct.rows.size(); row++) {
      Request request = construct.where(construct.input(construct.asked(row))).at(null);
      String name = construct.output.isEmpty() ? null : construct.output;
      if (!construct.at.isEmpty()) {
        request = request.probe(construct.at);
        name = construct.at;
      }
      final Results results = model.decompose(request);
      add(results.explain(name, construct.targetOfRow(row)), results, row, answer);
    }
    return List.of(answer);
  }

  private List<Answer> plan(Construct construct) {
    final List<List<?>> turned = new ArrayList<>(construct.rows);
    Collections.reverse(turned);
    final Plan plan = Model.load(construct.file).plan(construct.ofEachRow(construct.input(turned)));
    final Answer answer = construct.forEachRow();
    add(plan.attribute(construct.ofEachRow(construct.input(construct.rows))), answer);
    return List.of(answer);
  }

  private List<Answer> job(Construct construct) {
    final Path rows = folder.resolve("rows.safetensors");
    new TensorFile().add("rows", construct.tensor(construct.rows)).write(rows);
    final Request request = construct.ofEachRow(construct.input(construct.rows.subList(0, 1))).eachExample(false);
    final List<Answer> answers = new ArrayList<>();
    for (String side : SIDES.keySet()) {
      final Path plan = folder.resolve(side + ".json");
      final JobOptions options = JobOptions.rows(rows.toString()).concepts(concepts(construct, side));
      Job.plan(plan, construct.file, request, options, null);
      try (Job job = new Job(plan)) {
        for (long shard = 0; shard < job.shards(); shard++) {
          job.run(shard);
        }
      }
      final Answer answer = construct.forEachRow();
      final Map<?, ?> merged = JsonReader.object(Job.merge(plan));
      answer.said.addAll(Reading.warningsOfJob(JsonReader.object(Job.status(plan))));
      answer.said.addAll(Reading.warningsOfJob(merged));
      for (Object refused : (List<?>) merged.get("refused")) {
        answer.said.add(JsonReader.text(((Map<?, ?>) refused).get("reason")));
      }
      final TensorFile results = TensorFile.read(Path.of(JsonReader.text(merged.get("path"))));
      final double[] numbers = results.tensor("contributions").toDoubleArray();
      final long[] reasons = results.tensor("reasons").toLongArray();
      for (int row = 0; row < construct.rows.size(); row++) {
        final int begin = row * construct.columns;
        answer.contributions[row] = Arrays.copyOfRange(numbers, begin, begin + construct.columns);
        assertArrayEquals(ranked(answer.contributions[row], SIDES.get(side)),
            Arrays.copyOfRange(reasons, begin, begin + construct.columns), "other reasons than contributions");
      }
      answers.add(answer);
    }
    return answers;
  }

  /** Columns that moved a number to a side, the largest first; the rest is -1. */
  private static long[] ranked(double[] contributions, int sign) {
    final long[] moved = IntStream.range(0, contributions.length).filter(k -> sign * contributions[k] > 0).boxed()
        .sorted(Comparator.comparingDouble(k -> -sign * contributions[k])).mapToLong(Integer::longValue).toArray();
    final long[] ranked = Arrays.copyOf(moved, contributions.length);
    Arrays.fill(ranked, moved.length, ranked.length, -1);
    return ranked;
  }

  private List<Answer> reasons(Construct construct) {
    final Attribution found =
        Model.load(construct.file).attribute(construct.ofEachRow(construct.input(construct.rows)));
    final Answer answer = construct.forEachRow();
    for (int row = 0; row < construct.rows.size(); row++) {
      answer.contributions[row] = new double[construct.columns];
    }
    for (String side : SIDES.keySet()) {
      final Reasons reasons = found.reasons(Concepts.read(concepts(construct, side)));
      answer.said.addAll(reasons.warnings());
      assertTrue(reasons.notes().containsAll(reasons.warnings()), "no notes: " + reasons.warnings());
      reasons.warnings().forEach(one -> assertTrue(reasons.toString().contains(one), "not printed: " + one));
      for (int row = 0; row < construct.rows.size(); row++) {
        final Decision decision = reasons.decisions().get(row);
        double before = Double.POSITIVE_INFINITY;
        for (Reason reason : decision.reasons()) {
          final double contribution = reason.contribution();
          assertTrue(Math.abs(contribution) <= before, decision.toString());
          before = Math.abs(contribution);
          answer.contributions[row][construct.names.indexOf(reason.concept())] = contribution;
        }
        if (decision.outcome().equals("not_finite")) {
          Arrays.fill(answer.contributions[row], Double.NaN);
        }
      }
    }
    return List.of(answer);
  }

  private List<Answer> interactions(Construct construct) {
    final Model model = Model.load(construct.file);
    final Answer answer = construct.rowByRow();
    for (int row = 0; row < construct.rows.size(); row++) {
      final Interactions found = model.interactions(construct.ofRow(row));
      answer.contributions[row] = found.contributions();
      answer.said.addAll(found.warnings());
    }
    return List.of(answer);
  }

  private List<Answer> baselines(Construct construct) {
    final Answer answer = construct.ofSeveralBaselines();
    final Request request = construct.ofEachRow(construct.inputWithSeveralBaselines());
    final Attribution found = Model.load(construct.file).attribute(request);
    for (int row = 0; row < construct.rows.size(); row++) {
      answer.contributions[row] = contributions(found.explain(row));
    }
    answer.said.addAll(found.warnings());
    requireToldEverywhere(found);
    return List.of(answer);
  }

  private List<Answer> page(Construct construct) {
    final Attribution found =
        Model.load(construct.file).attribute(construct.ofEachRow(construct.input(construct.rows)));
    final List<Answer> answers = new ArrayList<>();
    for (String text : List.of(found.toJson(), Reading.dataOf(found.toHtml()))) {
      final Map<?, ?> document = JsonReader.object(text);
      final Map<?, ?> report = (Map<?, ?>) document.get("report");
      final List<?> targets = (List<?>) document.get("targets");
      final Answer answer = construct.forEachRow();
      answer.said.addAll(JsonReader.texts(report.get("warnings")));
      for (int row = 0; row < construct.rows.size(); row++) {
        final Map<?, ?> target = (Map<?, ?>) targets.get(row);
        answer.contributions[row] = JsonReader.numbers(target.get("contributions"));
        if ("yes".equals(report.get("reference_is_model_on_baseline"))) {
          answer.claimed.put(row, JsonReader.number(target.get("reference")));
        }
      }
      answers.add(answer);
    }
    return answers;
  }

  private List<Answer> picture(Construct construct) {
    final Attribution found =
        Model.load(construct.file).attribute(construct.ofEachRow(construct.input(construct.rows)));
    final Answer answer = construct.forEachRow();
    for (int row = 0; row < construct.rows.size(); row++) {
      final Explanation one = found.explain(row);
      answer.contributions[row] = contributions(one);
      final List<String> notes = Reading.notesOfPicture(one.toSvg());
      notes.stream().filter(note -> note.startsWith("Warning: ")).forEach(answer.said::add);
      if (notes.stream().noneMatch(note -> note.contains("what the model gives on the baseline"))) {
        answer.claimed.put(row, one.reference());
      }
    }
    return List.of(answer);
  }

  private static void add(Attribution found, Answer answer) {
    final Results results = found.results();
    for (int row = 0; row < found.size(); row++) {
      add(found.explain(row), results, row, answer);
    }
    requireToldEverywhere(found);
  }

  private static void add(Explanation found, Results results, int row, Answer answer) {
    answer.contributions[row] = contributions(found);
    answer.said.addAll(results.warnings());
    if (results.report().referenceIsModelOnBaseline().equals("yes")) {
      answer.claimed.put(row, found.reference());
    }
  }

  private static double[] contributions(Explanation found) {
    return found.contributions().stream().mapToDouble(Contribution::value).toArray();
  }

  private static void requireToldEverywhere(Attribution found) {
    for (String warning : found.warnings()) {
      assertTrue(found.notes().contains(warning), "no note: " + warning);
      assertTrue(found.toString().contains(warning), "not printed: " + warning);
    }
  }

  /** One concept for each column. */
  private static String concepts(Construct construct, String side) {
    final List<String> concepts = new ArrayList<>();
    for (String name : construct.names) {
      final String components = "[" + JsonObject.quote(name) + "]";
      concepts.add(new JsonObject().put("name", name).putJson("components", components).toString());
    }
    return new JsonObject().put("format", "addend.concepts").putJson("version", "1").put("side", side)
        .putJson("at_most", Integer.toString(concepts.size())).putJson("concepts", concepts.toString()).toString();
  }
}
