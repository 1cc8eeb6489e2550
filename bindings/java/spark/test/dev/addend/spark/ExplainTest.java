package dev.addend.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.addend.Attribution;
import dev.addend.Concepts;
import dev.addend.Context;
import dev.addend.Decision;
import dev.addend.Explanation;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Policy;
import dev.addend.Request;
import dev.addend.Target;
import dev.addend.Tensor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.streaming.Trigger;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Data frames, explained by the executors of a cluster. */
@ExtendWith(Cluster.Stopped.class)
class ExplainTest {
  private static final String CONCEPTS = "{\"format\": \"addend.concepts\", \"version\": 1, \"concepts\": [{\"name\": \"size\", "
      + "\"components\": [\"c0\", \"c2\", \"c3\"], \"text\": \"Size speaks against it\"}]}";

  @TempDir Path folder;

  private final float[][] heldout = Rows.heldout();

  private static double[] contributions(Row row) {
    return row.<Double>getList(row.fieldIndex("contributions")).stream().mapToDouble(Double::doubleValue).toArray();
  }

  private static void assertBits(Explanation expected, Row found) {
    assertArrayEquals(Rows.contributions(expected), contributions(found));
    assertEquals(expected.value(), found.<Double>getAs("value"));
    assertEquals(expected.reference(), found.<Double>getAs("reference"));
    assertEquals(expected.leftover(), found.<Double>getAs("leftover"));
    assertEquals(expected.target(), found.<String>getAs("target"));
    assertNull(found.getAs("refused"));
  }

  /** The rows of each partition, in the order in which the executor had them. */
  private static List<List<Row>> byPartition(List<Row> rows) {
    final List<List<Row>> partitions = new ArrayList<>();
    int last = -1;
    for (Row row : rows) {
      final int partition = row.<Integer>getAs("partition");
      if (partition != last) {
        partitions.add(new ArrayList<>());
      }
      last = partition;
      partitions.get(partitions.size() - 1).add(row);
    }
    return partitions;
  }

  private static Dataset<Row> withPartition(Dataset<Row> rows) {
    return rows.withColumn("partition", functions.spark_partition_id());
  }

  private static Exception failure(Dataset<Row> rows) {
    return assertThrows(Exception.class, rows::collectAsList);
  }

  private static void assertSays(String what, Throwable thrown) {
    final StringBuilder all = new StringBuilder();
    for (Throwable one = thrown; one != null; one = one.getCause()) {
      all.append(one).append('\n');
    }
    assertTrue(all.toString().contains(what), all.toString());
  }

  @Test
  void resultsAreThoseOfAPlanOfJava() {
    final List<Row> found =
        AddendSpark.explain(withPartition(Rows.frame(heldout, 3)), Rows.config()).collectAsList();
    assertEquals(heldout.length, found.size());
    final List<List<Row>> partitions = byPartition(found);
    assertEquals(3, partitions.size());
    int partial = 0;
    try (Rows.Plain plain = new Rows.Plain()) {
      for (List<Row> partition : partitions) {
        for (int begin = 0; begin < partition.size(); begin += 16) {
          final List<Row> chunk = partition.subList(begin, Math.min(begin + 16, partition.size()));
          final List<Explanation> expected = plain.explain(
              chunk.stream().map(row -> heldout[(int) (long) row.<Long>getAs("id")]).collect(Collectors.toList()));
          for (int k = 0; k < chunk.size(); k++) {
            assertBits(expected.get(k), chunk.get(k));
          }
          partial += chunk.size() < 16 ? 1 : 0;
        }
      }
    }
    assertTrue(partial > 0, "every chunk is a full one");
    // Columns that were there stay as they were.
    for (int id = 0; id < heldout.length; id++) {
      assertEquals((long) id, found.get(id).<Long>getAs("id"));
      assertEquals((double) heldout[id][7], found.get(id).<Double>getAs("c7"));
    }
    // The numbers are a sum.
    for (Row row : found) {
      final double sum = row.<Double>getAs("reference") + row.<Double>getAs("leftover")
          + Arrays.stream(contributions(row)).sum();
      assertEquals(row.<Double>getAs("value"), sum, 1e-4 * (1 + Arrays.stream(contributions(row)).map(Math::abs).sum()));
    }
  }

