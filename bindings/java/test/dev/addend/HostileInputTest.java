package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Whatever is passed: an exception, never a crash. */
class HostileInputTest extends ScopedTest {
  @Test
  void nullIsRefused() {
    final Composition x = Composition.diagonal(Tensor.of(new double[2]), null, 0);
    final Model model = Models.load(Models.DIGITS);
    final Tensor image = Models.sample(Models.DIGITS);
    assertThrows(NullPointerException.class, () -> Model.load((Path) null));
    assertThrows(NullPointerException.class, () -> Model.load((ByteBuffer) null));
    assertThrows(NullPointerException.class, () -> Tensor.of((float[]) null));
    assertThrows(NullPointerException.class, () -> Tensor.of(new float[2], (long[]) null));
    assertThrows(NullPointerException.class, () -> image.to((DType) null));
    assertThrows(NullPointerException.class, () -> Input.of(null));
    assertThrows(NullPointerException.class, () -> Input.of(image).baseline((Tensor) null));
    assertThrows(NullPointerException.class, () -> Input.of(image).splitByLabels(null));
    assertThrows(NullPointerException.class, () -> Input.of(image).names(Arrays.asList("a", null)));
    assertThrows(NullPointerException.class, () -> Request.of((Input) null));
    assertThrows(NullPointerException.class, () -> Request.of((Map<String, Input>) null));
    assertThrows(NullPointerException.class, () -> Request.of().probe(null));
    assertThrows(NullPointerException.class, () -> model.decompose((Request) null));
    assertThrows(NullPointerException.class, () -> Context.builder().onLog(null));
    assertThrows(NullPointerException.class, () -> Context.builder().policy(null));
    assertThrows(NullPointerException.class, () -> Policy.defaults().with("segments", null));
    assertThrows(NullPointerException.class, () -> Target.parse(null));
    assertThrows(NullPointerException.class, () -> x.explain(null));
    assertThrows(NullPointerException.class, () -> Named.named(null, 1));
    assertThrows(NullPointerException.class, () -> TensorFile.read(null));
    assertThrows(NullPointerException.class, () -> new TensorFile().metadata(null));
    // Arguments that the C interface refuses.
    assertThrows(AddendException.class, () -> Composition.diagonal(null, null, 0));
    assertThrows(AddendException.class, () -> x.grad(null, x));
    assertThrows(AddendException.class, () -> x.matmul(null));
    assertThrows(AddendException.class, () -> Addend.call(null, x));
    assertThrows(AddendException.class, () -> new TensorFile().add(null, image));
    assertThrows(AddendException.class, () -> new TensorFile().add("image", null));
  }

  @Test
  void textHasToBeText() {
    final Composition x = Composition.diagonal(Tensor.of(new double[2]), null, 0);
    assertEquals(
        "text has a NUL at position 4",
        assertThrows(IllegalArgumentException.class, () -> Addend.call("aten\0::add", x, 1)).getMessage());
    assertThrows(IllegalArgumentException.class, () -> Addend.call("aten::\ud83d", x, 1));
    assertThrows(IllegalArgumentException.class, () -> x.to(DType.FLOAT32).explain(Target.parse("\udc00")));
    assertThrows(AddendException.class, () -> Addend.call("", x));
    assertThrows(AddendException.class, () -> Addend.call("\u00e9::\u4e2d\ud83d\ude00", x));
    assertThrows(AddendException.class, () -> Addend.call("a".repeat(1_000_000), x));
  }

  @Test
  void textInOptionsHasToBeTextToo(@TempDir Path folder) {
    final Path log = folder.resolve("log");
    assertEquals(
        "text has a NUL at position 8",
        assertThrows(
            IllegalArgumentException.class, () -> JobOptions.rows("rows.npy\0.csv").toJson()).getMessage());
    assertThrows(IllegalArgumentException.class, () -> RecordOptions.defaults().salt("\0"));
    assertThrows(
        IllegalArgumentException.class, () -> AuditLog.verify(log, VerifyOptions.defaults().expect("a\0")));
    assertThrows(IllegalArgumentException.class, () -> Request.ofArguments("each\0"));
    assertThrows(IllegalArgumentException.class, () -> Request.ofArguments(Map.of("a\0", 1)));
  }

