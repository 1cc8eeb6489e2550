package dev.addend;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.function.LongConsumer;

/**
 * One handle of the C interface: released once, by {@link #close} or when nobody can reach this object any more, and
 * never while a native call uses it.
 */
final class Handle {
  private static final Cleaner CLEANER = Cleaner.create();

  private final State state;
  private final Cleaner.Cleanable cleanable;

  Handle(String noun, long address, LongConsumer release) {
    state = new State(noun, address, release);
    cleanable = CLEANER.register(this, state);
  }

  /** The address, which stays valid until {@link #release}. */
  long acquire() {
    try {
      return state.acquire();
    } finally {
      // Without it, this object could be collected, and its state closed, before the state is asked.
      Reference.reachabilityFence(this);
    }
  }

  void release() {
    state.release();
  }

  boolean isClosed() {
    try {
      return state.isClosed();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  void close() {
    cleanable.clean();
  }

  /** Runs an action when {@code object}, and all that is made from it, has been collected. */
  static void whenCollected(Object object, Runnable action) {
    CLEANER.register(object, action);
  }

  /** Apart from the handle, because what the cleaner holds must not reach what it watches. */
  private static final class State implements Runnable {
    private final String noun;
    private final long address;
    private final LongConsumer releaser;
    private int users;
    private boolean closed;

    State(String noun, long address, LongConsumer releaser) {
      this.noun = noun;
      this.address = address;
      this.releaser = releaser;
    }

    synchronized long acquire() {
      if (closed) {
        throw new IllegalStateException("the " + noun + " is closed");
      }
      users++;
      return address;
    }

    void release() {
      final boolean last;
      synchronized (this) {
        users--;
        last = closed && users == 0;
      }
      if (last) {
        releaser.accept(address);
      }
    }

    synchronized boolean isClosed() {
      return closed;
    }

    /** Called at most once, by the cleaner. */
    @Override
    public void run() {
      final boolean unused;
      synchronized (this) {
        closed = true;
        unused = users == 0;
      }
      if (unused) {
        releaser.accept(address);
      }
    }
  }
}
