package dev.addend.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.addend.Addend;
import dev.addend.Input;
import dev.addend.Job;
import dev.addend.JobOptions;
import dev.addend.Request;
import dev.addend.Target;
import dev.addend.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** The shards of a job as tasks: the bytes of one process, whatever is lost or done twice. */
@ExtendWith(Cluster.Stopped.class)
class JobTest {
  /** How many jobs lose executors at random, more in the long test; and the first one's number, by which it draws. */
  private static final int JOBS = Integer.parseInt(System.getenv().getOrDefault("ADDEND_CHAOS_JOBS", "2"));
  private static final int FIRST_JOB = Integer.parseInt(System.getenv().getOrDefault("ADDEND_CHAOS_FIRST_JOB", "0"));

  /** Shards of the job that loses executors. */
  private static final int SHARDS = 40;

  @TempDir Path folder;

  private Path plan;

  @BeforeEach
  void name() {
    plan = folder.resolve("plan.json");
    // Each thread of OpenMP has its own number.
    Addend.setNumThreads(1);
  }

  /** A plan of so many copies of the rows; one as a whole takes a few seconds where there are 100. */
  private void make(int copies, int shards) throws IOException {
    final float[][] heldout = Rows.heldout();
    final Path rows = folder.resolve("rows.npy");
    try (NpyFile file = new NpyFile(rows, (long) copies * heldout.length, Rows.COLUMNS)) {
      for (int copy = 0; copy < copies; copy++) {
        for (float[] row : heldout) {
          file.write(row);
        }
      }
    }
    try (Tensor row = Tensor.of(heldout[0], 1, Rows.COLUMNS)) {
      Job.plan(plan, Path.of(Rows.MODEL), Request.of(Input.of(row).splitAlong(1).baseline(0)).target(Target.element(0)),
          JobOptions.rows(rows.toString()).batch(4).shards(shards), null);
    }
  }

  private Path results() {
    return folder.resolve("plan.out");
  }

  private void forget() throws IOException {
    try (Stream<Path> files = Files.walk(results())) {
      for (Path file : files.sorted(Comparator.reverseOrder()).collect(Collectors.toList())) {
        Files.delete(file);
      }
    }
  }

  private static JsonNode json(String text) throws IOException {
    return new ObjectMapper().readTree(text);
  }

  /** The digest of what one process computes without Spark. */
  private String single() throws IOException {
    try (Job job = new Job(plan)) {
      for (long shard = 0; shard < job.shards(); shard++) {
        job.run(shard);
      }
    }
    final String sha256 = json(Job.merge(plan)).path("sha256").asText();
    forget();
    return sha256;
  }

  private void assertWhole(String single, long rows) throws IOException {
    final JsonNode status = json(Job.status(plan));
    assertEquals(0, status.path("wrong").size(), status.toString());
    assertEquals(0, status.path("missing").size(), status.toString());
    final JsonNode merged = json(Job.merge(plan));
    assertEquals(single, merged.path("sha256").asText());
    assertEquals(rows, merged.path("rows").asLong());
    assertEquals(0, merged.path("refused_rows").asLong());
  }

  private Set<Long> processes() throws IOException {
    final Set<Long> processes = new HashSet<>();
    try (Stream<Path> files = Files.list(results().resolve("shards"))) {
      for (Path file : files.filter(file -> file.toString().endsWith(".json")).collect(Collectors.toList())) {
        processes.add(json(Files.readString(file)).path("run").path("process").asLong());
      }
    }
    return processes;
  }

  private long files(String ending) throws IOException {
    try (Stream<Path> files = Files.list(results().resolve("shards"))) {
      return files.filter(file -> file.toString().endsWith(ending)).count();
    }
  }

  @Test
  void executorsGiveTheBytesOfOneProcess() throws IOException {
    make(10, 20);
    final String single = single();
    final Set<Long> executors = Cluster.awaitBoth();
    final JsonNode status = json(AddendSpark.runJob(Cluster.session(), plan.toString()));
    assertEquals(status.path("shards").asLong(), status.path("done").asLong());
    assertEquals(20, status.path("done").asLong());
    assertWhole(single, 2000);
    assertEquals(executors, processes());

    // Shards that are there are not computed again, unless asked for.
    final Set<Long> before = processes();
    final List<Path> shards;
    try (Stream<Path> files = Files.list(results().resolve("shards"))) {
      shards = files.filter(file -> file.toString().endsWith(".safetensors")).sorted().collect(Collectors.toList());
    }
    final List<Long> times = new ArrayList<>();
    for (Path shard : shards) {
      times.add(Files.getLastModifiedTime(shard).toMillis());
    }
    Files.delete(shards.get(7));
    AddendSpark.runJob(Cluster.session(), plan.toString());
    for (int k = 0; k < shards.size(); k++) {
      final boolean same = Files.getLastModifiedTime(shards.get(k)).toMillis() == times.get(k);
      assertEquals(k != 7, same, shards.get(k).toString());
    }
    assertTrue(before.containsAll(processes()));
    AddendSpark.runJob(Cluster.session(), plan.toString(), true);
    assertWhole(single, 2000);
  }

