package dev.addend.spark;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;

/** Explains the rows of a partition, chunk by chunk, as they are asked for. */
final class ExplainPartitions implements MapPartitionsFunction<Row, Row> {
  private static final long serialVersionUID = 1;

  /** Rows that are held at once, for each row of a chunk: refused ones count for no chunk. */
  private static final int MOST_HELD = 8;

  private final ExplainConfig config;
  private final String sha256;
  private final RowReader reader;

  ExplainPartitions(ExplainConfig config, String sha256, RowReader reader) {
    this.config = config;
    this.sha256 = sha256;
    this.reader = reader;
  }

  @Override
  public Iterator<Row> call(Iterator<Row> rows) {
    return new Iterator<Row>() {
      private final Deque<Row> ready = new ArrayDeque<>();

      @Override
      public boolean hasNext() {
        while (ready.isEmpty() && rows.hasNext()) {
          explainChunk(rows, ready);
        }
        return !ready.isEmpty();
      }

      @Override
      public Row next() {
        if (!hasNext()) {
          throw new NoSuchElementException();
        }
        return ready.remove();
      }
    };
  }

  /** Takes rows until a chunk of them can be attributed, and gives the results of all. */
  private void explainChunk(Iterator<Row> rows, Deque<Row> results) {
    final List<Row> held = new ArrayList<>();
    final List<String> why = new ArrayList<>(); // by row; null: it can be attributed
    final List<List<String>> notes = new ArrayList<>(); // by row
    double[] numbers = new double[Math.min(config.chunk(), 16) * config.length()];
    int accepted = 0;
    while (rows.hasNext() && accepted < config.chunk() && held.size() < (long) MOST_HELD * config.chunk()) {
      final Row row = rows.next();
      if ((accepted + 1) * config.length() > numbers.length) {
        numbers = Arrays.copyOf(numbers, 2 * numbers.length);
      }
      final List<String> own = new ArrayList<>(0);
      final String refused = reader.read(row, numbers, accepted * config.length(), own);
      held.add(row);
      why.add(refused);
      notes.add(own);
      if (refused == null) {
        accepted++;
      }
    }
    final Iterator<Explained> explained =
        (accepted == 0 ? List.<Explained>of() : Explainers.explain(config, sha256, numbers, accepted)).iterator();
    for (int k = 0; k < held.size(); k++) {
      final Explained own = why.get(k) == null ? explained.next().noted(notes.get(k)) : Explained.refused(why.get(k));
      results.add(ResultColumns.row(held.get(k), stopAt(own, config), config));
    }
  }

  /** Throws where a row is refused and the config says so. */
  static Explained stopAt(Explained explained, ExplainConfig config) {
    if (config.stopsAtRefusal() && explained.refused != null) {
      throw new IllegalArgumentException("a row is refused: " + explained.refused);
    }
    return explained;
  }
}
