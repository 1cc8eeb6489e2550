package dev.addend;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.Function;

/** Reads the JSON that the library itself writes: a Map, List, String, Double, Boolean or null. */
final class JsonReader {
  private final String text;
  private int position;

  private JsonReader(String text) {
    this.text = text;
  }

  static Map<?, ?> object(String text) {
    return (Map<?, ?>) new JsonReader(text).value();
  }

  /** A number; NaN for null, which is what JSON has for it. */
  static double number(Object value) {
    return value == null ? Double.NaN : (Double) value;
  }

  static long count(Object value) {
    return ((Double) value).longValue();
  }

  /** A text; empty for null. */
  static String text(Object value) {
    return value == null ? "" : (String) value;
  }

  /** An unmodifiable list of texts. */
  static List<String> texts(Object values) {
    final List<String> texts = new ArrayList<>();
    for (Object value : (List<?>) values) {
      texts.add(text(value));
    }
    return Collections.unmodifiableList(texts);
  }

  /** A position; nothing for null. */
  static OptionalInt index(Object value) {
    return value == null ? OptionalInt.empty() : OptionalInt.of(((Double) value).intValue());
  }

  static double[] numbers(Object values) {
    return ((List<?>) values).stream().mapToDouble(JsonReader::number).toArray();
  }

  /** An unmodifiable list of what is made of each record; empty for null. */
  static <T> List<T> list(Object records, Function<Map<?, ?>, T> make) {
    final List<T> made = new ArrayList<>();
    for (Object record : records == null ? List.of() : (List<?>) records) {
      made.add(make.apply((Map<?, ?>) record));
    }
    return Collections.unmodifiableList(made);
  }

  private Object value() {
    switch (next()) {
      case '{':
        return object();
      case '[':
        return list();
      case '"':
        return string();
      default:
        position--;
        return word();
    }
  }

  private Map<String, Object> object() {
    final Map<String, Object> members = new LinkedHashMap<>();
    if (next() == '}') {
      return members;
    }
    position--;
    do {
      next(); // the quote
      final String key = string();
      next(); // the colon
      members.put(key, value());
    } while (next() == ',');
    return members;
  }

  private List<Object> list() {
    final List<Object> elements = new ArrayList<>();
    if (next() == ']') {
      return elements;
    }
    position--;
    do {
      elements.add(value());
    } while (next() == ',');
    return elements;
  }

  private String string() {
    final StringBuilder read = new StringBuilder();
    for (char c; (c = text.charAt(position++)) != '"'; ) {
      read.append(c == '\\' ? escaped() : c);
    }
    return read.toString();
  }

  private char escaped() {
    final char c = text.charAt(position++);
    final int known = "bfnrt".indexOf(c);
    if (known >= 0) {
      return "\b\f\n\r\t".charAt(known);
    }
    if (c != 'u') {
      return c;
    }
    position += 4;
    return (char) Integer.parseInt(text.substring(position - 4, position), 16);
  }

  private Object word() {
    final int begin = position;
    while (position < text.length() && ",]} \n".indexOf(text.charAt(position)) < 0) {
      position++;
    }
    final String word = text.substring(begin, position);
    switch (word) {
      case "null":
        return null;
      case "true":
      case "false":
        return Boolean.valueOf(word);
      default:
        return Double.valueOf(word);
    }
  }

  /** The next character that is no blank. */
  private char next() {
    while (Character.isWhitespace(text.charAt(position))) {
      position++;
    }
    return text.charAt(position++);
  }
}