  @Test
  void bothExecutorsTakePart() {
    final Set<Long> executors = Cluster.awaitBoth();
    final Dataset<Row> found = AddendSpark.explain(Rows.frame(heldout, 8), Rows.config());
    final Set<Long> processes = new HashSet<>(found.mapPartitions(
        (MapPartitionsFunction<Row, Long>) rows -> {
          rows.forEachRemaining(row -> { });
          return Collections.singleton(ProcessHandle.current().pid()).iterator();
        }, Encoders.LONG()).collectAsList());
    assertEquals(executors, processes);
    assertFalse(processes.contains(ProcessHandle.current().pid()));
  }

  @Test
  void columnsOfTheirOwnAndAPrefix() {
    final Dataset<Row> rows = Rows.frame(heldout, 1);
    final List<Row> expected = AddendSpark.explain(rows, Rows.config()).collectAsList();
    final Dataset<Row> wide = AddendSpark.explain(rows, Rows.config().contributionColumns().prefix("why_"));
    final List<String> names = Arrays.asList(wide.columns());
    assertEquals(1 + 30 + 3 + 30 + 1 + 3, names.size());
    final List<Row> found = wide.collectAsList();
    for (int row = 0; row < expected.size(); row++) {
      for (int c = 0; c < Rows.COLUMNS; c++) {
        assertEquals(contributions(expected.get(row))[c], found.get(row).<Double>getAs("why_contribution_c" + c));
      }
      assertEquals(expected.get(row).<Double>getAs("value"), found.get(row).<Double>getAs("why_value"));
    }
    final IllegalArgumentException twice = assertThrows(
        IllegalArgumentException.class, () -> AddendSpark.explain(rows.withColumn("Value", functions.lit(1)), Rows.config()));
    assertTrue(twice.getMessage().contains("would be called value"), twice.getMessage());
  }

  @Test
  void arraysHaveTheBitsOfColumns() {
    final List<Row> list = new ArrayList<>();
    for (float[] numbers : heldout) {
      final Float[] boxed = new Float[numbers.length];
      Arrays.setAll(boxed, k -> numbers[k]);
      list.add(RowFactory.create((Object) boxed));
    }
    list.add(RowFactory.create((Object) null));
    list.add(RowFactory.create((Object) new Float[] {1f, 2f}));
    list.add(RowFactory.create((Object) new Float[30]));
    final StructType schema = new StructType().add("features", DataTypes.createArrayType(DataTypes.FloatType));
    final ExplainConfig config =
        ExplainConfig.ofArray(Rows.MODEL, "features", 30).baseline(new double[30]).target("1").chunk(16);
    final List<Row> found = AddendSpark.explain(Rows.frame(list, schema, 1), config).collectAsList();
    final List<Row> expected = AddendSpark.explain(Rows.frame(heldout, 1), Rows.config()).collectAsList();
    for (int row = 0; row < heldout.length; row++) {
      assertArrayEquals(contributions(expected.get(row)), contributions(found.get(row)));
    }
    assertEquals("column features is null", found.get(heldout.length).getAs("refused"));
    assertEquals("column features has 2 numbers, not 30", found.get(heldout.length + 1).getAs("refused"));
    assertEquals("column features[0] is null", found.get(heldout.length + 2).getAs("refused"));
  }

  @Test
  void rowsThatCannotBeAttributedSayWhy() {
    final List<Row> list = new ArrayList<>();
    for (int id = 0; id < 40; id++) {
      list.add(Rows.row(id, heldout[id]));
    }
    final Object[] bad = {null, Double.NaN, Double.NEGATIVE_INFINITY, 1e300};
    final String[] why = {"is null", "is NaN", "is -Infinity", "is 1.0E300, too large for float32"};
    for (int k = 0; k < bad.length; k++) {
      final Object[] values = new Object[31];
      for (int column = 0; column < 31; column++) {
        values[column] = list.get(k).get(column);
      }
      values[1 + 4] = bad[k];
      list.add(5 * k, RowFactory.create(values));
    }
    final Dataset<Row> rows = Rows.frame(list, Rows.schema(), 1);
    final List<Row> found = AddendSpark.explain(rows, Rows.config()).collectAsList();
    final List<float[]> good = new ArrayList<>();
    final List<Row> ofGood = new ArrayList<>();
    for (int k = 0; k < found.size(); k++) {
      final Row row = found.get(k);
      if (k % 5 == 0 && k / 5 < bad.length) {
        assertEquals("column c4 " + why[k / 5], row.<String>getAs("refused"));
        for (String column : List.of("value", "reference", "leftover", "contributions", "target")) {
          assertNull(row.getAs(column));
        }
        assertEquals(List.of(), row.getList(row.fieldIndex("notes")));
      } else {
        good.add(heldout[(int) (long) row.<Long>getAs("id")]);
        ofGood.add(row);
      }
    }
    assertEquals(40, good.size());
    // Chunks are of the good rows.
    try (Rows.Plain plain = new Rows.Plain()) {
      for (int begin = 0; begin < 40; begin += 16) {
        final int end = Math.min(begin + 16, 40);
        final List<Explanation> expected = plain.explain(good.subList(begin, end));
        for (int k = begin; k < end; k++) {
          assertBits(expected.get(k - begin), ofGood.get(k));
        }
      }
    }
    assertSays("a row is refused: column c4 is null",
        failure(AddendSpark.explain(rows.coalesce(1), Rows.config().stopAtRefusal())));
  }

