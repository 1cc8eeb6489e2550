package dev.addend.spark;

import com.fasterxml.jackson.databind.JsonNode;
import dev.addend.Job;
import dev.addend.Model;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Attributions by the executors of Apache Spark.
 *
 * <pre>{@code
 * ExplainConfig config = ExplainConfig.of("/models/model.pt", "age", "income").baseline(0).target("1");
 * Dataset<Row> explained = AddendSpark.explain(rows, config);          // value, contributions, notes of each row
 * AddendSpark.runJob(spark, "/data/plan.json");                        // the shards of a job that are missing
 * }</pre>
 *
 * <p>Each executor loads a model once, with the native library and the LibTorch that Addend for Java finds there. The driver
 * needs both too: it tells the digest of the model, which every executor compares with that of its own file.
 */
public final class AddendSpark {
  /** Results that are wrong, in one message. */
  private static final int MOST_TOLD = 20;

  private AddendSpark() {}

  /**
   * Adds to each row what its columns contributed to the explained number. Nothing is computed before the result is asked for,
   * and it may be a stream.
   *
   * <p>The added columns, whose names begin with {@link ExplainConfig#prefix}, are {@code target} (which number is explained),
   * {@code value} = {@code reference} + {@code contributions} + {@code leftover}, with {@link ExplainConfig#concepts} {@code
   * outcome} and {@code reasons}, then {@code notes}, {@code warnings} (those of the notes that say that numbers may not mean what
   * a reader takes them for) and {@code refused}: why the row has no attribution, or null. Columns of numbers are null in rows
   * that are refused.
   *
   * <p>Rows of a partition are attributed in chunks, in their order. The results have the bits that {@link dev.addend.Plan} and
   * {@link dev.addend.Model#attribute(dev.addend.Request)} give for the same chunk. Notes are those of the chunk's run, with
   * every row of it, and those of the row.
   *
   * @param rows a data frame with the columns of the config
   * @param config what is asked
   * @return the rows with the added columns
   * @throws IllegalArgumentException if a column is missing or holds no numbers, two columns would have one name, or this
   *     process does not see the model
   * @throws dev.addend.AddendException if files of weights of an ONNX model are missing
   */
  public static Dataset<Row> explain(Dataset<Row> rows, ExplainConfig config) {
    final RowReader reader = RowReader.of(config, rows.schema());
    final String sha256 = Model.sha256(ModelFile.find(config.model()));
    return rows.mapPartitions(
        new ExplainPartitions(config, sha256, reader), Encoders.row(ResultColumns.behind(rows.schema(), config)));
  }

  /**
   * Registers a function of SQL that explains one row: {@code name(struct(age, income))}. It takes the columns of the config by
   * their names, and gives a struct with the columns that {@link #explain} adds. Each row is a chunk of its own.
   *
   * @param spark the session
   * @param name of the function
   * @param config what is asked
   * @throws IllegalArgumentException if this process does not see the model
   */
  public static void register(SparkSession spark, String name, ExplainConfig config) {
    final String sha256 = Model.sha256(ModelFile.find(config.model()));
    spark.udf().register(name, new ExplainRow(config, sha256), ResultColumns.of(config));
  }

  /**
   * Computes the shards of a job that are missing, each by a task; {@link Job#merge} puts them together.
   *
   * <p>Each shard becomes visible as a whole under the digest of its bytes, so that executors may be lost, and tasks may be tried
   * again or run twice (speculation): no row is lost or doubled, and the merged bytes are those of one process. Where this call
   * ends with an exception, what is done stays, and the next call goes on.
   *
   * @param spark the session
   * @param plan what {@link Job#plan} has written, by a path that is the same on all machines
   * @return {@link Job#status} after the run, as JSON
   * @throws IllegalStateException if results that are there are damaged or another plan's, or executors write results to
   *     another folder than the one that is seen here
   */
  public static String runJob(SparkSession spark, String plan) {
    return runJob(spark, plan, false);
  }

  /**
   * Computes the shards of a job, each by a task, as {@link #runJob(SparkSession, String)} does.
   *
   * @param spark the session
   * @param plan what {@link Job#plan} has written, by a path that is the same on all machines
   * @param again computes shards that are there already once more
   * @return {@link Job#status} after the run, as JSON
   */
  public static String runJob(SparkSession spark, String plan, boolean again) {
    final Path path = Path.of(plan).toAbsolutePath();
    // The library checks the plan.
    final JsonNode before = JobPlanFile.json(Job.status(path), path);
    final JobPlanFile file = JobPlanFile.read(path);
    if (!file.tensors) {
      throw new UnsupportedOperationException(
          path + ": its rows are no tensors; the program addend reads them: addend job run " + path);
    }
    if (!again) {
      requireOwnResults(path, before);
    }
    final List<Long> shards = new ArrayList<>();
    if (again) {
      for (long shard = 0; shard < before.path("shards").asLong(); shard++) {
        shards.add(shard);
      }
    } else {
      before.path("missing").forEach(shard -> shards.add(shard.asLong()));
    }
    runShards(spark, path, file, shards, again);
    final String status = Job.status(path);
    final JsonNode after = JobPlanFile.json(status, path);
    requireOwnResults(path, after);
    if (!after.path("missing").isEmpty()) {
      throw new IllegalStateException("tasks computed " + shards.size() + " shards, of which " + after.path("missing").size()
          + " are not in " + resultsFolder(path) + ": the folder has to be one that this process and all executors see");
    }
    return status;
  }

  /** Computes shards, each in a task of its own, even if one is listed twice. */
  static void runShards(SparkSession spark, Path plan, JobPlanFile file, List<Long> shards, boolean again) {
    if (shards.isEmpty()) {
      return;
    }
    JavaSparkContext.fromSparkContext(spark.sparkContext())
        .parallelize(shards, shards.size())
        .setName("addend-shard")
        .foreach(new JobTask(plan, file, again));
  }

  private static void requireOwnResults(Path plan, JsonNode status) {
    final JsonNode wrong = status.path("wrong");
    if (wrong.isEmpty()) {
      return;
    }
    final List<String> told = new ArrayList<>();
    for (int k = 0; k < Math.min(MOST_TOLD, wrong.size()); k++) {
      told.add(wrong.get(k).asText());
    }
    if (wrong.size() > MOST_TOLD) {
      told.add("and " + (wrong.size() - MOST_TOLD) + " more");
    }
    throw new IllegalStateException(String.join("\n", told) + "\nRemove what is wrong from " + resultsFolder(plan)
        + "/shards and run those shards again");
  }

  /** {@code rows.out} for {@code rows.json}. */
  private static String resultsFolder(Path plan) {
    return plan.toString().replaceAll("\\.json$", "") + ".out";
  }
}
