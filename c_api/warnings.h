// LibTorch's own warnings, which it would print.
#ifndef ADDEND_C_API_WARNINGS_H_
#define ADDEND_C_API_WARNINGS_H_

#include "c_api/bodies.h"
#include "third_party/torch/warnings.h"

namespace addend::c_api {

// RAII: what LibTorch warns of on this thread goes to the log of a context, if it has one, and nowhere else. The log
// has to outlive the guard.
class WarningsToLog {
 public:
  explicit WarningsToLog(const LogCallback& log);

 private:
  WarningsTo warnings_;
};

}  // namespace addend::c_api

#endif  // ADDEND_C_API_WARNINGS_H_
