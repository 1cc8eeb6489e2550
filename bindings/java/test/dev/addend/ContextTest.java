package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

class ContextTest extends ScopedTest {
  private static Results decompose(Context context) {
    return Models.load(Models.DIGITS)
        .decompose(Request.of(Input.of(Models.sample(Models.DIGITS)).splitAlong(2).baseline(0)), context);
  }

  @Test
  void policiesAreText() {
    final Policy policy = Policy.defaults()
        .preset(Policy.Preset.FAITHFUL)
        .segments(4)
        .nonlinearity(Policy.Nonlinearity.HYBRID_AFFINE, 0.25)
        .bias(Policy.Bias.SIGN_THRESHOLD, 0.5)
        .freeze(Policy.Freeze.ATTENTION, Policy.Freeze.GATE)
        .contentFirst(Policy.Freeze.ATTENTION, Policy.Freeze.NORMALIZER)
        .conditions(Policy.Conditions.BASELINE)
        .anchor(Policy.Anchor.RESIDUAL)
        .missingRule(Policy.MissingRule.ABSORB)
        .onFailure(Policy.OnFailure.WARN)
        .check(Policy.Check.OUTPUTS)
        .tolerance(0.001)
        .at("aten::softmax", Policy.defaults().nonlinearity(Policy.Nonlinearity.GRADIENT));
    assertEquals("sign_threshold(0.5)", policy.choices().get("bias"));
    assertEquals("attention+gate", policy.choices().get("freeze"));
    assertEquals("gradient", policy.choices().get("nonlinearity@aten::softmax"));
    assertEquals("none", Policy.defaults().freeze().choices().get("freeze"));
    assertEquals("none", Policy.defaults().contentFirst().choices().get("content_first"));
    final String json = Context.of(policy).policyJson();
    for (String text : List.of("\"faithful\"", "hybrid_affine(0.25)", "sign_threshold(0.5)", "attention+gate",
        "\"attention+normalizer\"", "\"baseline\"",
        "\"residual\"", "\"absorb\"", "\"warn\"", "\"outputs\"", "\"gradient\"")) {
      assertTrue(json.contains(text), text + " in " + json);
    }
  }

  @Test
  void policiesDoNotChange() {
    final Policy policy = Policy.defaults();
    policy.segments(9);
    assertEquals(Map.of(), policy.choices());
    assertEquals(Policy.defaults().segments(2), Policy.defaults().with("segments", "2"));
    assertThrows(UnsupportedOperationException.class, () -> policy.choices().put("segments", "1"));
  }

  @Test
  void everyChoiceExists() {
    for (Policy.Preset preset : Policy.Preset.values()) {
      Context.of(Policy.defaults().preset(preset));
    }
    for (Policy.Nonlinearity nonlinearity : Policy.Nonlinearity.values()) {
      Context.of(Policy.defaults().nonlinearity(nonlinearity));
    }
    for (Policy.Bias bias : Policy.Bias.values()) {
      Context.of(Policy.defaults().bias(bias));
    }
    for (Policy.Freeze freeze : Policy.Freeze.values()) {
      Context.of(Policy.defaults().freeze(freeze));
      Context.of(Policy.defaults().contentFirst(freeze));
    }
    for (Policy.Conditions conditions : Policy.Conditions.values()) {
      Context.of(Policy.defaults().conditions(conditions));
    }
    for (Policy.Anchor anchor : Policy.Anchor.values()) {
      Context.of(Policy.defaults().anchor(anchor));
    }
    for (Policy.MissingRule missingRule : Policy.MissingRule.values()) {
      Context.of(Policy.defaults().missingRule(missingRule));
    }
    for (Policy.OnFailure onFailure : Policy.OnFailure.values()) {
      Context.of(Policy.defaults().onFailure(onFailure));
    }
    for (Policy.Check check : Policy.Check.values()) {
      Context.of(Policy.defaults().check(check));
    }
  }

  @Test
  void wrongChoicesAreExplained() {
    final AddendException key =
        assertThrows(AddendException.class, () -> Context.of(Policy.defaults().with("no such", "1")));
    assertEquals(AddendException.Code.INVALID_ARGUMENT, key.code());
    assertThrows(AddendException.class, () -> Context.of(Policy.defaults().segments(0)));
    assertThrows(AddendException.class, () -> Context.of(Policy.defaults().tolerance(Double.NaN)));
  }

  @Test
  void policiesDecide() {
    assertEquals(0, decompose(Context.of(Policy.defaults())).explain(Target.largest()).leftover(), 1e-5);
    final Explanation none = decompose(Context.of(
        Policy.defaults().nonlinearity(Policy.Nonlinearity.NONE))).explain(Target.largest());
    assertTrue(Math.abs(none.leftover()) > 0.1, "leftover " + none.leftover());
    assertEquals(none.value(), none.recovery(), 1e-4);
  }

