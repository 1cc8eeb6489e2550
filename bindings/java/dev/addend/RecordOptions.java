package dev.addend;

import java.util.Map;

/**
 * Additional members of a record of an {@link AuditLog}, beside its attribution. Immutable: each method gives a changed
 * copy.
 */
public final class RecordOptions extends Options<RecordOptions> {
  private static final RecordOptions DEFAULTS = new RecordOptions(Map.of());

  private RecordOptions(Map<String, String> members) {
    super(members, RecordOptions::new);
  }

  /**
   * Options that add nothing to the attribution.
   *
   * @return the options
   */
  public static RecordOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Adds facts that belong to the decision, such as the number of an application.
   *
   * @param json any JSON
   * @return the changed copy
   */
  public RecordOptions context(String json) {
    return withJson("context", JsonObject.one("context", json));
  }

  /**
   * Reasons that were made of the contributions.
   *
   * @param json any JSON
   * @return the changed copy
   */
  public RecordOptions reasons(String json) {
    return withJson("reasons", JsonObject.one("reasons", json));
  }

  /**
   * The digest of a live model's file, of which Addend knows none.
   *
   * @param digest 64 hexadecimal digits
   * @return the changed copy
   */
  public RecordOptions modelSha256(String digest) {
    return with("model_sha256", digest);
  }

  /**
   * Sets a fixed salt, for tests; it is drawn at random otherwise.
   *
   * @param salt 64 hexadecimal digits
   * @return the changed copy
   */
  public RecordOptions salt(String salt) {
    return with("salt", salt);
  }

  /**
   * Sets a fixed time, for tests; it is that of the clock otherwise.
   *
   * @param time as {@code 2026-11-25T16:30:00.123456Z}
   * @return the changed copy
   */
  public RecordOptions time(String time) {
    return with("time", time);
  }
}
