// The border: what every function of addend.h is wrapped in, so that no exception leaves the library.
#ifndef ADDEND_C_API_GUARD_H_
#define ADDEND_C_API_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "c_api/handle.h"
#include "core/base/error.h"
#include "core/intercept/thread_modes.h"

namespace addend::c_api {

// The exception in flight as a status. `detail`: with its place in C++.
addend_status* StatusOfException(bool detail) noexcept;

// Runs `function`, in normal mode whatever the caller's is. NULL where it returns, a status where it throws.
template <typename Function>
addend_status* Guard(bool detail, const Function& function) noexcept {
  try {
    const NormalMode normal;
    function();
    return nullptr;
  } catch (...) {
    return StatusOfException(detail);
  }
}
template <typename Function>
addend_status* Guard(const Function& function) noexcept {
  return Guard(false, function);
}

// Error of a callback, with the number that it returned.
class CallbackError : public Error {
 public:
  CallbackError(absl::StatusCode code, const std::string& message, int32_t number)
      : Error(code, message), number_(number) {}
  CallbackError(absl::StatusCode code, const std::string& message, const Position& position, int32_t number)
      : Error(code, message, position), number_(number) {}
  int32_t number() const { return number_; }

 private:
  int32_t number_;
};

// The number that a callback of a rule gave last on this thread, and 0 from then on. Errors that cross the core keep
// their code and their message only.
int32_t TakeCallbackNumber() noexcept;
void SetCallbackNumber(int32_t number) noexcept;

// ---- parameters; all throw InvalidArgument that names the parameter

void RequireOut(const void* pointer, const char* name);
// UTF-8 that ends with NUL.
std::string Text(const char* text, const char* name);
// UTF-8 that ends with NUL; "" for NULL.
std::string TextOrEmpty(const char* text, const char* name);
// An array of `size` elements, which may be NULL where it is empty.
void RequireArray(const void* data, size_t size, const char* name);

// Throws FailedPrecondition unless this process computes with the LibTorch that the library was built for.
void RequireLibTorch();

// Gives a new handle to the caller.
template <typename Handle, typename... Args>
void Give(Handle** out, Args&&... body) {
  *out = Make<Handle>(std::make_unique<BodyOf<Handle>>(BodyOf<Handle>{std::forward<Args>(body)...}));
}

}  // namespace addend::c_api

#endif  // ADDEND_C_API_GUARD_H_
