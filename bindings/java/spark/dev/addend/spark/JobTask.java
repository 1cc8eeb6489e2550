package dev.addend.spark;

import dev.addend.Addend;
import dev.addend.Job;
import java.nio.file.Path;
import org.apache.spark.api.java.function.VoidFunction;

/**
 * Computes a shard of a job in a task. The library commits it as a whole under the digest of its bytes, so that any number of
 * attempts, at once or one after the other, leave it there once.
 */
final class JobTask implements VoidFunction<Long> {
  private static final long serialVersionUID = 1;

  private final String plan;
  private final String sha256;
  private final int threads;
  private final boolean again;

  JobTask(Path plan, JobPlanFile file, boolean again) {
    this.plan = plan.toString();
    sha256 = file.sha256;
    threads = file.threads;
    this.again = again;
  }

  @Override
  public void call(Long shard) {
    // The number holds for this thread only, as in OpenMP.
    Addend.setNumThreads(threads);
    final Job job = OpenJobs.take(Path.of(plan), sha256);
    try {
      job.run(shard, again);
    } finally {
      OpenJobs.giveBack(job, Path.of(plan), sha256);
    }
  }
}
