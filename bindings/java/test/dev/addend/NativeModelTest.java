package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A model that runs in another native library over the same LibTorch is decomposed and attributed as it runs. */
class NativeModelTest extends ScopedTest {
  private final NativeModel model = new NativeModel();
  private final long input = NativeModel.tensor(new float[] {0.5f, -1, 2, 0.25f}, 1, 4);
  private final Tensor x = Tensor.fromLibTorch(input);

  @AfterEach
  void release() {
    NativeModel.releaseTensor(input);
    model.close();
  }

  /** The model's parameters and buffers by their names. */
  private Request named(Request request) {
    Request named = request;
    for (Map.Entry<String, Long> parameter : model.tensors(true).entrySet()) {
      named = named.parameter(parameter.getKey(), Tensor.fromLibTorch(parameter.getValue()));
    }
    for (Map.Entry<String, Long> buffer : model.tensors(false).entrySet()) {
      named = named.buffer(buffer.getKey(), Tensor.fromLibTorch(buffer.getValue()));
    }
    return named;
  }

  private Request asked() {
    return named(Request.of(Map.of("x", Input.of(x).splitAlong(-1).baseline(0))));
  }

  private Tensor run(long at, Consumer<String> entered) {
    final long made = model.forward(at, entered);
    try {
      return Tensor.fromLibTorch(made);
    } finally {
      NativeModel.releaseTensor(made);
    }
  }

  @Test
  void nativeModelsAreDecomposedWithTheirModules() {
    final TracingScope tracing = new TracingScope(asked().probe("encoder.1"));
    final Tensor y = run(input, tracing::setModule);
    tracing.addOutput("y", y);
    final Results results = tracing.end();

    assertEquals(List.of("y", "encoder.1"), results.names());
    assertArrayEquals(y.toFloatArray(), results.composition("y").value().toFloatArray());
    final Explanation explanation = results.explain(Target.largest());
    assertEquals(4, explanation.contributions().size());
    assertTrue(explanation.contributions().stream().allMatch(contribution -> contribution.value() != 0));
    assertEquals(explanation.value(), explanation.recovery(), 1e-6);
    // The network bends, but what it does on the baseline it tells itself.
    final long zeros = NativeModel.tensor(new float[4], 1, 4);
    final Tensor onBaseline = run(zeros, path -> {});
    NativeModel.releaseTensor(zeros);
    assertArrayEquals(onBaseline.toFloatArray(), results.composition("y").reference().toFloatArray(), 1e-6f);

    final String report = results.reportJson();
    for (String module : List.of("encoder.0", "encoder.1", "norm", "head")) {
      assertTrue(report.contains("\"module_path\":\"" + module + "\""), report);
    }
    for (String name : List.of("encoder.0.weight", "encoder.1.bias", "norm.running_mean", "head.weight")) {
      assertTrue(report.contains(name), report);
    }
  }

  @Test
  void nativeModelsAreAttributedWithTheirModules() {
    final Explanation decomposed;
    try (TracingScope tracing = new TracingScope(asked())) {
      tracing.addOutput("y", run(input, tracing::setModule));
      decomposed = tracing.end().explain(Target.element(0, 2));
    }
    final Request request =
        asked().target(Target.element(0, 2)).target(Target.parse("0,2-0,1")).operators(true);
    final AttributionScope scope = new AttributionScope(request);
    scope.addOutput("y", run(input, scope::setModule));
    scope.addNote("runs in a library of its own");
    final Attribution attribution = scope.end();

    assertEquals(2, attribution.size());
    assertArrayEquals(new long[] {2, 1, 4}, attribution.input("x").shape());
    final float[] elements = attribution.input("x").toFloatArray();
    for (int element = 0; element < 4; element++) {
      assertEquals(decomposed.contributions().get(element).value(), elements[element], 1e-6);
    }
    assertEquals("[0, 2] minus [0, 1]", attribution.explain(1).target());
    assertEquals(
        new TreeSet<>(List.of("encoder.0", "encoder.1", "norm", "head")),
        attribution.operators().stream().map(AttributedOperator::module).filter(path -> !path.isEmpty())
            .collect(Collectors.toCollection(TreeSet::new)));
    assertTrue(attribution.results().report().notes().contains("runs in a library of its own"));
  }

  @Test
  void splitsStartInsideNativeModels() {
    final Request request = named(Request.of(Map.of("x", Input.of(x))))
        .inside(Inside.of("encoder.0").splitAlong(-1)).target(Target.element(0, 2));
    final AttributionScope scope = new AttributionScope(request);
    scope.addOutput("y", run(input, scope::setModule));
    scope.runAgain();
    scope.addOutput("y", run(input, scope::setModule));
    final Attribution attribution = scope.end();
    assertArrayEquals(new long[] {1, 1, 6}, attribution.inside("encoder.0").shape());
    assertEquals(6, attribution.explain(0).contributions().size());

    final TracingScope forgotten = new TracingScope(request);
    forgotten.addOutput("y", run(input, forgotten::setModule));
    final AddendException error = assertThrows(AddendException.class, forgotten::end);
    assertEquals(AddendException.Code.FAILED_PRECONDITION, error.code());
    assertTrue(error.getMessage().contains("has to run again"), error.getMessage());
  }

  @Test
  void nativeModelsBecomeProgramsWithTheirModules() {
    final Program program;
    try (RecordingScope recording = new RecordingScope(asked(), false)) {
      recording.addOutput(run(input, recording::setModule));
      program = recording.end();
    }
    assertTrue(program.code().contains("encoder.0"), program.code());
    final long other = NativeModel.tensor(new float[] {1, 2, 3, 4}, 1, 4);
    final Tensor expected = run(other, path -> {});
    final Results replayed = program.replay(Tensor.fromLibTorch(other));
    NativeModel.releaseTensor(other);
    assertArrayEquals(expected.toFloatArray(), replayed.tensor(0).toFloatArray());
  }

  @Test
  void tensorsGoToNativeLibrariesAndComeBack() {
    final Tensor columns = Addend.call("aten::t", Tensor.of(new float[] {1, 2, 3, 4, 5, 6, 7, 8}, 4, 2)).tensor(0);
    final long given = Addend.call("aten::contiguous", columns).tensor(0).toLibTorch();
    final Tensor probabilities = run(given, path -> {});
    Tensor.releaseLibTorch(given);
    assertArrayEquals(new long[] {2, 3}, probabilities.shape());
    Tensor.releaseLibTorch(0);
    assertThrows(AddendException.class, () -> Tensor.fromLibTorch(0));
  }

  @Test
  void whatAHookThrowsReachesTheCaller() {
    final IllegalStateException thrown = assertThrows(IllegalStateException.class, () -> model.forward(input, path -> {
      throw new IllegalStateException("at " + path);
    }));
    assertEquals("at encoder.0", thrown.getMessage());
  }
}
