// A line on standard error that says how far a long run is.
#ifndef ADDEND_TOOLS_ADDEND_PROGRESS_H_
#define ADDEND_TOOLS_ADDEND_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace addend::cli {

// Shows nothing in the first second, nor where standard error is not a terminal. Its line goes away with it.
class Progress {
 public:
  Progress();
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(const std::string& stage, int64_t done, int64_t total);
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool shown_ = false;
  Clock::time_point start_;
  Clock::time_point last_;
};

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_PROGRESS_H_
