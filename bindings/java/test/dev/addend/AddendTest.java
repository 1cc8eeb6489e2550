package dev.addend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.lang.ref.Reference;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class AddendTest {
  @Test
  void versionsAreNumbers() {
    assertTrue(Addend.version().matches("\\d+\\.\\d+\\.\\d+"), Addend.version());
    assertTrue(Addend.libtorchVersion().matches("\\d+\\.\\d+.*"), Addend.libtorchVersion());
    Addend.checkLibtorch();
  }

  @Test
  void tellsWhatReportsOfProblemsNeed() {
    Addend.setNumThreads(1);
    final String told = Addend.showConfig();
    assertTrue(told.startsWith("Addend " + Addend.version() + "\n"), told);
    assertTrue(told.contains(", for LibTorch " + Addend.libtorchVersion() + "\nLibTorch "), told);
    assertTrue(told.contains("\n  threads: 1 for operators"), told);
    assertTrue(told.contains("\nJava " + Runtime.version().feature()), told);
    final Path opened = fileIn(told, "  opened: ");
    assertTrue(opened.getFileName().toString().matches("libaddend_torch[0-9.]+\\.so"), told);
    assertEquals(fileIn(told, "  library: ").getParent(), opened.getParent());
  }

  private static Path fileIn(String told, String start) {
    final String line = told.lines().filter(candidate -> candidate.startsWith(start)).findFirst().orElseThrow();
    final Path file = Path.of(line.substring(start.length()).split(", for ")[0]);
    assertTrue(Files.isRegularFile(file), line);
    return file;
  }

  @Test
  void threadsAreCounted() {
    Addend.setNumThreads(1);
    assertEquals(
        AddendException.Code.INVALID_ARGUMENT,
        assertThrows(AddendException.class, () -> Addend.setNumThreads(0)).code());
  }

  @Test
  void dtypesAreThoseOfTheInterface() {
    assertEquals(4, DType.FLOAT32.bytes());
    assertEquals(16, DType.COMPLEX128.bytes());
    assertEquals(1, DType.BOOL.bytes());
    assertEquals("bfloat16", DType.BFLOAT16.toString());
    for (DType dtype : DType.values()) {
      assertEquals(dtype, DType.of(dtype.number()));
    }
    assertThrows(UnsupportedOperationException.class, () -> DType.of(1));
  }

  @Test
  void codesAreThoseOfTheInterface() {
    assertEquals(AddendException.Code.NOT_FOUND, AddendException.Code.of(AddendCode.ADDEND_NOT_FOUND));
    assertEquals(AddendException.Code.UNKNOWN, AddendException.Code.of(4711));
  }

  @Test
  void exceptionsAreSerialized() throws IOException, ClassNotFoundException {
    final AddendException error =
        assertThrows(AddendException.class, () -> Addend.call("aten::no_such_operator"));
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(error);
    }
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      final AddendException copy = (AddendException) in.readObject();
      assertEquals(error.code(), copy.code());
      assertEquals(error.getMessage(), copy.getMessage());
      assertEquals(error.payload(), copy.payload());
    }
  }

  @Test
  void forgottenObjectsAreCollected() throws InterruptedException {
    forget();
    Garbage.collectUntil(() -> AddendNative.addend_debug_live(AddendHandleKind.ADDEND_HANDLE_CANCELLATION) == 0);
  }

  private static void forget() {
    for (int i = 0; i < 1000; i++) {
      new Cancellation();
    }
    final Cancellation last = new Cancellation();
    assertTrue(AddendNative.addend_debug_live(AddendHandleKind.ADDEND_HANDLE_CANCELLATION) > 0);
    Reference.reachabilityFence(last);
  }
}
