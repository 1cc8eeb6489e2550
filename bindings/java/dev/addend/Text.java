package dev.addend;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Text of the C interface, which is UTF-8 without NUL. */
final class Text {
  private Text() {}

  /** The bytes of a text; {@code null} for {@code null}. */
  static byte[] encode(String text) {
    if (text == null) {
      return null;
    }
    requireNoNul(text);
    try {
      final ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      return Arrays.copyOf(bytes.array(), bytes.limit());
    } catch (CharacterCodingException e) {
      throw new IllegalArgumentException("text has half of a surrogate pair, which UTF-8 cannot hold", e);
    }
  }

  static String decode(byte[] bytes) {
    return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
  }

  static void requireNoNul(String text) {
    final int nul = text.indexOf('\0');
    if (nul >= 0) {
      throw new IllegalArgumentException("text has a NUL at position " + nul);
    }
  }
}
