package dev.addend.spark;

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.SparkFiles;

/** The file of a model, wherever this process has it. */
final class ModelFile {
  private ModelFile() {}

  /**
   * The file: by its path, or by the name under which Spark has sent it.
   *
   * @throws IllegalArgumentException if it is nowhere
   */
  static Path find(String name) {
    final Path path = Path.of(name);
    if (Files.isRegularFile(path)) {
      return path;
    }
    if (path.getNameCount() == 1 && !path.isAbsolute()) {
      final Path sent = Path.of(SparkFiles.get(name));
      if (Files.isRegularFile(sent)) {
        return sent;
      }
    }
    throw new IllegalArgumentException("there is no file " + path.toAbsolutePath()
        + " on this machine; the model is a path that all machines see, or the name of a file that --files sends to them");
  }
}
