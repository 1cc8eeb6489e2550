package dev.addend;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * An error that the library found. The message is one line that says what to do; {@link #code()} says what kind of
 * mistake it is, and {@link #payload()} has the facts of the message as data.
 */
public final class AddendException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The code. */
  private final Code code;

  /** The place in C++; empty unless it was asked for. */
  private final String detail;

  /** A map that can be serialized. */
  private final LinkedHashMap<String, String> payload;

  AddendException(Code code, String message, String detail, Map<String, String> payload) {
    super(message);
    this.code = code;
    this.detail = detail;
    this.payload = new LinkedHashMap<>(payload);
  }

  /** Kinds of mistakes: the canonical codes of gRPC and Abseil. */
  public enum Code {
    /** A {@link Cancellation} or a {@link ProgressListener} ended the run. */
    CANCELLED(AddendCode.ADDEND_CANCELLED),
    /** An error of no known kind. */
    UNKNOWN(AddendCode.ADDEND_UNKNOWN),
    /** An argument cannot be right, or two do not fit each other. */
    INVALID_ARGUMENT(AddendCode.ADDEND_INVALID_ARGUMENT),
    /** No such file, tensor, operator or result. */
    NOT_FOUND(AddendCode.ADDEND_NOT_FOUND),
    /** Memory, native memory included, ran out. */
    RESOURCE_EXHAUSTED(AddendCode.ADDEND_RESOURCE_EXHAUSTED),
    /** Right arguments at the wrong time, or a LibTorch that the library was not built for. */
    FAILED_PRECONDITION(AddendCode.ADDEND_FAILED_PRECONDITION),
    /** A position that is not there. */
    OUT_OF_RANGE(AddendCode.ADDEND_OUT_OF_RANGE),
    /** An operator without a rule, a device or a type that is not supported. */
    UNIMPLEMENTED(AddendCode.ADDEND_UNIMPLEMENTED),
    /** A tracing failure, or a mistake of the library itself. */
    INTERNAL(AddendCode.ADDEND_INTERNAL);

    private final int number;

    Code(int number) {
      this.number = number;
    }

    static Code of(int number) {
      for (Code code : values()) {
        if (code.number == number) {
          return code;
        }
      }
      return UNKNOWN;
    }
  }

  /**
   * The kind of mistake.
   *
   * @return the code
   */
  public Code code() {
    return code;
  }

  /**
   * The place in C++ where it happened.
   *
   * @return the place; empty unless {@link Context.Builder#detail} asked for it
   */
  public String detail() {
    return detail;
  }

  /**
   * The facts of the message as data: {@code op}, {@code op_index}, {@code module_path}, {@code function},
   * {@code file}, {@code line} and {@code parameters} of the operator to blame, and {@code callback}, the number that a
   * callback returned.
   *
   * @return an unmodifiable map that holds the keys that are known
   */
  public Map<String, String> payload() {
    return Collections.unmodifiableMap(payload);
  }
}
