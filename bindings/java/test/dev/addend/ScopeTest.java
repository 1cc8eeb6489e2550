package dev.addend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class ScopeTest {
  private static Tensor tensor() {
    return Tensor.of(new double[] {1, 2});
  }

  @Test
  void closesWhatWasMadeInside() {
    final Tensor outside = tensor();
    final Tensor inside;
    final Composition composition;
    final Tensor kept;
    try (Scope scope = Scope.open()) {
      inside = tensor();
      composition = Composition.diagonal(inside, null, 0).softmax(0);
      kept = scope.keep(tensor());
    }
    assertTrue(inside.isClosed());
    assertTrue(composition.isClosed());
    assertFalse(kept.isClosed());
    assertFalse(outside.isClosed());
    assertFalse(tensor().isClosed());
    kept.close();
    outside.close();
  }

  @Test
  void keptObjectsBelongToTheOuterScope() {
    final Tensor kept;
    try (Scope outer = Scope.open()) {
      try (Scope inner = Scope.open()) {
        kept = inner.keep(tensor());
      }
      assertFalse(kept.isClosed());
    }
    assertTrue(kept.isClosed());
  }

  @Test
  void scopesCloseFromTheInside() {
    final Scope outer = Scope.open();
    final Scope inner = Scope.open();
    assertEquals(
        "a scope inside this one is still open: close it first",
        assertThrows(IllegalStateException.class, outer::close).getMessage());
    inner.close();
    inner.close();
    outer.close();
  }

  @Test
  void scopesBelongToTheirThread() throws InterruptedException {
    try (Scope scope = Scope.open()) {
      final AtomicReference<Throwable> thrown = new AtomicReference<>();
      final AtomicReference<Tensor> made = new AtomicReference<>();
      final Thread thread = new Thread(() -> {
        made.set(tensor());
        try {
          scope.close();
        } catch (IllegalStateException e) {
          thrown.set(e);
        }
      });
      thread.start();
      thread.join();
      assertInstanceOf(IllegalStateException.class, thrown.get());
      scope.close();
      assertFalse(made.get().isClosed());
      made.get().close();
    }
  }

  @Test
  void explanationsNeedNoScope() {
    final Explanation explanation;
    try (Scope scope = Scope.open()) {
      explanation = Composition.diagonal(tensor(), null, 0).explain(Target.largest());
    }
    assertEquals(2, explanation.value());
    assertTrue(explanation.toJson().contains("2"));
  }

  @Test
  void errorsLeaveNothingOpen() {
    final AtomicReference<Tensor> made = new AtomicReference<>();
    assertThrows(AddendException.class, () -> {
      try (Scope scope = Scope.open()) {
        made.set(tensor());
        Addend.call("aten::no_such_operator", made.get());
      }
    });
    assertTrue(made.get().isClosed());
  }

  @Test
  void whatIsClosedByHandLeavesItsScope() throws InterruptedException {
    try (Scope outer = Scope.open(); Scope inner = Scope.open()) {
      final WeakReference<Tensor> closed = closed(inner.keep(tensor()));
      final WeakReference<Tensor> closedByAnother = closedByAnotherThread(tensor());
      Garbage.collectUntil(() -> closed.get() == null && closedByAnother.get() == null);
    }
  }

  private static WeakReference<Tensor> closed(Tensor tensor) {
    tensor.close();
    return new WeakReference<>(tensor);
  }

  private static WeakReference<Tensor> closedByAnotherThread(Tensor tensor) throws InterruptedException {
    final Thread thread = new Thread(tensor::close);
    thread.start();
    thread.join();
    return new WeakReference<>(tensor);
  }
}
