package dev.addend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Every note of tests/notes is told at every door that has it, as a warning where it is one: in lists, on pages and in pictures. */
class NotesTest extends ScopedTest {
  private static final Map<String, BiConsumer<NotesTest, Noted>> DOORS = Map.of(
      "attribution", NotesTest::attribution,
      "decomposition", NotesTest::decomposition,
      "interactions", NotesTest::interactions,
      "plan", NotesTest::plan,
      "job", NotesTest::job);
  private static final String PRINTED = "Warning: ";

  @TempDir Path folder;

  static Stream<Arguments> cells() {
    return Noted.all().stream().flatMap(noted -> noted.doors.stream().map(door -> Arguments.of(door, noted)));
  }

  @ParameterizedTest(name = "{0}: {1}")
  @MethodSource("cells")
  void everyNoteIsTold(String door, Noted noted) {
    DOORS.get(door).accept(this, noted);
  }

  private void attribution(Noted noted) {
    requireToldEverywhere(noted, Model.load(noted.file).attribute(noted.attributed(), noted.context()));
  }

  private void plan(Noted noted) {
    final Plan plan = Model.load(noted.file).plan(noted.attributed(), noted.context());
    requireToldEverywhere(noted, plan.attribute(noted.attributed()));
  }

  private void decomposition(Noted noted) {
    final Results found = Model.load(noted.file).decompose(noted.decomposed(), noted.context());
    requireTold(noted, found.notes(), found.warnings());
    final Target target = noted.firstTarget();
    for (Explanation one : List.of(found.explain(target), found.composition(0).explain(target))) {
      requireTold(noted, one);
    }
  }

  private void interactions(Noted noted) {
    final Interactions found = Model.load(noted.file).interactions(noted.attributed());
    requireTold(noted, found.notes(), found.warnings());
    requireTold(noted, JsonReader.object(found.toJson()));
    requireTold(noted, JsonReader.object(Reading.dataOf(found.toHtml())));
  }

  private void job(Noted noted) {
    final Path plan = folder.resolve("job.json");
    Job.plan(plan, noted.file, noted.ofRows(), JobOptions.rows(noted.rows().toString()), noted.context());
    try (Job job = new Job(plan)) {
      for (long shard = 0; shard < job.shards(); shard++) {
        job.run(shard);
      }
    }
    for (String text : List.of(Job.status(plan), Job.merge(plan))) {
      final Map<?, ?> document = JsonReader.object(text);
      requireTold(noted, Reading.notesOfJob(document), Reading.warningsOfJob(document));
    }
  }

  private static void requireToldEverywhere(Noted noted, Attribution found) {
    requireTold(noted, found.notes(), found.warnings());
    requirePrinted(noted, found.toString());
    requireReported(noted, found.toJson());
    requireReported(noted, Reading.dataOf(found.toHtml()));
    found.explanations().forEach(one -> requireTold(noted, one));
    requireTold(noted, found.reasons(concepts()));
  }

  private static void requireTold(Noted noted, Explanation found) {
    requireDrawn(noted, found);
    requireReported(noted, found.toJson());
    requireReported(noted, Reading.dataOf(found.toHtml()));
    requireTold(noted, found.reasons(concepts()));
  }

  /** The picture has the note too. Numbers that are not finite have no picture. */
  private static void requireDrawn(Noted noted, Explanation found) {
    final DoubleStream ends = DoubleStream.of(found.value(), found.reference(), found.leftover());
    final DoubleStream parts = found.contributions().stream().mapToDouble(Contribution::value);
    if (!DoubleStream.concat(ends, parts).allMatch(Double::isFinite)) {
      assertEquals(AddendException.Code.FAILED_PRECONDITION, assertThrows(AddendException.class, found::toSvg).code());
      return;
    }
    final List<String> drawn = Reading.notesOfPicture(found.toSvg()).stream().map(NotesTest::withoutSpaces)
        .collect(Collectors.toList());
    final Map<?, ?> report = (Map<?, ?>) JsonReader.object(found.toJson()).get("report");
    final List<String> told =
        JsonReader.texts(report.get("notes")).stream().filter(noted::isSaid).collect(Collectors.toList());
    assertFalse(told.isEmpty(), "no such note");
    for (String note : told) {
      final String expected = withoutSpaces((noted.warning ? PRINTED : "Note: ") + note);
      assertTrue(drawn.contains(expected), () -> "not drawn: " + drawn);
    }
  }

  /** Lines are broken at spaces, and within words that are too long. */
  private static String withoutSpaces(String text) {
    return text.replace(" ", "");
  }

  private static void requireTold(Noted noted, Reasons found) {
    requireTold(noted, found.notes(), found.warnings());
    requirePrinted(noted, found.toString());
    requireTold(noted, JsonReader.object(Reading.dataOf(found.toHtml())));
  }

  private static void requireReported(Noted noted, String document) {
    requireTold(noted, (Map<?, ?>) JsonReader.object(document).get("report"));
  }

  private static void requireTold(Noted noted, Map<?, ?> record) {
    requireTold(noted, JsonReader.texts(record.get("notes")), JsonReader.texts(record.get("warnings")));
  }

  private static void requireTold(Noted noted, List<String> notes, List<String> warnings) {
    assertTrue(noted.isIn(notes), () -> "no such note: " + notes);
    assertEquals(noted.warning, noted.isIn(warnings), () -> "warnings: " + warnings);
  }

  /** Warnings are printed, and remarks are not. */
  private static void requirePrinted(Noted noted, String text) {
    final List<String> said = text.lines().filter(line -> line.startsWith(PRINTED))
        .map(line -> line.substring(PRINTED.length())).collect(Collectors.toList());
    assertEquals(noted.warning, noted.isIn(said), text);
  }

  /** One concept of all components. */
  private static Concepts concepts() {
    return Concepts.read("{\"format\": \"addend.concepts\", \"version\": 1, \"side\": \"adverse\", \"concepts\": "
        + "[{\"name\": \"all\", \"components\": [\"*\"]}]}");
  }
}
