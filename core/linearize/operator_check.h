// The check after an operator: what it found, and what Policy::on_failure does if it failed.
#ifndef ADDEND_CORE_LINEARIZE_OPERATOR_CHECK_H_
#define ADDEND_CORE_LINEARIZE_OPERATOR_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

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

// Appends a failed check to `failures`, or throws as above.
void NoteFailure(OnFailure on_failure, const OperatorCheck& check, const std::string& what, const Position& position,
                 std::vector<OperatorCheck>& failures);

// Describes a bracket that is too large: "the coefficients of aten::mul leave a bracket of 0.1 of its value, bound
// 1e-06".
std::string BracketTooLarge(const std::string& operator_name, const OperatorCheck& check);

// Replaces `worst` by `error` where that is larger. NaN is larger than any number and stays.
void NoteWorst(double error, double& worst);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_OPERATOR_CHECK_H_
