// Interception of a program that Addend does not call: begun by one call, ended by another.
#ifndef ADDEND_CORE_MODEL_LIVE_SCOPE_H_
#define ADDEND_CORE_MODEL_LIVE_SCOPE_H_

#include <memory>

#include "core/intercept/tracing_scope.h"

namespace addend {

// A TracingScope that lives as long as its owner wants and may be released on any thread.
class LiveScope {
 public:
  // From now on operators of this thread go to `handler`.
  explicit LiveScope(std::shared_ptr<CallHandler> handler);
  // Closes the scope, if this is its own thread. On another thread the scope stays open without any effect, and it and
  // the handler are never freed.
  ~LiveScope();
  LiveScope(const LiveScope&) = delete;
  LiveScope& operator=(const LiveScope&) = delete;

  // Throws FailedPrecondition on another thread than that of the constructor.
  void RequireOwnThread() const;
  // Ends the interception, once. Throws FailedPrecondition on another thread than that of the constructor.
  void Close();

 private:
  class Switch;
  std::unique_ptr<Switch> switch_;
};

}  // namespace addend

#endif  // ADDEND_CORE_MODEL_LIVE_SCOPE_H_
