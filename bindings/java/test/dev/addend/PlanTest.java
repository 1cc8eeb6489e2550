package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Plans: what an attribution without one gives, bit for bit, or a refusal that says why. */
class PlanTest extends ScopedTest {
  private final Model model = Model.load(Models.CONFORMANCE.resolve("awkward.pt"), DType.FLOAT64);

  private static double[] table(String name) {
    return TensorFile.read(Models.CONFORMANCE.resolve("awkward.safetensors")).tensor(name).toDoubleArray();
  }

  private static double[] scaled(double factor) {
    return Arrays.stream(table("same_branch")).map(x -> x * factor).toArray();
  }

  private static Request asked(Tensor row) {
    return Request.of(Input.of(row).splitAlong(1).baseline(0.25)).target(Target.element(0, 1));
  }

  private static Request asked(double[] row) {
    return asked(Tensor.of(row, 2, 6));
  }

  private static double[] parts(Attribution attribution) {
    return attribution.explain(0).contributions().stream().mapToDouble(Contribution::value).toArray();
  }

  @Test
  void givesTheSameBits() {
    final Plan plan = model.plan(asked(scaled(1)));
    for (double factor : new double[] {1, 0.5, 2}) {
      final Attribution expected = model.attribute(asked(scaled(factor)));
      final Attribution found = plan.attribute(asked(scaled(factor)));
      assertArrayEquals(parts(expected), parts(found));
      assertArrayEquals(expected.input(0).toDoubleArray(), found.input(0).toDoubleArray());
      assertEquals(expected.explain(0).value(), found.explain(0).value());
      assertArrayEquals(parts(expected), parts(plan.attribute(Tensor.of(scaled(factor), 2, 6))));
    }
  }

  @Test
  void writesIntoTheCallersMemory() {
    final DoubleBuffer row = doubles(12);
    final DoubleBuffer contributions = doubles(6);
    final DoubleBuffer sums = doubles(3);
    row.duplicate().put(scaled(1));
    final Request request = asked(Tensor.wrap(row, 2, 6));
    final Plan plan = model.plan(request);
    final Tensor parts = Tensor.wrap(contributions, 1, 6);
    final Tensor more = Tensor.wrap(sums, 1, 3);
    for (double factor : new double[] {1, 0.5}) {
      row.duplicate().put(scaled(factor));
      plan.attributeInto(request, parts, more);
      final Explanation expected = model.attribute(asked(scaled(factor))).explain(0);
      final double[] found = new double[6];
      contributions.duplicate().get(found);
      assertArrayEquals(
          expected.contributions().stream().mapToDouble(Contribution::value).toArray(), found);
      assertEquals(expected.value(), sums.get(0));
      assertEquals(expected.reference(), sums.get(1));
      assertEquals(expected.leftover(), sums.get(2));
    }
    assertThrows(AddendException.class, () -> plan.attributeInto(request, more, null));
  }

  @Test
  void writesNothingThatIsForReadingOnly(@TempDir Path folder) throws IOException {
    final Plan plan = model.plan(asked(scaled(1)));
    final Request request = asked(scaled(1));
    final DoubleBuffer own = doubles(6);
    final Tensor given = Tensor.of(new double[6], 1, 6).to(DType.FLOAT32).to(DType.FLOAT64);
    final Path file = Files.write(folder.resolve("zeros"), new byte[48]);
    final ByteBuffer mapped;
    try (FileChannel channel = FileChannel.open(file)) {
      mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, 48).order(ByteOrder.nativeOrder());
    }
    for (Tensor tensor : List.of(
        Tensor.wrap(own.asReadOnlyBuffer(), 1, 6),
        Tensor.wrap(given.asDoubleBuffer(), 1, 6),
        Tensor.wrap(given.asByteBuffer(), DType.FLOAT64, 1, 6),
        Tensor.wrap(mapped, DType.FLOAT64, 1, 6))) {
      final IllegalArgumentException parts =
          assertThrows(IllegalArgumentException.class, () -> plan.attributeInto(request, tensor, null));
      assertEquals(
          "contributions wraps a read-only buffer, which is not written: wrap one that may be", parts.getMessage());
      assertThrows(AddendException.class, () -> plan.attributeInto(request, given, null));
    }
    final Tensor sums = Tensor.wrap(doubles(3).asReadOnlyBuffer(), 1, 3);
    final IllegalArgumentException more = assertThrows(
        IllegalArgumentException.class, () -> plan.attributeInto(request, Tensor.wrap(own, 1, 6), sums));
    assertTrue(more.getMessage().startsWith("sums wraps a read-only buffer"), more.getMessage());
    assertArrayEquals(new double[3], sums.toDoubleArray());
    assertEquals(doubles(6), own);
    assertArrayEquals(new double[6], given.toDoubleArray());
  }

  private static DoubleBuffer doubles(int count) {
    return ByteBuffer.allocateDirect(8 * count).order(ByteOrder.nativeOrder()).asDoubleBuffer();
  }

  @Test
  void refusesOtherSizesBranchesAndNumbers() {
    final Plan plan = model.plan(asked(scaled(1)));
    final Request size = asked(Tensor.of(new double[18], 3, 6));
    assertTrue(assertThrows(AddendException.class, () -> plan.attribute(size)).getMessage().contains("the plan is for"));
    final Request branch = asked(table("other_branch"));
    assertTrue(assertThrows(AddendException.class, () -> plan.attribute(branch))
        .getMessage().contains("does not hold for this input"));
    final Request infinite = asked(scaled(Double.NaN));
    assertThrows(AddendException.class, () -> plan.attribute(infinite));
    plan.close();
    final Request again = asked(scaled(1));
    assertThrows(IllegalStateException.class, () -> plan.attribute(again));
  }

  @Test
  void threadsShareOne() throws InterruptedException {
    final Plan plan = model.plan(asked(scaled(1)));
    final double[] expected = parts(model.attribute(asked(scaled(0.5))));
    final double[][] found = new double[4][];
    final Thread[] threads = new Thread[4];
    for (int k = 0; k < threads.length; k++) {
      final int own = k;
      threads[k] = new Thread(() -> {
        for (int round = 0; round < 10; round++) {
          try (Attribution attribution = plan.attribute(asked(scaled(0.5)))) {
            found[own] = parts(attribution);
          }
        }
      });
      threads[k].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    for (double[] own : found) {
      assertArrayEquals(expected, own);
    }
  }
}
