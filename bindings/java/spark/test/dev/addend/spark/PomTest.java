package dev.addend.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The version of Spark that users are told is the one that is tested. */
class PomTest {
  private static String version(String pom) throws IOException {
    final Matcher found = Pattern.compile("<artifactId>spark-sql_2.13</artifactId>\\s*<version>([^<]*)</version>")
        .matcher(Files.readString(Path.of(pom)));
    assertTrue(found.find(), pom);
    return found.group(1);
  }

  @Test
  void versionsAreOne() throws IOException {
    assertEquals(org.apache.spark.package$.MODULE$.SPARK_VERSION(), version("third_party/spark/pom.xml"));
    assertEquals(version("third_party/spark/pom.xml"), version("bindings/java/spark/dist/pom.xml"));
  }
}