  @Test
  void columnsThatHoldNoNumbersAreRefusedAtOnce() {
    final Dataset<Row> rows = Rows.frame(heldout, 1);
    final IllegalArgumentException text = assertThrows(IllegalArgumentException.class,
        () -> AddendSpark.explain(rows.withColumn("c3", functions.lit("three")), Rows.config()));
    assertEquals("column c3 is of the type string, not of numbers: cast it, or make numbers of it", text.getMessage());
    final IllegalArgumentException missing =
        assertThrows(IllegalArgumentException.class, () -> AddendSpark.explain(rows.drop("c3"), Rows.config()));
    assertTrue(missing.getMessage().startsWith("there is no column c3 among id, c0,"), missing.getMessage());
    assertThrows(IllegalArgumentException.class,
        () -> AddendSpark.explain(rows, ExplainConfig.ofArray(Rows.MODEL, "c3", 30)));
    final IllegalArgumentException nowhere = assertThrows(IllegalArgumentException.class,
        () -> AddendSpark.explain(rows, ExplainConfig.of("/nowhere/model.pt", Rows.names())));
    assertTrue(nowhere.getMessage().contains("there is no file /nowhere/model.pt"), nowhere.getMessage());
  }

  @Test
  void notesReachEveryRowOfTheirChunk() {
    // From so far away, contributions are rounding: the run says so.
    final double far = 1e7;
    final List<Row> found = AddendSpark.explain(
        Rows.frame(heldout, 1), Rows.config().baseline(far).chunk(64).policy("on_failure", "warn")).collectAsList();
    final List<String> expected = new ArrayList<>();
    final List<String> warnings = new ArrayList<>();
    try (Model model = Model.load(Path.of(Rows.MODEL));
        Context context = Context.of(Policy.defaults().with("on_failure", "warn"));
        Tensor rows = Rows.tensor(Arrays.asList(heldout).subList(0, 64));
        Attribution attribution = model.attribute(
            Request.of(Input.of(rows).splitAlong(1).baseline(far).names(Rows.names())).target(Target.element(1))
                .eachExample(true), context)) {
      expected.addAll(attribution.notes());
      warnings.addAll(attribution.warnings());
    }
    assertFalse(warnings.isEmpty(), "the run says nothing");
    for (int row = 0; row < 64; row++) {
      assertEquals(expected, found.get(row).getList(found.get(row).fieldIndex("notes")));
      assertEquals(warnings, found.get(row).getList(found.get(row).fieldIndex("warnings")));
    }
    for (Row row : AddendSpark.explain(Rows.frame(heldout, 1), Rows.config()).collectAsList()) {
      assertEquals(List.of(), row.getList(row.fieldIndex("warnings")));
    }
  }

  @Test
  void reasonsAreThoseOfJava() {
    final List<Row> found =
        AddendSpark.explain(Rows.frame(heldout, 2), Rows.config().concepts(CONCEPTS).chunk(200)).collectAsList();
    final List<Decision> expected = new ArrayList<>();
    try (Model model = Model.load(Path.of(Rows.MODEL)); Concepts concepts = Concepts.read(CONCEPTS)) {
      for (int half = 0; half < 2; half++) {
        try (Tensor rows = Rows.tensor(Arrays.asList(heldout).subList(100 * half, 100 * half + 100));
            Attribution attribution = model.attribute(
                Request.of(Input.of(rows).splitAlong(1).baseline(0).names(Rows.names())).target(Target.element(1))
                    .eachExample(true))) {
          expected.addAll(attribution.reasons(concepts).decisions());
        }
      }
    }
    int told = 0;
    for (int row = 0; row < heldout.length; row++) {
      final Decision decision = expected.get(row);
      assertEquals(decision.outcome(), found.get(row).<String>getAs("outcome"));
      final List<Row> reasons = found.get(row).getList(found.get(row).fieldIndex("reasons"));
      assertEquals(decision.reasons().size(), reasons.size());
      for (int k = 0; k < reasons.size(); k++) {
        assertEquals(decision.reasons().get(k).text(), reasons.get(k).<String>getAs("text"));
        assertEquals(decision.reasons().get(k).contribution(), reasons.get(k).<Double>getAs("contribution"));
        told++;
      }
    }
    assertTrue(told > 0, "no row has a reason");
  }