  @Test
  void twoAttemptsOfEachShardAtOnceLeaveItOnce() throws IOException {
    make(10, 20);
    final String single = single();
    final List<Long> twice = new ArrayList<>();
    for (long shard = 0; shard < 20; shard++) {
      // Neighbours run at once, by two executors.
      twice.add(shard);
      twice.add(shard);
    }
    Cluster.awaitBoth();
    AddendSpark.runShards(Cluster.session(), plan, JobPlanFile.read(plan), twice, true);
    assertEquals(20, files(".safetensors"));
    assertEquals(20, files(".json"));
    assertEquals(0, json(Job.status(plan)).path("attempts").asLong());
    assertWhole(single, 2000);
  }

  /** Kills a process; says whether it was there still. */
  private static boolean kill(ProcessHandle process) throws Exception {
    return new ProcessBuilder("kill", "-9", Long.toString(process.pid())).redirectErrorStream(true).start().waitFor() == 0;
  }

  /**
   * Runs the job, and kills executors amid it.
   *
   * @return how many
   */
  private int runAndKill(Random draw) throws Exception {
    final SparkSession session = Cluster.session();
    final CompletableFuture<String> run =
        CompletableFuture.supplyAsync(() -> AddendSpark.runJob(session, plan.toString()));
    // Spark ends a job of which one task has failed four times.
    final int most = 1 + draw.nextInt(3);
    final Set<Long> killed = new HashSet<>();
    while (!run.isDone() && killed.size() < most) {
      Thread.sleep(50 + draw.nextInt(300));
      final long done = json(Job.status(plan)).path("done").asLong();
      // Something is computed first, and something is left.
      if (done == 0 || done == SHARDS) {
        continue;
      }
      // A process that was killed is there until it has given back its memory.
      final List<ProcessHandle> executors = Cluster.executors().stream()
          .filter(process -> !killed.contains(process.pid())).collect(Collectors.toList());
      if (!executors.isEmpty()) {
        final ProcessHandle one = executors.get(draw.nextInt(executors.size()));
        if (kill(one)) {
          killed.add(one.pid());
        }
      }
    }
    assertEquals(SHARDS, json(run.get()).path("done").asLong());
    return killed.size();
  }

  @Test
  void executorsThatAreKilledLoseNothing() throws Exception {
    make(200, SHARDS);
    final String single = single();
    int killed = 0;
    for (int number = FIRST_JOB; number < FIRST_JOB + JOBS; number++) {
      final long begin = System.nanoTime();
      final int own = runAndKill(new Random(number));
      killed += own;
      assertWhole(single, 40000);
      assertEquals(0, json(Job.status(plan)).path("attempts").asLong());
      forget();
      System.out.println(String.format(Locale.ROOT, "job %d of %d to %d: %d executors killed, %d in all, %.1f s", number,
          FIRST_JOB, FIRST_JOB + JOBS - 1, own, killed, (System.nanoTime() - begin) * 1e-9));
    }
    // A job may end before one is killed in it, on a machine that is busy with other things.
    assertTrue(2 * killed >= JOBS, killed + " executors were killed in " + JOBS + " jobs");
  }

  @Test
  void whatIsNoPlanOrAnotherOne() throws IOException {
    assertThrows(RuntimeException.class, () -> AddendSpark.runJob(Cluster.session(), plan.toString()));
    make(1, 4);
    AddendSpark.runJob(Cluster.session(), plan.toString());
    Files.delete(plan);
    Files.move(results(), folder.resolve("kept"));
    make(2, 4);
    Files.move(folder.resolve("kept"), results());
    final IllegalStateException other = assertThrows(
        IllegalStateException.class, () -> AddendSpark.runJob(Cluster.session(), plan.toString()));
    assertTrue(other.getMessage().contains("another plan") && other.getMessage().contains("Remove what is wrong from"),
        other.getMessage());
    // A task that sees another plan by this path.
    forget();
    final JobPlanFile file = JobPlanFile.read(plan);
    make(3, 4);
    final Exception changed = assertThrows(Exception.class,
        () -> AddendSpark.runShards(Cluster.session(), plan, file, List.of(0L), false));
    assertTrue(changed.toString().contains("is another plan here") || String.valueOf(changed.getCause())
        .contains("is another plan here"), changed.toString());
  }
}
