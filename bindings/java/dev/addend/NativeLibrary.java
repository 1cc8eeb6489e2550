package dev.addend;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.stream.Collectors;

/**
 * Finds and loads the native library: in the folder that {@code -Daddend.library.path} names, on
 * {@code java.library.path}, or in the jar, from where it is copied into a folder of a cache that is named by its
 * contents ({@link NativeCache}). It opens LibTorch: the one that this process has loaded, else the one in the folder that
 * {@code -Daddend.libtorch.path} or the environment variable {@code ADDEND_LIBTORCH_PATH} names, else the one that a
 * {@link LibTorchLoader} loads, else the system's.
 */
final class NativeLibrary {
  private static final String NAME = "addend_jni";
  private static final String LIBTORCH = "addend.libtorch.path";
  /** In the jar's folder: a line with hash and name for each file that belongs there. */
  private static final String CONTENTS = "contents.txt";

  /** The lines of {@link #config} if the library was not loaded; {@code null} if it was. */
  private static volatile String configOfFailure;

  private final List<String> tried = new ArrayList<>();
  private final List<Throwable> failures = new ArrayList<>();

  private NativeLibrary() {}

  /**
   * Loads the library, or throws an error that tells every place where it was looked for. Another LibTorch that this
   * process has loaded is told in the same way, before a second one is loaded beside it.
   */
  static void load() {
    try {
      tryToLoad();
    } catch (UnsatisfiedLinkError e) {
      if (configOfFailure == null) {
        final String version = NativeLibrary.class.getPackage().getImplementationVersion();
        configOfFailure = "Addend " + (version == null ? "for Java" : version) + "\n  refused: " + e.getMessage();
      }
      throw e;
    }
  }

  /**
   * Describes the library for reports of problems, whether it could be loaded or not.
   *
   * @return lines about the library
   */
  static String config() {
    try {
      return AddendNative.addend_show_config();
    } catch (LinkageError e) {
      // The class of the native functions is never initialized again: what was told then holds for ever.
      if (configOfFailure == null) {
        throw e;
      }
      return configOfFailure;
    }
  }

  private static void tryToLoad() {
    new NativeLibrary().search();
    final int needed = AddendNative.addend_compiled_abi_version();
    if (AddendNative.addend_abi_min_version() > needed || AddendNative.addend_abi_version() < needed) {
      throw new UnsatisfiedLinkError("the addend library serves ABI " + AddendNative.addend_abi_min_version() + " to "
          + AddendNative.addend_abi_version() + ", this jar needs " + needed);
    }
    final String folder = System.getProperty(LIBTORCH, "");
    if (folder.isEmpty() && System.getenv().getOrDefault("ADDEND_LIBTORCH_PATH", "").isEmpty()) {
      askLoaders();
    }
    try {
      AddendNative.addend_load_libtorch(folder);
    } catch (AddendException e) {
      configOfFailure = AddendNative.addend_show_config();
      final String said = folder.isEmpty() ? "" : "-D" + LIBTORCH + "=" + folder + ": ";
      throw (UnsatisfiedLinkError) new UnsatisfiedLinkError(said + e.getMessage()).initCause(e);
    }
  }

  /** Has the libraries that bring a LibTorch load it, unless there is one. */
  private static void askLoaders() {
    try {
      for (LibTorchLoader loader : ServiceLoader.load(LibTorchLoader.class, NativeLibrary.class.getClassLoader())) {
        if (AddendNative.addend_libtorch_is_loaded() != 0) {
          return;
        }
        loader.load();
      }
    } catch (RuntimeException | LinkageError | ServiceConfigurationError e) {
      throw (UnsatisfiedLinkError) new UnsatisfiedLinkError("the LibTorch that Addend was to share cannot be loaded: " + e)
          .initCause(e);
    }
  }

  private void search() {
    if (fromProperty() || fromLibraryPath() || fromJar()) {
      return;
    }
    final UnsatisfiedLinkError error = new UnsatisfiedLinkError("cannot load " + System.mapLibraryName(NAME)
        + "; name its folder by -Daddend.library.path. Tried " + String.join("; ", tried));
    failures.forEach(error::addSuppressed);
    throw error;
  }