  @Test
  void policiesAndTypesAreThoseOfTheConfig() {
    final ExplainConfig config = Rows.config().dtype("float64").policy("segments", "4").chunk(200).target("1-0");
    final List<Row> found = AddendSpark.explain(Rows.frame(heldout, 1), config).collectAsList();
    final double[] numbers = new double[200 * 30];
    for (int k = 0; k < numbers.length; k++) {
      numbers[k] = heldout[k / 30][k % 30];
    }
    try (Model model = Model.load(Path.of(Rows.MODEL), dev.addend.DType.FLOAT64);
        Context context = Context.of(Policy.defaults().segments(4));
        Tensor rows = Tensor.of(numbers, 200, 30);
        Attribution attribution = model.attribute(
            Request.of(Input.of(rows).splitAlong(1).baseline(0)).target(Target.parse("1-0")).eachExample(true), context)) {
      for (int row = 0; row < 200; row++) {
        assertBits(attribution.explain(row), found.get(row));
      }
    }
    // The largest element is another one in some rows, which the target tells.
    final Set<String> targets = new HashSet<>();
    for (Row row : AddendSpark.explain(Rows.frame(heldout, 1), Rows.config().target("top1")).collectAsList()) {
      targets.add(row.getAs("target"));
    }
    assertTrue(targets.size() > 1, targets.toString());
  }

  @Test
  void requestsThatNoRowFitsFail() {
    final Dataset<Row> rows = Rows.frame(heldout, 1);
    assertSays("target 7", failure(AddendSpark.explain(rows, Rows.config().target("7"))));
    assertSays("nothing inside the model is called hm", failure(AddendSpark.explain(rows, Rows.config().at("hm"))));
    assertSays("/nowhere.npy", failure(AddendSpark.explain(rows, Rows.config().baseline("mean:/nowhere.npy"))));
  }

  @Test
  void anotherModelOnAnExecutorIsRefused() throws Exception {
    final Path model = Files.copy(Path.of(Rows.MODEL), folder.resolve("model.pt"));
    final ExplainConfig config = ExplainConfig.of(model.toString(), Rows.names());
    final Dataset<Row> rows = AddendSpark.explain(Rows.frame(heldout, 1), config);
    Files.copy(Rows.BREAST_CANCER.resolve("model.pt2"), model, StandardCopyOption.REPLACE_EXISTING);
    assertSays("is not the model of the driver", failure(rows));
    Files.copy(Path.of(Rows.MODEL), model, StandardCopyOption.REPLACE_EXISTING);
    assertEquals(heldout.length, rows.collectAsList().size());
  }

  @Test
  void modelsThatSparkSends() {
    final ExplainConfig config = ExplainConfig.of("model.pt", Rows.names()).target("1").baseline(0);
    assertEquals(
        heldout.length, AddendSpark.explain(Rows.frame(heldout, 4), config).filter("refused is null").count());
  }

  private void assertProducts(List<Row> found) {
    assertEquals(heldout.length, found.size());
    for (Row row : found) {
      final float[] numbers = heldout[(int) (long) row.<Long>getAs("id")];
      for (int column = 0; column < Rows.COLUMNS; column++) {
        final double product = (1.0 + column) * numbers[column];
        assertEquals(product, contributions(row)[column], 1e-5 * (1 + Math.abs(product)));
      }
    }
  }

  @Test
  void weightsInFilesBesideAModelBelongToIt() throws Exception {
    final Path model = folder.resolve("model.onnx");
    final Path beside = OnnxFile.write(model, Rows.weights());
    final Dataset<Row> rows = AddendSpark.explain(
        Rows.frame(heldout, 2), ExplainConfig.of(model.toString(), Rows.names()).baseline(0).target("1"));
    final byte[] content = Files.readAllBytes(beside);
    content[7] ^= 1;
    Files.write(beside, content);
    assertSays("is not the model of the driver", failure(rows));
    content[7] ^= 1;
    Files.write(beside, content);
    assertProducts(rows.collectAsList());
  }

