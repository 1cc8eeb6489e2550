package dev.addend;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** The handles that a native call works on: none is released before it returns, whoever closes them meanwhile. */
final class Borrow implements AutoCloseable {
  private final List<Handle> handles = new ArrayList<>(4);
  private final List<Long> requests = new ArrayList<>(1);

  /** The address of an object's handle; 0 for {@code null}. */
  long of(NativeObject object) {
    return object == null ? 0 : of(object.handle());
  }

  /** The address of a native request with these inputs and options, made for this call. */
  long of(Request request) {
    final long address = Objects.requireNonNull(request, "request").create(this);
    requests.add(address);
    return address;
  }

  long of(Handle handle) {
    final long address = handle.acquire();
    handles.add(handle);
    return address;
  }

  @Override
  public void close() {
    requests.forEach(AddendNative::addend_request_release);
    handles.forEach(Handle::release);
  }
}
