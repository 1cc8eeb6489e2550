#include "core/linearize/operator_check.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace addend {

void ThrowIfError(OnFailure on_failure, const std::string& what, const Position& position,
                  const std::string& remedies) {
  if (on_failure != OnFailure::kError) return;
  const std::string choices = "on_failure=warn goes on and reports it, on_failure=absorb makes it leftover";
  throw Error(absl::StatusCode::kInternal, absl::StrCat("tracing failure: ", what), position,
              remedies.empty() ? absl::StrCat("policy ", choices) : absl::StrCat(remedies, "; ", choices));
}

void NoteFailure(OnFailure on_failure, const OperatorCheck& check, const std::string& what, const Position& position,
                 std::vector<OperatorCheck>& failures) {
  ThrowIfError(on_failure, what, position);
  failures.push_back(check);
}

std::string BracketTooLarge(const std::string& operator_name, const OperatorCheck& check) {
  return absl::StrCat("the coefficients of ", operator_name, " leave a bracket of ", check.bracket,
                      " of its value, bound ", check.bracket_bound);
}

void NoteWorst(double error, double& worst) {
  if (!std::isnan(worst) && !(error <= worst)) worst = error;
}

}  // namespace addend
