package dev.addend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** Tests that the garbage collector finds and releases all handles: nothing here is closed. */
class LeakTest {
  private static final int DECOMPOSITIONS = 10_000;
  private static final int LOADS = 300;
  private static final int ROUNDS = 20;
  private static final long MAX_GROWTH = 8L << 20;

  @Test
  void forgottenHandlesAreReleased() throws InterruptedException, IOException {
    long settled = 0;
    for (int round = 1; round <= ROUNDS; round++) {
      load(LOADS / ROUNDS);
      decompose(DECOMPOSITIONS / ROUNDS);
      Garbage.collectUntil(() -> AddendNative.addend_debug_live(AddendHandleKind.ADDEND_HANDLE_ANY) == 0);
      if (round == ROUNDS / 5) {
        settled = residentBytes();
      }
    }
    final long growth = residentBytes() - settled;
    System.out.println("resident memory grew by " + growth / 1024 + " KiB after the first fifth");
    assertTrue(growth < MAX_GROWTH, "resident memory grew by " + growth + " bytes");
    Garbage.releaseAll(AddendHandleKind.ADDEND_HANDLE_DLPACK);
  }

  private static void load(int count) {
    for (int i = 0; i < count; i++) {
      Models.load(Models.BREAST_CANCER);
    }
  }

  private static void decompose(int count) {
    final Model model = Models.load(Models.BREAST_CANCER);
    final Context context = Context.builder().onProgress((stage, done, total) -> true).build();
    final float[] row = Models.sample(Models.BREAST_CANCER).toFloatArray();
    for (int i = 0; i < count; i++) {
      final Request request = Request.of(Input.of(Tensor.of(row, 1, 30)).splitAlong(1).baseline(0))
          .cancellation(new Cancellation());
      final Results results = model.decompose(request, context);
      final Composition logits = results.composition(0);
      assertEquals(2, logits.add(1).components().asFloatBuffer().remaining() / 30);
      assertEquals(30, results.explain(Target.largest()).contributions().size());
      if (i % 10 == 0) {
        attributeAProgram(model, request);
      }
    }
  }

  private static void attributeAProgram(Model model, Request request) {
    final Program program = model.record(request);
    assertEquals(30, program.model().attribute(request).input(0).toFloatArray().length);
    assertEquals(1, program.replay(request, ReplayOptions.defaults()).size());
  }

  private static long residentBytes() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) {
        return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
      }
    }
    throw new IOException("no VmRSS in /proc/self/status");
  }
}