  @Test
  void progressIsHeardOnTheThreadThatRuns() {
    final List<Thread> threads = new ArrayList<>();
    final TreeSet<String> stages = new TreeSet<>();
    final Context context = Context.builder()
        .onProgress((stage, done, total) -> {
          threads.add(Thread.currentThread());
          stages.add(stage);
          return total == 0 || done <= total;
        })
        .build();
    decompose(context);
    assertTrue(stages.contains("trace") && stages.contains("sweep"), stages.toString());
    assertTrue(threads.stream().allMatch(thread -> thread == Thread.currentThread()));
  }

  @Test
  void progressEndsRuns() {
    final Context context = Context.builder().onProgress((stage, done, total) -> !stage.equals("sweep")).build();
    final AddendException error = assertThrows(AddendException.class, () -> decompose(context));
    assertEquals(AddendException.Code.CANCELLED, error.code());
    assertEquals("1", error.payload().get("callback"));
  }

  @Test
  void whatProgressThrowsReachesTheCaller() {
    final IllegalArgumentException thrown = new IllegalArgumentException("of the listener");
    final Context context = Context.builder()
        .onProgress((stage, done, total) -> {
          throw thrown;
        })
        .build();
    assertSame(thrown, assertThrows(IllegalArgumentException.class, () -> decompose(context)));
    assertEquals(
        AddendException.Code.CANCELLED, ((AddendException) thrown.getSuppressed()[0]).code());
    // The thread is as good as new.
    assertEquals(8, decompose(null).composition(0).numc());
  }

  @Test
  void logTellsWhatAReaderShouldKnow() {
    final List<String> lines = new ArrayList<>();
    final Context context = Context.builder()
        .policy(Policy.defaults().tolerance(1e-30).onFailure(Policy.OnFailure.WARN))
        .onLog((level, message) -> lines.add(level + " " + message))
        .build();
    decompose(context);
    assertTrue(lines.stream().anyMatch(line -> line.startsWith("WARNING ")), lines.toString());
    assertFalse(lines.stream().anyMatch(line -> line.contains("\n")), lines.toString());
  }

  @Test
  void whatLogThrowsReachesTheCaller() throws InterruptedException {
    final IllegalStateException thrown = new IllegalStateException("of the listener");
    final List<String> heard = new ArrayList<>();
    final Context context = Context.builder()
        .policy(Policy.defaults().tolerance(1e-30).onFailure(Policy.OnFailure.WARN))
        .onLog((level, message) -> {
          heard.add(message);
          throw thrown;
        })
        .build();
    Garbage.releaseAll(AddendHandleKind.ADDEND_HANDLE_RESULTS);
    assertSame(thrown, assertThrows(IllegalStateException.class, () -> decompose(context)));
    // The run went on to its end: later lines were heard too. Nothing of it is left.
    assertTrue(heard.size() > 1, heard.toString());
    assertEquals(0, AddendNative.addend_debug_live(AddendHandleKind.ADDEND_HANDLE_RESULTS));
    // The thread is as good as new.
    assertEquals(8, decompose(null).composition(0).numc());
  }

  @Test
  void checkedExceptionsOfListenersReachTheCaller() {
    final IOException thrown = new IOException("of a listener in another language");
    final Context progress = Context.builder()
        .onProgress((stage, done, total) -> {
          throw ContextTest.<RuntimeException>unchecked(thrown);
        })
        .build();
    assertSame(thrown, assertThrows(IOException.class, () -> decompose(progress)));
    final Context log = Context.builder()
        .policy(Policy.defaults().tolerance(1e-30).onFailure(Policy.OnFailure.WARN))
        .onLog((level, message) -> {
          throw ContextTest.<RuntimeException>unchecked(thrown);
        })
        .build();
    assertSame(thrown, assertThrows(IOException.class, () -> decompose(log)));
  }

  @SuppressWarnings("unchecked")
  static <E extends Throwable> E unchecked(Throwable thrown) throws E {
    throw (E) thrown;
  }

  /** The file of a model in which LibTorch warns, every time it runs: an output is written that has another size. */
  private static Path warning(Path folder) throws IOException {
    final Path file = folder.resolve("warning.pt");
    final Tensor x = Tensor.of(new float[2], 1, 2);
    final RecordingScope scope = new RecordingScope(Request.of(Input.of(x)));
    scope.addOutput(Addend.call("aten::relu", x).tensor(0));
    scope.end().exportTorchScript(file);
    try (FileSystem archive = FileSystems.newFileSystem(file, (ClassLoader) null)) {
      final Path code = archive.getPath("archive/code/__torch__.py");
      Files.writeString(code, Files.readString(code).replaceAll(
          "torch.relu.*", "torch.mul(torch.add(input_0, input_0, alpha=1, out=torch.zeros([3])), 2.)"));
    }
    return file;
  }

