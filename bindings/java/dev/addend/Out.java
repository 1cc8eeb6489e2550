package dev.addend;

import java.util.function.Consumer;

/** Parameters through which the C interface gives results. */
final class Out {
  private Out() {}

  /** The handle that a call gives. */
  static long handle(Consumer<long[]> call) {
    final long[] out = new long[1];
    call.accept(out);
    return out[0];
  }

  /** The text that a call gives, of which nothing is left to release. */
  static String text(Consumer<long[]> call) {
    return Text.decode(bytes(call));
  }

  /** The bytes that a call gives, of which nothing is left to release. */
  static byte[] bytes(Consumer<long[]> call) {
    final long bytes = handle(call);
    try {
      return AddendNativeJNI.addend_string_data(bytes);
    } finally {
      AddendNative.addend_string_release(bytes);
    }
  }
}
