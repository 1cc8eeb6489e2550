package dev.addend.spark;

import dev.addend.Policy;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * The question that is asked of every row: the model, the columns that it takes, the baseline, the number that is explained,
 * and how results are given. Immutable: each method gives a changed copy. It is sent to executors.
 *
 * <pre>{@code
 * ExplainConfig config = ExplainConfig.of("/models/model.pt", "age", "income").baseline(0).target("1");
 * }</pre>
 *
 * <p>The model has one input, {@code [rows, columns]}, and its rows do not influence each other.
 */
public final class ExplainConfig implements Serializable {
  private static final long serialVersionUID = 1;

  /** All choices. */
  private final Fields fields;

  private ExplainConfig(Fields fields) {
    this.fields = fields;
  }

  /** The members of a config. They change only as long as no config has them. */
  private static final class Fields implements Cloneable, Serializable {
    private static final long serialVersionUID = 1;

    String model;
    ArrayList<String> columns;
    boolean array;
    int length;
    ArrayList<String> names;
    double baselineNumber;
    ArrayList<Double> baselineRow;
    String baselineWord;
    String target = "top1";
    String at;
    LinkedHashMap<String, String> policy = new LinkedHashMap<>();
    String concepts;
    String dtype = "float32";
    boolean convert;
    int threads = 1;
    int chunk = 256;
    boolean stopAtRefusal;
    boolean contributionColumns;
    String prefix = "";

    void setBaseline(double number, ArrayList<Double> row, String word) {
      baselineNumber = number;
      baselineRow = row;
      baselineWord = word;
    }

    List<Object> all() {
      return Arrays.asList(model, columns, array, length, names, baselineNumber, baselineRow, baselineWord, target, at, policy,
          concepts, dtype, convert, threads, chunk, stopAtRefusal, contributionColumns, prefix);
    }

    @Override
    public Fields clone() {
      try {
        return (Fields) super.clone();
      } catch (CloneNotSupportedException e) {
        throw new AssertionError(e);
      }
    }
  }

  private static ExplainConfig make(String model, List<String> columns, boolean array, int length) {
    final Fields made = new Fields();
    made.model = Objects.requireNonNull(model, "model");
    made.columns = texts(columns, "columns");
    made.array = array;
    made.length = length;
    if (columns.isEmpty()) {
      throw new IllegalArgumentException("no column is given; name those that the model takes, in its order");
    }
    if (length < 1) {
      throw new IllegalArgumentException("length is " + length + ", and counts the numbers of a row");
    }
    if (columns.stream().distinct().count() != columns.size()) {
      throw new IllegalArgumentException("a column is given twice among " + columns);
    }
    made.names = array ? positions(length) : made.columns;
    return new ExplainConfig(made);
  }

  /**
   * A model that takes the numbers of some columns.
   *
   * @param model the file: a path that is the same on all machines, or the name of a file that was given by {@code --files}
   * @param columns the columns in the order in which the model takes them, of numbers or booleans
   * @return the config
   */
  public static ExplainConfig of(String model, String... columns) {
    return of(model, Arrays.asList(columns));
  }

  /**
   * A model that takes the numbers of some columns.
   *
   * @param model the file: a path that is the same on all machines, or the name of a file that was given by {@code --files}
   * @param columns the columns in the order in which the model takes them, of numbers or booleans
   * @return the config
   */
  public static ExplainConfig of(String model, List<String> columns) {
    return make(model, columns, false, columns.size());
  }

  /**
   * A model that takes the numbers of one column of arrays.
   *
   * @param model the file: a path that is the same on all machines, or the name of a file that was given by {@code --files}
   * @param column the column, of arrays of numbers or booleans
   * @param length how many numbers an array has
   * @return the config
   */
  public static ExplainConfig ofArray(String model, String column, int length) {
    return make(model, Collections.singletonList(column), true, length);
  }

