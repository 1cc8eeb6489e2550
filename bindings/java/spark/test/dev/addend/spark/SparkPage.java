package dev.addend.spark;

import dev.addend.Addend;
import dev.addend.Input;
import dev.addend.Job;
import dev.addend.JobOptions;
import dev.addend.Request;
import dev.addend.Target;
import dev.addend.Tensor;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Fields that the programs of docs/jobs.md use without defining them: a cluster, a data frame, a folder with model and plan. */
@ExtendWith(Cluster.Stopped.class)
abstract class SparkPage {
  @TempDir Path folder;
  String data;
  SparkSession spark;
  Dataset<Row> rows;

  @BeforeEach
  void make() throws Exception {
    data = folder.toString();
    spark = Cluster.session();
    rows = Rows.frame(Rows.heldout(), 2);
    Files.copy(Path.of(Rows.MODEL), folder.resolve("model.pt"));
    Addend.setNumThreads(1);
    try (Tensor row = Tensor.of(Rows.heldout()[0], 1, Rows.COLUMNS)) {
      Job.plan(folder.resolve("plan.json"), folder.resolve("model.pt"),
          Request.of(Input.of(row).splitAlong(1).baseline(0)).target(Target.element(0)),
          JobOptions.rows(Rows.HELDOUT.toString()).batch(50).shards(4), null);
    }
  }
}
