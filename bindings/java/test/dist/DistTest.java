package dist;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.w3c.dom.Document;

/** Programs that have nothing of Addend but its jar, started in an empty folder. */
class DistTest {
  private static final Path JAR = Path.of("bindings/java/addend.jar").toAbsolutePath();
  private static final Path CLASSES = Path.of("bindings/java/libjava.jar").toAbsolutePath();
  private static final Path QUICKSTART = Path.of("docs/examples/Quickstart.java").toAbsolutePath();
  private static final Path QUICKSTART_C = Path.of("docs/examples/quickstart_c").toAbsolutePath();
  private static final Path DIGITS = Path.of("docs/examples/models/digits").toAbsolutePath();

  /** Names the folder of LibTorch; set for this test where the loader does not know the LibTorch of the build. */
  private static final String LIBTORCH = "ADDEND_LIBTORCH_PATH";

  @TempDir Path folder;

  private Path empty;
  private Path cache;
  /** The programs' environment is this test's, but for what is set and removed here. */
  private final Map<String, String> environment = new HashMap<>();
  private final List<String> without = new ArrayList<>();

  @BeforeEach
  void makeFolders() throws IOException {
    empty = Files.createDirectory(folder.resolve("empty"));
    cache = folder.resolve("cache");
  }

  private static final class Output {
    final int exitCode;
    final String text;
    final String errors;

    Output(int exitCode, String text, String errors) {
      this.exitCode = exitCode;
      this.text = text;
      this.errors = errors;
    }
  }

  private Output run(String... command) throws IOException, InterruptedException {
    final File text = folder.resolve("stdout").toFile();
    final File errors = folder.resolve("stderr").toFile();
    final ProcessBuilder builder =
        new ProcessBuilder(command).directory(empty.toFile()).redirectOutput(text).redirectError(errors);
    builder.environment().remove("CLASSPATH");
    builder.environment().keySet().removeAll(List.of("LD_LIBRARY_PATH", "XDG_CACHE_HOME"));
    builder.environment().putAll(environment);
    builder.environment().keySet().removeAll(without);
    // The LibTorch of some distributions brings UCX, which takes over the handlers of signals. The library gives them back
    // once it is loaded, but -Xcheck:jni may look in between.
    builder.environment().put("UCX_HANDLE_ERRORS", "none");
    final int exitCode = builder.start().waitFor();
    return new Output(
        exitCode,
        Files.readString(text.toPath(), StandardCharsets.UTF_8),
        Files.readString(errors.toPath(), StandardCharsets.UTF_8));
  }

  /** The quick start in a JVM that has one jar and these options. */
  private Output quickstart(Path jar, String... options) throws IOException, InterruptedException {
    final List<String> all = new ArrayList<>(List.of("-Daddend.cache.path=" + cache));
    all.addAll(Arrays.asList(options));
    return quickstartWithoutCache(jar, all);
  }

  private Output quickstartWithoutCache(Path jar, List<String> options) throws IOException, InterruptedException {
    return java(jar, options, QUICKSTART, digits("model.pt2"));
  }

  /** Arguments of the quick start: a model of digits, and its sample. */
  private static String[] digits(String model) {
    return new String[] {DIGITS.resolve(model).toString(), DIGITS.resolve("sample.safetensors").toString()};
  }

  private Output java(Path jar, List<String> options, Path program, String... arguments)
      throws IOException, InterruptedException {
    final List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-Xcheck:jni");
    command.addAll(options);
    command.addAll(List.of("-cp", jar.toString(), program.toString()));
    command.addAll(Arrays.asList(arguments));
    return run(command.toArray(new String[0]));
  }

  private static void assertSuccess(Output output) {
    assertEquals(0, output.exitCode, () -> output.errors + output.text);
    assertTrue(output.text.startsWith("output [0, 8] = "), output.text);
  }

  private List<Path> cached() throws IOException {
    try (Stream<Path> files = Files.walk(cache)) {
      return files.filter(Files::isRegularFile).sorted().collect(Collectors.toList());
    }
  }

