package dev.addend;

import java.nio.ByteBuffer;

/** Bytes where native code can read them. */
final class Memory {
  private Memory() {}

  /** Returns the bytes between position and limit in a direct buffer: a slice if the buffer is direct, else a copy. */
  static ByteBuffer direct(ByteBuffer bytes) {
    if (bytes.isDirect()) {
      return bytes.slice();
    }
    final ByteBuffer copy = ByteBuffer.allocateDirect(bytes.remaining());
    copy.put(bytes.duplicate()).flip();
    return copy;
  }
}
