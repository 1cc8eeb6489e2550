package dev.addend.djl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.djl.engine.Engine;
import dev.addend.Addend;
import java.io.IOException;
import org.junit.jupiter.api.Test;

/** DJL is used before Addend, in a JVM of its own: Addend takes the LibTorch that it finds. */
class DjlFirstTest extends Beside {
  @Test
  void addendTakesTheLibTorchThatDjlHasLoaded() throws IOException {
    assertEquals(0, loaded().size());
    final String version = Engine.getEngine(Djl.ENGINE).getVersion();
    assertEquals(1, loaded().size(), loaded().toString());
    assertTrue(loaded().get(0).startsWith(folder()), loaded().toString());
    assertEquals(version, Addend.libtorchVersion().replaceFirst("\\+.*", ""));
    assertEquals(1, loaded().size(), loaded().toString());
  }
}
