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

bool IsWorse(double error, double worst) { return !std::isnan(worst) && !(error <= worst); }

void NoteWorst(double error, double& worst) {
  if (IsWorse(error, worst)) worst = error;
}

}  // namespace addend
