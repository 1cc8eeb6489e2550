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
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
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

  @TempDir Path folder;

  private Path empty;
  private Path cache;

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
    builder.environment().remove("LD_LIBRARY_PATH");
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
    final List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-Xcheck:jni");
    command.add("-Daddend.cache.path=" + cache);
    command.addAll(Arrays.asList(options));
    command.addAll(List.of("-cp", jar.toString(), QUICKSTART.toString()));
    command.addAll(List.of(DIGITS.resolve("model.pt").toString(), DIGITS.resolve("sample.safetensors").toString()));
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
    final Output java = quickstart(JAR);
    assertSuccess(java);
    final Output c =
        run(QUICKSTART_C.toString(), DIGITS.resolve("model.pt").toString(), DIGITS.resolve("sample.safetensors").toString());
    assertEquals(0, c.exitCode, c.errors);
    assertEquals(c.text, java.text);
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
            + " catch (UnsatisfiedLinkError e) { System.out.print(e.getMessage()); } } }");
    final Output output = run(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-Daddend.cache.path=" + cache,
        "-cp",
        JAR.toString(),
        program.toString(),
        foreign.toString());
    assertEquals(0, output.exitCode, output.errors);
    assertTrue(
        output.text.contains("this process has loaded LibTorch 0.99.0 (" + foreign.toRealPath() + "), and Addend "),
        output.text + output.errors);
  }

  @Test
  void aFolderOfTheCallerComesFirst() throws IOException, InterruptedException {
    final Path libraries = Path.of("bindings/java/native").toAbsolutePath();
    assertSuccess(quickstart(CLASSES, "-Daddend.library.path=" + libraries));
    assertSuccess(quickstart(CLASSES, "-Djava.library.path=" + libraries));
    assertTrue(Files.notExists(cache));
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
