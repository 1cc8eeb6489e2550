package dev.addend;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.StringReader;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.NodeList;
import org.xml.sax.InputSource;
import org.xml.sax.SAXException;

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

  /** The notes below a picture in SVG, which are broken into lines, each with the word that it begins with. */
  static List<String> notesOfPicture(String svg) {
    final NodeList texts;
    try {
      texts = DocumentBuilderFactory.newInstance().newDocumentBuilder()
          .parse(new InputSource(new StringReader(svg))).getElementsByTagName("text");
    } catch (ParserConfigurationException | SAXException | IOException e) {
      throw new AssertionError(svg, e);
    }
    final List<String> notes = new ArrayList<>();
    for (int k = 0; k < texts.getLength(); k++) {
      final String line = texts.item(k).getTextContent();
      if (line.startsWith("Warning: ") || line.startsWith("Note: ")) {
        notes.add(line);
      } else if (!notes.isEmpty()) {
        notes.set(notes.size() - 1, notes.get(notes.size() - 1) + " " + line);
      }
    }
    return notes;
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
