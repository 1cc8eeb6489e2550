package dev.addend;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.List;
import java.util.Objects;
import java.util.function.LongBinaryOperator;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;
import java.util.function.LongUnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;

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

  /** A function of the C interface that gives what it makes of an object by its last parameter. */
  @FunctionalInterface
  interface Maker {
    void make(long object, long[] out);
  }

  /** A function of the C interface that gives a text of an object for each position. */
  @FunctionalInterface
  interface TextAt {
    String at(long object, long index);
  }

  /** Asks a function about the object, which is not released before the function returns. */
  <T> T tell(LongFunction<T> function) {
    final long address = acquire();
    try {
      return function.apply(address);
    } finally {
      release();
    }
  }

  /** The number that a function tells of the object. */
  long number(LongUnaryOperator function) {
    return tell(function::applyAsLong);
  }

  /** Calls a function that changes the object, or writes it. */
  void run(LongConsumer function) {
    tell(object -> {
      function.accept(object);
      return null;
    });
  }

  /** The address of the handle that a function makes of the object. */
  long made(Maker maker) {
    return tell(object -> Out.handle(out -> maker.make(object, out)));
  }

  /** The text that a function makes of the object. */
  String text(Maker maker) {
    return tell(object -> Out.text(out -> maker.make(object, out)));
  }

  /** The number that a function tells for each position, of which there are as many as {@code count} tells. */
  long[] numbers(LongUnaryOperator count, LongBinaryOperator at) {
    return tell(object -> LongStream.range(0, count.applyAsLong(object))
        .map(index -> at.applyAsLong(object, index)).toArray());
  }

  /** The text that a function tells for each position, of which there are as many; empty where it tells none. */
  List<String> texts(LongUnaryOperator count, TextAt texts) {
    return tell(object -> LongStream.range(0, count.applyAsLong(object))
        .mapToObj(index -> Objects.requireNonNullElse(texts.at(object, index), ""))
        .collect(Collectors.toUnmodifiableList()));
  }

  /** The texts that a function tells by their positions, up to the first that is {@code null}. */
  List<String> lines(TextAt texts) {
    return tell(object -> Stream.iterate(0L, index -> index + 1)
        .map(index -> texts.at(object, index)).takeWhile(Objects::nonNull)
        .collect(Collectors.toUnmodifiableList()));
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
