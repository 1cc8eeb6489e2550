package dev.addend.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The part of a job's plan that tasks need before the library reads all of it. */
final class JobPlanFile {
  final String sha256;
  /** How many threads each worker computes with. */
  final int threads;
  /** Whether rows are tensors; other ones only the program {@code addend} reads. */
  final boolean tensors;

  private JobPlanFile(String sha256, int threads, boolean tensors) {
    this.sha256 = sha256;
    this.threads = threads;
    this.tensors = tensors;
  }

  static JobPlanFile read(Path plan) {
    final JsonNode root = json(plan);
    if (!root.path("format").asText().equals("addend.job")) {
      throw new IllegalArgumentException(plan + " is no plan of a job");
    }
    return new JobPlanFile(root.path("sha256").asText(), root.path("libtorch").path("threads").asInt(1),
        root.path("data").path("kind").asText().equals("tensors"));
  }

  private static JsonNode json(Path plan) {
    final String text;
    try {
      text = Files.readString(plan);
    } catch (IOException e) {
      throw new UncheckedIOException(plan + " cannot be read on this machine", e);
    }
    return json(text, plan);
  }

  static JsonNode json(String text, Path plan) {
    try {
      return new ObjectMapper().readTree(text);
    } catch (IOException e) {
      throw new IllegalArgumentException(plan + " is no plan of a job: " + e.getMessage(), e);
    }
  }
}
