package dev.addend;

import java.util.LinkedHashMap;
import java.util.Map;

/** Turns statuses of the C interface into exceptions. */
final class Status {
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
    throw error;
  }

  private static AddendException exception(long status) {
    final Map<String, String> payload = new LinkedHashMap<>();
    String key = AddendNative.addend_status_payload_key(status, 0);
    while (key != null) {
      payload.put(key, AddendNative.addend_status_payload(status, key));
      key = AddendNative.addend_status_payload_key(status, payload.size());
    }
    return new AddendException(
        AddendException.Code.of(AddendNative.addend_status_code(status)),
        AddendNative.addend_status_message(status),
        AddendNative.addend_status_detail(status),
        payload);
  }
}