  /**
   * Names of the components, which {@link #concepts} and {@link #contributionColumns} speak of; those of the columns unless
   * given, or positions in an array.
   *
   * @param given one for each number of a row
   * @return the changed copy
   */
  public ExplainConfig names(List<String> given) {
    final ArrayList<String> own = texts(given, "names");
    if (own.size() != fields.length) {
      throw new IllegalArgumentException("there are " + own.size() + " names for " + fields.length + " numbers of a row");
    }
    return with(changed -> changed.names = own);
  }

  /**
   * Sets the number that means "nothing", for all columns; zero unless given.
   *
   * @param number the number
   * @return the changed copy
   */
  public ExplainConfig baseline(double number) {
    return with(changed -> changed.setBaseline(number, null, null));
  }

  /**
   * Sets the row that means "nothing", such as the mean of the training data.
   *
   * @param row one number for each number of a row
   * @return the changed copy
   */
  public ExplainConfig baseline(List<? extends Number> row) {
    final ArrayList<Double> own = new ArrayList<>();
    row.forEach(number -> own.add(number.doubleValue()));
    if (own.size() != fields.length) {
      throw new IllegalArgumentException("the baseline has " + own.size() + " numbers, a row has " + fields.length);
    }
    return with(changed -> changed.setBaseline(0, own, null));
  }

  /**
   * Sets the row that means "nothing", such as the mean of the training data.
   *
   * @param row one number for each number of a row
   * @return the changed copy
   */
  public ExplainConfig baseline(double[] row) {
    final List<Double> own = new ArrayList<>();
    for (double number : row) {
      own.add(number);
    }
    return baseline(own);
  }

  /**
   * Sets the row that means "nothing" by a word of {@link dev.addend.SplitTensor#baseline(String)}.
   *
   * @param word for example {@code mean:/data/rows.npy}, a file that all machines see
   * @return the changed copy
   */
  public ExplainConfig baseline(String word) {
    Objects.requireNonNull(word, "word");
    return with(changed -> changed.setBaseline(0, null, word));
  }

  /**
   * Sets the number that is explained; the largest element of each row's output unless given.
   *
   * @param given of one row, as {@link dev.addend.Target#parse} reads it: {@code 1}, {@code 0-1}, {@code probability:1}
   * @return the changed copy
   */
  public ExplainConfig target(String given) {
    Objects.requireNonNull(given, "target");
    return with(changed -> changed.target = given);
  }

  /**
   * Sets the tensor that the target is an element of; the first output unless given.
   *
   * @param selector as for {@link dev.addend.Request#at}
   * @return the changed copy
   */
  public ExplainConfig at(String selector) {
    return with(changed -> changed.at = Objects.requireNonNull(selector, "selector"));
  }

  /**
   * Sets a choice of the policy.
   *
   * @param key for example {@code segments}
   * @param value for example {@code 4}
   * @return the changed copy
   */
  public ExplainConfig policy(String key, String value) {
    Objects.requireNonNull(key, "key");
    Objects.requireNonNull(value, "value");
    final LinkedHashMap<String, String> choices = new LinkedHashMap<>(fields.policy);
    choices.put(key, value);
    return with(changed -> changed.policy = choices);
  }

  /**
   * Sets all choices of the policy.
   *
   * @param given in place of those before
   * @return the changed copy
   */
  public ExplainConfig policy(Policy given) {
    final LinkedHashMap<String, String> choices = new LinkedHashMap<>(given.choices());
    return with(changed -> changed.policy = choices);
  }

  /**
   * A description of concepts, in which results tell reasons: the columns {@code outcome} and {@code reasons}.
   *
   * @param json as {@link dev.addend.Concepts#read} takes it
   * @return the changed copy
   */
  public ExplainConfig concepts(String json) {
    return with(changed -> changed.concepts = Objects.requireNonNull(json, "json"));
  }

  /**
   * Sets the dtype of the model's numbers, which it is converted to, and of its input; the model is as it is, and its input
   * {@code float32}, unless given.
   *
   * @param given {@code float32} or {@code float64}
   * @return the changed copy
   */
  public ExplainConfig dtype(String given) {
    if (!"float32".equals(given) && !"float64".equals(given)) {
      throw new IllegalArgumentException("dtype is " + given + "; it is float32 or float64");
    }
    return with(changed -> {
      changed.dtype = given;
      changed.convert = true;
    });
  }

