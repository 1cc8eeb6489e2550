package dev.addend.djl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import dev.addend.Addend;
import dev.addend.Tensor;
import java.io.IOException;
import org.junit.jupiter.api.Test;

/** Addend is used before DJL, in a JVM of its own: both take DJL's LibTorch. */
class AddendFirstTest extends Beside {
  @Test
  void bothTakeTheLibTorchOfDjl() throws IOException {
    assertEquals(0, loaded().size());
    assertTrue(Addend.libtorchVersion().startsWith("2.7."), Addend.libtorchVersion());
    assertEquals(1, loaded().size(), loaded().toString());
    assertTrue(loaded().get(0).startsWith(folder()), loaded().toString());
    try (NDManager manager = NDManager.newBaseManager()) {
      final NDArray array = manager.create(new float[] {1, 2, 3});
      assertArrayEquals(new float[] {1, 2, 3}, Djl.toAddend(array).toFloatArray());
      final Tensor tensor = Tensor.of(new float[] {4, 5}, 2);
      assertArrayEquals(new float[] {4, 5}, Djl.toDjl(tensor, manager).toFloatArray());
    }
    assertEquals(1, loaded().size(), loaded().toString());
  }
}
