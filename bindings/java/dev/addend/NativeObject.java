package dev.addend;

import java.util.function.LongConsumer;

/** An object that holds memory outside the Java heap until it is closed, or collected. */
abstract class NativeObject implements AutoCloseable {
  private final Handle handle;
  private volatile Scope scope; // which closes it; null: none does

  NativeObject(String noun, long address, LongConsumer release) {
    handle = new Handle(noun, address, release);
    scope = Scope.adopt(this);
  }

  final Handle handle() {
    return handle;
  }

  /** Gives the memory back. Closing again does nothing; any other use throws {@link IllegalStateException}. */
  @Override
  public final void close() {
    handle.close();
    final Scope holder = scope;
    if (holder != null) {
      holder.forget(this);
      scope = null;
    }
  }

  /** Says who closes it from now on; {@code null} for nobody. */
  final void moveTo(Scope other) {
    scope = other;
  }

  /**
   * Whether it has been closed.
   *
   * @return whether {@link #close} was called
   */
  public final boolean isClosed() {
    return handle.isClosed();
  }
}
