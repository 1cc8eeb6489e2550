package dev.addend;

import java.util.StringJoiner;

/** A JSON object for the C interface, which takes some options as text. */
final class JsonObject {
  private final StringJoiner members = new StringJoiner(", ", "{", "}");

  JsonObject put(String key, boolean value) {
    return add(key, Boolean.toString(value));
  }

  JsonObject put(String key, double value) {
    return add(key, number(key, value));
  }

  JsonObject put(String key, String value) {
    return add(key, quote(value));
  }

  /** Numbers that are none become null. */
  JsonObject put(String key, double[] values) {
    final StringJoiner list = new StringJoiner(", ", "[", "]");
    for (double value : values) {
      list.add(Double.isNaN(value) || Double.isInfinite(value) ? "null" : Double.toString(value));
    }
    return add(key, list.toString());
  }

  JsonObject putJson(String key, String json) {
    return add(key, json);
  }

  @Override
  public String toString() {
    return members.toString();
  }

  private JsonObject add(String key, String json) {
    members.add(quote(key) + ": " + json);
    return this;
  }

  static String number(String key, double value) {
    if (Double.isNaN(value) || Double.isInfinite(value)) {
      throw new IllegalArgumentException(key + " is " + value + ", which is no number");
    }
    return Double.toString(value);
  }

  /** A value that a caller wrote; refused where it would bring further members of an object with it. */
  static String one(String key, String json) {
    int depth = 0;
    boolean quoted = false;
    for (int k = 0; k < json.length(); k++) {
      final char c = json.charAt(k);
      if (quoted) {
        k += c == '\\' ? 1 : 0;
        quoted = c != '"';
        continue;
      }
      quoted = c == '"';
      depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
      if (depth < 0 || depth == 0 && c == ',') {
        throw new IllegalArgumentException(key + " is not one JSON value");
      }
    }
    return json;
  }

  static String quote(String text) {
    Text.requireNoNul(text);
    final StringBuilder quoted = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') {
        quoted.append('\\').append(c);
      } else if (c < ' ') {
        quoted.append(String.format("\\u%04x", (int) c));
      } else {
        quoted.append(c);
      }
    }
    return quoted.append('"').toString();
  }
}
