package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProgramTest extends ScopedTest {
  private final Model model = Models.load(Models.BREAST_CANCER);

  /** Some rows of the table that the model was not trained on. */
  private static Tensor rows(int begin, int count) {
    final float[] all = Models.heldOut(Models.BREAST_CANCER).toFloatArray();
    return Tensor.of(Arrays.copyOfRange(all, begin * 30, (begin + count) * 30), count, 30);
  }

  private static Tensor awkward(String name) {
    try (TensorFile file = TensorFile.read(Models.CONFORMANCE.resolve("awkward.safetensors"))) {
      return file.tensor(name);
    }
  }

  @Test
  void replaysTheSameBits() {
    final Program program = model.record(rows(0, 2));
    final Results results = program.replay(rows(5, 2));
    assertEquals(List.of("output"), results.names());
    assertArrayEquals(model.run(rows(5, 2)).tensor(0).toFloatArray(), results.tensor(0).toFloatArray());
    assertEquals(7, program.numOperators());
    final Program.Output output = program.outputs().get(0);
    assertEquals(1, program.outputs().size());
    assertEquals("output", output.name());
    assertEquals(results.tensor(0).dtype(), output.dtype());
    assertArrayEquals(results.tensor(0).shape(), output.shape());
    assertEquals(List.of("table"), program.names(Program.ValueKind.INPUT));
    assertEquals(List.of("mean", "deviation"), program.names(Program.ValueKind.BUFFER));
    assertEquals(
        Set.of("layers.0.weight", "layers.0.bias", "layers.2.weight", "layers.2.bias", "layers.4.weight", "layers.4.bias"),
        Set.copyOf(program.names(Program.ValueKind.PARAMETER)));
    assertTrue(program.names().containsAll(program.names(Program.ValueKind.RESULT)));
    final AddendException error = assertThrows(AddendException.class, () -> program.replay(rows(0, 4)));
    assertEquals(AddendException.Code.INVALID_ARGUMENT, error.code());
    assertTrue(error.getMessage().contains("[4, 30]"), error.getMessage());
  }

  @Test
  void givesInnerValuesByName() {
    final Program program = model.record(rows(0, 2));
    final Request asked = Request.of(Map.of("table", Input.of(rows(3, 2)).splitAlong(1)));
    final Results results = program.replay(asked, ReplayOptions.defaults().values("relu", "sub"));
    assertEquals(List.of("output", "relu", "sub"), results.names());
    final Composition relu = model.decompose(asked.probe("aten::relu:0")).composition(1);
    assertArrayEquals(relu.value().toFloatArray(), results.tensor("relu").toFloatArray());
    final Results everything = program.replay(asked, ReplayOptions.defaults().everyValue(true));
    assertEquals(program.names(), everything.names().subList(1, everything.size()));
    assertThrows(AddendException.class, () -> program.replay(asked, ReplayOptions.defaults().values("no such")));
  }

  @Test
  void learnsSizesFromOthers() {
    final Program program = model.record(
        Request.of(Input.of(rows(0, 1))).other(Input.of(rows(0, 2))).other(Map.of("table", Input.of(rows(0, 5)))));
    final List<?> free = (List<?>) JsonReader.object(program.summaryJson()).get("free");
    assertEquals(1, free.size());
    assertEquals("table", ((Map<?, ?>) free.get(0)).get("input"));
    assertEquals(0.0, ((Map<?, ?>) free.get(0)).get("dim"));
    assertArrayEquals(model.run(rows(0, 9)).tensor(0).toFloatArray(), program.replay(rows(0, 9)).tensor(0).toFloatArray());
    // Only recording and checking take several examples.
    final Request several = Request.of(Input.of(rows(0, 1))).other(Input.of(rows(0, 2)));
    assertThrows(AddendException.class, () -> model.run(several));
    assertThrows(AddendException.class, () -> model.attribute(several));
  }

  @Test
  void learnsSizesFromOneExample(@TempDir Path folder) {
    final Path path = folder.resolve("sizes.pt");
    final Program program = model.record(Request.of(Input.of(rows(0, 2))).learnSizes(true));
    program.exportTorchScript(path);
    final float[] expected = model.run(rows(0, 9)).tensor(0).toFloatArray();
    assertArrayEquals(expected, program.replay(rows(0, 9)).tensor(0).toFloatArray());
    assertArrayEquals(expected, Model.load(path).run(rows(0, 9)).tensor(0).toFloatArray());
    final AddendException error = assertThrows(AddendException.class, () -> program.replay(rows(0, 20)));
    assertTrue(error.getMessage().contains("sizes from 1 to 9 were tried"), error.getMessage());
    // Without, a file stops at sizes that were not recorded.
    model.record(rows(0, 2)).exportTorchScript(path);
    final Model file = Model.load(path);
    assertThrows(AddendException.class, () -> file.run(rows(0, 9)));
  }

  @Test
  void stopsWhereANumberThatLeftTheTensorsIsAnother() {
    final Model branching = Model.load(Models.CONFORMANCE.resolve("awkward.pt"));
    final Tensor other = awkward("other_branch");
    final Program program = branching.record(awkward("table"));
    assertArrayEquals(
        branching.run(awkward("same_branch")).tensor(0).toFloatArray(),
        program.replay(awkward("same_branch")).tensor(0).toFloatArray());
    final AddendException error = assertThrows(AddendException.class, () -> program.replay(other));
    assertEquals(AddendException.Code.FAILED_PRECONDITION, error.code());
    assertEquals("aten::item", error.payload().get("op"));
    final float[] wrong =
        program.replay(Request.of(Input.of(other)), ReplayOptions.defaults().guards(false)).tensor(0).toFloatArray();
    assertFalse(Arrays.equals(branching.run(other).tensor(0).toFloatArray(), wrong));
  }

  @Test
  void isCheckedAgainstTheModel() {
    final Model branching = Model.load(Models.CONFORMANCE.resolve("awkward.pt"));
    final Request asked = Request.of(Input.of(awkward("table")));
    final TraceCheck same = branching.checkTrace(asked.other(Input.of(awkward("same_branch"))), 0, true);
    assertTrue(same.ok(), same.toString());
    assertEquals(0, same.worstError());
    final TraceCheck check = branching.checkTrace(
        asked.other(Input.of(awkward("same_branch"))).other(Input.of(awkward("other_branch"))));
    assertFalse(check.ok());
    final TraceCheck.Finding guard =
        check.findings().stream().filter(finding -> finding.kind().equals("guard")).findFirst().orElseThrow();
    assertTrue(guard.isError());
    assertEquals(OptionalInt.of(1), guard.inputSet());
    assertTrue(guard.position().contains("architectures.py"), guard.position());
    assertTrue(guard.message().contains("aten::item"), guard.message());
    assertTrue(check.toString().startsWith("the recording is not the model\n"), check.toString());

    final Model nested = Model.load(Models.CONFORMANCE.resolve("nested.pt"));
    try (TensorFile file = TensorFile.read(Models.CONFORMANCE.resolve("nested.safetensors"))) {
      final Request table = Request.of(Input.of(file.tensor("table")));
      final TraceCheck strict = nested.checkTrace(table);
      assertTrue(strict.ok());
      assertEquals(1, strict.findings().size());
      assertEquals("output", strict.findings().get(0).kind());
      assertEquals(OptionalInt.empty(), strict.findings().get(0).inputSet());
      assertFalse(strict.findings().get(0).isError());
      assertEquals(List.of(), nested.checkTrace(table, 1e-5, false).findings());
      assertThrows(AddendException.class, () -> nested.checkTrace(table, -1, false));
      assertThrows(IllegalArgumentException.class, () -> nested.checkTrace(table, Double.NaN, false));
    }
  }

  @Test
  void isKept(@TempDir Path folder) throws IOException {
    final Path path = folder.resolve("\u00e9\ud83d\ude00");
    model.record(rows(0, 2)).save(path);
    try (Stream<Path> files = Files.list(path)) {
      assertEquals(
          Set.of("program.json", "weights.safetensors"),
          files.map(file -> file.getFileName().toString()).collect(Collectors.toSet()));
    }
    final Program program = Program.load(path);
    assertArrayEquals(model.run(rows(3, 2)).tensor(0).toFloatArray(), program.replay(rows(3, 2)).tensor(0).toFloatArray());
  }

  @Test
  void standsForTheModel() {
    final Model twin = model.record(rows(0, 1)).model();
    assertEquals(model.inputNames(), twin.inputNames());
    final Request asked = Request.of(Input.of(rows(0, 1)).splitAlong(1).baseline(1)).target(Target.element(0, 1));
    final Composition expected = model.decompose(asked).composition(0);
    final Composition found = twin.decompose(asked).composition(0);
    assertArrayEquals(expected.components().toFloatArray(), found.components().toFloatArray());
    assertArrayEquals(
        model.attribute(asked).input(0).toFloatArray(), twin.attribute(asked).input("table").toFloatArray());
  }

  @Test
  void isReadAsCode() {
    final Program program = model.record(rows(0, 2));
    assertTrue(program.code().contains("# linear(f32[2, 30], f32[32, 30], f32[32]) -> f32[2, 32];"), program.code());
    assertTrue(program.code(CodeOptions.defaults().names(true)).contains("table: f32[2, 30]"));
    assertTrue(program.code(CodeOptions.defaults().color(true)).contains("\u001b["));
    assertFalse(program.code(CodeOptions.defaults().exclude("*/torch/*")).contains("functional.py"));
    assertTrue(program.code(CodeOptions.defaults().exclude()).contains("functional.py"));
    assertFalse(program.code(CodeOptions.defaults().include("*breast_cancer*")).contains("functional.py"));
    final CodeOptions timed = CodeOptions.defaults().numbers(
        CallNumbers.seconds("time", 0.5, Double.NaN, 1, 1, 1, 1, 1),
        CallNumbers.bytes("memory", 2048, 1, 1, 1, 1, 1, 1),
        CallNumbers.of("score \"1\"\n", 7, 2, 3, 4, 5, 6, Double.NEGATIVE_INFINITY));
    assertTrue(program.code(timed).contains("[time 500.0 ms | memory 2.0 KiB | score \"1\""), program.code(timed));
    assertTrue(program.codeJson(timed).contains("\"numbers\":[0.5,2048"), program.codeJson(timed));
    final CodeOptions few = CodeOptions.defaults().numbers(CallNumbers.of("score", 1));
    assertEquals(
        AddendException.Code.INVALID_ARGUMENT, assertThrows(AddendException.class, () -> program.code(few)).code());
  }

  @Test
  void isReadAsAGraph() {
    final Program program = model.record(rows(0, 2));
    final List<?> nodes = (List<?>) JsonReader.object(program.graphJson()).get("nodes");
    final List<Object> kinds = nodes.stream().map(node -> ((Map<?, ?>) node).get("kind")).collect(Collectors.toList());
    assertEquals(7, kinds.stream().filter("call"::equals).count());
    assertEquals(6, kinds.stream().filter("parameter"::equals).count());
    assertTrue(program.graphJson(CallNumbers.of("score", 1, 2, 3, 4, 5, 6, 7.5)).contains("7.5"));
    assertTrue(program.graphDot().startsWith("digraph"));
    assertFalse(program.graphDot().contains("layers.0.weight"));
    assertTrue(program.graphDot(true, false).contains("layers.0.weight"));
    final String page = program.graphHtml("<script>", CallNumbers.of("score", 1, 2, 3, 4, 5, 6, 7));
    assertTrue(page.contains("</html>"));
    assertTrue(page.contains("\\u003cscript>"));
  }

  @Test
  void damagedFilesAreRefused(@TempDir Path folder) throws IOException {
    model.record(rows(0, 1)).save(folder);
    for (String name : List.of("program.json", "weights.safetensors")) {
      final byte[] whole = Files.readAllBytes(folder.resolve(name));
      for (int size : new int[] {0, 1, 9, whole.length / 2, whole.length - 2}) {
        Files.write(folder.resolve(name), Arrays.copyOf(whole, size));
        assertThrows(AddendException.class, () -> Program.load(folder), () -> size + " bytes of " + name);
      }
      Files.write(folder.resolve(name), whole);
    }
    Program.load(folder);
    assertEquals(
        AddendException.Code.NOT_FOUND,
        assertThrows(AddendException.class, () -> Program.load(folder.resolve("nothing"))).code());
    Files.write(folder.resolve("file"), new byte[] {1});
    assertThrows(AddendException.class, () -> model.record(rows(0, 1)).save(folder.resolve("file")));
  }

  @Test
  void hostileArgumentsAreRefused() {
    final Program program = model.record(rows(0, 1));
    assertThrows(NullPointerException.class, () -> Program.load(null));
    assertThrows(NullPointerException.class, () -> program.save(null));
    assertThrows(NullPointerException.class, () -> program.replay((Tensor) null));
    assertThrows(NullPointerException.class, () -> program.replay(null, ReplayOptions.defaults()));
    assertThrows(NullPointerException.class, () -> program.replay(Request.of(), null));
    assertThrows(NullPointerException.class, () -> program.code(null));
    assertThrows(NullPointerException.class, () -> program.graphJson((CallNumbers) null));
    assertThrows(NullPointerException.class, () -> program.graphHtml(null));
    assertThrows(NullPointerException.class, () -> ReplayOptions.defaults().values("relu", null));
    assertThrows(NullPointerException.class, () -> CodeOptions.defaults().include((String) null));
    assertThrows(NullPointerException.class, () -> CallNumbers.of(null, 1));
    assertThrows(NullPointerException.class, () -> Request.of().other((Input) null));
    assertThrows(NullPointerException.class, () -> model.record((Request) null));
    assertThrows(AddendException.class, () -> model.record());
    assertThrows(AddendException.class, () -> model.record(Request.of().other(Input.of(rows(0, 1)))));
    assertThrows(AddendException.class, () -> program.replay());
    assertThrows(AddendException.class, () -> program.replay(rows(0, 1), rows(0, 1)));
    assertThrows(AddendException.class, () -> program.replay(Tensor.of(new long[30], 1, 30)));
    assertThrows(IllegalArgumentException.class, () -> program.graphHtml("\ud83d"));
    assertThrows(
        AddendException.class,
        () -> program.replay(Request.of(Input.of(rows(0, 1))), ReplayOptions.defaults().guardTolerance(-1)));
    final Cancellation cancellation = new Cancellation();
    cancellation.cancel();
    final Request cancelled = Request.of(Input.of(rows(0, 1))).cancellation(cancellation);
    assertEquals(
        AddendException.Code.CANCELLED, assertThrows(AddendException.class, () -> model.record(cancelled)).code());
    assertThrows(AddendException.class, () -> program.replay(cancelled, ReplayOptions.defaults()));
  }

  @Test
  void closedProgramsSaySo() {
    final Program program = model.record(rows(0, 1));
    final Model twin = program.model();
    program.close();
    assertThrows(IllegalStateException.class, program::code);
    assertThrows(IllegalStateException.class, program::model);
    assertThrows(IllegalStateException.class, program::numOperators);
    assertThrows(IllegalStateException.class, () -> program.replay(rows(0, 1)));
    // The model that stands for the program does not need it.
    assertArrayEquals(model.run(rows(0, 1)).tensor(0).toFloatArray(), twin.run(rows(0, 1)).tensor(0).toFloatArray());
  }
}
