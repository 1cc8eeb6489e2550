package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/**
 * Random operations on handles that are live and on handles that were released behind Java's back, as another library in
 * the process would by mistake. Each tensor holds a number of its own, so that a handle that reaches another owner's
 * tensor is seen. The property addend.operations says how many operations.
 */
class HandlesTest {
  private static final int OPERATIONS = Integer.getInteger("addend.operations", 20_000);

  /** The most tensors of each list (live, stale, closed) at a time. */
  private static final int MOST = 500;

  private final Random random = new Random(20261123);
  private final List<Numbered> live = new ArrayList<>();
  /** Whose handle was released, and who do not know it. */
  private final List<Numbered> stale = new ArrayList<>();
  private final List<Numbered> closed = new ArrayList<>();
  private long made;

  private static final class Numbered {
    final Tensor tensor;
    final long number;

    Numbered(long number) {
      this.number = number;
      tensor = Tensor.of(new long[] {number});
    }

    void expectOwn() {
      assertArrayEquals(new long[] {number}, tensor.toLongArray());
    }

    void releaseBehindItsBack() {
      try (Borrow borrow = new Borrow()) {
        AddendNative.addend_tensor_release(borrow.of(tensor));
      }
    }
  }

  private Numbered oneOf(List<Numbered> members) {
    return members.get(random.nextInt(members.size()));
  }

  private Numbered takeFrom(List<Numbered> members) {
    final int last = members.size() - 1;
    final Numbered taken = members.set(random.nextInt(last + 1), members.get(last));
    members.remove(last);
    return taken;
  }

  private void step() {
    final int choice = random.nextInt(100);
    if (choice < 30 || live.isEmpty()) {
      live.add(new Numbered(++made));
    } else if (choice < 55) {
      oneOf(live).expectOwn();
    } else if (choice < 65) {
      final Numbered numbered = takeFrom(live);
      numbered.releaseBehindItsBack();
      stale.add(numbered);
    } else if (choice < 75) {
      final Numbered numbered = takeFrom(live);
      numbered.expectOwn();
      numbered.tensor.close();
      closed.add(numbered);
    } else if (choice < 90 && !stale.isEmpty()) {
      useStale(oneOf(stale));
    } else if (!closed.isEmpty()) {
      assertThrows(IllegalStateException.class, oneOf(closed).tensor::toLongArray);
    }
    for (List<Numbered> members : List.of(live, stale, closed)) {
      if (members.size() > MOST) {
        // Once more, where it is stale or closed.
        takeFrom(members).tensor.close();
      }
    }
  }

  private static void useStale(Numbered numbered) {
    final AddendException thrown = assertThrows(AddendException.class, numbered.tensor::toLongArray);
    assertEquals(AddendException.Code.INVALID_ARGUMENT, thrown.code());
    assertThrows(AddendException.class, () -> Composition.diagonal(numbered.tensor, null, 0));
    numbered.releaseBehindItsBack();
  }

  @Test
  void releasedHandlesReachNoOtherOwner() {
    for (int i = 0; i < OPERATIONS; i++) {
      step();
    }
    live.forEach(Numbered::expectOwn);
    for (List<Numbered> members : List.of(live, stale, closed)) {
      members.forEach(numbered -> numbered.tensor.close());
    }
  }
}
