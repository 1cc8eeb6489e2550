// What a thread's caller has switched on in LibTorch, and what Addend does about it.
#ifndef ADDEND_CORE_INTERCEPT_THREAD_MODES_H_
#define ADDEND_CORE_INTERCEPT_THREAD_MODES_H_

#include <memory>

namespace addend {

// Whether operators of this thread cast what they are given.
bool UnderAutocast();

// Throws FailedPrecondition under autocast: it casts behind the operators, so that no rule could see what they compute.
void RequireNoAutocast();

// RAII: while it lives this thread is outside of inference mode, and without gradients if it was inside. Rules
// differentiate, which tensors that were made in inference mode refuse. Unlike c10::InferenceMode it leaves a tracing
// scope that is opened or closed meanwhile as it is then.
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
