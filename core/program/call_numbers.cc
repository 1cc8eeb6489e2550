#include "core/program/call_numbers.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace addend {
namespace {

// In the largest unit that leaves at least 1; each unit is `step` times the one before.
std::string InUnits(double number, double step, const std::vector<const char*>& units) {
  size_t unit = 0;
  while (std::fabs(number) >= step && unit + 1 < units.size()) {
    number /= step;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", number, units[unit]);
}

}  // namespace

void CheckNumbers(const std::vector<CallNumbers>& numbers, size_t calls) {
  for (const CallNumbers& list : numbers) {
    if (list.values.size() == calls) continue;
    throw InvalidArgument(absl::StrCat("there are ", list.values.size(), " numbers called ", OneLine(list.name),
                                       " for ", calls, " calls"));
  }
}

std::string NumberText(const CallNumbers& numbers, int call) {
  const double number = numbers.values.at(call);
  if (std::isnan(number)) return "";
  if (std::isfinite(number)) {
    if (numbers.unit == CallNumbers::Unit::kSeconds) return InUnits(number * 1e9, 1000, {"ns", "us", "ms", "s"});
    if (numbers.unit == CallNumbers::Unit::kBytes) return InUnits(number, 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
  }
  return absl::StrFormat("%.3g", number);
}

Json NumbersHeadJson(const std::vector<CallNumbers>& numbers) {
  Json heads = Json::array();
  for (const CallNumbers& list : numbers) {
    const char* unit = list.unit == CallNumbers::Unit::kSeconds ? "seconds" : "";
    if (list.unit == CallNumbers::Unit::kBytes) unit = "bytes";
    heads.push_back({{"name", list.name}, {"unit", unit}});
  }
  return heads;
}

Json NumbersJson(const std::vector<CallNumbers>& numbers, int call) {
  Json list = Json::array();
  for (const CallNumbers& own : numbers) {
    const double number = own.values.at(call);
    list.push_back(std::isfinite(number) ? Json(number) : Json(nullptr));
  }
  return list;
}

}  // namespace addend
