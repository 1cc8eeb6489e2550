package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Logs of decisions; the bytes are compared with those of tests/audit/write_records.cc. */
class AuditLogTest extends ScopedTest {
  private static final Path MODEL = Models.BREAST_CANCER.resolve("model.pt");
  private static final Path ROWS = Models.BREAST_CANCER.resolve("heldout.safetensors");
  private static final int COUNT = Integer.getInteger("addend.audit.records", 200);

  @TempDir Path folder;

  private static Attribution attributed(Model model, float[] rows, Tensor baseline, int k) {
    try (Tensor row = Tensor.of(Arrays.copyOfRange(rows, k % 200 * 30, k % 200 * 30 + 30), 1, 30)) {
      return model.attribute(Request.of(Input.of(row).splitAlong(1).baseline(baseline)));
    }
  }

  private static float[] rows() {
    return TensorFile.read(ROWS).tensor("input").toFloatArray();
  }

  private static Tensor baseline() {
    return TensorFile.read(Models.BREAST_CANCER.resolve("baseline.npy")).tensor();
  }

  /** Options that give record k a fixed salt and time in place of random numbers and the clock. */
  private static RecordOptions options(int k) {
    return RecordOptions.defaults().salt(String.format("%064x", k))
        .time(String.format("2026-01-01T00:00:00.%06dZ", k)).context("{\"application\": " + k + "}");
  }

  private static void run(String... arguments) throws IOException, InterruptedException {
    final List<String> command = new ArrayList<>(List.of("tests/audit/write_records"));
    command.addAll(List.of(arguments));
    assertEquals(0, new ProcessBuilder(command).inheritIO().start().waitFor(), command.toString());
  }

  @Test
  void recordsAreThoseOfEveryLanguage() throws IOException, InterruptedException {
    Addend.setNumThreads(1);
    final Path own = folder.resolve("own");
    final Path other = folder.resolve("other");
    final Model model = Model.load(MODEL);
    final float[] rows = rows();
    final Tensor baseline = baseline();
    try (AuditLog log = new AuditLog(own)) {
      for (int k = 0; k < COUNT; k++) {
        try (Attribution attribution = attributed(model, rows, baseline, k)) {
          log.append(attribution, options(k));
        }
      }
      assertEquals(COUNT, log.records());
    }
    run("write", other.toString(), Integer.toString(COUNT), "0");
    assertArrayEquals(Files.readAllBytes(other), Files.readAllBytes(own));
    run("verify", own.toString(), Integer.toString(COUNT));
    final AuditReport report = AuditLog.verify(other, VerifyOptions.defaults());
    assertTrue(report.verified());
    assertEquals(COUNT, report.records());
  }

  @Test
  void recordsSayWhatWasDecided() throws IOException {
    final Path path = folder.resolve("log");
    final Attribution found = attributed(Model.load(MODEL), rows(), baseline(), 7);
    try (AuditLog log = new AuditLog(path, true)) {
      assertEquals(path, log.path());
      assertEquals(Optional.empty(), log.hash());
      assertEquals(0, log.tornBytes());
      final String line = log.append(found, RecordOptions.defaults().reasons("[{\"text\": \"\u00e4\"}]"));
      assertEquals(line + "\n", Files.readString(path));
      final Map<?, ?> record = JsonReader.object(line);
      final Map<?, ?> target = (Map<?, ?>) ((List<?>) record.get("targets")).get(0);
      final Explanation explanation = found.explain(0);
      assertEquals(explanation.value(), (Double) target.get("value"));
      assertArrayEquals(
          explanation.contributions().stream().mapToDouble(Contribution::value).toArray(),
          JsonReader.numbers(target.get("contributions")));
      assertEquals(log.hash().get(), record.get("hash"));
      log.append(found);
      assertEquals(2, log.records());
    }
  }

  @Test
  void recordsAreComputedAgain() {
    final Path path = folder.resolve("log");
    final Model model = Model.load(MODEL);
    final String hash;
    try (AuditLog log = new AuditLog(path)) {
      for (int k = 0; k < 6; k++) {
        log.append(attributed(model, rows(), baseline(), k));
      }
      hash = log.hash().get();
    }
    final VerifyOptions options = VerifyOptions.defaults().models(MODEL).inputs(ROWS).sample(4).seed(1).expect(hash);
    final AuditReport report = AuditLog.verify(path, options);
    assertTrue(report.verified(), report.toJson());
    final Map<?, ?> computed = (Map<?, ?>) JsonReader.object(report.toJson()).get("computed");
    assertEquals(4, JsonReader.count(computed.get("same")));
    assertFalse(AuditLog.verify(path, VerifyOptions.defaults().models(MODEL)).verified());
    assertFalse(AuditLog.verify(path, VerifyOptions.defaults().expect("a".repeat(64))).verified());
  }

  @Test
  void aBitThatChangedIsFoundAndNamed() throws IOException {
    final Path path = folder.resolve("log");
    final Model model = Model.load(MODEL);
    try (AuditLog log = new AuditLog(path)) {
      for (int k = 0; k < 3; k++) {
        log.append(attributed(model, rows(), baseline(), k));
      }
    }
    final byte[] whole = Files.readAllBytes(path);
    final Random draw = new Random(31);
    for (int k = 0; k < 40; k++) {
      final int at = draw.nextInt(whole.length);
      final byte[] changed = whole.clone();
      changed[at] ^= (byte) (1 << draw.nextInt(8));
      Files.write(path, changed);
      int line = 1;
      for (int before = 0; before < at; before++) {
        line += whole[before] == '\n' ? 1 : 0;
      }
      final AuditReport report = AuditLog.verify(path, VerifyOptions.defaults());
      assertFalse(report.verified());
      assertEquals(1, report.problems().size());
      final String problem = report.problems().get(0);
      assertTrue(problem.matches("records? " + line + " .*"), problem);
    }
  }

  @Test
  void jsonThatIsNoneIsRefused() {
    final RecordOptions options = RecordOptions.defaults();
    // A text that brings further members with it would say what it was not asked to.
    for (String json : List.of("1, \"salt\": \"\"", "{}, \"reasons\": []", "1}", "]", "{\"a\": \"\\\\\"}, \"b\": 1")) {
      assertThrows(IllegalArgumentException.class, () -> options.context(json), json);
    }
    try (AuditLog log = new AuditLog(folder.resolve("log"));
        Attribution found = attributed(Model.load(MODEL), rows(), baseline(), 1)) {
      for (String json : List.of("", "{", "[1", "nothing", "9007199254740993")) {
        final RecordOptions given = options.reasons(json);
        assertThrows(AddendException.class, () -> log.append(found, given), json);
      }
      assertEquals(0, log.records());
      final String line = log.append(found, options.context("[{\"a, }\": \"\\\"],\"}, 2]"));
      assertTrue(line.contains("\"context\":[{\"a, }\":\"\\\"],\"},2]"), line);
    }
  }

  @Test
  void whatIsNoLogIsLeftAlone() throws IOException {
    final Path path = folder.resolve("log");
    Files.writeString(path, "a diary\n");
    final AddendException error = assertThrows(AddendException.class, () -> new AuditLog(path));
    assertTrue(error.getMessage().contains("no log of decisions"), error.getMessage());
    assertEquals("a diary\n", Files.readString(path));
    final Path log = folder.resolve("locked");
    try (AuditLog first = new AuditLog(log)) {
      assertEquals(0, first.records());
      final AddendException locked = assertThrows(AddendException.class, () -> new AuditLog(log));
      assertTrue(locked.getMessage().contains("open as a log already"), locked.getMessage());
    }
  }
}
