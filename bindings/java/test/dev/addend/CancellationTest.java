package dev.addend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class CancellationTest {
  private final ExecutorService executor = Executors.newSingleThreadExecutor();

  @AfterEach
  void shutDown() {
    executor.shutdownNow();
  }

  @Test
  void anotherThreadEndsRuns() throws InterruptedException {
    final CountDownLatch running = new CountDownLatch(1);
    final CountDownLatch cancelled = new CountDownLatch(1);
    try (Model model = Models.load(Models.DIGITS);
        Tensor image = Models.sample(Models.DIGITS);
        Cancellation cancellation = new Cancellation();
        // Stops in the middle of the run until it has been cancelled.
        Context context = Context.builder()
            .onProgress((stage, done, total) -> {
              running.countDown();
              await(cancelled);
              return true;
            })
            .build()) {
      final Request request =
          Request.of(Input.of(image).splitAlong(2, 3).baseline(0)).cancellation(cancellation);
      final Future<Results> future = executor.submit(() -> model.decompose(request, context));
      running.await();
      cancellation.cancel();
      cancelled.countDown();
      final AddendException error =
          assertInstanceOf(
              AddendException.class, assertThrows(ExecutionException.class, future::get).getCause());
      assertEquals(AddendException.Code.CANCELLED, error.code());
      // So do runs that begin later, but not those of others.
      assertThrows(AddendException.class, () -> model.decompose(request));
      model.decompose(request.cancellation(null)).close();
    }
  }

  @Test
  void aTimeEndsRuns() {
    try (Model model = Models.load(Models.DIGITS);
        Tensor image = Models.sample(Models.DIGITS)) {
      final Request request = Request.of(Input.of(image).splitAlong(2, 3).baseline(0));
      model.decompose(request.timeout(Duration.ofHours(1))).close();
      final AddendException error =
          assertThrows(AddendException.class, () -> model.decompose(request.timeout(Duration.ofNanos(1))));
      assertEquals(AddendException.Code.CANCELLED, error.code());
      assertTrue(error.getMessage().contains("longer than its timeout"), error.getMessage());
      assertThrows(AddendException.class, () -> model.decompose(request.option("patience", "1")));
    }
  }

  @Test
  void futuresAreCancelledByInterruption() throws InterruptedException {
    final CountDownLatch running = new CountDownLatch(1);
    final CountDownLatch ended = new CountDownLatch(1);
    final AtomicReference<AddendException.Code> code = new AtomicReference<>();
    try (Model model = Models.load(Models.DIGITS);
        Tensor image = Models.sample(Models.DIGITS);
        Context context = Context.builder()
            .onProgress((stage, done, total) -> {
              running.countDown();
              return !Thread.currentThread().isInterrupted();
            })
            .build()) {
      final Request request = Request.of(Input.of(image).splitAlong(2, 3).baseline(0));
      final Future<?> future = executor.submit(() -> {
        try {
          while (true) {
            model.decompose(request, context).close();
          }
        } catch (AddendException e) {
          code.set(e.code());
        } finally {
          ended.countDown();
        }
      });
      running.await();
      future.cancel(true);
      assertThrows(CancellationException.class, future::get);
      assertTrue(ended.await(30, TimeUnit.SECONDS), "the run goes on");
      assertEquals(AddendException.Code.CANCELLED, code.get());
    }
  }

  @Test
  void closingWhileItIsNeededHarmsNobody() {
    try (Model model = Models.load(Models.DIGITS); Tensor image = Models.sample(Models.DIGITS)) {
      final Cancellation cancellation = new Cancellation();
      final Request request = Request.of(Input.of(image).splitAlong(2)).cancellation(cancellation);
      cancellation.close();
      assertThrows(IllegalStateException.class, cancellation::cancel);
      assertThrows(IllegalStateException.class, () -> model.decompose(request));
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
