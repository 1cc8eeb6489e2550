#include "core/explain/report.h"

#include <algorithm>
#include <cmath>

namespace addend {
namespace {

// How much of what is allowed an operator uses; NaN counts as all of it and more.
double Strain(const OperatorCheck& check) {
  const auto ratio = [](double error, double limit) {
    if (std::isnan(error)) return 1e300;
    return limit > 0 ? error / limit : error;
  };
  double strain = ratio(check.recovery_error, check.tolerance);
  if (check.bracket_bound >= 0) strain = std::max(strain, ratio(check.bracket, check.bracket_bound));
  return strain;
}

}  // namespace

std::vector<OperatorReport> WorstFirst(const Report& report) {
  std::vector<OperatorReport> sorted = report.checks;
  std::stable_sort(sorted.begin(), sorted.end(), [](const OperatorReport& a, const OperatorReport& b) {
    if (a.check.ok() != b.check.ok()) return !a.check.ok();
    return Strain(a.check) > Strain(b.check);
  });
  return sorted;
}

}  // namespace addend
