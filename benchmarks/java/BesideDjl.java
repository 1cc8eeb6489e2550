package dev.addend;

import ai.djl.engine.Engine;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * usage: beside_djl djl|addend. How long a JVM takes from its start until DJL's engine is there (djl), or until Addend is
 * opened beside it (addend), how much of that Addend took, and the memory that is resident then.
 */
final class BesideDjl {
  private BesideDjl() {}

  public static void main(String[] arguments) throws IOException {
    final String engine = Engine.getEngine("PyTorch").getVersion();
    final long begin = System.nanoTime();
    final boolean opened = arguments[0].equals("addend");
    if (opened) {
      Addend.checkLibtorch();
    }
    final long opening = (System.nanoTime() - begin) / 1_000_000;
    final long all = System.currentTimeMillis() - ManagementFactory.getRuntimeMXBean().getStartTime();
    final String resident = Files.readAllLines(Path.of("/proc/self/status"))
        .stream()
        .filter(line -> line.startsWith("VmRSS"))
        .findFirst()
        .orElseThrow();
    System.out.printf("DJL with LibTorch %s%s: %d ms, %.1f MB%n", engine,
        opened ? " and Addend, which took " + opening + " ms" : "", all,
        Long.parseLong(resident.replaceAll("\\D", "")) * 1024 / 1e6);
  }
}
