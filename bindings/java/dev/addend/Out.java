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
    return Text.decode(bytes(call, "ask for less"));
  }

  /** The bytes that a call gives, of which nothing is left; {@code otherwise} says what to do where they are too many. */
  static byte[] bytes(Consumer<long[]> call, String otherwise) {
    final long bytes = handle(call);
    try {
      requireArray(AddendNative.addend_string_size(bytes), otherwise);
      return AddendNativeJNI.addend_string_data(bytes);
    } finally {
      AddendNative.addend_string_release(bytes);
    }
  }

  static void requireArray(long bytes, String otherwise) {
    if (bytes > Integer.MAX_VALUE) {
      throw new UnsupportedOperationException(
          "the result has " + bytes + " bytes, an array holds " + Integer.MAX_VALUE + ": " + otherwise);
    }
  }
}
