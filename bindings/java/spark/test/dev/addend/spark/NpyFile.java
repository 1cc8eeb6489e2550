package dev.addend.spark;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Writes rows of float32 as NumPy does. */
final class NpyFile implements AutoCloseable {
  private final OutputStream out;

  NpyFile(Path file, long rows, int columns) throws IOException {
    String header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + rows + ", " + columns + "), }";
    // The data begins at a multiple of 64 bytes.
    while ((10 + header.length() + 1) % 64 != 0) {
      header += " ";
    }
    header += "\n";
    out = new BufferedOutputStream(Files.newOutputStream(file));
    out.write(new byte[] {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0});
    out.write(new byte[] {(byte) header.length(), (byte) (header.length() >> 8)});
    out.write(header.getBytes(StandardCharsets.US_ASCII));
  }

  void write(float[] row) throws IOException {
    final ByteBuffer bytes = ByteBuffer.allocate(4 * row.length).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asFloatBuffer().put(row);
    out.write(bytes.array());
  }

  @Override
  public void close() throws IOException {
    out.close();
  }
}
