package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class ThreadsTest {
  private static final int THREADS = 8;

  /** All parts of what the model makes of one sample. */
  private static double[] components(Model model, Tensor samples, long index) {
    try (Scope scope = Scope.open()) {
      final Tensor sample = Addend.call("aten::narrow", samples, 0, index, 1).tensor(0);
      return model.decompose(Input.of(sample).splitAlong(2, 3).baseline(0)).composition(0).components()
          .toDoubleArray();
    }
  }

  @Test
  void eightThreadsComputeTheSameBitsAsOne() throws InterruptedException, ExecutionException {
    final ExecutorService executor = Executors.newFixedThreadPool(THREADS);
    try (Model model = Models.load(Models.DIGITS); Tensor samples = Models.heldOut(Models.DIGITS)) {
      final List<Future<double[]>> futures = new ArrayList<>();
      for (int i = 0; i < 4 * THREADS; i++) {
        final long index = i;
        futures.add(executor.submit(() -> components(model, samples, index)));
      }
      for (int i = 0; i < futures.size(); i++) {
        assertArrayEquals(components(model, samples, i), futures.get(i).get(), 0.0);
      }
    } finally {
      executor.shutdown();
    }
  }

  @Test
  void closingWhileOthersComputeEndsNoRunInTheMiddle() throws InterruptedException, ExecutionException {
    final ExecutorService executor = Executors.newFixedThreadPool(THREADS);
    final AtomicInteger finished = new AtomicInteger();
    try (Tensor samples = Models.heldOut(Models.DIGITS)) {
      final double[] expected;
      final Model model = Models.load(Models.DIGITS);
      expected = components(model, samples, 0);
      final List<Future<?>> futures = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        futures.add(executor.submit(() -> {
          while (true) {
            final double[] actual;
            try {
              actual = components(model, samples, 0);
            } catch (IllegalStateException e) {
              assertEquals("the model is closed", e.getMessage());
              return;
            }
            assertArrayEquals(expected, actual, 0.0);
            finished.incrementAndGet();
          }
        }));
      }
      while (finished.get() < THREADS) {
        Thread.sleep(1);
      }
      model.close();
      for (Future<?> future : futures) {
        future.get();
      }
      assertThrows(IllegalStateException.class, () -> model.run(samples));
    } finally {
      executor.shutdownNow();
    }
  }
}
