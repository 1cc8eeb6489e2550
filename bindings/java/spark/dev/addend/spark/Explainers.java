package dev.addend.spark;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/**
 * The explainers of this process: one for each model and config, which all tasks share. The last few stay; one that has to go is
 * closed when the last task that uses it is done, as a garbage collector does not know of the memory of models.
 */
final class Explainers {
  private static final int MOST = 4;

  private static final Map<Key, Kept> KEPT = new LinkedHashMap<>(16, 0.75f, true);

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

  /** An explainer, and who uses it. */
  private static final class Kept {
    final CompletableFuture<Explainer> made = new CompletableFuture<>();
    int users; // guarded by KEPT, as is the next
    boolean gone; // whether no one else can find it
  }

  /**
   * Attributes some rows, as {@link Explainer#explain} does. The first caller loads the explainer, the others wait for that; one
   * that cannot be loaded is tried again by the next caller.
   *
   * @param sha256 of the model, as the driver has it
   */
  static List<Explained> explain(ExplainConfig config, String sha256, double[] numbers, int rows) {
    return use(config, sha256, explainer -> explainer.explain(numbers, rows));
  }

  /** Gives what a function makes of the explainer, which stays open for as long. */
  static <T> T use(ExplainConfig config, String sha256, Function<Explainer, T> function) {
    final Key key = new Key(sha256, config);
    final Kept own = new Kept();
    final Kept kept;
    final List<Kept> unused = new ArrayList<>();
    synchronized (KEPT) {
      final Kept there = KEPT.putIfAbsent(key, own);
      kept = there == null ? own : there;
      kept.users++;
      for (Iterator<Kept> oldest = KEPT.values().iterator(); KEPT.size() > MOST; ) {
        final Kept old = oldest.next();
        oldest.remove();
        old.gone = true;
        if (old.users == 0) {
          unused.add(old);
        }
      }
    }
    unused.forEach(Explainers::close);
    try {
      return function.apply(kept == own ? load(key, own) : OwnThread.join(kept.made));
    } finally {
      final boolean last;
      synchronized (KEPT) {
        last = --kept.users == 0 && kept.gone;
      }
      if (last) {
        close(kept);
      }
    }
  }

  private static Explainer load(Key key, Kept own) {
    try {
      own.made.complete(Explainer.load(key.config, key.sha256));
      return own.made.join();
    } catch (RuntimeException | Error e) {
      synchronized (KEPT) {
        KEPT.remove(key, own);
        own.gone = true;
      }
      own.made.completeExceptionally(e);
      throw e;
    }
  }

  private static void close(Kept unused) {
    if (!unused.made.isCompletedExceptionally()) {
      unused.made.join().close();
    }
  }
}
