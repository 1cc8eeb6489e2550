package dev.addend.spark;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;

/**
 * The explainers of this process: one for each model and config, which all tasks share. The last few stay; what nobody uses any
 * more is freed by the garbage collector, so that a task never loses its own.
 */
final class Explainers {
  private static final int MOST = 4;

  private static final Map<Key, CompletableFuture<Explainer>> KEPT = new LinkedHashMap<>(16, 0.75f, true);

  private Explainers() {}

  private static final class Key {
    private final String sha256;
    private final ExplainConfig config;

    Key(String sha256, ExplainConfig config) {
      this.sha256 = sha256;
      this.config = config;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Key && ((Key) other).sha256.equals(sha256) && ((Key) other).config.equals(config);
    }

    @Override
    public int hashCode() {
      return Objects.hash(sha256, config);
    }
  }

  /**
   * The explainer of a config. The first caller loads it, the others wait for that; one that cannot be loaded is tried again by
   * the next caller.
   *
   * @param sha256 of the model's file, as the driver has it
   */
  static Explainer of(ExplainConfig config, String sha256) {
    final Key key = new Key(sha256, config);
    final CompletableFuture<Explainer> own = new CompletableFuture<>();
    final CompletableFuture<Explainer> there;
    synchronized (KEPT) {
      there = KEPT.putIfAbsent(key, own);
      for (Iterator<Key> oldest = KEPT.keySet().iterator(); KEPT.size() > MOST; ) {
        oldest.next();
        oldest.remove();
      }
    }
    if (there != null) {
      return OwnThread.join(there);
    }
    try {
      own.complete(Explainer.load(config, sha256));
      return own.join();
    } catch (RuntimeException | Error e) {
      synchronized (KEPT) {
        KEPT.remove(key, own);
      }
      own.completeExceptionally(e);
      throw e;
    }
  }
}
