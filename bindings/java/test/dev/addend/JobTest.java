package dev.addend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Jobs: each row's attribution, by threads that know nothing of each other. */
class JobTest extends ScopedTest {
  private static final Path MODEL = Models.BREAST_CANCER.resolve("model.pt");
  private static final String ROWS = Models.BREAST_CANCER.resolve("heldout.safetensors").toAbsolutePath().toString();

  @TempDir Path folder;

  private static Request asked(float[] row) {
    return Request.of(Input.of(Tensor.of(row, 1, row.length)).splitAlong(1).baseline(0)).target(Target.element(0));
  }

  private static float[] row(int number) {
    final Tensor all = Models.heldOut(Models.BREAST_CANCER);
    final int columns = (int) all.shape()[1];
    return java.util.Arrays.copyOfRange(all.toFloatArray(), number * columns, (number + 1) * columns);
  }

  @Test
  void threadsComputeWhatOneAttributionOfEachRowGives() throws Exception {
    final Path plan = folder.resolve("plan.json");
    assertTrue(Job.plan(plan, MODEL, asked(row(0)), JobOptions.rows(ROWS).batch(16).shards(5), null).contains("job_made"));
    final ExecutorService threads = Executors.newFixedThreadPool(2);
    final List<Future<?>> done = new ArrayList<>();
    for (int first = 0; first < 2; first++) {
      final long begin = first;
      done.add(threads.submit(() -> {
        try (Job job = new Job(plan)) {
          for (long shard = begin; shard < job.shards(); shard += 2) {
            assertTrue(job.run(shard).contains("addend.shard"));
          }
        }
      }));
    }
    for (Future<?> one : done) {
      one.get();
    }
    threads.shutdown();
    assertTrue(Job.status(plan).contains("\"missing\":[]"));
    assertTrue(Job.merge(plan).contains("job_merged"));
    final double[] contributions =
        TensorFile.read(folder.resolve("plan.out/merged.safetensors")).tensor("contributions").toDoubleArray();
    for (int number : new int[] {0, 17, 100}) {
      final double[] alone = new double[row(number).length];
      for (Contribution one : Model.load(MODEL).attribute(asked(row(number))).explain(0).contributions()) {
        alone[(int) one.component()] = one.value();
      }
      double mass = 0;
      for (double part : alone) {
        mass += Math.abs(part);
      }
      for (int c = 0; c < alone.length; c++) {
        assertEquals(alone[c], contributions[number * alone.length + c], 1e-5 * mass);
      }
    }
  }

  @Test
  void refusesWhatNoJobCanDo() throws Exception {
    final Path plan = folder.resolve("plan.json");
    final JobOptions options = JobOptions.rows(ROWS).names("one").groups("none");
    assertThrows(AddendException.class, () -> Job.plan(plan, MODEL, asked(row(0)), options, null));
    assertThrows(AddendException.class, () -> new Job(plan));
    final JobOptions nowhere = JobOptions.rows(ROWS).device("gpu");
    final AddendException refused =
        assertThrows(AddendException.class, () -> Job.plan(plan, MODEL, asked(row(0)), nowhere, null));
    assertTrue(refused.getMessage().contains("\"gpu\" names no device"), refused.getMessage());
    Job.plan(plan, MODEL, asked(row(0)),
        JobOptions.rows(ROWS).format("csv").classes("a", "b").dtype("float32").stopAtRefusal().withoutContributions()
            .concepts("{\"format\": \"addend.concepts\", \"version\": 1}"), null);
    try (Job job = new Job(plan)) {
      assertThrows(AddendException.class, () -> job.run(-1));
      final String receipt = job.run(0, true);
      assertEquals(receipt, job.run(0));
    }
    Files.writeString(plan, Files.readString(plan).replace("\"batch\": 256", "\"batch\": 128"));
    final AddendException changed = assertThrows(AddendException.class, () -> Job.status(plan));
    assertTrue(changed.getMessage().contains("was changed since it was written"));
  }
}
