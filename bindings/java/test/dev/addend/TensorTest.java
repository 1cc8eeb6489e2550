package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.List;
import org.junit.jupiter.api.Test;

class TensorTest {
  private static FloatBuffer direct(float... values) {
    final FloatBuffer buffer =
        ByteBuffer.allocateDirect(values.length * Float.BYTES).order(ByteOrder.nativeOrder()).asFloatBuffer();
    buffer.put(values).flip();
    return buffer;
  }

  @Test
  void arraysComeBackAsTheyWere() {
    try (Tensor floats = Tensor.of(new float[] {1, 2.5f, -3, 4, 5, 6}, 2, 3);
        Tensor doubles = Tensor.of(new double[] {0.1, 0.2});
        Tensor longs = Tensor.of(new long[] {Long.MIN_VALUE, Long.MAX_VALUE}, 2, 1);
        Tensor ints = Tensor.of(new int[] {-7, 8});
        Tensor booleans = Tensor.of(new boolean[] {true, false, true})) {
      assertArrayEquals(new float[] {1, 2.5f, -3, 4, 5, 6}, floats.toFloatArray());
      assertArrayEquals(new long[] {2, 3}, floats.shape());
      assertArrayEquals(new long[] {3, 1}, floats.strides());
      assertEquals(24, floats.numBytes());
      assertEquals(DType.FLOAT32, floats.dtype());
      assertEquals("cpu", floats.device());
      assertEquals(6, floats.numel());
      assertArrayEquals(new double[] {0.1, 0.2}, doubles.toDoubleArray());
      assertEquals(DType.FLOAT64, doubles.dtype());
      assertArrayEquals(new long[] {Long.MIN_VALUE, Long.MAX_VALUE}, longs.toLongArray());
      assertArrayEquals(new long[] {2, 1}, longs.shape());
      assertEquals(DType.INT32, ints.dtype());
      assertArrayEquals(new long[] {-7, 8}, ints.toLongArray());
      assertEquals(DType.BOOL, booleans.dtype());
      assertArrayEquals(new boolean[] {true, false, true}, booleans.toBooleanArray());
    }
  }

  @Test
  void arraysAreConverted() {
    try (Tensor doubles = Tensor.of(new double[] {0.1, -2});
        Tensor halves = doubles.to(DType.FLOAT16)) {
      assertArrayEquals(new float[] {0.1f, -2}, doubles.toFloatArray());
      assertArrayEquals(new boolean[] {true, true}, doubles.toBooleanArray());
      assertEquals(DType.FLOAT16, halves.dtype());
      // 0x2E66 is the half nearest to 0.1, which is 1638 / 2^14.
      assertArrayEquals(new double[] {1638 / 16384.0, -2}, halves.toDoubleArray());
    }
  }

  @Test
  void scalarsHaveNoDimensions() {
    try (Tensor scalar = Tensor.scalar(0.5)) {
      assertArrayEquals(new long[0], scalar.shape());
      assertEquals(0.5, scalar.item());
    }
  }

