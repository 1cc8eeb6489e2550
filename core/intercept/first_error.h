// The first error of a handler's own, kept while it passes through whoever runs the model.
#ifndef ADDEND_CORE_INTERCEPT_FIRST_ERROR_H_
#define ADDEND_CORE_INTERCEPT_FIRST_ERROR_H_

#include <exception>

namespace addend {

// Note [First error]
// A handler's error leaves it through LibTorch's dispatcher and then through an interpreter, which may make an error of
// its own of it, with another type and a text around it; errors of what runs after it may follow. The first error is
// the cause, so a handler keeps it and whoever opened the tracing scope throws that one. An error of the model's own
// operator is none of the handler's: it passes by outside of In(), and the model may catch it.
class FirstError {
 public:
  // Runs `function` and returns what it gives. What it throws is kept where nothing was before; the first error leaves.
  template <typename Function>
  auto In(Function function) {
    try {
      return function();
    } catch (...) {
      Keep();
      std::rethrow_exception(error_);
    }
  }
  // Keeps the exception that is being handled, where nothing was kept before.
  void Keep() {
    if (!error_) error_ = std::current_exception();
  }

  // Null: none.
  const std::exception_ptr& error() const { return error_; }
  // Throws the first error, where there is one.
  void Rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
};

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_FIRST_ERROR_H_
