package dev.addend.djl;

import static org.junit.jupiter.api.Assertions.assertEquals;

import ai.djl.engine.Engine;
import dev.addend.Addend;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** DJL is used before Addend, in a JVM of its own: Addend takes the LibTorch that it finds. */
class DjlFirstTest extends Beside {
  @Test
  void addendTakesTheLibTorchThatDjlHasLoaded() throws IOException {
    assertEquals(List.of(), loaded());
    final String version = Engine.getEngine(Djl.ENGINE).getVersion();
    assertOnlyThatOfDjl();
    assertEquals(version, Addend.libtorchVersion().replaceFirst("\\+.*", ""));
    assertOnlyThatOfDjl();
  }
}
