package dev.addend;

import java.util.Objects;

/** Tells scopes of live models what modules have returned. */
final class ModuleOutputs {
  private ModuleOutputs() {}

  static void tell(NativeObject scope, String modulePath, Tensor... tensors) {
    Objects.requireNonNull(modulePath, "modulePath");
    try (Borrow borrow = new Borrow()) {
      final long trace = borrow.of(scope);
      if (tensors.length == 0) {
        AddendNative.addend_trace_add_module_output(trace, modulePath, 0, 0);
      }
      for (int k = 0; k < tensors.length; k++) {
        AddendNative.addend_trace_add_module_output(
            trace, modulePath, k, borrow.of(Objects.requireNonNull(tensors[k], "tensors")));
      }
    }
  }
}
