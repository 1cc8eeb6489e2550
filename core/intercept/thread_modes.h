// Modes of LibTorch that a thread's caller may have switched on (autocast, transformed functions, inference mode), and
// what Addend does about them.
#ifndef ADDEND_CORE_INTERCEPT_THREAD_MODES_H_
#define ADDEND_CORE_INTERCEPT_THREAD_MODES_H_

#include <c10/core/DispatchKeySet.h>

#include <memory>

namespace addend {

// True if autocast is on: operators of this thread then cast their arguments.
bool UnderAutocast();

// Throws FailedPrecondition under autocast, which casts inside the operators, so that no rule could see what they
// compute.
void RequireNoAutocast();

// True inside of a function that torch.func or functorch transforms (vmap, grad). Operators there give tensors that
// stand for others and have no memory. A TracingPause leaves the function, for operators that Addend calls itself.
bool UnderTransform();
// Keys that such a function includes on its thread, above and below those of its operators' own kernels.
inline constexpr c10::DispatchKeySet kTransformKeys({c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
                                                     c10::DispatchKey::FuncTorchDynamicLayerBackMode});

// RAII: takes this thread out of inference mode, and switches gradients off if inference mode was on. Rules need it,
// because they differentiate and autograd refuses tensors that were made in inference mode. Unlike c10::InferenceMode,
// NormalMode leaves alone a tracing scope that is opened or closed during its life.
class NormalMode {
 public:
  NormalMode();
  ~NormalMode();
  NormalMode(const NormalMode&) = delete;
  NormalMode& operator=(const NormalMode&) = delete;

 private:
  struct Guards;
  std::unique_ptr<Guards> guards_;  // null: the thread was outside already
};

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_THREAD_MODES_H_
