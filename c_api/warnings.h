// LibTorch's own warnings, which it would print.
#ifndef ADDEND_C_API_WARNINGS_H_
#define ADDEND_C_API_WARNINGS_H_

#include <memory>

#include "c_api/bodies.h"

namespace addend::c_api {

// RAII: what LibTorch warns of on this thread goes to the log of a context, if it has one, and nowhere else.
class WarningsToLog {
 public:
  explicit WarningsToLog(const LogCallback& log);
  ~WarningsToLog();
  WarningsToLog(const WarningsToLog&) = delete;
  WarningsToLog& operator=(const WarningsToLog&) = delete;

 private:
  struct Guards;
  std::unique_ptr<Guards> guards_;
};

}  // namespace addend::c_api

#endif  // ADDEND_C_API_WARNINGS_H_
