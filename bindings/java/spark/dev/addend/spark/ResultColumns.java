package dev.addend.spark;

import dev.addend.Reason;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The columns that results are given in: their names and types, and the values of a row. */
final class ResultColumns {
  private static final StructType REASON = new StructType()
      .add("concept", DataTypes.StringType, false)
      .add("code", DataTypes.StringType, false)
      .add("contribution", DataTypes.DoubleType, false)
      .add("value", DataTypes.StringType, false)
      .add("unit", DataTypes.StringType, false)
      .add("baseline", DataTypes.StringType, false)
      .add("text", DataTypes.StringType, false);

  private ResultColumns() {}

  /**
   * All of them; numbers are null in rows that are refused.
   *
   * @throws IllegalArgumentException if two contributions would have columns of the same name
   */
  static StructType of(ExplainConfig config) {
    StructType columns = new StructType()
        .add(config.prefix() + "target", DataTypes.StringType, true)
        .add(config.prefix() + "value", DataTypes.DoubleType, true)
        .add(config.prefix() + "reference", DataTypes.DoubleType, true);
    if (config.hasContributionColumns()) {
      final Set<String> names = new HashSet<>();
      for (String name : config.names()) {
        if (!names.add(name.toLowerCase(Locale.ROOT))) {
          throw new IllegalArgumentException("two components are called " + name + ", of which there cannot be two columns "
              + "contribution_" + name + "; give others by names(...), or leave contributionColumns() out");
        }
        columns = columns.add(config.prefix() + "contribution_" + name, DataTypes.DoubleType, true);
      }
    } else {
      columns = columns.add(
          config.prefix() + "contributions", DataTypes.createArrayType(DataTypes.DoubleType, false), true);
    }
    columns = columns.add(config.prefix() + "leftover", DataTypes.DoubleType, true);
    if (config.concepts() != null) {
      columns = columns
          .add(config.prefix() + "outcome", DataTypes.StringType, true)
          .add(config.prefix() + "reasons", DataTypes.createArrayType(REASON, false), true);
    }
    return columns
        .add(config.prefix() + "notes", DataTypes.createArrayType(DataTypes.StringType, false), false)
        .add(config.prefix() + "warnings", DataTypes.createArrayType(DataTypes.StringType, false), false)
        .add(config.prefix() + "refused", DataTypes.StringType, true);
  }

  /**
   * The columns of a data frame, and these behind them.
   *
   * @throws IllegalArgumentException if two would have the same name
   */
  static StructType behind(StructType columns, ExplainConfig config) {
    StructType all = columns;
    final Set<String> names = new HashSet<>();
    for (String name : columns.fieldNames()) {
      names.add(name.toLowerCase(Locale.ROOT));
    }
    for (StructField field : of(config).fields()) {
      if (!names.add(field.name().toLowerCase(Locale.ROOT))) {
        throw new IllegalArgumentException("two columns of the result would be called " + field.name()
            + "; give the new ones another prefix, as by prefix(\"why_\")");
      }
      all = all.add(field);
    }
    return all;
  }

  /** The values of a row in these columns, behind those that it has. */
  static Row row(Row own, Explained explained, ExplainConfig config) {
    final List<Object> values = new ArrayList<>();
    for (int column = 0; own != null && column < own.size(); column++) {
      values.add(own.get(column));
    }
    final boolean there = explained.refused == null;
    values.add(explained.target);
    values.add(there ? explained.value : null);
    values.add(there ? explained.reference : null);
    if (config.hasContributionColumns()) {
      for (int component = 0; component < config.length(); component++) {
        values.add(there ? explained.contributions[component] : null);
      }
    } else {
      values.add(there ? boxed(explained.contributions) : null);
    }
    values.add(there ? explained.leftover : null);
    if (config.concepts() != null) {
      values.add(explained.outcome);
      values.add(there ? explained.reasons.stream().map(ResultColumns::reason).toArray(Row[]::new) : null);
    }
    values.add(explained.notes.toArray(new String[0]));
    values.add(explained.warnings.toArray(new String[0]));
    values.add(explained.refused);
    return RowFactory.create(values.toArray());
  }

  private static Row reason(Reason reason) {
    return RowFactory.create(reason.concept(), reason.code(), reason.contribution(), reason.value(), reason.unit(),
        reason.baseline(), reason.text());
  }

  private static Double[] boxed(double[] numbers) {
    return Arrays.stream(numbers).boxed().toArray(Double[]::new);
  }
}
