package dev.addend.spark;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Set;
import java.util.TreeSet;
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

  /**
   * The digest of a model: of its file and of the files beside it that hold its weights, as ONNX models may have them, so that
   * another weight on another machine is another model.
   */
  static String sha256(Path file) {
    final Set<String> named = new TreeSet<>();
    String all = digest(file, new WeightFiles(named));
    for (String name : named) {
      final Path beside = beside(file, name);
      if (beside != null) {
        all = all + "  " + name + " " + digest(beside, null);
      }
    }
    return named.isEmpty() ? all : hex(newDigest().digest(all.getBytes(StandardCharsets.UTF_8)));
  }

  /** The file of weights; {@code null} where there is none: the text named no file. */
  private static Path beside(Path file, String name) {
    try {
      final Path path = file.resolveSibling(name);
      return Files.isRegularFile(path) ? path : null;
    } catch (InvalidPathException e) {
      return null;
    }
  }

  /** The digest of a file, whose bytes {@code reader} is shown. */
  private static String digest(Path file, WeightFiles reader) {
    try (InputStream stream = Files.newInputStream(file)) {
      final MessageDigest digest = newDigest();
      final byte[] buffer = new byte[1 << 16];
      for (int count; (count = stream.read(buffer)) >= 0; ) {
        digest.update(buffer, 0, count);
        if (reader != null) {
          reader.read(buffer, count);
        }
      }
      return hex(digest.digest());
    } catch (IOException e) {
      throw new UncheckedIOException(file + " cannot be read", e);
    }
  }

  private static MessageDigest newDigest() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  private static String hex(byte[] bytes) {
    final StringBuilder hex = new StringBuilder();
    for (byte b : bytes) {
      hex.append(String.format("%02x", b));
    }
    return hex.toString();
  }
}
