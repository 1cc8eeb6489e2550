package dev.addend.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The parts that work in an executor, without one. */
class ExecutorTest {
  @TempDir Path folder;

  private static double[] numbers() {
    final double[] numbers = new double[Rows.COLUMNS];
    for (int column = 0; column < Rows.COLUMNS; column++) {
      numbers[column] = Rows.heldout()[0][column];
    }
    return numbers;
  }

  @Test
  void threadsShareOneExplainer() throws Exception {
    final String sha256 = ModelFile.sha256(Path.of(Rows.MODEL));
    final ExplainConfig config = Rows.config().prefix("threads_");
    final ExecutorService threads = Executors.newFixedThreadPool(8);
    final List<Future<Explainer>> all = new ArrayList<>();
    for (int k = 0; k < 8; k++) {
      all.add(threads.submit(() -> Explainers.use(Rows.copy(config), sha256, explainer -> explainer)));
    }
    final Explainer first = all.get(0).get();
    for (Future<Explainer> one : all) {
      assertSame(first, one.get());
    }
    threads.shutdown();
    assertThrows(IllegalStateException.class, () -> Explainers.explain(config, "another", numbers(), 1));
    assertSame(first, Explainers.use(config, sha256, explainer -> explainer));
  }

  @Test
  void explainersThatHaveToGoAreClosedByTheirLastUser() {
    final String sha256 = ModelFile.sha256(Path.of(Rows.MODEL));
    final ExplainConfig config = Rows.config().prefix("used_");
    final Explainer kept = Explainers.use(config, sha256, explainer -> {
      final double value = explainer.explain(numbers(), 1).get(0).value;
      for (int k = 0; k < 6; k++) {
        assertEquals(value, Explainers.explain(Rows.config().prefix("other_" + k), sha256, numbers(), 1).get(0).value);
      }
      // Others have taken its place, but it is in use.
      assertEquals(value, explainer.explain(numbers(), 1).get(0).value);
      return explainer;
    });
    assertThrows(IllegalStateException.class, () -> kept.explain(numbers(), 1));
    final Explainer again = Explainers.use(config, sha256, explainer -> explainer);
    assertNull(again.explain(numbers(), 1).get(0).refused);
    for (int k = 0; k < 6; k++) {
      Explainers.explain(Rows.config().prefix("other_" + k), sha256, numbers(), 1);
    }
    assertThrows(IllegalStateException.class, () -> again.explain(numbers(), 1));
  }

  /** The notes on a row of one column. */
  private static List<String> notes(Object number, DataType type, String dtype) {
    final RowReader reader = RowReader.of(
        ExplainConfig.of("model.pt", "a").dtype(dtype), new StructType().add("a", type));
    final Row row = RowFactory.create(number);
    final List<String> notes = new ArrayList<>();
    assertNull(reader.read(row, new double[1], 0, notes));
    return notes;
  }

  @Test
  void numbersThatTheModelIsNotGivenAreNoted() {
    final DataType decimal = DataTypes.createDecimalType(38, 4);
    assertEquals(List.of("column a is 16777217, of which float32 makes 16777216: that is what is explained"),
        notes(16777217L, DataTypes.LongType, "float32"));
    assertEquals(List.of("column a is 16777217, of which float32 makes 16777216: that is what is explained"),
        notes(16777217, DataTypes.IntegerType, "float32"));
    assertEquals(List.of("column a is 123456789.0000, of which float32 makes 123456792: that is what is explained"),
        notes(new BigDecimal("123456789.0000"), decimal, "float32"));
    assertEquals(List.of("column a is 1.0E-60, of which float32 makes 0: that is what is explained"),
        notes(1e-60, DataTypes.DoubleType, "float32"));
    assertEquals(
        List.of("column a is 9007199254740993, of which float64 makes 9007199254740992: that is what is explained"),
        notes(9007199254740993L, DataTypes.LongType, "float64"));
    // Fractions are rounded by every model of float32, and these are kept.
    assertEquals(List.of(), notes(0.1, DataTypes.DoubleType, "float32"));
    assertEquals(List.of(), notes(new BigDecimal("0.1000"), decimal, "float32"));
    assertEquals(List.of(), notes(0.0, DataTypes.DoubleType, "float32"));
    assertEquals(List.of(), notes(new BigDecimal("0.0000"), decimal, "float32"));
    assertEquals(List.of(), notes(16777216L, DataTypes.LongType, "float32"));
    assertEquals(List.of(), notes(16777217L, DataTypes.LongType, "float64"));
  }

  /** An entry of external data, as ONNX files have it. */
  private static byte[] entry(String name, int padding) throws Exception {
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    bytes.write(new byte[padding]);
    // Half of a key comes first.
    bytes.write("\n\bloca".getBytes(StandardCharsets.US_ASCII));
    bytes.write("\n\blocation".getBytes(StandardCharsets.US_ASCII));
    bytes.write(0x12);
    final byte[] path = name.getBytes(StandardCharsets.UTF_8);
    if (path.length > 127) {
      bytes.write(path.length & 0x7f | 0x80);
      bytes.write(path.length >> 7);
    } else {
      bytes.write(path.length);
    }
    bytes.write(path);
    bytes.write("and more".getBytes(StandardCharsets.US_ASCII));
    return bytes.toByteArray();
  }

  @Test
  void weightsInFilesBesideAModelBelongToItsDigest() throws Exception {
    // At each place relative to the ends of what is read at once.
    for (String name : List.of("model.onnx.data", "w".repeat(200))) {
      for (int padding = (1 << 16) - 40; padding <= (1 << 16); padding++) {
        final Path model = Files.write(folder.resolve("model.onnx"), entry(name, padding));
        final Path weights = Files.writeString(folder.resolve(name), "weights");
        final String digest = ModelFile.sha256(model);
        assertEquals(digest, ModelFile.sha256(model));
        Files.writeString(weights, "others!");
        assertNotEquals(digest, ModelFile.sha256(model), name + " behind " + padding);
      }
    }
    // A name of no file there counts for nothing.
    final Path alone = Files.write(folder.resolve("alone.onnx"), entry("nowhere", 3));
    final String digest = ModelFile.sha256(alone);
    assertTrue(digest.matches("[0-9a-f]{64}"), digest);
    Files.writeString(folder.resolve("nowhere"), "weights");
    assertNotEquals(digest, ModelFile.sha256(alone));
  }
}
