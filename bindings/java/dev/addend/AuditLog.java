package dev.addend;

import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * A log of decisions: a file to which one record is appended for each, on the disk before {@link #append} returns.
 *
 * <pre>{@code
 * try (AuditLog log = new AuditLog(Path.of("decisions.jsonl")); Attribution found = model.attribute(request)) {
 *   log.append(found, RecordOptions.defaults().context("{\"application\": 4711}"));
 * }
 * }</pre>
 *
 * Records are chained by hashes: {@link #verify} names every one that is not as it was written, and computes them again. The
 * file is locked while the log is open. Any number of threads may share one.
 */
public final class AuditLog extends NativeObject {
  /**
   * Opens a log to append to it, or begins one.
   *
   * @param path the file
   */
  public AuditLog(Path path) {
    this(path, false);
  }

  /**
   * Opens a log to append to it, or begins one.
   *
   * @param path the file
   * @param keepInputs whether records hold the inputs themselves, and not only their digest
   */
  public AuditLog(Path path, boolean keepInputs) {
    super("audit log", open(path, keepInputs), AddendNative::addend_audit_log_release);
  }

  /**
   * Verifies a log: reads every bit, and computes records again where models are given.
   *
   * @param path the log, which somebody may have open
   * @param options what is looked at
   * @return what was found
   */
  public static AuditReport verify(Path path, VerifyOptions options) {
    final String given = options.toJson();
    return new AuditReport(Out.text(out -> AddendNative.addend_audit_verify(Text.of(path), given, out)));
  }

  /**
   * Appends a record.
   *
   * @param attribution what {@link Model#attribute} gave
   * @return the line that was written: a JSON object
   */
  public String append(Attribution attribution) {
    return append(attribution, RecordOptions.defaults());
  }

  /**
   * Appends a record; it is on the disk when this returns.
   *
   * @param attribution what {@link Model#attribute} gave
   * @param options what the record says beside it
   * @return the line that was written: a JSON object
   */
  public String append(Attribution attribution, RecordOptions options) {
    final String given = options.toJson();
    try (Borrow borrow = new Borrow()) {
      final long log = borrow.of(this);
      final long attributed = borrow.of(Objects.requireNonNull(attribution, "attribution"));
      return Out.text(out -> AddendNative.addend_audit_log_append(log, attributed, given, out));
    }
  }

  /**
   * The file.
   *
   * @return its path, as it was given
   */
  public Path path() {
    return Path.of(JsonReader.text(state().get("path")));
  }

  /**
   * How many records it holds.
   *
   * @return the number of the last one
   */
  public long records() {
    return JsonReader.count(state().get("records"));
  }

  /**
   * The hash of the last record. Keep it where the log is not: only it shows that a log was not written anew.
   *
   * @return 64 hexadecimal digits; empty where there is no record
   */
  public Optional<String> hash() {
    return Optional.ofNullable((String) state().get("hash"));
  }

  /**
   * The size of the record that was set aside when the log was opened, because it was never acknowledged.
   *
   * @return its number of bytes
   */
  public long tornBytes() {
    return JsonReader.count(state().get("torn_bytes"));
  }

  private Map<?, ?> state() {
    return JsonReader.object(handle().text(AddendNative::addend_audit_log_state));
  }

  private static long open(Path path, boolean keepInputs) {
    final String options = new JsonObject().put("keep_inputs", keepInputs).toString();
    return Out.handle(out -> AddendNative.addend_audit_log_open(Text.of(path), options, out));
  }
}
