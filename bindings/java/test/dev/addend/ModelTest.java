package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.Test;

class ModelTest extends ScopedTest {
  private static float[] baselineRow() {
    try (TensorFile file = TensorFile.read(Models.BREAST_CANCER.resolve("baseline.npy"));
        Tensor baseline = file.tensor()) {
      return baseline.toFloatArray();
    }
  }

  @Test
  void componentsSumToWhatTheBaselineChanges() {
    final Model model = Models.load(Models.DIGITS);
    final Tensor image = Models.sample(Models.DIGITS);
    final Results results = model.decompose(Input.of(image).splitAlong(-2, -1).baseline(0));
    final double[] logits = model.run(image).tensor(0).toDoubleArray();
    final double[] dark = model.run(Tensor.of(new float[64], 1, 1, 8, 8)).tensor(0).toDoubleArray();
    for (int digit = 0; digit < 10; digit++) {
      final Explanation e = results.explain(Target.element(0, digit));
      assertEquals(logits[digit], e.value(), 1e-5);
      assertEquals(dark[digit], e.reference(), 1e-5);
      final double sum = e.contributions().stream().mapToDouble(Contribution::value).sum();
      assertEquals(logits[digit] - dark[digit], sum + e.leftover(), 1e-4);
      assertEquals(0, e.leftover(), 1e-4);
      assertEquals(64, e.contributions().size());
    }
    assertEquals(8, results.explain(Target.largest()).target().charAt(4) - '0');
  }

  @Test
  void inputsGoByName() {
    final Model model = Models.load(Models.BREAST_CANCER);
    assertEquals(1, model.inputNames().size());
    final String name = model.inputNames().get(0);
    final Input row = Input.of(Models.sample(Models.BREAST_CANCER))
        .splitAlong(1)
        .baseline(Tensor.of(baselineRow(), 1, 30))
        .names(List.of("radius", "texture \u00e9\u4e2d\ud83d\ude00"));
    final Explanation e = model.decompose(Map.of(name, row)).explain(Target.element(0, 0));
    assertEquals("radius", e.contributions().get(0).name());
    assertEquals("texture \u00e9\u4e2d\ud83d\ude00", e.contributions().get(1).name());
    assertTrue(e.contributions().get(2).name().contains("2"), e.contributions().get(2).name());
    assertEquals(
        AddendException.Code.INVALID_ARGUMENT,
        assertThrows(AddendException.class, () -> model.decompose(Map.of("no such", row))).code());
  }

  @Test
  void labelsAndPartsSplitToo() {
    final Model model = Models.load(Models.DIGITS);
    final Tensor image = Models.sample(Models.DIGITS);
    final long[] halves = new long[64];
    final float[] parts = new float[128];
    final float[] pixels = image.toFloatArray();
    for (int i = 0; i < 64; i++) {
      halves[i] = i < 32 ? 0 : 1;
      parts[i + (i < 32 ? 0 : 64)] = pixels[i];
    }
    final Explanation byLabels = model
        .decompose(Input.of(image).splitByLabels(Tensor.of(halves, 1, 1, 8, 8)).baseline(0))
        .explain(Target.largest());
    final Explanation byParts = model
        .decompose(Input.of(image).splitIntoParts(Tensor.of(parts, 2, 1, 1, 8, 8)))
        .explain(Target.largest());
    assertEquals(2, byLabels.contributions().size());
    assertEquals(byLabels.contributions().get(0).value(), byParts.contributions().get(0).value(), 1e-5);
    assertEquals(byLabels.contributions().get(1).value(), byParts.contributions().get(1).value(), 1e-5);
  }

  @Test
  void severalComponentsShareOneAxis() {
    final Model model = Models.load(Models.DIGITS);
    final Results results =
        model.decompose(Input.of(Models.sample(Models.DIGITS)).splitAlong(3).baseline(0).firstComponent(2));
    final Composition logits = results.composition(0);
    assertEquals(10, logits.numc());
    assertArrayEquals(new double[10], logits.component(0).toDoubleArray());
  }

  @Test
  void probesAreFoundByName() {
    final Model model = Models.load(Models.DIGITS);
    final Results results = model.decompose(
        Request.of(Input.of(Models.sample(Models.DIGITS)).splitAlong(2).baseline(0))
            .probe("aten::relu:0")
            .checkEverything(true));
    assertEquals(2, results.size());
    assertEquals(List.of("output", "aten::relu:0"), results.names());
    assertEquals(8, results.composition("aten::relu:0").numc());
    assertArrayEquals(results.tensor(1).shape(), results.tensor("aten::relu:0").shape());
    final Explanation e = results.explain("aten::relu:0", Target.element(0, 3, 4, 4));
    assertEquals(results.tensor(1).toDoubleArray()[3 * 64 + 4 * 8 + 4], e.value());
    final NoSuchElementException error =
        assertThrows(NoSuchElementException.class, () -> results.composition("nothing"));
    assertTrue(error.getMessage().contains("[output, aten::relu:0]"), error.getMessage());
  }

