package dev.addend.spark;

import dev.addend.Job;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * The workers of this process, which tasks use one after the other: a model is loaded once for each task that runs at a time. Only
 * those of the last plan stay.
 */
final class OpenJobs {
  private static final Deque<Job> IDLE = new ArrayDeque<>();

  private static String sha256 = ""; // of the plan that the idle ones are of; guarded by IDLE

  private OpenJobs() {}

  /**
   * A worker that nobody else uses.
   *
   * @param own of the plan
   */
  static Job take(Path plan, String own) {
    synchronized (IDLE) {
      if (sha256.equals(own) && !IDLE.isEmpty()) {
        return IDLE.remove();
      }
    }
    final String there = JobPlanFile.read(plan).sha256;
    if (!there.equals(own)) {
      throw new IllegalStateException(plan + " is another plan here than where the job was started");
    }
    return new Job(plan);
  }

  /** Keeps a worker for the next task. */
  static void giveBack(Job job, String own) {
    synchronized (IDLE) {
      if (!sha256.equals(own)) {
        IDLE.forEach(Job::close);
        IDLE.clear();
        sha256 = own;
      }
      IDLE.add(job);
    }
  }
}
