package dev.addend;

import java.nio.file.Path;

/**
 * A worker of a job, the attribution of every row of a data set: the model of a plan, ready to compute shards of it.
 *
 * <pre>{@code
 * Job.plan(plan, model, request, JobOptions.rows("rows.npy"), null);
 * try (Job job = new Job(plan)) {
 *   for (long shard = 0; shard < job.shards(); shard++) {
 *     job.run(shard);
 *   }
 * }
 * Job.merge(plan);
 * }</pre>
 *
 * Whoever computes a shard needs the versions, BLAS, instructions and threads ({@link Addend#setNumThreads}) of the process
 * that made the plan. Shards may be run twice and killed at any time. Threads that share one wait for each other: give each
 * thread its own.
 */
public final class Job extends NativeObject {
  /**
   * Opens the plan of a job and loads its model.
   *
   * @param plan the file
   * @throws AddendException if the model is another one, or this process would compute other bits
   */
  public Job(Path plan) {
    super("job", Out.handle(out -> AddendNative.addend_job_open(Text.of(plan), out)), AddendNative::addend_job_release);
  }

  /**
   * Makes the plan of a job, and tries it on the first rows.
   *
   * @param plan where it is written; results come beside it, in {@code rows.out} for {@code rows.json}
   * @param model the file of the model
   * @param request one row of each input, {@code [1, *row]}, with its split and its baseline, and targets
   * @param options where the rows are, and what results hold
   * @param context policy; {@code null} for the defaults
   * @return what was made, as JSON
   * @throws AddendException if rows influence each other
   */
  public static String plan(Path plan, Path model, Request request, JobOptions options, Context context) {
    final String file = Text.of(plan);
    final String modelFile = Text.of(model);
    final String given = options.toJson();
    try (Borrow borrow = new Borrow()) {
      final long c = borrow.of(context);
      final long r = borrow.of(request);
      return Thrown.run(
          () -> Out.text(out -> AddendNative.addend_job_plan(c, file, modelFile, r, given, out)));
    }
  }

  /**
   * How far a job is.
   *
   * @param plan the file
   * @return JSON: shards, done, missing, wrong, seconds_left and more
   */
  public static String status(Path plan) {
    return Out.text(out -> AddendNative.addend_job_status(Text.of(plan), out));
  }

  /**
   * Checks every shard by its digest and puts all rows into one file.
   *
   * @param plan the file
   * @return JSON: path, sha256, rows, refused
   * @throws AddendException if shards are missing or damaged, or have two results
   */
  public static String merge(Path plan) {
    return Out.text(out -> AddendNative.addend_job_merge(Text.of(plan), out));
  }

  /**
   * How many shards there are.
   *
   * @return their number
   */
  public long shards() {
    return handle().number(AddendNative::addend_job_num_shards);
  }

  /**
   * Computes a shard and commits it as a whole; one that is there already is left as it is.
   *
   * @param shard from 0
   * @return its receipt, as JSON
   */
  public String run(long shard) {
    return run(shard, false);
  }

  /**
   * Computes a shard and commits it as a whole.
   *
   * @param shard from 0
   * @param again computes one that is there already once more
   * @return its receipt, as JSON
   * @throws AddendException if the rows are others than when the plan was made, the results beside it are those of
   *     another plan, or the result cannot be written
   */
  public String run(long shard, boolean again) {
    try (Borrow borrow = new Borrow()) {
      final long job = borrow.of(this);
      final String options = again ? "{\"again\": true}" : null;
      return Out.text(out -> AddendNative.addend_job_run(job, shard, options, out));
    }
  }
}
