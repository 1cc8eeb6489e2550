package dev.addend.spark;

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
    final String refused = reader.read(row, numbers, 0);
    final List<Explained> explained = refused == null
        ? Explainers.of(config, sha256).explain(numbers, 1)
        : List.of(Explained.refused(refused));
    return ResultColumns.row(null, ExplainPartitions.stopAt(explained.get(0), config), config);
  }
}
