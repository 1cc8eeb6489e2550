package dev.addend.djl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.djl.engine.Engine;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.repository.zoo.ZooModel;
import dev.addend.Attribution;
import dev.addend.AttributionScope;
import dev.addend.DType;
import dev.addend.Explanation;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Request;
import dev.addend.Target;
import dev.addend.Tensor;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Arrays and models of DJL's PyTorch engine in Addend, and back. */
class DjlTest extends Beside {
  private static final Target MARGIN = Target.difference(new long[] {0, 0}, new long[] {0, 1});

  private NDManager manager;

  @BeforeEach
  void open() {
    manager = Engine.getEngine(Djl.ENGINE).newBaseManager();
  }

  @AfterEach
  void close() {
    manager.close();
  }

  @Test
  void whatOneSideWritesTheOtherReads() {
    final NDArray array = manager.create(new float[] {1, 2, 3, 4, 5, 6}, new Shape(2, 3));
    final Tensor tensor = Djl.toAddend(array);
    final Tensor turned = Djl.toAddend(array.transpose());
    array.muli(10);
    assertArrayEquals(new float[] {10, 20, 30, 40, 50, 60}, tensor.toFloatArray());
    assertArrayEquals(new long[] {3, 2}, turned.shape());
    assertArrayEquals(new float[] {10, 40, 20, 50, 30, 60}, turned.toFloatArray());

    final FloatBuffer buffer = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder()).asFloatBuffer();
    final NDArray shared = Djl.toDjl(Tensor.wrap(buffer, 2), manager);
    buffer.put(1, 7);
    assertArrayEquals(new float[] {0, 7}, shared.toFloatArray());
    final NDArray again = Djl.toDjl(Djl.toAddend(shared), manager);
    shared.addi(1);
    assertEquals(8, buffer.get(1));
    assertArrayEquals(new float[] {1, 8}, again.toFloatArray());
  }

  @Test
  void typesAndShapesStay() {
    assertEquals(DType.INT64, Djl.toAddend(manager.create(new long[] {1})).dtype());
    assertEquals(DType.BOOL, Djl.toAddend(manager.create(new boolean[] {true})).dtype());
    assertEquals(DType.FLOAT64, Djl.toAddend(manager.create(2.0)).dtype());
    assertArrayEquals(new long[0], Djl.toAddend(manager.create(2.0)).shape());
    assertArrayEquals(new long[] {0, 2}, Djl.toAddend(manager.create(new Shape(0, 2))).shape());
    assertEquals(new Shape(1, 2), Djl.toDjl(Tensor.of(new double[] {1, 2}, 1, 2), manager).getShape());
  }

  @Test
  void eitherSideMayBeClosedFirst() {
    final Tensor sum;
    try (NDManager inner = manager.newSubManager()) {
      sum = Djl.toAddend(inner.create(new float[] {1, 2}).add(1)); // on memory of LibTorch's
    }
    assertArrayEquals(new float[] {2, 3}, sum.toFloatArray());
    final NDArray array = Djl.toDjl(sum, manager);
    sum.close();
    assertArrayEquals(new float[] {2, 3}, array.toFloatArray());
    final Tensor copy;
    try (NDManager inner = manager.newSubManager()) {
      final NDArray numbers = inner.create(new float[] {4, 5});
      copy = Djl.copyToAddend(numbers.reshape(2, 1));
      numbers.muli(0);
    }
    assertArrayEquals(new float[] {4, 5}, copy.toFloatArray());
  }

  @Test
  void whatHasNoTensorIsRefused() {
    final NDArray foreign = (NDArray) Proxy.newProxyInstance(
        getClass().getClassLoader(), new Class<?>[] {NDArray.class}, (proxy, method, arguments) -> null);
    final IllegalArgumentException e = assertThrows(IllegalArgumentException.class, () -> Djl.toAddend(foreign));
    assertTrue(e.getMessage().contains("not one of DJL's PyTorch engine"), e.getMessage());
    final NDArray texts = manager.create(new String[] {"a"});
    assertThrows(IllegalArgumentException.class, () -> Djl.toAddend(texts));
    assertThrows(IllegalArgumentException.class, () -> Djl.copyToAddend(texts));
    final NDArray closed = manager.create(1f);
    closed.close();
    assertThrows(IllegalStateException.class, () -> Djl.toAddend(closed));
    final NDManager over = manager.newSubManager();
    over.close();
    final Tensor tensor = Tensor.of(new float[] {1}, 1);
    assertThrows(IllegalStateException.class, () -> Djl.toDjl(tensor, over));
    tensor.close();
    assertThrows(IllegalStateException.class, () -> Djl.toDjl(tensor, manager));
    assertThrows(NullPointerException.class, () -> Djl.toAddend(null));
  }

  /** The model that DJL serves, and the row that it is asked about. */
  @Test
  void aServedModelIsExplained() throws Exception {
    try (ZooModel<NDList, NDList> served = served(); Predictor<NDList, NDList> predictor = served.newPredictor()) {
      assertEquals(BREAST_CANCER.resolve("model.pt").toRealPath(), Djl.modelFile(served).toRealPath());
      final Model model = Model.load(Djl.modelFile(served));
      for (float[] numbers : rows()) {
        final NDArray row = manager.create(numbers, new Shape(1, COLUMNS));
        final float[] logits = predictor.predict(new NDList(row)).singletonOrThrow().toFloatArray();
        try (Attribution attribution = model.attribute(
            Request.of(Input.of(Djl.toAddend(row)).splitAlong(1).baseline(baseline())).target(MARGIN))) {
          final NDArray output = Djl.toDjl(attribution.value(), manager);
          assertArrayEquals(logits, output.toFloatArray());
          final NDArray parts = Djl.toDjl(attribution.input(0), manager);
          assertEquals(new Shape(1, 1, COLUMNS), parts.getShape());
          final Explanation explanation = attribution.explain(0);
          assertEquals((double) logits[0] - logits[1], explanation.value(), 1e-5);
          assertEquals(explanation.value(),
              explanation.reference() + parts.sum().getFloat() + explanation.leftover(), 1e-4);
        }
      }
    }
  }

  /** The model that DJL has loaded is explained as DJL runs it, without a second copy of its weights. */
  @Test
  void whatDjlRunsIsExplained() throws Exception {
    try (ZooModel<NDList, NDList> served = served(); Predictor<NDList, NDList> predictor = served.newPredictor()) {
      final NDArray row = manager.create(rows()[0], new Shape(1, COLUMNS)).add(0);
      final Request request =
          Request.of(Input.of(Djl.toAddend(row)).splitAlong(1).baseline(baseline())).target(MARGIN);
      final Explanation expected = Model.load(Djl.modelFile(served)).attribute(request).explain(0);
      final AttributionScope scope = new AttributionScope(request);
      final NDArray output = predictor.predict(new NDList(row)).singletonOrThrow();
      scope.addOutput("logits", Djl.toAddend(output));
      final Explanation explanation = scope.end().explain(0);
      assertEquals(expected.value(), explanation.value());
      assertEquals(COLUMNS, explanation.contributions().size());
      for (int column = 0; column < COLUMNS; column++) {
        assertEquals(expected.contributions().get(column).value(), explanation.contributions().get(column).value(), 1e-5);
      }
    }
  }

  @Test
  void nothingLeaks() throws Exception {
    try (ZooModel<NDList, NDList> served = served()) {
      final Model model = Model.load(Djl.modelFile(served));
      final float[] numbers = rows()[0];
      long settled = 0;
      for (int call = 0; call < 10_000; call++) {
        try (NDManager inner = manager.newSubManager();
            Tensor row = Djl.toAddend(inner.create(numbers, new Shape(1, COLUMNS)));
            Attribution attribution =
                model.attribute(Request.of(Input.of(row).splitAlong(1).baseline(0)).target(MARGIN));
            Tensor parts = attribution.input(0)) {
          assertEquals(COLUMNS, Djl.toDjl(parts, inner).size());
          // A leak would be large enough to be seen: 10,000 times 40 kB.
          try (Tensor large = Djl.copyToAddend(inner.zeros(new Shape(10_000)))) {
            assertEquals(10_000, Djl.toDjl(large, inner).size());
          }
        }
        if (call == 2_000) {
          settled = resident();
        }
      }
      final long growth = resident() - settled;
      System.out.println("resident memory grew by " + growth / 1024 + " KiB in 8,000 calls");
      assertTrue(growth < 8 << 20, "resident memory grew by " + growth + " bytes");
    }
  }

  private static long resident() throws IOException {
    System.gc();
    final String line = Files.readAllLines(Path.of("/proc/self/status")).stream()
        .filter(one -> one.startsWith("VmRSS"))
        .findFirst()
        .orElseThrow();
    return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
  }
}
