package dev.addend.spark;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Set;

/**
 * Finds the files that an ONNX model keeps weights in, as its bytes go by: behind each entry of the key {@code location} stands
 * a name. What other files have there by chance is no file beside them.
 */
final class WeightFiles {
  /** The key of an entry of Protocol Buffers, and the tag of its value: a length and so many bytes follow. */
  private static final byte[] KEY = "\n\blocation\u0012".getBytes(StandardCharsets.US_ASCII);

  private static final int LONGEST = 4096; // bytes of a path

  private final Set<String> names;
  private final ByteArrayOutputStream name = new ByteArrayOutputStream();
  private int matched; // bytes of KEY that went by last
  private int length; // of the name, as far as it is read
  private int shift = -1; // the next bits of the length; -1 where none is read
  private int left; // bytes of the name that are to come

  /**
   * A reader of one file.
   *
   * @param names where the names are put
   */
  WeightFiles(Set<String> names) {
    this.names = names;
  }

  /** Reads the next bytes of the file. */
  void read(byte[] bytes, int count) {
    for (int k = 0; k < count; k++) {
      read(bytes[k]);
    }
  }

  private void read(byte b) {
    if (left > 0) {
      name.write(b);
      if (--left == 0) {
        names.add(new String(name.toByteArray(), StandardCharsets.UTF_8));
      }
    } else if (shift >= 0) {
      length |= (b & 0x7f) << shift;
      shift += 7;
      if (b >= 0) {
        left = length <= LONGEST ? length : 0;
        shift = -1;
        name.reset();
      } else if (shift > 14) {
        shift = -1;
      }
    } else if (b == KEY[matched]) {
      if (++matched == KEY.length) {
        matched = 0;
        length = 0;
        shift = 0;
      }
    } else {
      // The first byte of the key occurs in it once.
      matched = b == KEY[0] ? 1 : 0;
    }
  }
}
