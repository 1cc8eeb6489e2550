package dev.addend.spark;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;

/**
 * Makes what outlives its caller on a thread of its own: a {@link dev.addend.Scope} that the caller has open would close it,
 * though other tasks use it. Spark calls functions of SQL on the driver's threads too.
 */
final class OwnThread {
  private OwnThread() {}

  /** Gives what {@code work} gives, or throws that. */
  static <T> T run(Supplier<T> work) {
    final CompletableFuture<T> made = new CompletableFuture<>();
    final Thread thread = new Thread(() -> {
      try {
        made.complete(work.get());
      } catch (RuntimeException | Error e) {
        made.completeExceptionally(e);
      }
    }, "addend-load");
    thread.setDaemon(true);
    thread.start();
    return join(made);
  }

  /** Waits for what somebody else makes; throws what that throws. */
  static <T> T join(CompletableFuture<T> made) {
    try {
      return made.join();
    } catch (CompletionException e) {
      if (e.getCause() instanceof RuntimeException) {
        throw (RuntimeException) e.getCause();
      }
      if (e.getCause() instanceof Error) {
        throw (Error) e.getCause();
      }
      throw e;
    }
  }
}
