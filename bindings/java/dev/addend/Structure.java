package dev.addend;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** Arguments that are more than tensors, taken apart: their tensors, and how these make up the arguments. */
final class Structure {
  // Limit of nesting: an object that contains itself ends here, and not by exhausting the stack. The C interface allows
  // fewer levels.
  private static final int DEEPEST = 256;

  /** The inputs by their paths, which are only names. */
  final Map<String, Input> inputs = new LinkedHashMap<>();

  /** The arguments in the form that the C interface takes. */
  final String json;

  Structure(Object[] arguments) {
    final List<String> described = new ArrayList<>();
    for (int k = 0; k < arguments.length; k++) {
      described.add(describe(arguments[k], Integer.toString(k), 0));
    }
    json = described.toString();
  }

  Structure(Map<String, ?> arguments) {
    final JsonObject object = new JsonObject();
    arguments.forEach((name, value) -> {
      Objects.requireNonNull(name, "name");
      object.putJson(name, describe(value, name, 0));
    });
    json = object.toString();
  }

  private String describe(Object value, String path, int depth) {
    if (depth > DEEPEST) {
      throw new IllegalArgumentException("arguments are nested too deeply: " + path.substring(0, 20) + "...");
    }
    if (value == null) {
      return "null";
    } else if (value instanceof Input || value instanceof Tensor) {
      if (inputs.put(path, value instanceof Input ? (Input) value : Input.of((Tensor) value)) != null) {
        throw new IllegalArgumentException("the request has an input " + path + " already");
      }
      return "{\"tensor\": " + (inputs.size() - 1) + "}";
    } else if (value instanceof Boolean
        || value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte) {
      return value.toString();
    } else if (value instanceof Double || value instanceof Float) {
      return number(((Number) value).doubleValue());
    } else if (value instanceof String) {
      return JsonObject.quote((String) value);
    } else if (value instanceof Tuple) {
      return "{\"tuple\": " + elements(((Tuple) value).elements(), path, depth) + "}";
    } else if (value instanceof List) {
      final List<?> list = (List<?>) value;
      return "{\"list\": " + elements(list, path, depth) + ifEmpty(list.isEmpty());
    } else if (value instanceof Map) {
      final JsonObject object = new JsonObject();
      ((Map<?, ?>) value).forEach((key, element) -> {
        if (!(key instanceof String)) {
          throw new IllegalArgumentException("the keys of " + path + " have to be texts, not " + key);
        }
        object.putJson((String) key, describe(element, path + "." + key, depth + 1));
      });
      return "{\"dict\": " + object + ifEmpty(((Map<?, ?>) value).isEmpty());
    }
    throw new IllegalArgumentException("models take no " + value.getClass().getName() + " as " + path
        + ": pass an Input, Tensor, number, boolean, String, null, or a Tuple, List or Map of these");
  }

  private List<String> elements(List<?> list, String path, int depth) {
    final List<String> elements = new ArrayList<>();
    for (int k = 0; k < list.size(); k++) {
      elements.add(describe(list.get(k), path + "." + k, depth + 1));
    }
    return elements;
  }

  /** Empty containers are of tensors. */
  private static String ifEmpty(boolean empty) {
    return empty ? ", \"type\": \"Tensor\"}" : "}";
  }

  private static String number(double value) {
    if (Double.isNaN(value)) {
      return "{\"float\": \"nan\"}";
    }
    if (Double.isInfinite(value)) {
      return "{\"float\": \"" + (value > 0 ? "inf" : "-inf") + "\"}";
    }
    return Double.toString(value);
  }
}
