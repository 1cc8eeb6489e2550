package dev.addend;

import java.util.Objects;

/** A scope that records what this thread calls, and under which module of the model. */
abstract class ModuleScope extends NativeObject {
  ModuleScope(String noun, long address) {
    super(noun, address, AddendNative::addend_trace_release);
  }

  /**
   * Says where in the model the thread is now, for reports, probes, policies and programs.
   *
   * @param modulePath the path, as {@code encoder.layers.3}; empty outside
   */
  public void setModule(String modulePath) {
    Objects.requireNonNull(modulePath, "modulePath");
    handle().run(trace -> AddendNative.addend_trace_set_module(trace, modulePath));
  }

  /**
   * Tells what a module has just returned. The path of the module then means these tensors.
   *
   * @param modulePath the path, as {@code encoder.layers.3}
   * @param tensors all tensors that it returns, in order; none where it returns none
   */
  public void addModuleOutputs(String modulePath, Tensor... tensors) {
    Objects.requireNonNull(modulePath, "modulePath");
    try (Borrow borrow = new Borrow()) {
      final long trace = borrow.of(this);
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
