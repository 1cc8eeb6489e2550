// Interception: while a TracingScope is open on a thread, every operator that the thread calls goes to its handler.
//
// Note [How operators are seen]
// A boxed fallback is registered on a dispatch key above autograd that LibTorch leaves free. The key is included
// thread-locally while a scope is open; without a scope nothing changes and nothing costs time. The key is chosen at
// run time (the first free one of three), so that one source serves every LibTorch version and a second copy of this
// library in the process does not collide. The handler travels in c10::ThreadLocalDebugInfo, which crosses jit::fork.
#ifndef ADDEND_CORE_INTERCEPT_TRACING_SCOPE_H_
#define ADDEND_CORE_INTERCEPT_TRACING_SCOPE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/intercept/operator.h"

namespace addend {

// Receives the intercepted calls of a scope. Handle() must leave the results on the stack, as the operator would.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  virtual void Handle(const Operator& op, Stack* stack) = 0;
  // The dtype that it has operators computed in; undefined: each computes in that of its arguments.
  virtual at::ScalarType computed_in() const { return at::ScalarType::Undefined; }
  // Tensor number `index` of those that a module of the model has returned; 0 begins another call of the module.
  // Undefined: it returned no tensor there, or none that anybody can name.
  virtual void AddModuleOutput(const std::string& /*module_path*/, int64_t /*index*/, const at::Tensor& /*tensor*/) {}
};

// The dtype that the handler of this thread has operators computed in; undefined where there is none, or a pause.
at::ScalarType ComputedInHere();

// Tells the handler of this thread what a module has returned; nothing happens where there is none, or a pause.
void TellModuleOutput(const std::string& module_path, int64_t index, const at::Tensor& tensor);

// RAII: operators of this thread (and of the TorchScript forks that it starts) go to `handler`, which must outlive it,
// also where it is opened under a TracingPause.
class TracingScope {
 public:
  explicit TracingScope(CallHandler* handler);
  ~TracingScope();
  TracingScope(const TracingScope&) = delete;
  TracingScope& operator=(const TracingScope&) = delete;

 private:
  struct Guards;
  std::unique_ptr<Guards> guards_;
};

// RAII: operators called during its life are not traced. Rules and references run under a TracingPause. They compute
// with plain tensors, also where the model is inside of a transformed function at that moment; see UnderTransform().
class TracingPause {
 public:
  TracingPause();
  ~TracingPause();
  TracingPause(const TracingPause&) = delete;
  TracingPause& operator=(const TracingPause&) = delete;

 private:
  struct Guards;
  std::unique_ptr<Guards> guards_;
};

// Returns the name of the dispatch key in use. Throws FailedPrecondition if none of the candidates is free.
std::string TracingKeyName();

// Returns the TorchScript position of the operator that runs now: file, line, function and module path. All fields are
// empty outside the TorchScript interpreter.
Position CurrentScriptPosition();

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_TRACING_SCOPE_H_