  @Test
  void oneJarIsEnough() throws IOException, InterruptedException {
    for (final String model : List.of("model.pt2", "model.onnx")) {
      final String[] digits = digits(model);
      final Output java = java(JAR, List.of("-Daddend.cache.path=" + cache), QUICKSTART, digits);
      assertSuccess(java);
      final Output c = run(QUICKSTART_C.toString(), digits[0], digits[1]);
      assertEquals(0, c.exitCode, c.errors);
      assertEquals(c.text, java.text);
    }
    try (Stream<Path> left = Files.list(empty)) {
      assertEquals(0, left.count());
    }
  }

  @Test
  void librariesAreCopiedOnce() throws IOException, InterruptedException {
    assertSuccess(quickstart(JAR));
    final List<Path> first = cached();
    assertEquals(
        List.of("libaddend.so.1", "libaddend_jni.so", "libaddend_torch"),
        first.stream()
            .map(path -> path.getFileName().toString().replaceFirst("_torch[0-9.]+so$", "_torch"))
            .collect(Collectors.toList()));
    final Object key = Files.readAttributes(first.get(0), "unix:ino").get("ino");
    assertSuccess(quickstart(JAR));
    assertEquals(first, cached());
    assertEquals(key, Files.readAttributes(first.get(0), "unix:ino").get("ino"));
  }

  @Test
  void damagedCopiesAreReplaced() throws IOException, InterruptedException {
    assertSuccess(quickstart(JAR));
    final Path library = cached().get(0);
    final byte[] bytes = Files.readAllBytes(library);
    Files.write(library, Arrays.copyOf(bytes, bytes.length / 2));
    assertSuccess(quickstart(JAR));
    assertArrayEquals(bytes, Files.readAllBytes(library));
  }

  @Test
  void everyPlaceThatWasTriedIsTold() throws IOException, InterruptedException {
    final Output output = quickstart(CLASSES, "-Daddend.library.path=nowhere", "-Djava.library.path=elsewhere");
    assertNotEquals(0, output.exitCode);
    for (String part : List.of(
        "UnsatisfiedLinkError: cannot load libaddend_jni.so; name its folder by -Daddend.library.path",
        "-Daddend.library.path: " + empty.resolve("nowhere/libaddend_jni.so"),
        "java.library.path: elsewhere",
        "jar: no /native/linux-",
        "Suppressed: java.lang.UnsatisfiedLinkError")) {
      assertTrue(output.errors.contains(part), part + " in " + output.errors);
    }
  }

  @Test
  void theReasonOfEachFailureIsTold() throws IOException, InterruptedException {
    Files.writeString(empty.resolve("libaddend_jni.so"), "no library");
    Files.writeString(cache, "no folder");
    final Output output = quickstart(JAR, "-Daddend.library.path=.");
    assertNotEquals(0, output.exitCode);
    assertTrue(output.errors.contains("file too short") || output.errors.contains("invalid ELF header"), output.errors);
    assertTrue(output.errors.contains(cache.toString()), output.errors);
  }

  @Test
  void anotherLibTorchIsALinkError() throws IOException, InterruptedException {
    final Path foreign = Path.of("c_api/stub/foreign/libtorch_cpu.so").toAbsolutePath();
    final Path program = folder.resolve("Beside.java");
    Files.writeString(
        program,
        "class Beside { public static void main(String[] a) {"
            + " System.load(a[0]);"
            + " try { dev.addend.Addend.version(); }"
            + " catch (UnsatisfiedLinkError e) { System.out.print(e.getMessage()); }"
            + " System.out.print(\"\\n\" + dev.addend.Addend.showConfig()); } }");
    final Output output = run(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-Daddend.cache.path=" + cache,
        "-cp",
        JAR.toString(),
        program.toString(),
        foreign.toString());
    assertEquals(0, output.exitCode, output.errors);
    assertTrue(
        output.text.startsWith("this process has loaded LibTorch 0.99.0 (" + foreign.toRealPath() + "), and Addend "),
        output.text + output.errors);
    for (String line : List.of(
        "Addend ",
        "  opened: none",
        "  refused: this process has loaded LibTorch 0.99.0 (" + foreign.toRealPath() + "), and Addend ",
        "LibTorch 0.99.0",
        "  library: " + foreign.toRealPath(),
        "Java ",
        "  classes: file:" + JAR.toRealPath())) {
      assertTrue(output.text.contains("\n" + line), line + " is not in " + output.text);
    }
  }

