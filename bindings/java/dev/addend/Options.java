package dev.addend;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;

/** Options that the C interface takes as a JSON object. Immutable: each method gives a changed copy. */
abstract class Options<S extends Options<S>> {
  private final Map<String, String> members;
  private final Function<Map<String, String>, S> make;

  /** Options with some members; {@code make} makes others of the same class. */
  Options(Map<String, String> members, Function<Map<String, String>, S> make) {
    this.members = members;
    this.make = make;
  }

  final S with(String key, boolean value) {
    return withJson(key, Boolean.toString(value));
  }

  final S with(String key, long value) {
    return withJson(key, Long.toString(value));
  }

  final S with(String key, String text) {
    return withJson(key, JsonObject.quote(Objects.requireNonNull(text, key)));
  }

  final S with(String key, String[] texts) {
    final List<String> quoted = new ArrayList<>();
    for (String text : texts) {
      quoted.add(JsonObject.quote(Objects.requireNonNull(text, key)));
    }
    return withJson(key, quoted.toString());
  }

  final S withJson(String key, String json) {
    final Map<String, String> changed = new LinkedHashMap<>(members);
    changed.put(key, json);
    return make.apply(changed);
  }

  final String toJson() {
    final JsonObject json = new JsonObject();
    members.forEach(json::putJson);
    return json.toString();
  }
}