  @Test
  void resultsHaveToFitIntoAnArray() {
    Out.requireArray(Integer.MAX_VALUE, "");
    assertEquals(
        "the result has 2147483648 bytes, an array holds 2147483647: write(path) writes all of it",
        assertThrows(
            UnsupportedOperationException.class,
            () -> Out.requireArray(1L << 31, "write(path) writes all of it")).getMessage());
  }

  private static void refusedPath(Path path, Executable use) {
    final IllegalArgumentException error = assertThrows(IllegalArgumentException.class, use);
    assertTrue(error.getMessage().startsWith("the path " + path + " "), error.getMessage());
  }

  /** Every use of a path; none of them may look for a file of another name. */
  private static void refusedPath(Path path) {
    final Model model = Models.load(Models.DIGITS);
    final Tensor image = Models.sample(Models.DIGITS);
    final Program program = model.record(image);
    final Path plan = Path.of("plan.json");
    final Request asked = Request.of(Input.of(image).splitAlong(2).baseline(0));
    final JobOptions rows = JobOptions.rows("rows.npy");
    final VerifyOptions defaults = VerifyOptions.defaults();
    refusedPath(path, () -> Model.load(path));
    refusedPath(path, () -> TensorFile.read(path));
    refusedPath(path, () -> new TensorFile().add("x", image).write(path));
    refusedPath(path, () -> Program.load(path));
    refusedPath(path, () -> program.save(path));
    refusedPath(path, () -> program.exportTorchScript(path));
    refusedPath(path, () -> new AuditLog(path));
    refusedPath(path, () -> AuditLog.verify(path, defaults));
    refusedPath(path, () -> defaults.models(path));
    refusedPath(path, () -> defaults.inputs(plan, path));
    refusedPath(path, () -> new Job(path));
    refusedPath(path, () -> Job.plan(path, plan, asked, rows, null));
    refusedPath(path, () -> Job.plan(plan, path, asked, rows, null));
    refusedPath(path, () -> Job.status(path));
    refusedPath(path, () -> Job.merge(path));
  }

  @Test
  void pathsHaveToBeText(@TempDir Path folder) throws IOException {
    // A byte that is no letter in UTF-8.
    refusedPath(Path.of(URI.create(folder.toUri() + "%FF.safetensors")));
    try (FileSystem zip = FileSystems.newFileSystem(
        URI.create("jar:" + folder.toUri() + "files.zip"), Map.of("create", "true"))) {
      refusedPath(zip.getPath("/folder/a.safetensors"));
    }
    try (Stream<Path> left = Files.list(folder)) {
      assertEquals(List.of(folder.resolve("files.zip")), left.collect(Collectors.toList()));
    }
    // Folders, relative paths, blanks and percent signs are paths like others.
    final Path odd = Files.createDirectory(folder.resolve("100% \u00e9?#\ufffd"));
    final Program program = Models.load(Models.DIGITS).record(Models.sample(Models.DIGITS));
    program.save(odd);
    program.save(Path.of("").toAbsolutePath().relativize(odd));
    assertEquals(program.code(), Program.load(odd).code());
  }

  /** Run with another encoding of file names, as in most containers: names each path of a folder, and what came of it. */
  static final class InAnotherLocale {
    private InAnotherLocale() {}

    public static void main(String[] folder) throws IOException {
      try (TensorFile file = new TensorFile(); Stream<Path> paths = Files.list(Path.of(folder[0]))) {
        for (Path path : paths.sorted().collect(Collectors.toList())) {
          try {
            file.write(path);
            System.out.println("written");
          } catch (IllegalArgumentException e) {
            System.out.println(e.getMessage().replaceAll("^the path .* cannot", "cannot"));
          }
        }
      }
    }
  }

