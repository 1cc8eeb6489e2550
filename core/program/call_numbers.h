// Numbers that others know about the calls of a program, for its printed forms.
#ifndef ADDEND_CORE_PROGRAM_CALL_NUMBERS_H_
#define ADDEND_CORE_PROGRAM_CALL_NUMBERS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace addend {

struct CallNumbers {
  enum class Unit { kNone, kSeconds, kBytes };
  std::string name;  // "contribution", "recovery error", "time"
  Unit unit = Unit::kNone;
  std::vector<double> values;  // one for each call; NaN where there is none
};

// Throws InvalidArgument where some list has not one number for each call.
void CheckNumbers(const std::vector<CallNumbers>& numbers, size_t calls);
// "13.4 us", "4.0 KiB", "1.2e-07"; empty where the call has none.
std::string NumberText(const CallNumbers& numbers, int call);
// [{"name", "unit"}]; the unit is "", "seconds" or "bytes".
Json NumbersHeadJson(const std::vector<CallNumbers>& numbers);
// The call's numbers in that order; null where there is none.
Json NumbersJson(const std::vector<CallNumbers>& numbers, int call);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_CALL_NUMBERS_H_
