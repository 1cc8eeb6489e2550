// Adaptive quadrature of the two path rules: when an interval of the line has to be halved.
//
// Note [Adaptive nodes]
// The line from reference (t = 0) to value (t = 1) is cut where it has to be. On an interval the mean derivative is
// found by Gauss-Legendre nodes and sent the move; what that misses of f(t1) - f(t0) is exactly the error in the one
// direction that matters. It is judged element by element:
//   - at rounding: done;
//   - else the interval is halved. A smooth function is done soon, a kink halves its error every time, more or less;
//   - where the error stays what it is through several halvings the function jumps, and where both halves share it
//     alike, again and again, the operator itself is no more exact than that: it stays left over;
//   - where something is not finite, or grows beyond everything seen on the line, there is a pole: the element is
//     linearized at the value instead, and its reference is replaced; see core/linearize/references.h.
#ifndef ADDEND_CORE_RULES_INTERVALS_H_
#define ADDEND_CORE_RULES_INTERVALS_H_

#include <ATen/core/Tensor.h>

#include <string>

#include "core/rules/rule.h"

namespace addend {

constexpr int kMostHalvings = 44;

// Errors and ends of an interval, for each element.
struct Found {
  at::Tensor errors;  // [history, elements]: its own and those of the intervals that it was cut from, newest first
  at::Tensor shared;  // how often in a row both halves had a like share of the error
  at::Tensor ends;    // the largest |f| at both ends

  // For an interval that was not cut from another one.
  static Found First(const at::Tensor& error, const at::Tensor& ends);
  // For the half of an interval of which `before` is known. `least`: the smaller error of both halves.
  static Found OfHalf(const Found& before, const at::Tensor& error, const at::Tensor& least, const at::Tensor& ends);
};

struct Verdict {
  at::Tensor halve;
  at::Tensor pole;
};
// Decides for each element whether to halve its interval, and whether there is a pole. `peak`: the largest |f| that was
// seen on the whole line. `scale`: what the error is measured against.
Verdict Judge(const Found& found, const at::Tensor& peak, const at::Tensor& scale, double tolerance, bool last);

// The relative error at which a quadrature in the dtype of `t` stops.
double QuadratureTolerance(const at::Tensor& t);
// "aten::max.dim"
std::string NameOf(const RuleCall& call);
// Returns the tensor in a form that autograd can save: it refuses tensors that were made under inference mode.
at::Tensor Savable(const at::Tensor& t);
bool Any(const at::Tensor& mask);
// The largest element; 0 if there are none.
double Largest(const at::Tensor& t);
// Returns the error with NaN replaced by infinity, larger than any error.
at::Tensor NanIsInfinite(const at::Tensor& error);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_INTERVALS_H_
