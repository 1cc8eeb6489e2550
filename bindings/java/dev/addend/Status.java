package dev.addend;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Turns statuses of the C interface into exceptions. */
final class Status {
  private static final List<String> PAYLOAD_KEYS =
      List.of("op", "op_index", "module_path", "function", "file", "line", "parameters", "callback");

  private Status() {}

  /** Does nothing for success, which is 0; else releases the status and throws what it says. */
  static void check(long status) {
    if (status == 0) {
      return;
    }
    final AddendException error;
    try {
      error = exception(status);
    } finally {
      AddendNative.addend_status_release(status);
    }
    throw Thrown.endedBy(error);
  }

  private static AddendException exception(long status) {
    final Map<String, String> payload = new LinkedHashMap<>();
    for (String key : PAYLOAD_KEYS) {
      final String value = AddendNative.addend_status_payload(status, key);
      if (value != null) {
        payload.put(key, value);
      }
    }
    return new AddendException(
        AddendException.Code.of(AddendNative.addend_status_code(status)),
        AddendNative.addend_status_message(status),
        AddendNative.addend_status_detail(status),
        payload);
  }
}
