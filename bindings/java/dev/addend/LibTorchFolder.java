package dev.addend;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * The LibTorch that the user names: {@code -Daddend.libtorch.path}, else the environment variable
 * {@code ADDEND_LIBTORCH_PATH}, is the folder of its libraries. They are loaded first, so that the native library binds to
 * them and the system's loader looks nowhere else.
 */
final class LibTorchFolder {
  private static final String PROPERTY = "addend.libtorch.path";
  private static final String VARIABLE = "ADDEND_LIBTORCH_PATH";
  /** Each after those that it needs. */
  private static final List<String> LIBRARIES = List.of("libc10.so", "libtorch_cpu.so", "libtorch.so");

  private LibTorchFolder() {}

  /** Loads the LibTorch that is named, if one is. A process that has one already keeps it: two would end it. */
  static void load() {
    final String property = System.getProperty(PROPERTY);
    final String folder = property != null ? property : System.getenv(VARIABLE);
    if (folder == null || folder.isEmpty() || isLoaded()) {
      return;
    }
    final String said = property != null ? "-D" + PROPERTY : VARIABLE;
    for (String name : LIBRARIES) {
      final Path library = find(Path.of(folder).toAbsolutePath(), name).orElseThrow(() -> new UnsatisfiedLinkError(said
          + " names " + folder + ", which has no " + name + "; name the folder that holds the libraries of LibTorch"));
      try {
        System.load(library.toString());
      } catch (UnsatisfiedLinkError e) {
        // Another class loader of this JVM may have loaded it, which is as good.
        if (e.getMessage() == null || !e.getMessage().contains("already loaded in another classloader")) {
          throw new UnsatisfiedLinkError("cannot load " + library + ", where " + said + " says that LibTorch is: "
              + e.getMessage());
        }
      }
    }
  }

  private static boolean isLoaded() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines.anyMatch(line -> line.contains("/libtorch_cpu.so"));
    } catch (IOException | UncheckedIOException e) {
      return false;
    }
  }

  /** The library of this name, or with a version behind it, as distributions call theirs: {@code libc10.so.1.13}. */
  private static Optional<Path> find(Path folder, String name) {
    final Path plain = folder.resolve(name);
    if (Files.isRegularFile(plain)) {
      return Optional.of(plain);
    }
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(file -> file.getFileName().toString().startsWith(name + ".")).sorted().findFirst();
    } catch (IOException e) {
      return Optional.empty();
    }
  }
}