  @Test
  void theDigestOfAFileIsThatOfItsBytes() throws Exception {
    final byte[] digest = MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(Models.DIGITS.resolve("model.pt")));
    assertEquals(String.format("%064x", new BigInteger(1, digest)), Model.sha256(Models.DIGITS.resolve("model.pt")));
    final AddendException error =
        assertThrows(AddendException.class, () -> Model.sha256(Models.DIGITS.resolve("nowhere")));
    assertEquals(AddendException.Code.NOT_FOUND, error.code());
  }

  @Test
  void keepsReferencesAndStaysWithinMemory() {
    final Model model = Models.load(Models.DIGITS);
    for (double baseline : new double[] {0, 0, 0.5, 0}) {
      final Request request =
          Request.of(Input.of(Models.sample(Models.DIGITS)).splitAlong(2, 3).baseline(baseline));
      final Composition expected = model.decompose(request).composition(0);
      final Composition kept = model.decompose(request.keepReferences(true)).composition(0);
      assertArrayEquals(expected.reference().toDoubleArray(), kept.reference().toDoubleArray());
      assertArrayEquals(expected.components().toDoubleArray(), kept.components().toDoubleArray());
      model.forgetReferences();
      final Composition inGroups = model.decompose(request.memory(1 << 20)).composition(0);
      assertArrayEquals(expected.components().toDoubleArray(), inGroups.components().toDoubleArray(), 1e-4);
      final AddendException error =
          assertThrows(AddendException.class, () -> model.decompose(request.memory(100)));
      assertTrue(error.getMessage().contains("allow more memory"), error.getMessage());
      assertThrows(IllegalArgumentException.class, () -> request.memory(-1));
    }
  }

  @Test
  void takesBaselinesByAWordAndVerifiesReferences() {
    final Model model = Models.load(Models.DIGITS);
    final Tensor image = Models.sample(Models.DIGITS);
    double mean = 0;
    for (double pixel : image.toDoubleArray()) {
      mean += pixel / 64;
    }
    final Results byWord =
        model.decompose(Request.of(Input.of(image).splitAlong(2, 3).baseline("mean")).verifyReference(true));
    final Results byNumber = model.decompose(Request.of(Input.of(image).splitAlong(2, 3).baseline(mean)));
    assertArrayEquals(
        byNumber.composition(0).reference().toDoubleArray(), byWord.composition(0).reference().toDoubleArray(), 1e-4);
    assertTrue(byWord.report().referenceError() < 1e-5);
    assertTrue(Double.isNaN(byNumber.report().referenceError()));
    assertEquals("yes", byWord.report().referenceIsModelOnBaseline());
    assertEquals("", byWord.report().referenceReason());
    assertTrue(byWord.report().conditioning() >= 1);
    assertTrue(byWord.report().leftoverShare() < 0.01);
    final AddendException error =
        assertThrows(
            AddendException.class,
            () -> model.decompose(Request.of(Input.of(image).splitAlong(2, 3).baseline("grey"))));
    assertEquals(AddendException.Code.INVALID_ARGUMENT, error.code());
    assertTrue(error.getMessage().contains("there is no such word"), error.getMessage());
  }

  @Test
  void bothDirectionsGiveTheSame() {
    final Model model = Models.load(Models.DIGITS);
    final Request request = Request.of(Input.of(Models.sample(Models.DIGITS)).splitAlong(2, 3).baseline(0.5));
    final Results forward = model.decompose(request.direction(Direction.FORWARD));
    assertFalse(forward.report().backward());
    for (Direction direction : Direction.values()) {
      final Results found = model.decompose(request.direction(direction));
      if (direction == Direction.BACKWARD) {
        assertTrue(found.report().backward());
      }
      assertArrayEquals(
          forward.composition(0).components().toDoubleArray(), found.composition(0).components().toDoubleArray(), 1e-4);
      assertArrayEquals(
          forward.composition(0).leftover().toDoubleArray(), found.composition(0).leftover().toDoubleArray(), 1e-4);
    }
    assertThrows(NullPointerException.class, () -> request.direction(null));
  }

  @Test
  void reportsCountAndMeasure() {
    final Results results = Models.load(Models.DIGITS)
        .decompose(Input.of(Models.sample(Models.DIGITS)).splitAlong(2).baseline(0));
    final Report report = results.report();
    assertTrue(report.operators() > 5, "operators " + report.operators());
    assertTrue(report.nodes() > 0);
    assertTrue(report.worstRecoveryError() >= 0 && report.worstRecoveryError() < 1e-4);
    assertTrue(report.worstBracket() >= 0 && report.worstBracket() < 1e-4);
    assertEquals(0, report.failures());
    assertEquals(0, report.absorbed());
    assertFalse(report.traceTime().isNegative() || report.traceTime().isZero());
    assertTrue(report.sweepTime().toNanos() > 0 && report.linearizeTime().toNanos() > 0);
    assertTrue(results.reportJson().startsWith("{"));
    assertTrue(report.toString().startsWith(report.operators() + " operators, worst recovery error "), report.toString());
    assertEquals("output: 8 components of [1, 10]", results.toString().lines().findFirst().orElse(""));
    assertEquals("output: [1, 10]", Models.load(Models.DIGITS).run(Models.sample(Models.DIGITS)).toString());
  }

  @Test
  void plainRunsHaveNoReport() {
    final Results results = Models.load(Models.DIGITS).run(Models.sample(Models.DIGITS));
    final AddendException error = assertThrows(AddendException.class, results::report);
    assertEquals(AddendException.Code.FAILED_PRECONDITION, error.code());
    assertEquals(
        assertThrows(AddendException.class, results::reportJson).getMessage(), error.getMessage());
  }

  @Test
  void modelsLoadFromBytes() throws IOException {
    final byte[] bytes = Files.readAllBytes(Models.DIGITS.resolve("model.pt"));
    final ByteBuffer direct = ByteBuffer.allocateDirect(bytes.length + 5);
    direct.position(5);
    direct.put(bytes).position(5);
    final Tensor image = Models.sample(Models.DIGITS);
    final double[] expected = Models.load(Models.DIGITS).run(image).tensor(0).toDoubleArray();
    assertArrayEquals(expected, Model.load(ByteBuffer.wrap(bytes)).run(image).tensor(0).toDoubleArray());
    assertArrayEquals(expected, Model.load(direct).run(image).tensor(0).toDoubleArray());
    assertEquals(5, direct.position());
  }

  @Test
  void modelsAreConverted() {
    final Model model = Model.load(Models.BREAST_CANCER.resolve("model.pt"), DType.FLOAT64);
    assertEquals(
        DType.FLOAT64, model.run(Models.sample(Models.BREAST_CANCER).to(DType.FLOAT64)).tensor(0).dtype());
  }

  @Test
  void copiesHaveAnotherDtypeOrDevice() {
    final Model model = Models.load(Models.BREAST_CANCER);
    final Tensor row = Models.sample(Models.BREAST_CANCER);
    assertEquals(DType.FLOAT64, model.to(DType.FLOAT64).run(row.to(DType.FLOAT64)).tensor(0).dtype());
    assertEquals(DType.FLOAT32, model.to("cpu").run(row).tensor(0).dtype());
    assertThrows(AddendException.class, () -> model.to("nowhere:7"));
  }

  @Test
  void resultsMayBeChosen() {
    final Model model = Models.load(Models.DIGITS);
    final Request request = Request.of(Input.of(Models.sample(Models.DIGITS)).splitAlong(2).baseline(0));
    assertEquals(List.of("output"), model.decompose(request.output("output")).names());
    assertThrows(AddendException.class, () -> model.decompose(request.output("output.3")));
  }

  @Test
  void modelsFromBytesAreConverted() throws IOException {
    final byte[] bytes = Files.readAllBytes(Models.BREAST_CANCER.resolve("model.pt"));
    final Model model = Model.load(ByteBuffer.wrap(bytes), DType.FLOAT64);
    assertEquals(
        DType.FLOAT64, model.run(Models.sample(Models.BREAST_CANCER).to(DType.FLOAT64)).tensor(0).dtype());
  }

  @Test
  void shapleyValuesAreComplete() {
    final Model model = Models.load(Models.DIGITS);
    final Tensor image = Models.sample(Models.DIGITS);
    final Composition shapley = model.shapley(Request.of(Input.of(image).splitAlong(2).baseline(0)));
    assertEquals(8, shapley.numc());
    assertArrayEquals(
        model.run(image).tensor(0).toDoubleArray(), shapley.recovery().toDoubleArray(), 1e-4);
  }

  @Test
  void filesAreNotFound() {
    final AddendException error =
        assertThrows(AddendException.class, () -> Model.load(Path.of("no", "such.pt")));
    assertEquals(AddendException.Code.NOT_FOUND, error.code());
    assertTrue(error.getMessage().contains("no/such.pt"), error.getMessage());
    assertEquals("", error.detail());
    assertThrows(AddendException.class, () -> TensorFile.read(Path.of("no", "such.npy")));
  }

  @Test
  void wrongShapesAreExplained() {
    final Model model = Models.load(Models.DIGITS);
    final Tensor wrong = Tensor.of(new float[3]);
    assertThrows(AddendException.class, () -> model.run(wrong));
    assertThrows(AddendException.class, () -> model.decompose(Input.of(wrong).splitAlong(0)));
    assertThrows(AddendException.class, () -> model.decompose());
  }

  @Test
  void closedModelsSaySo() {
    final Model model = Models.load(Models.DIGITS);
    final Tensor image = Models.sample(Models.DIGITS);
    final Request request = Request.of(Input.of(image).splitAlong(2));
    final Results results = model.decompose(request);
    model.close();
    assertThrows(IllegalStateException.class, () -> model.decompose(request));
    // Results do not need their model.
    assertEquals(8, results.composition(0).numc());
    results.close();
    assertThrows(IllegalStateException.class, () -> results.explain(Target.largest()));
    assertThrows(IllegalStateException.class, results::report);
    final Model open = Models.load(Models.DIGITS);
    image.close();
    assertThrows(IllegalStateException.class, () -> open.decompose(request));
  }
}
