package dev.addend;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Text of the C interface, which is UTF-8 without NUL; paths are text too. */
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

  /** Lines for people: some, then one for each warning. */
  static String lines(List<String> lines, List<String> warnings) {
    return Stream.concat(lines.stream(), warnings.stream().map("Warning: "::concat)).collect(Collectors.joining("\n"));
  }

  static void requireNoNul(String text) {
    final int nul = text.indexOf('\0');
    if (nul >= 0) {
      throw new IllegalArgumentException("text has a NUL at position " + nul);
    }
  }

  /**
   * A path as text, whose UTF-8 is the name that the file has for the C interface. Refused are paths whose text would name
   * another file: those of other file systems, such as archives, and those with letters that the encoding of this process
   * cannot tell.
   */
  static String of(Path path) {
    final String text = path.toString();
    if (path.getFileSystem() != FileSystems.getDefault()) {
      throw new IllegalArgumentException("the path " + path + " is of another file system than this machine's");
    }
    final String encoding = System.getProperty("sun.jnu.encoding", "UTF-8");
    if (!Charset.forName(encoding).equals(StandardCharsets.UTF_8)) {
      if (!text.chars().allMatch(c -> c < 128)) {
        throw new IllegalArgumentException("the path " + path + " cannot be told as text where file names are in "
            + encoding + ": start the JVM with LC_ALL=C.UTF-8");
      }
    } else if (!Path.of(text).equals(path)) {
      throw new IllegalArgumentException("the path " + path + " cannot be told as text, because it is not UTF-8");
    }
    return text;
  }
}
