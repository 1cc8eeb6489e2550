package dev.addend;

import static org.junit.jupiter.api.Assertions.fail;

import java.util.function.BooleanSupplier;

/** Makes the garbage collector do its work now. */
final class Garbage {
  private Garbage() {}

  static void collect() throws InterruptedException {
    for (int i = 0; i < 3; i++) {
      System.gc();
      Thread.sleep(20);
    }
  }

  /**
   * Releases every handle of a kind that earlier tests forgot, so that none of them is released later, while a test
   * counts. Tests keep none.
   */
  static void releaseAll(int kind) throws InterruptedException {
    collectUntil(() -> AddendNative.addend_debug_live(kind) == 0);
  }

  /** Collects until something holds; fails if it does not within a minute. */
  static void collectUntil(BooleanSupplier condition) throws InterruptedException {
    final long deadline = System.nanoTime() + 60_000_000_000L;
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() > deadline) {
        fail("what nobody can reach was not collected");
      }
      collect();
    }
  }
}
