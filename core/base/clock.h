// Measures how long a stage of the work takes.
#ifndef ADDEND_CORE_BASE_CLOCK_H_
#define ADDEND_CORE_BASE_CLOCK_H_

#include <chrono>

namespace addend {

using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace addend

#endif  // ADDEND_CORE_BASE_CLOCK_H_