  @Test
  void pathsAreThoseOfTheLocale(@TempDir Path folder) throws IOException, InterruptedException {
    final Path plain = Files.createFile(folder.resolve("a.safetensors"));
    final Path letter = Files.createFile(folder.resolve("\u00e9.safetensors"));
    final List<String> command = List.of(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-Daddend.library.path=" + System.getProperty("addend.library.path"),
        "-cp", place(TensorFile.class) + ":" + place(HostileInputTest.class), InAnotherLocale.class.getName(),
        folder.toString());
    final ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
    builder.environment().put("LC_ALL", "C");
    final Process process = builder.start();
    final String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, process.waitFor());
    assertEquals(
        "written\ncannot be told as text where file names are in ANSI_X3.4-1968: start the JVM with LC_ALL=C.UTF-8\n", said);
    assertTrue(Files.size(plain) > 0);
    assertEquals(0, Files.size(letter));
    try (Stream<Path> all = Files.list(folder)) {
      assertEquals(2, all.count());
    }
  }

  private static String place(Class<?> type) {
    return Path.of(URI.create(type.getProtectionDomain().getCodeSource().getLocation().toString())).toString();
  }

  @Test
  void shapesHaveToExist() {
    final Composition x = Composition.diagonal(Tensor.of(new double[6], 2, 3), null, 0);
    assertThrows(AddendException.class, () -> x.reshape(Long.MAX_VALUE, 2));
    assertThrows(AddendException.class, () -> x.reshape(-1, -1));
    assertThrows(AddendException.class, () -> x.expand(1L << 62, 2, 3));
    assertThrows(AddendException.class, () -> x.permute(0, 0));
    assertThrows(AddendException.class, () -> x.narrow(0, 5, 9));
    assertThrows(AddendException.class, () -> x.select(7, 0));
    assertThrows(AddendException.class, () -> x.selectComponents(99));
    assertThrows(AddendException.class, () -> Composition.diagonal(Tensor.of(new double[2]), null, -5, -7, new long[1]));
    assertThrows(AddendException.class, () -> Tensor.of(new double[1], new long[1000]));
  }

  @Test
  void listsMayNotContainThemselves() {
    final List<Object> loop = new ArrayList<>();
    loop.add(loop);
    final AddendException error = assertThrows(AddendException.class, () -> Addend.call("aten::cat", loop));
    assertEquals(AddendException.Code.INVALID_ARGUMENT, error.code());
    assertTrue(error.getMessage().contains("16 deep"), error.getMessage());
    assertThrows(IllegalArgumentException.class, () -> Request.ofArguments(loop));
  }

  @Test
  void damagedModelsAreRefused() throws IOException {
    final byte[] bytes = Files.readAllBytes(Models.BREAST_CANCER.resolve("model.pt"));
    for (int size : new int[] {0, 1, 100, bytes.length / 2, bytes.length - 1}) {
      assertThrows(
          AddendException.class, () -> Model.load(ByteBuffer.wrap(bytes, 0, size)), () -> size + " bytes");
    }
    assertThrows(AddendException.class, () -> Model.load(Path.of("docs")));
  }

  @Test
  void damagedTensorFilesAreRefused() throws IOException {
    final byte[] bytes = Files.readAllBytes(Models.BREAST_CANCER.resolve("sample.safetensors"));
    for (int size = 0; size < bytes.length; size++) {
      final ByteBuffer truncated = ByteBuffer.wrap(bytes, 0, size);
      assertThrows(AddendException.class, () -> TensorFile.decode(truncated, "truncated.safetensors"));
    }
    final Random random = new Random(7);
    int refused = 0;
    for (int round = 0; round < 500; round++) {
      final byte[] damaged = bytes.clone();
      damaged[random.nextInt(damaged.length)] = (byte) random.nextInt(256);
      try (TensorFile file = TensorFile.decode(ByteBuffer.wrap(damaged), "damaged.safetensors")) {
        for (String name : file.names()) {
          file.tensor(name).close();
        }
      } catch (AddendException e) {
        refused++;
      }
    }
    assertTrue(refused > 0);
  }

  @Test
  void tensorFilesKeepWhatTheyAreGiven(@TempDir Path folder) throws IOException {
    final Path path = folder.resolve("\u00e9\ud83d\ude00.safetensors");
    try (TensorFile file = new TensorFile()) {
      file.add("a", Tensor.of(new float[] {1, 2}, 1, 2)).add("\u4e2d", Tensor.of(new long[] {3}));
      file.metadata("source", "\ud83d\ude00").write(path);
      assertArrayEquals(Files.readAllBytes(path), file.encode());
    }
    try (TensorFile file = TensorFile.read(path)) {
      assertEquals(Set.of("a", "\u4e2d"), Set.copyOf(file.names()));
      assertEquals(3, file.tensor("\u4e2d").item());
      assertEquals("\ud83d\ude00", file.metadata("source").orElseThrow());
      assertTrue(file.metadata("nothing").isEmpty());
      assertEquals(
          AddendException.Code.NOT_FOUND,
          assertThrows(AddendException.class, () -> file.tensor("b")).code());
    }
  }
}
