package dev.addend.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.addend.Explanation;
import dev.addend.Scope;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The function of SQL. */
@ExtendWith(Cluster.Stopped.class)
class SqlTest {
  private final SparkSession spark = Cluster.session();
  private final float[][] heldout = Rows.heldout();

  @Test
  void aRowAloneHasTheBitsOfAPlanForOne() {
    AddendSpark.register(spark, "why", Rows.config());
    Rows.frame(heldout, 2).createOrReplaceTempView("heldout");
    final List<Row> found = spark.sql(
        "SELECT id, e.* FROM (SELECT id, why(struct(*)) AS e FROM heldout) ORDER BY id").collectAsList();
    assertEquals(heldout.length, found.size());
    try (Rows.Plain plain = new Rows.Plain()) {
      for (int id = 0; id < heldout.length; id++) {
        final Explanation expected = plain.explain(List.of(heldout[id])).get(0);
        final Row row = found.get(id);
        assertArrayEquals(Rows.contributions(expected), row.<Double>getList(row.fieldIndex("contributions")).stream()
            .mapToDouble(Double::doubleValue).toArray());
        assertEquals(expected.value(), row.<Double>getAs("value"));
        assertEquals(expected.reference(), row.<Double>getAs("reference"));
        assertEquals(expected.leftover(), row.<Double>getAs("leftover"));
        assertNull(row.getAs("refused"));
      }
    }
  }

  @Test
  void columnsAreFoundByTheirNames() {
    AddendSpark.register(spark, "why", Rows.config());
    Rows.frame(heldout, 1).createOrReplaceTempView("heldout");
    final StringBuilder backward = new StringBuilder();
    for (int column = 29; column >= 0; column--) {
      backward.append(column == 29 ? "" : ", ").append("c").append(column);
    }
    assertEquals(heldout.length, spark.sql("SELECT * FROM heldout WHERE why(struct(*)).value = why(struct(" + backward
        + ")).value AND why(struct(*)).contributions = why(struct(" + backward + ")).contributions").count());
    final Exception missing = assertThrows(Exception.class,
        () -> spark.sql("SELECT why(struct(c0, c1)) FROM heldout").collectAsList());
    assertTrue(all(missing).contains("there is no column c2 among c0, c1"), all(missing));
  }

  @Test
  void rowsThatCannotBeAttributedSayWhy() {
    AddendSpark.register(spark, "why", Rows.config());
    AddendSpark.register(spark, "strict", Rows.config().stopAtRefusal());
    Rows.frame(heldout, 1).createOrReplaceTempView("heldout");
    final Row text = spark.sql("SELECT e.* FROM (SELECT why(t) AS e FROM (SELECT struct('high' AS c0, "
        + columns(1) + ") AS t FROM heldout LIMIT 1))").collectAsList().get(0);
    assertEquals("column c0 is no number but a String", text.<String>getAs("refused"));
    assertNull(text.getAs("value"));
    final Row nothing = spark.sql("SELECT e.* FROM (SELECT why(t) AS e FROM (SELECT struct(CAST(NULL AS DOUBLE) AS c0, "
        + columns(1) + ") AS t FROM heldout LIMIT 1))").collectAsList().get(0);
    assertEquals("column c0 is null", nothing.<String>getAs("refused"));
    assertThrows(Exception.class, () -> spark.sql("SELECT strict(struct('high' AS c0, " + columns(1) + ")) FROM heldout")
        .collectAsList());
  }

  @Test
  void functionsOnTheDriverOutliveItsScopes() {
    AddendSpark.register(spark, "here", Rows.config());
    final StringBuilder numbers = new StringBuilder();
    for (int column = 0; column < 30; column++) {
      numbers.append(column == 0 ? "" : ", ").append(column).append(".5D AS c").append(column);
    }
    final String query = "SELECT here(struct(" + numbers + ")).value AS v";
    final double first;
    try (Scope scope = Scope.open()) {
      first = spark.sql(query).collectAsList().get(0).getDouble(0);
    }
    assertEquals(first, spark.sql(query).collectAsList().get(0).getDouble(0));
  }

  private static String columns(int from) {
    return String.join(", ", Rows.names().subList(from, Rows.COLUMNS));
  }

  private static String all(Throwable thrown) {
    final StringBuilder all = new StringBuilder();
    for (Throwable one = thrown; one != null; one = one.getCause()) {
      all.append(one).append('\n');
    }
    return all.toString() + Arrays.toString(thrown.getSuppressed());
  }
}
