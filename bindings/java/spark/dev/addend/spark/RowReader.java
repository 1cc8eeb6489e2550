package dev.addend.spark;

import java.io.Serializable;
import java.math.BigDecimal;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructType;

/** Finds the numbers in a row that the model is given, or why the row has none. */
final class RowReader implements Serializable {
  private static final long serialVersionUID = 1;

  private final ExplainConfig config;

  /** The columns' positions; {@code null}: where the schema of each row says. */
  private final int[] places;

  private RowReader(ExplainConfig config, int[] places) {
    this.config = config;
    this.places = places;
  }

  /**
   * A reader of the rows of a data frame.
   *
   * @throws IllegalArgumentException if a column is not there, or holds no numbers
   */
  static RowReader of(ExplainConfig config, StructType schema) {
    final int[] places = places(config, schema);
    for (int place : places) {
      final DataType type = schema.fields()[place].dataType();
      final boolean fits = config.isArray()
          ? type instanceof ArrayType && isNumber(((ArrayType) type).elementType())
          : isNumber(type);
      if (!fits) {
        throw new IllegalArgumentException("column " + schema.fields()[place].name() + " is of the type "
            + type.simpleString() + ", not of " + (config.isArray() ? "arrays of numbers" : "numbers")
            + ": cast it, or make numbers of it");
      }
    }
    return new RowReader(config, places);
  }

  /** A reader of structs, which tell their fields themselves. */
  static RowReader ofStructs(ExplainConfig config) {
    return new RowReader(config, null);
  }

  /**
   * Reads the numbers of a row.
   *
   * @param into where they are written, from {@code offset} on
   * @param notes where a sentence is put for each number that the model is given another one for
   * @return why they cannot be attributed; {@code null} if they can
   */
  String read(Row row, double[] into, int offset, List<String> notes) {
    if (row == null) {
      return "the row is null";
    }
    final int[] own = places == null ? places(config, row.schema()) : places;
    if (config.isArray()) {
      return readArray(row, own[0], into, offset, notes);
    }
    for (int column = 0; column < own.length; column++) {
      final String name = config.columns().get(column);
      final String why = readNumber(row.get(own[column]), () -> "column " + name, into, offset + column, notes);
      if (why != null) {
        return "column " + name + " " + why;
      }
    }
    return null;
  }

  private String readArray(Row row, int place, double[] into, int offset, List<String> notes) {
    final String column = "column " + config.columns().get(0);
    final Object value = row.get(place);
    if (value == null) {
      return column + " is null";
    }
    if (!(value instanceof scala.collection.Seq)) {
      return column + " is no array";
    }
    final List<?> numbers = row.getList(place);
    if (numbers.size() != config.length()) {
      return column + " has " + numbers.size() + " numbers, not " + config.length();
    }
    int position = 0;
    for (Object number : numbers) {
      final int at = position;
      final Supplier<String> name = () -> column + "[" + at + "]";
      final String why = readNumber(number, name, into, offset + position, notes);
      if (why != null) {
        return name.get() + " " + why;
      }
      position++;
    }
    return null;
  }

  /** Reads one number. Its name is made only where something is said of it, since this runs for each number of each row. */
  private String readNumber(Object value, Supplier<String> name, double[] into, int place, List<String> notes) {
    if (value == null) {
      return "is null";
    }
    final double number;
    if (value instanceof Number) {
      number = ((Number) value).doubleValue();
    } else if (value instanceof Boolean) {
      number = (Boolean) value ? 1 : 0;
    } else {
      return "is no number but a " + value.getClass().getSimpleName();
    }
    if (Double.isNaN(number) || Double.isInfinite(number)) {
      return "is " + number;
    }
    if (!config.isDouble() && Float.isInfinite((float) number)) {
      return "is " + number + ", too large for float32";
    }
    into[place] = number;
    final double given = config.isDouble() ? number : (float) number;
    if (isAnother(value, given)) {
      notes.add(name.get() + " is " + value + ", of which " + (config.isDouble() ? "float64" : "float32") + " makes "
          + new BigDecimal(given).toPlainString() + ": that is what is explained");
    }
    return null;
  }

  /**
   * Whether a model is given another number, beyond the rounding that each fraction has: a whole number such as an identifier
   * that is not kept, or 0 for a number that is so small.
   */
  private static boolean isAnother(Object value, double given) {
    if (value instanceof Long || value instanceof Integer) {
      // 2^63 is no long, and a cast would make the largest one of it.
      return given == 0x1p63 || (long) given != ((Number) value).longValue();
    }
    if (value instanceof BigDecimal) {
      final BigDecimal number = (BigDecimal) value;
      return number.stripTrailingZeros().scale() <= 0
          ? new BigDecimal(given).compareTo(number) != 0
          : given == 0;
    }
    return given == 0 && value instanceof Double && (Double) value != 0;
  }

  private static boolean isNumber(DataType type) {
    return type instanceof NumericType || type instanceof BooleanType;
  }

  private static int[] places(ExplainConfig config, StructType schema) {
    if (schema == null) {
      throw new IllegalArgumentException("fields without names are given; the model takes " + config.columns()
          + ", by their names: struct(" + String.join(", ", config.columns()) + ")");
    }
    final List<String> there = Arrays.asList(schema.fieldNames());
    return config.columns().stream().mapToInt(column -> {
      final int place = there.indexOf(column);
      if (place < 0) {
        throw new IllegalArgumentException("there is no column " + column + " among "
            + there.stream().limit(100).collect(Collectors.joining(", ")));
      }
      if (there.lastIndexOf(column) != place) {
        throw new IllegalArgumentException("there are two columns " + column + "; rename one");
      }
      return place;
    }).toArray();
  }
}
