/**
 * Addend on Apache Spark: explains the rows of a data frame ({@link dev.addend.spark.AddendSpark#explain}), gives SQL a function
 * that does ({@link dev.addend.spark.AddendSpark#register}), and computes the shards of a job as tasks ({@link
 * dev.addend.spark.AddendSpark#runJob}). Callable from Java, Scala and PySpark.
 */
package dev.addend.spark;
