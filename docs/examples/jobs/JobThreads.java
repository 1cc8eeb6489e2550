import dev.addend.Addend;
import dev.addend.AddendException;
import dev.addend.Job;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Computes the shards of a job on plain threads, each of which is given partitions of the shards as a worker of Spark or Flink
 * is. {@link #compute} is all that such a worker would run. docs/jobs.md says what a job is, and how Spark runs one.
 *
 * <p>Usage: JobThreads PLAN [THREADS [PARTITIONS]]
 */
public final class JobThreads {
  private JobThreads() {}

  /**
   * The function of a partition: opens the plan once and computes the shards that it is given. Called again after a failure, it
   * leaves alone what is there. Of Spark it would be the body of {@code mapPartitions}.
   *
   * @param plan by a path that is the same on all machines
   * @param threads how many LibTorch computes with, as the plan says; usually 1
   * @return the shards
   */
  static List<Long> compute(String plan, int threads, Iterator<Long> shards) {
    final List<Long> done = new ArrayList<>();
    // Each thread of OpenMP has its own number.
    Addend.setNumThreads(threads);
    try (Job job = new Job(Path.of(plan))) {
      while (shards.hasNext()) {
        final long shard = shards.next();
        job.run(shard);
        done.add(shard);
      }
    }
    return done;
  }

  /** Every {@code partitions}-th shard, from {@code first} on. */
  static Iterator<Long> partition(long shards, int partitions, long first) {
    final List<Long> own = new ArrayList<>();
    for (long shard = first; shard < shards; shard += partitions) {
      own.add(shard);
    }
    return own.iterator();
  }

  private static void run(String plan, int workers, int partitions) throws InterruptedException, ExecutionException {
    final long shards;
    Addend.setNumThreads(1);
    try (Job job = new Job(Path.of(plan))) {
      shards = job.shards();
    }
    final ExecutorService threads = Executors.newFixedThreadPool(workers);
    try {
      final List<Callable<List<Long>>> tasks = new ArrayList<>();
      for (int k = 0; k < partitions; k++) {
        final long first = k;
        tasks.add(() -> compute(plan, 1, partition(shards, partitions, first)));
      }
      long done = 0;
      for (Future<List<Long>> task : threads.invokeAll(tasks)) {
        done += task.get().size();
      }
      System.out.println(done + " of " + shards + " shards are there");
    } finally {
      threads.shutdownNow();
    }
    System.out.println(Job.merge(Path.of(plan)));
  }

  public static void main(String[] arguments) throws InterruptedException {
    if (arguments.length < 1 || arguments.length > 3) {
      System.err.println("usage: JobThreads PLAN [THREADS [PARTITIONS]]");
      System.exit(2);
    }
    try {
      final int workers = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 2;
      final int partitions = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 4 * workers;
      run(arguments[0], workers, partitions);
    } catch (ExecutionException error) {
      System.err.println("error: " + error.getCause().getMessage());
      System.exit(1);
    } catch (AddendException | IllegalArgumentException error) {
      System.err.println("error: " + error.getMessage());
      System.exit(1);
    }
  }
}
