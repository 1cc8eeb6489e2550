package dev.addend.djl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import dev.addend.Addend;
import dev.addend.Tensor;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Addend is used before DJL, in a JVM of its own: both take DJL's LibTorch. */
class AddendFirstTest extends Beside {
  @Test
  void bothTakeTheLibTorchOfDjl() throws IOException {
    assertEquals(List.of(), loaded());
    assertTrue(Addend.libtorchVersion().startsWith("2.7."), Addend.libtorchVersion());
    assertOnlyThatOfDjl();
    try (NDManager manager = NDManager.newBaseManager()) {
      final NDArray array = manager.create(new float[] {1, 2, 3});
      assertArrayEquals(new float[] {1, 2, 3}, Djl.toAddend(array).toFloatArray());
      final Tensor tensor = Tensor.of(new float[] {4, 5}, 2);
      assertArrayEquals(new float[] {4, 5}, Djl.toDjl(tensor, manager).toFloatArray());
    }
    assertOnlyThatOfDjl();
  }
}