  @Test
  void aFolderOfTheCallerComesFirst() throws IOException, InterruptedException {
    final Path libraries = Path.of("bindings/java/native").toAbsolutePath();
    assertSuccess(quickstart(CLASSES, "-Daddend.library.path=" + libraries));
    assertSuccess(quickstart(CLASSES, "-Djava.library.path=" + libraries));
    assertTrue(Files.notExists(cache));
  }

  /** A user whom the system knows no home of, or may not write there, has the library in a folder of the temporary one. */
  @Test
  void noHomeIsNeeded() throws IOException, InterruptedException {
    final Path temporary = Files.createDirectory(folder.resolve("tmp"));
    final Path ours = temporary.resolve("addend-" + Files.getAttribute(temporary, "unix:uid"));
    for (String home : List.of("?", "/proc/nowhere")) {
      assertSuccess(quickstartWithoutCache(JAR, List.of("-Duser.home=" + home, "-Djava.io.tmpdir=" + temporary)));
      try (Stream<Path> files = Files.list(empty)) {
        assertEquals(0, files.count(), "the working folder stays empty");
      }
      assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(ours)));
      try (Stream<Path> files = Files.walk(ours)) {
        assertTrue(files.anyMatch(file -> file.endsWith("libaddend_jni.so")));
      }
    }
  }

  @Test
  void aTemporaryFolderThatOthersWriteToIsRefused() throws IOException, InterruptedException {
    final Path temporary = Files.createDirectory(folder.resolve("tmp"));
    final Path known = Files.createDirectory(temporary.resolve("addend-" + Files.getAttribute(temporary, "unix:uid")));
    Files.setPosixFilePermissions(known, PosixFilePermissions.fromString("rwxrwxrwx"));
    final List<String> options = List.of("-Duser.home=?", "-Djava.io.tmpdir=" + temporary);
    final Output output = quickstartWithoutCache(JAR, options);
    assertNotEquals(0, output.exitCode);
    assertTrue(output.errors.contains(known + " is not a folder that only this user can write to"), output.errors);
    Files.delete(known);
    Files.createSymbolicLink(known, Files.createDirectory(folder.resolve("of_another")));
    assertTrue(quickstartWithoutCache(JAR, options).errors.contains(known + " is not a folder"));
  }

  /** The files that a process maps whose names begin with libtorch or libc10. */
  private List<Path> libTorchOf(String... options) throws IOException, InterruptedException {
    final Path program = folder.resolve("Maps.java");
    Files.writeString(
        program,
        "class Maps { public static void main(String[] a) throws Exception { dev.addend.Addend.version();"
            + " System.out.print(java.nio.file.Files.readString(java.nio.file.Path.of(\"/proc/self/maps\"))); } }");
    final List<String> all = new ArrayList<>(List.of("-Daddend.cache.path=" + cache));
    all.addAll(Arrays.asList(options));
    final Output output = java(JAR, all, program);
    assertEquals(0, output.exitCode, output.errors);
    return output.text.lines()
        .filter(line -> line.matches(".*/(libtorch|libc10)[^/]*"))
        .map(line -> Path.of(line.substring(line.indexOf('/'))))
        .distinct()
        .collect(Collectors.toList());
  }

  @Test
  void theLibTorchThatIsNamedIsTheOneThatIsLoaded() throws IOException, InterruptedException {
    if (System.getenv(LIBTORCH) != null) {
      // The loader does not know the LibTorch of the build, whose libraries lie among those that they need.
      final Path built = Path.of(System.getenv(LIBTORCH));
      assertTrue(libTorchOf().stream().allMatch(file -> file.startsWith(built)));
      without.add(LIBTORCH);
      assertTrue(libTorchOf("-Daddend.libtorch.path=" + built).stream().allMatch(file -> file.startsWith(built)));
      return;
    }
    final Path named = Files.createDirectory(folder.resolve("libtorch"));
    for (Path file : libTorchOf()) {
      final Path here = named.resolve(file.getFileName());
      // One that is a file of its own tells which folder was used; the others are large.
      if (file.getFileName().toString().startsWith("libc10.so")) {
        Files.copy(file, here);
      } else {
        Files.createSymbolicLink(here, file);
      }
    }
    assertTrue(libTorchOf("-Daddend.libtorch.path=" + named).stream().anyMatch(file -> file.startsWith(named)));
    assertTrue(libTorchOf().stream().noneMatch(file -> file.startsWith(named)));
    environment.put(LIBTORCH, named.toString());
    final List<Path> found = libTorchOf();
    assertEquals(1, found.stream().filter(file -> file.getFileName().toString().startsWith("libc10.so")).count());
    assertTrue(found.stream().anyMatch(file -> file.startsWith(named)), found.toString());
  }

  @Test
  void aLibTorchThatIsNotThereIsTold() throws IOException, InterruptedException {
    final Output output = quickstart(JAR, "-Daddend.libtorch.path=" + empty);
    assertNotEquals(0, output.exitCode);
    assertTrue(
        output.errors.contains("-Daddend.libtorch.path=" + empty + ": LibTorch cannot be loaded (" + empty
            + ": there is no libtorch_cpu.so)"), output.errors);
    final Path loaded =
        libTorchOf().stream().filter(file -> file.toString().contains("/libtorch_cpu.so")).findFirst().orElseThrow();
    Files.writeString(empty.resolve("libc10.so"), "no library");
    environment.put(LIBTORCH, empty.toString());
    final String errors = quickstart(JAR).errors;
    assertTrue(errors.contains("LibTorch cannot be loaded (" + empty + "/libc10.so: "), errors);
    final Path program = folder.resolve("Loaded.java");
    Files.writeString(
        program,
        "class Loaded { public static void main(String[] a) { System.load(a[0]); dev.addend.Addend.version(); } }");
    final Output beside = java(JAR, List.of("-Daddend.cache.path=" + cache), program, loaded.toString());
    assertEquals(0, beside.exitCode, beside.errors);
  }

  @Test
  void mavenKnowsTheJar() throws Exception {
    try (JarFile jar = new JarFile(JAR.toFile());
        InputStream inside = jar.getInputStream(jar.getEntry("META-INF/maven/dev.addend/addend/pom.xml"))) {
      final byte[] pom = inside.readAllBytes();
      assertArrayEquals(Files.readAllBytes(Path.of("bindings/java/addend.pom")), pom);
      final Document document =
          DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(Path.of("bindings/java/addend.pom").toFile());
      assertEquals("addend", document.getElementsByTagName("artifactId").item(0).getTextContent());
      final String version = document.getElementsByTagName("version").item(0).getTextContent();
      assertEquals(version, jar.getManifest().getMainAttributes().getValue("Implementation-Version"));
      assertEquals("dev.addend", jar.getManifest().getMainAttributes().getValue("Automatic-Module-Name"));
      assertEquals(version, versionOfTheLibrary());
      assertEquals(version, Files.readString(Path.of("VERSION")).strip());
    }
  }

  private String versionOfTheLibrary() throws IOException, InterruptedException {
    final Path program = folder.resolve("Version.java");
    Files.writeString(
        program,
        "class Version { public static void main(String[] a) { System.out.print(dev.addend.Addend.version()); } }");
    return run(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Daddend.cache.path=" + cache,
            "-cp",
            JAR.toString(),
            program.toString())
        .text;
  }
}
