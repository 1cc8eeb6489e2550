package dev.addend;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Reads what Python programs write for tests, and what pages and jobs say. */
final class Reading {
  private static final Pattern DATA =
      Pattern.compile("<script type=\"application/json\" id=\"data\">(.*?)</script>", Pattern.DOTALL);

  private Reading() {}

  /** The cases of a folder, as its cases.json has them. */
  static <T> List<T> cases(Path folder, Function<Map<?, ?>, T> make) {
    try {
      final String text = Files.readString(folder.resolve("cases.json"));
      return JsonReader.list(JsonReader.object(text).get("cases"), make);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The JSON that a page shows. */
  static String dataOf(String html) {
    final Matcher data = DATA.matcher(html);
    assertTrue(data.find(), "the page has no data");
    return data.group(1);
  }

  /** The notes of a document of a job. */
  static List<String> notesOfJob(Map<?, ?> document) {
    return notesOfJob(document, note -> true);
  }

  /** The warnings among the notes of a document of a job. */
  static List<String> warningsOfJob(Map<?, ?> document) {
    return notesOfJob(document, note -> note.get("warning").equals(true));
  }

  private static List<String> notesOfJob(Map<?, ?> document, Predicate<Map<?, ?>> which) {
    return ((List<?>) document.get("notes")).stream().map(note -> (Map<?, ?>) note).filter(which)
        .map(note -> JsonReader.text(note.get("note"))).collect(Collectors.toUnmodifiableList());
  }
}
