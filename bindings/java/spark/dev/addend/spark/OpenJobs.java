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

  private static String idle = ""; // path and digest of the plan that the idle ones are of; guarded by IDLE

  private OpenJobs() {}

  /**
   * A worker that nobody else uses.
   *
   * @param sha256 of the plan, as the driver has it
   */
  static Job take(Path plan, String sha256) {
    synchronized (IDLE) {
      if (idle.equals(key(plan, sha256)) && !IDLE.isEmpty()) {
        return IDLE.remove();
      }
    }
    if (!JobPlanFile.read(plan).sha256.equals(sha256)) {
      throw new IllegalStateException(plan + " is another plan here than where the job was started");
    }
    return new Job(plan);
  }

  /** Keeps a worker for the next task. */
  static void giveBack(Job job, Path plan, String sha256) {
    synchronized (IDLE) {
      if (!idle.equals(key(plan, sha256))) {
        IDLE.forEach(Job::close);
        IDLE.clear();
        idle = key(plan, sha256);
      }
      IDLE.add(job);
    }
  }

  /** A plan that was copied has the same digest, but other results. */
  private static String key(Path plan, String sha256) {
    return sha256 + " " + plan;
  }
}
