package dev.addend.djl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ai.djl.MalformedModelException;
import ai.djl.ndarray.NDList;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ModelNotFoundException;
import ai.djl.repository.zoo.ZooModel;
import dev.addend.Scope;
import dev.addend.Tensor;
import dev.addend.TensorFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

/** Base of the tests beside DJL. They are skipped where Addend is not built for DJL's LibTorch. */
class Beside {
  static final Path BREAST_CANCER = Path.of("docs/examples/models/breast_cancer");
  static final int COLUMNS = 30;

  private Scope scope;

  @BeforeAll
  static void needAnImplementation() throws IOException {
    final List<String> names = new ArrayList<>();
    try (Stream<Path> files = Files.list(Path.of(System.getProperty("addend.library.path")))) {
      files.map(file -> file.getFileName().toString()).filter(name -> name.contains("torch")).forEach(names::add);
    }
    assumeTrue(names.contains("libaddend_torch2.7.so"),
        "there is no libaddend_torch2.7.so, which DJL's LibTorch needs, but " + names + ": see ADDEND_IMPLEMENTATIONS");
  }

  @BeforeEach
  void openScope() {
    scope = Scope.open();
  }

  @AfterEach
  void closeScope() {
    scope.close();
  }

  /** The libraries of LibTorch that this process has mapped: none, or those that DJL brings. */
  static List<Path> loaded() throws IOException {
    return Files.readAllLines(Path.of("/proc/self/maps")).stream()
        .filter(line -> line.matches(".*/lib(torch|c10)[^/]*"))
        .map(line -> Path.of(line.substring(line.indexOf('/'))))
        .distinct()
        .collect(Collectors.toList());
  }

  /** Fails unless this process has one LibTorch, that which DJL has copied to its folder. */
  static void assertOnlyThatOfDjl() throws IOException {
    final Path folder = Path.of(System.getProperty("DJL_CACHE_DIR")).toRealPath();
    final List<Path> loaded = loaded();
    assertEquals(1, loaded.stream().filter(file -> file.endsWith("libtorch_cpu.so")).count(), loaded.toString());
    assertTrue(loaded.stream().allMatch(file -> file.startsWith(folder)), loaded.toString());
  }

  static ZooModel<NDList, NDList> served() throws IOException, ModelNotFoundException, MalformedModelException {
    return Criteria.builder()
        .setTypes(NDList.class, NDList.class)
        .optEngine(Djl.ENGINE)
        .optModelPath(BREAST_CANCER.resolve("model.pt"))
        .build()
        .loadModel();
  }

  /** Rows that the model was not trained on. */
  static float[][] rows() {
    final float[] all;
    try (TensorFile file = TensorFile.read(BREAST_CANCER.resolve("heldout.safetensors")); Tensor input = file.tensor("input")) {
      all = input.toFloatArray();
    }
    final float[][] rows = new float[all.length / COLUMNS][];
    for (int row = 0; row < rows.length; row++) {
      rows[row] = Arrays.copyOfRange(all, row * COLUMNS, (row + 1) * COLUMNS);
    }
    return rows;
  }

  static Tensor baseline() {
    try (TensorFile file = TensorFile.read(BREAST_CANCER.resolve("baseline.npy"))) {
      return file.tensor();
    }
  }
}
