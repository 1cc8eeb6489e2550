package dev.addend.spark;

import dev.addend.Job;
import java.nio.file.Path;
import org.apache.spark.sql.SparkSession;

/**
 * A program for {@code spark-submit}: computes the shards of a job that are missing, and merges them.
 *
 * <p>Usage: {@code spark-submit --class dev.addend.spark.RunJob --jars addend.jar addend-spark.jar PLAN}
 */
public final class RunJob {
  private RunJob() {}

  /**
   * Runs a job, and prints what {@link Job#merge} tells.
   *
   * @param arguments the plan, by a path that is the same on all machines
   */
  public static void main(String[] arguments) {
    if (arguments.length != 1) {
      throw new IllegalArgumentException("usage: RunJob PLAN");
    }
    final SparkSession spark = SparkSession.builder().appName("addend " + arguments[0]).getOrCreate();
    try {
      AddendSpark.runJob(spark, arguments[0]);
      System.out.println(Job.merge(Path.of(arguments[0])));
    } finally {
      spark.stop();
    }
  }
}
