package dev.addend.spark;

import dev.addend.Attribution;
import dev.addend.Contribution;
import dev.addend.Explanation;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Plan;
import dev.addend.Request;
import dev.addend.Target;
import dev.addend.Tensor;
import dev.addend.TensorFile;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Rows of a table and its model: as a data frame, and as plain Java attributes them. */
final class Rows {
  static final Path BREAST_CANCER = Path.of("docs/examples/models/breast_cancer").toAbsolutePath();
  static final Path HELDOUT = BREAST_CANCER.resolve("heldout.safetensors");
  static final String MODEL = BREAST_CANCER.resolve("model.pt").toString();
  static final int COLUMNS = 30;

  private Rows() {}

  /** Rows that the model was not trained on. */
  static float[][] heldout() {
    final float[] all;
    try (TensorFile file = TensorFile.read(HELDOUT); Tensor input = file.tensor("input")) {
      all = input.toFloatArray();
    }
    final float[][] rows = new float[all.length / COLUMNS][];
    for (int row = 0; row < rows.length; row++) {
      rows[row] = Arrays.copyOfRange(all, row * COLUMNS, (row + 1) * COLUMNS);
    }
    return rows;
  }

  /** Weights of a linear model with two outputs, whose contributions are products of a number and its weight. */
  static float[][] weights() {
    final float[][] weights = new float[COLUMNS][];
    for (int column = 0; column < COLUMNS; column++) {
      weights[column] = new float[] {1, 1 + column};
    }
    return weights;
  }

  static List<String> names() {
    final List<String> names = new ArrayList<>();
    for (int column = 0; column < COLUMNS; column++) {
      names.add("c" + column);
    }
    return names;
  }

  /** A column {@code id}, and one for each number, of different types: the values are exact in all of them. */
  static StructType schema() {
    StructType schema = new StructType().add("id", DataTypes.LongType);
    for (String name : names()) {
      schema = schema.add(name, name.equals("c1") ? DataTypes.FloatType : DataTypes.DoubleType);
    }
    return schema;
  }

  static Row row(long id, float[] numbers) {
    final Object[] values = new Object[1 + numbers.length];
    values[0] = id;
    for (int column = 0; column < numbers.length; column++) {
      if (column == 1) {
        values[1 + column] = numbers[column];
      } else {
        values[1 + column] = (double) numbers[column];
      }
    }
    return RowFactory.create(values);
  }

  /** The rows in so many partitions, each of which has consecutive ones. */
  static Dataset<Row> frame(float[][] rows, int partitions) {
    final List<Row> list = new ArrayList<>();
    for (int id = 0; id < rows.length; id++) {
      list.add(row(id, rows[id]));
    }
    return frame(list, schema(), partitions);
  }

  static Dataset<Row> frame(List<Row> rows, StructType schema, int partitions) {
    final org.apache.spark.api.java.JavaSparkContext context =
        org.apache.spark.api.java.JavaSparkContext.fromSparkContext(Cluster.session().sparkContext());
    return Cluster.session().createDataFrame(context.parallelize(rows, partitions), schema);
  }

  static ExplainConfig config() {
    return ExplainConfig.of(MODEL, names()).baseline(0).target("1").chunk(16);
  }

  /** Serializes as Spark does: gives the copy that an executor gets. */
  static ExplainConfig copy(ExplainConfig config) throws Exception {
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(config);
    }
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      return (ExplainConfig) in.readObject();
    }
  }

  /** The request of a config, as a program of its own makes it. */
  static Request request(Tensor rows) {
    return Request.of(Input.of(rows).splitAlong(1).baseline(0)).target(Target.element(1)).eachExample(true);
  }

  static Tensor tensor(List<float[]> rows) {
    final float[] all = new float[rows.size() * COLUMNS];
    for (int row = 0; row < rows.size(); row++) {
      System.arraycopy(rows.get(row), 0, all, row * COLUMNS, COLUMNS);
    }
    return Tensor.of(all, rows.size(), COLUMNS);
  }

  /** A model and its plan, which attribute chunks of rows without Spark. */
  static final class Plain implements AutoCloseable {
    private final Model model = Model.load(Path.of(MODEL));
    private Plan plan;

    /** Explanations of a chunk, all by the same plan. */
    List<Explanation> explain(List<float[]> rows) {
      try (Tensor tensor = tensor(rows)) {
        if (plan == null) {
          plan = model.plan(request(tensor));
        }
        try (Attribution attribution = plan.attribute(request(tensor))) {
          return attribution.explanations();
        }
      }
    }

    @Override
    public void close() {
      plan.close();
      model.close();
    }
  }

  static double[] contributions(Explanation explanation) {
    return explanation.contributions().stream().mapToDouble(Contribution::value).toArray();
  }
}
