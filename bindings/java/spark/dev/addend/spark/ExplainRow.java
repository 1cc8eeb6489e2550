package dev.addend.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF1;

/** The function of SQL: explains one row, a struct. */
final class ExplainRow implements UDF1<Row, Row> {
  private static final long serialVersionUID = 1;

  private final ExplainConfig config;
  private final String sha256;
  private final RowReader reader;

  ExplainRow(ExplainConfig config, String sha256) {
    this.config = config.chunk(1);
    this.sha256 = sha256;
    reader = RowReader.ofStructs(config);
  }

  @Override
  public Row call(Row row) {
    final double[] numbers = new double[config.length()];
    final List<String> notes = new ArrayList<>();
    final String refused = reader.read(row, numbers, 0, notes);
    final Explained explained = refused == null
        ? Explainers.explain(config, sha256, numbers, 1).get(0).noted(notes)
        : Explained.refused(refused);
    return ResultColumns.row(null, ExplainPartitions.stopAt(explained, config), config);
  }
}