  @Test
  void anEmptyShapeIsThatOfAScalar() {
    final long[] none = {};
    final ByteBuffer bytes = ByteBuffer.allocateDirect(4).order(ByteOrder.nativeOrder());
    final DoubleBuffer doubles = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder()).asDoubleBuffer();
    try (Scope scope = Scope.open()) {
      for (Tensor scalar : List.of(
          Tensor.of(new float[] {0}, none), Tensor.of(new double[] {0}, none), Tensor.of(new long[] {0}, none),
          Tensor.of(new int[] {0}, none), Tensor.of(new boolean[] {false}, none), Tensor.of(direct(0), none),
          Tensor.of(doubles, none), Tensor.of(bytes, DType.FLOAT32, none), Tensor.wrap(direct(0), none),
          Tensor.wrap(doubles, none), Tensor.wrap(bytes, DType.INT32, none))) {
        assertArrayEquals(none, scalar.shape());
        assertEquals(0, scalar.item());
      }
      for (Tensor one : List.of(
          Tensor.of(new float[] {0}), Tensor.of(new double[] {0}), Tensor.of(new long[] {0}),
          Tensor.of(new int[] {0}), Tensor.of(new boolean[] {false}), Tensor.of(direct(0)), Tensor.of(doubles),
          Tensor.of(bytes, DType.FLOAT32), Tensor.wrap(direct(0)), Tensor.wrap(doubles),
          Tensor.wrap(bytes, DType.INT32))) {
        assertArrayEquals(new long[] {1}, one.shape());
      }
    }
    assertThrows(AddendException.class, () -> Tensor.of(new float[2], none));
  }

  @Test
  void nothingIsATensorToo() {
    try (Tensor none = Tensor.of(new float[0]); Tensor rows = Tensor.of(new float[0], 3, 0)) {
      assertArrayEquals(new long[] {0}, none.shape());
      assertEquals(0, none.toFloatArray().length);
      assertEquals(0, rows.asFloatBuffer().remaining());
    }
  }

  @Test
  void ofCopiesBetweenPositionAndLimit() {
    final FloatBuffer heap = FloatBuffer.wrap(new float[] {9, 1, 2, 9});
    heap.position(1).limit(3);
    final FloatBuffer direct = direct(9, 1, 2);
    direct.position(1);
    try (Tensor ofHeap = Tensor.of(heap); Tensor ofDirect = Tensor.of(direct)) {
      direct.put(1, 7);
      assertArrayEquals(new float[] {1, 2}, ofHeap.toFloatArray());
      assertArrayEquals(new float[] {1, 2}, ofDirect.toFloatArray());
      assertEquals(1, heap.position());
      assertEquals(1, direct.position());
    }
  }

  @Test
  void wrapSharesBetweenPositionAndLimit() {
    final FloatBuffer buffer = direct(9, 1, 2, 9);
    buffer.position(1).limit(3);
    try (Tensor tensor = Tensor.wrap(buffer, 2, 1)) {
      buffer.put(1, 7);
      assertArrayEquals(new float[] {7, 2}, tensor.toFloatArray());
    }
  }

  @Test
  void wrapTakesEveryKindOfBuffer() {
    final ByteBuffer bytes = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());
    final DoubleBuffer doubles = bytes.asDoubleBuffer();
    doubles.put(0, 1.5).put(1, -2);
    try (Tensor ofDoubles = Tensor.wrap(doubles); Tensor ofBytes = Tensor.wrap(bytes, DType.FLOAT64, 1, 2)) {
      assertArrayEquals(new double[] {1.5, -2}, ofDoubles.toDoubleArray());
      assertArrayEquals(new double[] {1.5, -2}, ofBytes.toDoubleArray());
    }
  }

  @Test
  void wrapKeepsTheMemoryAlive() throws InterruptedException {
    try (Tensor tensor = Tensor.wrap(direct(1, 2, 3))) {
      Garbage.collect();
      // Allocates buffers that would take over the memory if it had been given back.
      for (int i = 0; i < 100; i++) {
        direct(9, 9, 9);
      }
      assertArrayEquals(new float[] {1, 2, 3}, tensor.toFloatArray());
    }
  }

  @Test
  void wrapRefusesWhatItCannotShare() {
    final IllegalArgumentException heap =
        assertThrows(IllegalArgumentException.class, () -> Tensor.wrap(FloatBuffer.wrap(new float[2])));
    assertEquals("buffer is not direct, its memory cannot be shared: use Tensor.of", heap.getMessage());
    final ByteOrder foreign =
        ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN;
    final ByteBuffer swapped = ByteBuffer.allocateDirect(8).order(foreign);
    assertThrows(IllegalArgumentException.class, () -> Tensor.wrap(swapped, DType.FLOAT32));
    assertThrows(IllegalArgumentException.class, () -> Tensor.wrap(swapped.asFloatBuffer()));
    Tensor.wrap(swapped, DType.UINT8).close();
  }

  @Test
  void buffersShareTheMemoryOfTensors() {
    final FloatBuffer memory = direct(1, 2);
    try (Tensor tensor = Tensor.wrap(memory)) {
      final FloatBuffer view = tensor.asFloatBuffer();
      memory.put(0, 5);
      assertEquals(5, view.get(0));
      assertEquals(2, view.remaining());
      assertThrows(ReadOnlyBufferException.class, () -> view.put(0, 1));
      assertEquals(ByteOrder.nativeOrder(), tensor.asByteBuffer().order());
      assertEquals(8, tensor.asByteBuffer().remaining());
    }
  }

  @Test
  void buffersOutliveTheirTensor() throws InterruptedException {
    Garbage.releaseAll(AddendHandleKind.ADDEND_HANDLE_TENSOR);
    DoubleBuffer view;
    try (Tensor tensor = Tensor.of(new double[] {1, 2, 3}); Tensor kept = tensor.to(DType.FLOAT64)) {
      view = kept.asDoubleBuffer().slice();
    }
    Garbage.collect();
    assertEquals(1, AddendNative.addend_debug_live(AddendHandleKind.ADDEND_HANDLE_TENSOR));
    assertEquals(DoubleBuffer.wrap(new double[] {1, 2, 3}), view);
    view = null;
    Garbage.collectUntil(() -> AddendNative.addend_debug_live(AddendHandleKind.ADDEND_HANDLE_TENSOR) == 0);
  }

  @Test
  void buffersAreOfTheTensorsType() {
    try (Tensor longs = Tensor.of(new long[] {1, 2}); Tensor ints = Tensor.of(new int[] {3})) {
      assertEquals(2, longs.asLongBuffer().get(1));
      assertEquals(3, ints.asIntBuffer().get(0));
      final IllegalStateException error = assertThrows(IllegalStateException.class, longs::asFloatBuffer);
      assertEquals("tensor is int64: convert it with to(DType.FLOAT32)", error.getMessage());
    }
  }

  @Test
  void sizesHaveToFit() {
    final AddendException error =
        assertThrows(AddendException.class, () -> Tensor.of(new float[8], 2, 5));
    assertEquals(AddendException.Code.INVALID_ARGUMENT, error.code());
    assertTrue(error.getMessage().contains("32") && error.getMessage().contains("40"), error.getMessage());
    assertThrows(AddendException.class, () -> Tensor.of(new float[8], -8));
    assertThrows(AddendException.class, () -> Tensor.of(new float[8], Long.MAX_VALUE, Long.MAX_VALUE, 2));
    assertThrows(AddendException.class, () -> Tensor.of(new float[8], 1L << 62, 4));
  }

  @Test
  void itemNeedsOneElement() {
    try (Tensor two = Tensor.of(new float[2])) {
      final IllegalStateException error = assertThrows(IllegalStateException.class, two::item);
      assertEquals("item() needs a tensor of one element, this one has 2", error.getMessage());
    }
  }

  @Test
  void dlpackSharesMemory() throws InterruptedException {
    Garbage.releaseAll(AddendHandleKind.ADDEND_HANDLE_DLPACK);
    final FloatBuffer memory = direct(1, 2, 3, 4);
    final Tensor shared;
    try (Tensor tensor = Tensor.wrap(memory, 2, 2)) {
      shared = Tensor.fromDlpack(tensor.toDlpack(), false);
    }
    memory.put(3, 9);
    assertArrayEquals(new float[] {1, 2, 3, 9}, shared.toFloatArray());
    assertArrayEquals(new long[] {2, 2}, shared.shape());
    shared.close();
    assertEquals(0, AddendNative.addend_debug_live(AddendHandleKind.ADDEND_HANDLE_DLPACK));
  }

  @Test
  void dlpackOfTheNewerKind() throws InterruptedException {
    Garbage.releaseAll(AddendHandleKind.ADDEND_HANDLE_DLPACK);
    final Tensor shared;
    try (Tensor tensor = Tensor.of(new boolean[] {true, false})) {
      shared = Tensor.fromDlpack(tensor.toDlpack(true), true);
      // The older struct has no bool.
      try (Tensor bytes = Tensor.fromDlpack(tensor.toDlpack(false), false)) {
        assertEquals(DType.UINT8, bytes.dtype());
      }
    }
    assertEquals(DType.BOOL, shared.dtype());
    assertArrayEquals(new boolean[] {true, false}, shared.toBooleanArray());
    shared.close();
    assertEquals(0, AddendNative.addend_debug_live(AddendHandleKind.ADDEND_HANDLE_DLPACK));
  }

  @Test
  void closedTensorsSaySo() {
    final Tensor tensor = Tensor.of(new float[2]);
    tensor.close();
    tensor.close();
    assertTrue(tensor.isClosed());
    final IllegalStateException error = assertThrows(IllegalStateException.class, tensor::shape);
    assertEquals("the tensor is closed", error.getMessage());
    assertThrows(IllegalStateException.class, tensor::toFloatArray);
    assertThrows(IllegalStateException.class, () -> tensor.to("cpu"));
    assertEquals("closed tensor", tensor.toString());
  }

  @Test
  void printsAsPytorchDoes() {
    try (Tensor tensor = Tensor.of(new double[] {1, 2})) {
      assertTrue(tensor.toString().contains("1") && tensor.toString().contains("2"), tensor.toString());
    }
  }
}