  /**
   * How many threads LibTorch computes with in a task; 1 unless given, as a task has one core.
   *
   * @param count at least 1
   * @return the changed copy
   */
  public ExplainConfig threads(int count) {
    return with(changed -> changed.threads = atLeastOne(count, "threads"));
  }

  /**
   * How many rows of a partition are attributed together; 256 unless given. The last bits depend on it, and notes are those
   * of a chunk.
   *
   * @param rows their number
   * @return the changed copy
   */
  public ExplainConfig chunk(int rows) {
    return with(changed -> changed.chunk = atLeastOne(rows, "chunk"));
  }

  /**
   * A row that cannot be attributed fails its task, instead of saying why in the column {@code refused}.
   *
   * @return the changed copy
   */
  public ExplainConfig stopAtRefusal() {
    return with(changed -> changed.stopAtRefusal = true);
  }

  /**
   * Contributions are in columns of their own, {@code contribution_NAME}, instead of in one array.
   *
   * @return the changed copy
   */
  public ExplainConfig contributionColumns() {
    return with(changed -> changed.contributionColumns = true);
  }

  /**
   * Sets the beginning of the names of the added columns; nothing unless given.
   *
   * @param text for example {@code why_}
   * @return the changed copy
   */
  public ExplainConfig prefix(String text) {
    return with(changed -> changed.prefix = Objects.requireNonNull(text, "text"));
  }

  String model() {
    return fields.model;
  }

  List<String> columns() {
    return fields.columns;
  }

  /** Whether the numbers are in one column of arrays. */
  boolean isArray() {
    return fields.array;
  }

  /** How many numbers a row has. */
  int length() {
    return fields.length;
  }

  List<String> names() {
    return fields.names;
  }

  double baselineNumber() {
    return fields.baselineNumber;
  }

  /** The baseline's numbers; {@code null} where it is one number or a word. */
  List<Double> baselineRow() {
    return fields.baselineRow;
  }

  /** The baseline's word; {@code null} where it is in numbers. */
  String baselineWord() {
    return fields.baselineWord;
  }

  String target() {
    return fields.target;
  }

  /** The tensor that is explained; {@code null}: the first output. */
  String at() {
    return fields.at;
  }

  Map<String, String> policy() {
    return fields.policy;
  }

  /** The description of concepts; {@code null} for none. */
  String concepts() {
    return fields.concepts;
  }

  boolean isDouble() {
    return fields.dtype.equals("float64");
  }

  /** Whether the model is converted to the dtype. */
  boolean converts() {
    return fields.convert;
  }

  int threads() {
    return fields.threads;
  }

  int chunk() {
    return fields.chunk;
  }

  boolean stopsAtRefusal() {
    return fields.stopAtRefusal;
  }

  boolean hasContributionColumns() {
    return fields.contributionColumns;
  }

  String prefix() {
    return fields.prefix;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ExplainConfig && ((ExplainConfig) other).fields.all().equals(fields.all());
  }

  @Override
  public int hashCode() {
    return fields.all().hashCode();
  }

  /**
   * The model, its columns and the target.
   *
   * @return one line
   */
  @Override
  public String toString() {
    return "target " + fields.target + " of " + fields.model + " by "
        + (fields.array ? fields.columns.get(0) + "[" + fields.length + "]" : fields.columns);
  }

  private ExplainConfig with(Consumer<Fields> change) {
    final Fields changed = fields.clone();
    change.accept(changed);
    return new ExplainConfig(changed);
  }

  private static int atLeastOne(int count, String name) {
    if (count < 1) {
      throw new IllegalArgumentException(name + " is " + count + ", and is at least 1");
    }
    return count;
  }

  private static ArrayList<String> texts(List<String> given, String name) {
    final ArrayList<String> own = new ArrayList<>(given);
    own.forEach(text -> Objects.requireNonNull(text, name));
    return own;
  }

  private static ArrayList<String> positions(int count) {
    final ArrayList<String> own = new ArrayList<>();
    for (int position = 0; position < count; position++) {
      own.add(Integer.toString(position));
    }
    return own;
  }
}