  private boolean fromProperty() {
    final String folder = System.getProperty("addend.library.path");
    if (folder == null) {
      tried.add("-Daddend.library.path: not given");
      return false;
    }
    final Path library = Path.of(folder, System.mapLibraryName(NAME)).toAbsolutePath();
    return tryTo("-Daddend.library.path: " + library, () -> System.load(library.toString()));
  }

  private boolean fromLibraryPath() {
    return tryTo(
        "java.library.path: " + System.getProperty("java.library.path"), () -> System.loadLibrary(NAME));
  }

  private boolean fromJar() {
    final String folder = "/native/" + platform() + "/";
    final String contents;
    try (InputStream stream = NativeLibrary.class.getResourceAsStream(folder + CONTENTS)) {
      if (stream == null) {
        tried.add("jar: no " + folder);
        return false;
      }
      contents = new String(stream.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      return failed("jar: " + folder, e);
    }
    final String name = sha256(contents.getBytes(StandardCharsets.UTF_8)).substring(0, 16);
    for (NativeCache.Place place : NativeCache.places()) {
      try {
        final Path copies = Files.createDirectories(place.open().resolve(name));
        copy(folder, contents, copies);
        return tryTo("jar: " + folder + " copied to " + copies,
            () -> System.load(copies.resolve(System.mapLibraryName(NAME)).toString()));
      } catch (IOException | RuntimeException e) {
        failed("jar: " + folder + " cannot be copied", e);
      }
    }
    return false;
  }

  /** Copies what {@code contents} lists: 64 digits of a hash, two spaces and a name in each line. */
  private static void copy(String folder, String contents, Path copies) throws IOException {
    for (String line : contents.lines().collect(Collectors.toList())) {
      final String name = line.substring(66);
      extract(folder + name, line.substring(0, 64), copies.resolve(name));
    }
  }

  @FunctionalInterface
  private interface Attempt {
    void run() throws IOException;
  }

  private boolean tryTo(String what, Attempt attempt) {
    try {
      attempt.run();
      return true;
    } catch (IOException | RuntimeException | UnsatisfiedLinkError e) {
      return failed(what, e);
    }
  }

  private boolean failed(String what, Throwable failure) {
    // Exceptions about files say no more than the path in their message.
    tried.add(what + " (" + (failure instanceof IOException ? failure.toString() : failure.getMessage()) + ")");
    failures.add(failure);
    return false;
  }

  /** Copies a resource into a file, unless that has the right contents already. Other processes may do so too. */
  private static void extract(String resource, String hash, Path file) throws IOException {
    if (Files.isRegularFile(file) && sha256(Files.readAllBytes(file)).equals(hash)) {
      return;
    }
    final byte[] bytes;
    try (InputStream stream = NativeLibrary.class.getResourceAsStream(resource)) {
      if (stream == null) {
        throw new IOException("jar has no " + resource);
      }
      bytes = stream.readAllBytes();
    }
    final Path temporary = Files.createTempFile(file.getParent(), file.getFileName().toString(), ".part");
    try {
      Files.write(temporary, bytes);
      try {
        Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE);
      } catch (AtomicMoveNotSupportedException e) {
        Files.move(temporary, file, StandardCopyOption.REPLACE_EXISTING);
      }
    } finally {
      Files.deleteIfExists(temporary);
    }
  }

  /** The names that the jar uses: {@code linux-x86_64}, {@code linux-aarch64}, {@code macos-aarch64}. */
  private static String platform() {
    final String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
    final String machine = System.getProperty("os.arch");
    return (os.startsWith("mac") ? "macos" : os.startsWith("windows") ? "windows" : os)
        + "-" + (machine.equals("amd64") ? "x86_64" : machine);
  }

  private static String sha256(byte[] bytes) {
    try {
      final StringBuilder hex = new StringBuilder();
      for (byte b : MessageDigest.getInstance("SHA-256").digest(bytes)) {
        hex.append(String.format("%02x", b));
      }
      return hex.toString();
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