  @Test
  void sparkSendsWeightsWithTheirModel() {
    final ExplainConfig config = ExplainConfig.of(Cluster.SENT, Rows.names()).baseline(0).target("1");
    assertProducts(AddendSpark.explain(Rows.frame(heldout, 2), config).collectAsList());
  }

  @Test
  void aKilledExecutorLosesNothing() {
    final Dataset<Row> rows = Rows.frame(heldout, 8);
    final List<Row> expected = AddendSpark.explain(rows, Rows.config()).collectAsList();
    final Dataset<Row> deadly = AddendSpark.explain(rows, Rows.config()).mapPartitions(
        (MapPartitionsFunction<Row, Row>) own -> {
          final List<Row> all = new ArrayList<>();
          own.forEachRemaining(all::add);
          if (TaskContext.get().attemptNumber() == 0 && TaskContext.getPartitionId() == 5) {
            new ProcessBuilder("kill", "-9", Long.toString(ProcessHandle.current().pid())).start().waitFor();
          }
          return all.iterator();
        }, Encoders.row(AddendSpark.explain(rows, Rows.config()).schema()));
    assertEquals(expected, deadly.collectAsList());
  }

  @Test
  void contributionsStandAtTheirColumns() {
    // All but one column are as in the baseline: nothing can come from these.
    final List<Row> list = new ArrayList<>();
    for (int column = 0; column < Rows.COLUMNS; column++) {
      final float[] numbers = new float[Rows.COLUMNS];
      numbers[column] = 3 + heldout[0][column];
      list.add(Rows.row(column, numbers));
    }
    for (Row row : AddendSpark.explain(Rows.frame(list, Rows.schema(), 2), Rows.config()).collectAsList()) {
      final int own = (int) (long) row.<Long>getAs("id");
      final double[] found = contributions(row);
      final double move = row.<Double>getAs("value") - row.<Double>getAs("reference") - row.<Double>getAs("leftover");
      assertNotEquals(0, found[own]);
      assertEquals(move, found[own], 1e-5 * (1 + Math.abs(row.<Double>getAs("value"))));
      found[own] = 0;
      assertArrayEquals(new double[Rows.COLUMNS], found);
    }
  }

  @Test
  void aStreamIsExplainedAsItComes() throws Exception {
    final Dataset<Row> rows = Rows.frame(heldout, 2);
    final String source = folder.resolve("source").toString();
    rows.write().parquet(source);
    final Dataset<Row> stream = Cluster.session().readStream().schema(rows.schema()).parquet(source);
    AddendSpark.explain(stream, Rows.config().chunk(1)).writeStream().format("memory").queryName("explained")
        .option("checkpointLocation", folder.resolve("checkpoint").toString()).trigger(Trigger.AvailableNow()).start()
        .awaitTermination();
    final List<Row> found = Cluster.session().sql("SELECT * FROM explained ORDER BY id").collectAsList();
    assertEquals(AddendSpark.explain(rows, Rows.config().chunk(1)).sort("id").collectAsList(), found);
    assertEquals(heldout.length, found.size());
  }

  @Test
  void configsRefuseWhatCannotBe() throws Exception {
    assertThrows(IllegalArgumentException.class, () -> ExplainConfig.of("model.pt"));
    assertThrows(IllegalArgumentException.class, () -> ExplainConfig.of("model.pt", "a", "a"));
    assertThrows(IllegalArgumentException.class, () -> ExplainConfig.ofArray("model.pt", "a", 0));
    final ExplainConfig config = ExplainConfig.of("model.pt", "a", "b");
    assertThrows(IllegalArgumentException.class, () -> config.baseline(List.of(1)));
    assertThrows(IllegalArgumentException.class, () -> config.names(List.of("one")));
    final ExplainConfig twice = config.names(List.of("x", "X"));
    assertEquals(List.of("x", "X"), twice.names());
    final IllegalArgumentException columns =
        assertThrows(IllegalArgumentException.class, () -> ResultColumns.of(twice.contributionColumns()));
    assertTrue(columns.getMessage().startsWith("two components are called X"), columns.getMessage());
    assertThrows(IllegalArgumentException.class, () -> config.chunk(0));
    assertThrows(IllegalArgumentException.class, () -> config.dtype("int8"));
    assertEquals(config.baseline(List.of(1, 2)), Rows.copy(config.baseline(new double[] {1, 2})));
    assertNotEquals(config, config.target("1"));
    assertEquals("target 1 of model.pt by [a, b]", config.target("1").toString());
  }
}
