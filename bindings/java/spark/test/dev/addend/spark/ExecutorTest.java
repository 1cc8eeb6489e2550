package dev.addend.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.addend.Model;
import java.math.BigDecimal;
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

/** The parts that work in an executor, without one. */
class ExecutorTest {
  private static double[] numbers() {
    final double[] numbers = new double[Rows.COLUMNS];
    for (int column = 0; column < Rows.COLUMNS; column++) {
      numbers[column] = Rows.heldout()[0][column];
    }
    return numbers;
  }

  @Test
  void threadsShareOneExplainer() throws Exception {
    final String sha256 = Model.sha256(Path.of(Rows.MODEL));
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
    final String sha256 = Model.sha256(Path.of(Rows.MODEL));
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
}
