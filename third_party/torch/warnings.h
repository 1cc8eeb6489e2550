// LibTorch's own warnings, which it would print.
#ifndef ADDEND_THIRD_PARTY_TORCH_WARNINGS_H_
#define ADDEND_THIRD_PARTY_TORCH_WARNINGS_H_

#include <functional>
#include <memory>
#include <string>

namespace addend {

// RAII: what LibTorch warns of on this thread goes to a function, message by message, and nowhere else. The guards of a
// thread nest.
class WarningsTo {
 public:
  explicit WarningsTo(std::function<void(const std::string& message)> tell);
  ~WarningsTo();
  WarningsTo(const WarningsTo&) = delete;
  WarningsTo& operator=(const WarningsTo&) = delete;

 private:
  struct Guards;
  std::unique_ptr<Guards> guards_;
};

}  // namespace addend

#endif  // ADDEND_THIRD_PARTY_TORCH_WARNINGS_H_
