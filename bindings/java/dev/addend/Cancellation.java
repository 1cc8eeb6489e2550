package dev.addend;

/**
 * A switch that ends runs from another thread. Every run whose {@link Request} holds it throws an
 * {@link AddendException} with {@link AddendException.Code#CANCELLED} before its next operator.
 */
public final class Cancellation extends NativeObject {
  /** A switch that nobody has used yet. */
  public Cancellation() {
    super(
        "cancellation",
        Out.handle(AddendNative::addend_cancellation_create),
        AddendNative::addend_cancellation_release);
  }

  /** Ends the runs that hold this switch, and those that begin later. */
  public void cancel() {
    handle().run(AddendNative::addend_cancellation_cancel);
  }
}
