package dev.addend;

import java.util.ArrayList;
import java.util.List;

/** The handles that a native call works on: none is released before it returns, whoever closes them meanwhile. */
final class Borrow implements AutoCloseable {
  private final List<Handle> handles = new ArrayList<>(4);

  /** The address of an object's handle; 0 for {@code null}. */
  long of(NativeObject object) {
    return object == null ? 0 : of(object.handle());
  }

  long of(Handle handle) {
    final long address = handle.acquire();
    handles.add(handle);
    return address;
  }

  @Override
  public void close() {
    handles.forEach(Handle::release);
  }
}
