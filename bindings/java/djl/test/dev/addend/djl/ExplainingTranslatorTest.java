package dev.addend.djl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDList;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.Batchifier;
import ai.djl.translate.TranslateException;
import dev.addend.Addend;
import dev.addend.Concepts;
import dev.addend.Contribution;
import dev.addend.Decision;
import dev.addend.Explanation;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Plan;
import dev.addend.Request;
import dev.addend.Target;
import dev.addend.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A predictor of DJL gives each row's prediction with its own explanation, whichever way rows come. */
class ExplainingTranslatorTest extends Beside {
  private static final String CONCEPTS = "{\"format\": \"addend.concepts\", \"version\": 1, \"at_most\": 2, \"concepts\": ["
      + "{\"name\": \"Size\", \"components\": [\"c0\", \"c2\", \"c3\"], \"text\": \"{concept} speaks against it\"}]}";

  private ZooModel<NDList, NDList> served;
  private Plan plan;
  private float[][] rows;

  @BeforeEach
  void load() throws Exception {
    served = served();
    rows = rows();
    final List<String> names = IntStream.range(0, COLUMNS).mapToObj(k -> "c" + k).collect(Collectors.toList());
    final Tensor row = Tensor.of(rows[0], 1, COLUMNS);
    final Tensor baseline = baseline();
    plan = Model.load(Djl.modelFile(served))
        .plan(Request.of(Input.of(row).splitAlong(1).baseline(baseline).names(names))
            .target(Target.difference(new long[] {0, 0}, new long[] {0, 1})));
  }

  @AfterEach
  void close() {
    served.close();
  }

  private ExplainingTranslator<float[], float[]> translator(Batchifier batchifier) {
    return new ExplainingTranslator<>(
        new Logits(batchifier), inputs -> plan.attribute(Request.of(Input.of(inputs.get(0)))));
  }

  private void assertExplained(float[] row, Explained<float[]> explained) {
    final Explanation expected;
    try (Tensor tensor = Tensor.of(row, 1, COLUMNS)) {
      expected = plan.attribute(Request.of(Input.of(tensor))).explain(0);
    }
    assertEquals(1, explained.explanations().size());
    final Explanation explanation = explained.explanations().get(0);
    assertEquals(values(expected), values(explanation));
    assertEquals((double) explained.prediction()[0] - explained.prediction()[1], explanation.value(), 1e-5);
    assertFalse(explained.reasons().isPresent());
  }

  private static List<Double> values(Explanation explanation) {
    return explanation.contributions().stream().map(Contribution::value).collect(Collectors.toList());
  }

  @Test
  void aRowHasItsPredictionAndItsReasons() throws TranslateException {
    for (Batchifier batchifier : new Batchifier[] {Batchifier.STACK, null}) {
      try (Predictor<float[], Explained<float[]>> predictor = served.newPredictor(translator(batchifier));
          Predictor<float[], float[]> plain = served.newPredictor(new Logits(batchifier))) {
        for (float[] row : rows) {
          final Explained<float[]> explained = predictor.predict(row);
          assertArrayEquals(plain.predict(row), explained.prediction());
          assertExplained(row, explained);
        }
      }
    }
  }

  @Test
  void rowsOfABatchHaveTheirOwn() throws TranslateException {
    try (Predictor<float[], Explained<float[]>> predictor = served.newPredictor(translator(Batchifier.STACK))) {
      final List<Explained<float[]>> all = predictor.batchPredict(Arrays.asList(rows));
      assertEquals(rows.length, all.size());
      for (int row = 0; row < rows.length; row++) {
        assertExplained(rows[row], all.get(row));
      }
    }
  }

  @Test
  void threadsShareATranslator() throws Exception {
    Addend.setNumThreads(1);
    final ExplainingTranslator<float[], float[]> shared = translator(Batchifier.STACK);
    final ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      final List<Future<?>> futures = new ArrayList<>();
      for (int thread = 0; thread < 4; thread++) {
        final int offset = thread;
        futures.add(threads.submit(() -> {
          try (Predictor<float[], Explained<float[]>> predictor = served.newPredictor(shared)) {
            for (int k = 0; k < 100; k++) {
              final float[] row = rows[(k + offset) % rows.length];
              assertExplained(row, predictor.predict(row));
            }
          }
          return null;
        }));
      }
      for (Future<?> future : futures) {
        future.get();
      }
    } finally {
      threads.shutdown();
    }
  }

  @Test
  void conceptsBecomeReasons() throws TranslateException {
    final Concepts concepts = Concepts.read(CONCEPTS);
    final ExplainingTranslator<float[], float[]> translator = new ExplainingTranslator<>(
        new Logits(Batchifier.STACK), inputs -> plan.attribute(Request.of(Input.of(inputs.get(0)))), concepts);
    int told = 0;
    try (Predictor<float[], Explained<float[]>> predictor = served.newPredictor(translator)) {
      for (float[] row : rows) {
        final Explained<float[]> explained = predictor.predict(row);
        final Decision decision = explained.reasons().orElseThrow().decisions().get(0);
        final List<Double> values = values(explained.explanations().get(0));
        final double size = values.get(0) + values.get(2) + values.get(3);
        if (decision.reasons().stream().anyMatch(reason -> reason.text().equals("Size speaks against it"))) {
          assertTrue(size < 0, explained.toString());
          told++;
        }
      }
    }
    assertTrue(told > 0, "no row has the reason");
  }

  @Test
  void whatAnExplainerThrowsIsThrown() {
    final ExplainingTranslator<float[], float[]> broken = new ExplainingTranslator<>(
        new Logits(Batchifier.STACK), inputs -> {
          throw new IllegalArgumentException("not today");
        });
    try (Predictor<float[], Explained<float[]>> predictor = served.newPredictor(broken)) {
      final TranslateException e = assertThrows(TranslateException.class, () -> predictor.predict(rows[0]));
      assertTrue(e.toString().contains("not today") || String.valueOf(e.getCause()).contains("not today"), e.toString());
    }
  }
}
