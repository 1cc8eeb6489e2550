// Numbers about the calls of a program (contributions, times), to be shown in its printed forms.
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

// Throws InvalidArgument if a list does not have one number for each call.
void CheckNumbers(const std::vector<CallNumbers>& numbers, size_t calls);
// Writes the number of a call with its unit: "13.4 us", "4.0 KiB", "1.2e-07"; empty if the call has none.
std::string NumberText(const CallNumbers& numbers, int call);
// Writes names and units: [{"name", "unit"}]; the unit is "", "seconds" or "bytes".
Json NumbersHeadJson(const std::vector<CallNumbers>& numbers);
// Writes the numbers of a call, in the order of NumbersHeadJson(); null where there is none.
Json NumbersJson(const std::vector<CallNumbers>& numbers, int call);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_CALL_NUMBERS_H_
