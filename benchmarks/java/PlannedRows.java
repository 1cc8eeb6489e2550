package dev.addend;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** Cost of one row of a plan in a long run: median, 99th percentile, and the growth of memory. */
public final class PlannedRows {
  private static final Path MODEL = Path.of("docs/examples/models/breast_cancer");

  private PlannedRows() {}

  private static long residentKiB() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) {
        return Long.parseLong(line.replaceAll("[^0-9]", ""));
      }
    }
    return -1;
  }

  /** The first argument: how many rows; a million unless given. */
  public static void main(String[] arguments) throws IOException {
    final int calls = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 1_000_000;
    Addend.setNumThreads(1);
    final float[] rows;
    final int columns;
    try (TensorFile file = TensorFile.read(MODEL.resolve("heldout.safetensors")); Tensor all = file.tensor("input")) {
      rows = all.toFloatArray();
      columns = (int) all.shape()[1];
    }
    final FloatBuffer row = buffer(Float.BYTES * columns).asFloatBuffer();
    final DoubleBuffer parts = buffer(Double.BYTES * columns).asDoubleBuffer();
    try (Model model = Model.load(MODEL.resolve("model.pt"));
        Tensor input = Tensor.wrap(row, 1, columns);
        Tensor contributions = Tensor.wrap(parts, 1, columns)) {
      final Request request = Request.of(Input.of(input).splitAlong(1).baseline(0)).target(Target.element(0, 1));
      try (Plan plan = model.plan(request)) {
        run(plan, request, contributions, row, rows, columns, calls / 10);
        final long before = residentKiB();
        final long[] times = run(plan, request, contributions, row, rows, columns, calls);
        final long after = residentKiB();
        Arrays.sort(times);
        final double median = times[calls / 2] / 1e3;
        final double percentile = times[(int) (calls * 0.99)] / 1e3;
        System.out.printf("%d rows: median %.1f us, 99th percentile %.1f us (%.2f medians), longest %.0f us%n", calls, median,
            percentile, percentile / median, times[calls - 1] / 1e3);
        System.out.printf("resident memory: %d KiB before, %d KiB after%n", before, after);
      }
    }
  }

  private static ByteBuffer buffer(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  private static long[] run(Plan plan, Request request, Tensor contributions, FloatBuffer row, float[] rows, int columns,
      int calls) {
    final long[] times = new long[calls];
    final int count = rows.length / columns;
    for (int k = 0; k < calls; k++) {
      final long start = System.nanoTime();
      row.duplicate().put(rows, k % count * columns, columns);
      plan.attributeInto(request, contributions, null);
      times[k] = System.nanoTime() - start;
    }
    return times;
  }
}