  @Test
  void whatTheLogOfAPlanThrowsReachesTheCaller(@TempDir Path folder) throws IOException {
    final IllegalStateException thrown = new IllegalStateException("of the listener");
    final boolean[] fails = {false};
    final Context context = Context.builder()
        .onLog((level, message) -> {
          if (fails[0]) {
            throw thrown;
          }
        })
        .build();
    final Path file = warning(folder);
    final Tensor x = Tensor.of(new float[] {1, 2}, 1, 2);
    final Request request = Request.of(Input.of(x).splitAlong(1).baseline(0)).target(Target.element(0, 1));
    final Plan plan = Model.load(file).plan(request, context);
    final ByteBuffer parts = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());
    final Tensor into = Tensor.wrap(parts, DType.FLOAT64, 1, 2);
    final Path rows = folder.resolve("rows.safetensors");
    new TensorFile().add("x", x).write(rows);  // of the size of the recording
    final Request row = Request.of(Input.of(x).splitAlong(1).baseline(0)).target(Target.element(1));
    fails[0] = true;
    for (Executable run : List.<Executable>of(
        () -> plan.attribute(request),
        () -> plan.attributeInto(request, into, null),
        () -> Job.plan(folder.resolve("plan.json"), file, row, JobOptions.rows(rows.toString()), context))) {
      assertSame(thrown, assertThrows(IllegalStateException.class, run));
      // The thread is as good as new.
      assertEquals(8, decompose(null).composition(0).numc());
    }
    // Runs went on to their ends.
    assertEquals(8, parts.getDouble(8));
    assertTrue(Files.exists(folder.resolve("plan.json")));
  }

  @Test
  void runsInsideOfListenersThrowWhatIsTheirs() {
    final IllegalStateException thrown = new IllegalStateException("of the listener");
    final List<Long> inner = new ArrayList<>();
    final Context context = Context.builder()
        .policy(Policy.defaults().tolerance(1e-30).onFailure(Policy.OnFailure.WARN))
        .onLog((level, message) -> {
          inner.add(decompose(null).composition(0).numc());
          throw thrown;
        })
        .build();
    assertSame(thrown, assertThrows(IllegalStateException.class, () -> decompose(context)));
    assertTrue(inner.size() > 1, inner.toString());
    // An exception that is kept while nothing runs belongs to no run, and no later run throws it.
    Thrown.keep(thrown);
    assertEquals(8, decompose(null).composition(0).numc());
  }

  @Test
  void listenersMayCallTheLibrary() {
    final List<Double> sums = new ArrayList<>();
    final Context context = Context.builder()
        .onProgress((stage, done, total) -> {
          try (Tensor tensor = Tensor.of(new double[] {1, 2})) {
            sums.add(tensor.toDoubleArray()[1]);
          }
          return true;
        })
        .build();
    decompose(context);
    assertEquals(2.0, sums.get(0));
  }

  @Test
  void rulesAreReplaced() {
    final Composition x = Composition.diagonal(Tensor.of(new double[] {1, 2}), null, 0);
    final Context opaque = Context.builder().rule("aten::tanh", Principle.OPAQUE).build();
    final Composition y = Operators.under(opaque).tanh(x);
    assertArrayEquals(new double[4], y.components().toDoubleArray());
    assertArrayEquals(new double[] {Math.tanh(1), Math.tanh(2)}, y.leftover().toDoubleArray(), 1e-12);
    for (Principle principle : Principle.values()) {
      Context.builder().rule("my_ops::unknown", principle).build();
    }
    assertThrows(AddendException.class, () -> Context.builder().rule("no name", Principle.PATH).build());
  }

  @Test
  void detailIsGivenWhereItIsAskedFor() {
    final Context context = Context.builder().detail(true).build();
    final AddendException error =
        assertThrows(AddendException.class, () -> context.call("aten::no_such_operator", Tensor.of(new double[1])));
    assertFalse(error.detail().isEmpty());
  }

  @Test
  void contextsLetGoOfTheirListeners() throws InterruptedException {
    final WeakReference<Object> reference = closedContextOf(new Object());
    Garbage.collectUntil(() -> reference.get() == null);
  }

  private static WeakReference<Object> closedContextOf(Object captured) {
    Context.builder().onProgress((stage, done, total) -> captured.hashCode() != 0).build().close();
    return new WeakReference<>(captured);
  }
}
