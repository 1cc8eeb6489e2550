package dev.addend.spark;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
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

  static String sha256(Path file) {
    try (InputStream stream = Files.newInputStream(file)) {
      final MessageDigest digest = MessageDigest.getInstance("SHA-256");
      final byte[] buffer = new byte[1 << 16];
      for (int count; (count = stream.read(buffer)) >= 0; ) {
        digest.update(buffer, 0, count);
      }
      final StringBuilder hex = new StringBuilder();
      for (byte b : digest.digest()) {
        hex.append(String.format("%02x", b));
      }
      return hex.toString();
    } catch (IOException e) {
      throw new UncheckedIOException(file + " cannot be read", e);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
