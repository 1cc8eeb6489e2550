package dev.addend;

import java.util.Objects;

/** An argument of an operator that is passed by its name. */
public final class Named {
  private final String name;
  private final Object value;

  private Named(String name, Object value) {
    this.name = name;
    this.value = value;
  }

  /**
   * Names an argument.
   *
   * @param name as in the operator's schema
   * @param value as {@link Context#call} takes it
   * @return the argument
   */
  public static Named named(String name, Object value) {
    return new Named(Objects.requireNonNull(name, "name"), value);
  }

  String name() {
    return name;
  }

  Object value() {
    return value;
  }
}
