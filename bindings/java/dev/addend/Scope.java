package dev.addend;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/**
 * Closes at its end everything that its thread made inside it, except for what was kept:
 *
 * <pre>{@code
 * try (Scope scope = Scope.open()) {
 *   Composition h = x.linear(weight, bias).gelu();
 *   return scope.keep(h.softmax(-1));
 * }
 * }</pre>
 *
 * <p>Scopes nest; the innermost one takes what is made. A scope belongs to the thread that opened it.
 */
public final class Scope implements AutoCloseable {
  private static final ThreadLocal<Scope> INNERMOST = new ThreadLocal<>();

  private final Scope outer = INNERMOST.get();
  private final Thread thread = Thread.currentThread();
  // The open objects. Other threads remove those that they close.
  private final Set<NativeObject> objects =
      Collections.synchronizedSet(Collections.newSetFromMap(new IdentityHashMap<>()));

  private Scope() {}

  /**
   * Opens a scope inside that which this thread has open, if any.
   *
   * @return the scope; close it on the same thread
   */
  public static Scope open() {
    final Scope scope = new Scope();
    INNERMOST.set(scope);
    return scope;
  }

  /** Hands a new object to the innermost scope of this thread, which it gives; {@code null} where none is open. */
  static Scope adopt(NativeObject object) {
    final Scope scope = INNERMOST.get();
    if (scope != null) {
      scope.objects.add(object);
    }
    return scope;
  }

  /** Holds an object no longer that was closed by hand. */
  void forget(NativeObject object) {
    objects.remove(object);
  }

  /**
   * Leaves something open when the scope ends. It then belongs to the next outer scope, if there is one.
   *
   * @param object what was made inside
   * @param <T> its type
   * @return {@code object}
   */
  public <T extends AutoCloseable> T keep(T object) {
    checkThread();
    if (object instanceof NativeObject && objects.remove(object)) {
      final NativeObject kept = (NativeObject) object;
      kept.moveTo(outer);
      if (outer != null) {
        outer.objects.add(kept);
      }
    }
    return object;
  }

  /** Closes what was made inside. Closing a scope twice does nothing. */
  @Override
  public void close() {
    checkThread();
    final Scope innermost = INNERMOST.get();
    if (!isOpen(innermost)) {
      return;
    }
    if (innermost != this) {
      throw new IllegalStateException("a scope inside this one is still open: close it first");
    }
    if (outer == null) {
      INNERMOST.remove();
    } else {
      INNERMOST.set(outer);
    }
    final List<NativeObject> made = new ArrayList<>(objects);
    objects.clear();
    made.forEach(NativeObject::close);
  }

  private boolean isOpen(Scope innermost) {
    for (Scope scope = innermost; scope != null; scope = scope.outer) {
      if (scope == this) {
        return true;
      }
    }
    return false;
  }

  private void checkThread() {
    if (Thread.currentThread() != thread) {
      throw new IllegalStateException("scope belongs to the thread " + thread.getName());
    }
  }
}
