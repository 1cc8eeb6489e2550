package dev.addend;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Arrays;

/** Cost of crossing from Java into the library: time per call, bytes copied per tensor. */
public final class BindingCost {
  private static final int ROUNDS = 15;
  private static final int CALLS = 200_000;
  private static final int ELEMENTS = 16 << 20;

  private BindingCost() {}

  private static volatile long sink;

  @FunctionalInterface
  private interface Call {
    long run();
  }

  /** Nanoseconds per call: the median of rounds, after as many that do not count. */
  private static double nanoseconds(int calls, Call call) {
    final double[] rounds = new double[2 * ROUNDS];
    for (int round = 0; round < rounds.length; round++) {
      long sum = 0;
      final long start = System.nanoTime();
      for (int i = 0; i < calls; i++) {
        sum += call.run();
      }
      rounds[round] = (System.nanoTime() - start) / (double) calls;
      sink = sum;
    }
    final double[] counted = Arrays.copyOfRange(rounds, ROUNDS, rounds.length);
    Arrays.sort(counted);
    return counted[ROUNDS / 2];
  }

  private static void print(String what, double nanoseconds) {
    System.out.printf("%-52s %12.0f ns%n", what, nanoseconds);
  }

  private static void print(String what, boolean shared, double nanoseconds) {
    final long bytes = shared ? 0 : (long) ELEMENTS * Float.BYTES;
    System.out.printf("%-52s %12.0f ns %12d bytes copied%n", what, nanoseconds, bytes);
  }

  private static long close(Tensor tensor) {
    tensor.close();
    return 1;
  }

  public static void main(String[] arguments) {
    calls();
    tensors();
  }

  private static void calls() {
    print("native call alone (addend_abi_version)", nanoseconds(CALLS, AddendNative::addend_abi_version));
    try (Tensor value = Tensor.of(new float[2]); Composition x = Composition.diagonal(value, null, 0)) {
      print("call of the face (Composition.numc)", nanoseconds(CALLS, x::numc));
      print("call that gives text (Composition.device)", nanoseconds(CALLS, () -> x.device().length()));
      print("object made and closed (Cancellation)", nanoseconds(CALLS / 10, () -> {
        try (Cancellation cancellation = new Cancellation()) {
          return cancellation.isClosed() ? 1 : 0;
        }
      }));
      print("operator (x.neg(), two elements)", nanoseconds(CALLS / 200, () -> {
        try (Composition y = x.neg()) {
          return y.numc();
        }
      }));
    }
  }

  private static void tensors() {
    final FloatBuffer direct =
        ByteBuffer.allocateDirect(ELEMENTS * Float.BYTES).order(ByteOrder.nativeOrder()).asFloatBuffer();
    final float[] array = new float[ELEMENTS];
    try (Tensor wrapped = Tensor.wrap(direct); Tensor copied = Tensor.of(array)) {
      direct.put(0, 1);
      array[0] = 1;
      print("64 MiB in, direct buffer (Tensor.wrap)", wrapped.asFloatBuffer().get(0) == 1,
          nanoseconds(200, () -> close(Tensor.wrap(direct))));
      print("64 MiB in, array (Tensor.of)", copied.asFloatBuffer().get(0) == 1,
          nanoseconds(2, () -> close(Tensor.of(array))));
      final FloatBuffer view = wrapped.asFloatBuffer();
      final float[] values = wrapped.toFloatArray();
      direct.put(0, 2);
      print("64 MiB out, buffer (asFloatBuffer)", view.get(0) == 2,
          nanoseconds(200, () -> wrapped.asFloatBuffer().remaining()));
      print("64 MiB out, array (toFloatArray)", values[0] == 2,
          nanoseconds(2, () -> wrapped.toFloatArray().length));
    }
  }
}
