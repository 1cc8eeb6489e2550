// The check after an operator: what it found, and what Policy::on_failure does if it failed.
#ifndef ADDEND_CORE_LINEARIZE_OPERATOR_CHECK_H_
#define ADDEND_CORE_LINEARIZE_OPERATOR_CHECK_H_

#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "core/base/policy.h"
#include "core/rules/rule.h"

namespace addend {

// The result of a check. Errors are relative to the largest magnitude of the operator's value; the bracket may be
// relative to the terms that it is summed from, if those cancel.
struct OperatorCheck {
  int64_t call = -1;
  Kind kind = Kind::kLinear;
  double recovery_error = 0;
  double tolerance = 0;  // relative as well
  bool recovered = true;
  double bracket = 0;
  double bracket_bound = -1;  // -1: the policy leaves something over here, nothing to judge
  bool bracket_holds = true;
  double leftover = 0;    // largest magnitude of the leftover row over that of the value
  bool absorbed = false;  // it failed, and what the parts lacked went to the leftover (Policy::on_failure)
  double seconds = 0;

  bool ok() const { return recovered && bracket_holds; }
};

// Throws Error(kInternal) that says "tracing failure: `what`" if the policy makes failures an error. `remedies`: what
// else the caller can try, for the error's hint.
void ThrowIfError(OnFailure on_failure, const std::string& what, const Position& position,
                  const std::string& remedies = "");

// Whether an error is larger than the worst so far. NaN is larger than any number.
bool IsWorse(double error, double worst);
// Replaces `worst` by `error` where that is larger.
void NoteWorst(double error, double& worst);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_OPERATOR_CHECK_H_
