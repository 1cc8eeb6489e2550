package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

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
  void whatLogThrowsReachesTheCaller() {
    final IllegalStateException thrown = new IllegalStateException("of the listener");
    final List<String> heard = new ArrayList<>();
    final Context context = Context.builder()
        .policy(Policy.defaults().tolerance(1e-30).onFailure(Policy.OnFailure.WARN))
        .onLog((level, message) -> {
          heard.add(message);
          throw thrown;
        })
        .build();
    final long live = AddendNative.addend_debug_live(AddendHandleKind.ADDEND_HANDLE_RESULTS);
    assertSame(thrown, assertThrows(IllegalStateException.class, () -> decompose(context)));
    // The run went on to its end: later lines were heard too. Nothing of it is left.
    assertTrue(heard.size() > 1, heard.toString());
    assertEquals(live, AddendNative.addend_debug_live(AddendHandleKind.ADDEND_HANDLE_RESULTS));
    // The thread is as good as new.
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
