#include "core/rules/pointwise.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/for_loops.h"
#include "core/rules/joint.h"
#include "core/rules/kernels.h"
#include "core/rules/kinds.h"
#include "core/rules/move.h"
#include "core/rules/rows.h"

namespace addend {
namespace {

// How near value and reference may be before the secant gives way.
double SmallLimit(at::ScalarType dtype) { return dtype == at::kDouble || dtype == at::kComplexDouble ? 2e-6 : 2e-3; }

template <typename T>
SecantView<T> ViewOf(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& f_value,
                     const at::Tensor& f_reference, Curve curve) {
  return {value.data_ptr<T>(),       reference.data_ptr<T>(), f_value.data_ptr<T>(),
          f_reference.data_ptr<T>(), value.numel(),           static_cast<T>(SmallLimit(value.scalar_type())),
          curve == Curve::kPower};
}

// Whether the loops may read all four.
bool ForSecantLoops(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& f_value,
                    const at::Tensor& f_reference) {
  return ForFlatLoops(value, reference) && ForFlatLoops(value, f_value) && ForFlatLoops(value, f_reference);
}

using DerivativeFunction = std::function<at::Tensor(const at::Tensor&)>;

// The derivative at some points.
template <typename T>
std::vector<T> DerivativesAt(const DerivativeFunction& derivative, const std::vector<T>& points,
                             const at::Tensor& like) {
  at::Tensor at_points = at::empty({static_cast<int64_t>(points.size())}, like.options());
  std::copy(points.begin(), points.end(), at_points.data_ptr<T>());
  const at::Tensor found = derivative(at_points).contiguous();
  return {found.data_ptr<T>(), found.data_ptr<T>() + found.numel()};
}

// Slopes of small moves as SecantSlope chooses them, for the elements `small` of a function that is the same for each.
template <typename T>
class SmallMoves {
 public:
  SmallMoves(const SecantView<T>& view, Curve curve, const DerivativeFunction& derivative, const at::Tensor& slope)
      : view_(view), curve_(curve), derivative_(derivative), slope_(slope), out_(slope.data_ptr<T>()) {}

  void Settle(const std::vector<int64_t>& small) const {
    const bool kinked = curve_ == Curve::kPiecewiseLinear || curve_ == Curve::kUnitPieces;
    kinked ? SettleKinked(small) : SettleSmooth(small);
  }

 private:
  T Move(int64_t i) const { return MoveAt(view_.value[i], view_.reference[i]); }
  T RiseAt(int64_t i) const { return view_.f_value[i] - view_.f_reference[i]; }

  // The derivatives at the values and, behind them, at the references.
  std::vector<T> AtBothEnds(const std::vector<int64_t>& elements) const {
    std::vector<T> points;
    for (const T* ends : {view_.value, view_.reference}) {
      for (const int64_t i : elements) points.push_back(ends[i]);
    }
    return DerivativesAt(derivative_, points, slope_);
  }

  void SettleKinked(const std::vector<int64_t>& small) const {
    std::vector<int64_t> unsure;
    for (const int64_t i : small) {
      // Differences of x, -x or a constant are rounded as the move is: the quotient is exact, however small that is.
      const T rise = std::abs(RiseAt(i));
      const bool exact = curve_ == Curve::kUnitPieces && (rise == 0 || rise == std::abs(Move(i)));
      if (!exact || Move(i) == 0) unsure.push_back(i);
    }
    if (unsure.empty()) return;
    const std::vector<T> ends = AtBothEnds(unsure);
    for (size_t k = 0; k < unsure.size(); ++k) {
      const T at_value = ends[k];
      if (at_value == ends[unsure.size() + k] || Move(unsure[k]) == 0) out_[unsure[k]] = at_value;
    }
  }

  void SettleSmooth(const std::vector<int64_t>& small) const {
    const bool power = curve_ == Curve::kPower;
    std::vector<T> middles;
    for (const int64_t i : small) middles.push_back(view_.reference[i] + Move(i) / 2);
    const std::vector<T> tangents = DerivativesAt(derivative_, middles, slope_);
    std::vector<int64_t> unsure;
    std::vector<T> tangents_of_unsure;
    for (size_t k = 0; k < small.size(); ++k) {
      const int64_t i = small[k];
      const T tangent = tangents[k];
      const T missed = std::abs(RiseAt(i) - tangent * Move(i));
      const T conditioning =
          power ? std::abs(middles[k] * tangent) : std::abs(view_.value[i]) + std::abs(view_.reference[i]);
      const T noise = (std::abs(view_.f_value[i]) + std::abs(view_.f_reference[i]) + conditioning) *
                      (4 * std::numeric_limits<T>::epsilon());
      if (missed <= noise || Move(i) == 0) {
        out_[i] = tangent;
      } else {
        unsure.push_back(i);
        tangents_of_unsure.push_back(tangent);
      }
    }
    if (unsure.empty()) return;
    const std::vector<T> ends = AtBothEnds(unsure);
    for (size_t k = 0; k < unsure.size(); ++k) {
      const T bend = std::abs(ends[k] - ends[unsure.size() + k]);
      const T tangent = tangents_of_unsure[k];
      const T limit = 2 * static_cast<T>(SmallLimit(slope_.scalar_type()));
      if (bend <= (std::abs(tangent) + (power ? 0 : 1)) * limit) out_[unsure[k]] = tangent;
    }
  }

  const SecantView<T>& view_;
  const Curve curve_;
  const DerivativeFunction& derivative_;
  const at::Tensor& slope_;
  T* out_;
};

// The slopes in one pass over all elements and another look at the small moves. Undefined where there are such and the
// derivative is not told element by element.
template <typename T>
at::Tensor SecantsOnCpu(const SecantView<T>& view, const at::Tensor& like, Curve curve,
                        const DerivativeFunction& derivative, bool pointwise) {
  const at::Tensor slope = at::empty_like(like, at::MemoryFormat::Contiguous);
  const std::vector<int64_t> small = SecantQuotients(view, slope.data_ptr<T>());
  if (!small.empty() && !pointwise) return {};
  if (!small.empty()) SmallMoves<T>(view, curve, derivative, slope).Settle(small);
  return slope;
}

}  // namespace

at::Tensor SecantSlope(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& f_value,
                       const at::Tensor& f_reference, Curve curve,
                       const std::function<at::Tensor(const at::Tensor&)>& derivative, bool pointwise, bool finite) {
  if (ForSecantLoops(value, reference, f_value, f_reference)) {
    const at::Tensor slope = DispatchReal(value.scalar_type(), [&](auto zero) {
      const auto view = ViewOf<decltype(zero)>(value, reference, f_value, f_reference, curve);
      return SecantsOnCpu(view, value, curve, derivative, pointwise);
    });
    if (slope.defined()) return slope;
  }
  const at::Tensor move = MoveOf(value, reference, finite);
  // A quotient that is not taken may be 0 / 0, but where gradients pass it has to be finite.
  const bool needs_graph = IsFollowed(value) || IsFollowed(reference);
  const at::Tensor rise = f_value - f_reference;
  const at::Tensor slope = rise / (needs_graph ? move.masked_fill(move.eq(0), 1) : move);
  // On pieces of slope 1, -1 or 0 the quotient of two differences is exact, however short the move.
  if (curve == Curve::kUnitPieces && !value.device().is_cpu()) return at::where(move.eq(0), derivative(value), slope);
  const at::Tensor middle = at::add(reference, move, 0.5);
  // Below this the secant loses digits to cancellation, and the derivative at the middle errs by move^2 / 24 only.
  const bool is_double = value.scalar_type() == at::kDouble || value.scalar_type() == at::kComplexDouble;
  const double limit = SmallLimit(value.scalar_type());
  at::Tensor small = curve == Curve::kPower ? move.abs().le(middle.abs() * limit) : move.abs().le(limit);
  // Nearly every tensor on a GPU has such elements. What follows reads no number of it.
  if (!MayHaveAny(small)) return slope;
  const bool may_look = value.device().is_cpu();
  if (pointwise && may_look) {
    // Mostly few elements hardly move: only those are looked at again.
    const at::Tensor index = small.reshape({-1}).nonzero().squeeze(1);
    if (index.numel() * 4 < small.numel()) {
      const auto some = [&](const at::Tensor& t) { return t.reshape({-1}).index_select(0, index); };
      const at::Tensor part =
          SecantSlope(some(value), some(reference), some(f_value), some(f_reference), curve, derivative);
      return slope.contiguous().view({-1}).index_copy(0, index, part).view(slope.sizes());
    }
  }
  if (curve == Curve::kPiecewiseLinear || curve == Curve::kUnitPieces) {
    // Across a kink the secant is right and the derivative is not; on one piece both ends have one derivative.
    const at::Tensor at_value = derivative(value);
    small = small.logical_and(at_value.eq(derivative(reference))).logical_or(move.eq(0));
    return at::where(small, at_value, slope);
  }
  // The derivative replaces the secant only where it is known to be as good: where it tells f(value) from f(reference)
  // up to rounding, or, where f itself is noisier (elu is exp(x) - 1), where both ends have nearly one derivative. That
  // leaves out kinks (selu, elu), and functions that bend faster than their Curve says (softplus with a large beta,
  // log1p near -1).
  const at::Tensor tangent = derivative(middle);
  const double eps = is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const at::Tensor missed = at::addcmul(rise, tangent, move, -1).abs();
  const bool power = curve == Curve::kPower;
  const at::Tensor conditioning = power ? (middle * tangent).abs() : value.abs() + reference.abs();
  at::Tensor good = missed.le((f_value.abs() + f_reference.abs() + conditioning) * (4 * eps)).logical_or(move.eq(0));
  if (!may_look || ReadFlag(small.logical_and(good.logical_not()).any())) {
    const at::Tensor bend = (derivative(value) - derivative(reference)).abs();
    good = good.logical_or(bend.le((tangent.abs() + (power ? 0 : 1)) * (2 * limit)));
  }
  return at::where(small.logical_and(good), tangent, slope);
}

namespace {

JointFunction Spread(const at::Tensor& slope, std::optional<double> threshold) {
  return [=](const Rows& rows) -> Rows {
    const at::Tensor aligned = RightAlign(rows[0], slope.dim());
    return {SpreadByMagnitude(aligned.expand(WithRows(aligned.size(0), slope.sizes())), slope, threshold)};
  };
}

// An elementwise function of the first argument; all others rest.
class Elementary {
 public:
  Elementary(const RuleCall& call, Curve curve, KnownDerivative known)
      : call_(call), curve_(curve), known_(known), operand_(call.OperandAt(call.First())) {
    if (operand_ < 0 || !call.operands[operand_].decomposed) {
      throw Unimplemented(absl::StrCat("rule of ", call.name, " covers a decomposed argument 0 only"));
    }
    for (size_t k = 0; k < call.operands.size(); ++k) {
      if (static_cast<int>(k) != operand_ && call.operands[k].decomposed && !call.operands[k].written) {
        throw Unimplemented(absl::StrCat(call.name, ".", call.overload, " with more than one decomposed argument"));
      }
    }
    // A plain operand, such as the bound of a clamp, may have a larger shape: each element has a slope of its own.
    x_ = call.operands[operand_];
    if (x_.value.sizes() != call.outputs[0].value.sizes()) {
      x_.value = x_.value.expand_as(call.outputs[0].value);
      x_.reference = x_.reference.expand_as(call.outputs[0].value);
    }
  }

  int operand() const { return operand_; }

  at::Tensor Slope() const {
    const RuleOutput& output = call_.outputs[0];
    switch (call_.policy->nonlinearity) {
      case Nonlinearity::kNone:
        return at::zeros_like(x_.value);
      case Nonlinearity::kScaling:
        return QuotientOrZero(output.value, x_.value);
      case Nonlinearity::kGradient:
        return Derivative(x_.value);
      default:
        return SecantSlope(
            x_.value, x_.reference, output.value, output.reference, curve_,
            [this](const at::Tensor& point) { return Derivative(point); }, /*pointwise=*/call_.operands.size() == 1,
            x_.finite);
    }
  }
  bool AlongSecant() const {
    const Nonlinearity choice = call_.policy->nonlinearity;
    return choice != Nonlinearity::kScaling && choice != Nonlinearity::kGradient && choice != Nonlinearity::kNone;
  }

  // Mask of elements that have a finite f(value) but no secant, or one that means nothing; undefined if there are none.
  at::Tensor Broken() const {
    const RuleOutput& output = call_.outputs[0];
    at::Tensor broken;
    if (!output.finite && !AllFinite(output.reference)) {
      broken = at::isfinite(output.reference).logical_not_().logical_and_(at::isfinite(output.value));
    }
    if (curve_ == Curve::kPower) {
      // Across a pole, which such functions have at 0: 1 / x from -1 to 2.
      const at::Tensor crosses = PassesZero(x_.reference, x_.value).logical_and_(at::isfinite(output.value));
      if (ReadFlag(crosses.any())) {
        const c10::AutoGradMode no_grad(false);
        const at::Tensor pole = at::isfinite(ResultAt(at::zeros_like(x_.value))).logical_not_().logical_and_(crosses);
        broken = broken.defined() ? broken.logical_or(pole) : pole;
      }
    }
    return broken.defined() && ReadFlag(broken.any()) ? broken : at::Tensor();
  }

  // Linearizes the function at the value where it is broken. Returns its reference there, which becomes what makes the
  // two meet: f(value) - slope * move.
  at::Tensor LinearizeAtValue(const at::Tensor& broken, at::Tensor* slope) const {
    const RuleOutput& output = call_.outputs[0];
    const at::Tensor move = call_.Move(operand_);
    at::Tensor tangent = AlongSecant() ? Derivative(x_.value) : slope->clone();
    tangent.masked_fill_(at::isfinite(move).logical_and(at::isfinite(tangent)).logical_not_(), 0);
    *slope = at::where(broken, tangent, *slope);
    const at::Tensor met = output.value - tangent * move.masked_fill(at::isfinite(move).logical_not_(), 0);
    return at::where(broken, met, output.reference);
  }

 private:
  at::Tensor ResultAt(const at::Tensor& point) const {
    std::vector<at::Tensor> operands;
    for (const RuleOperand& o : call_.operands) operands.push_back(o.value);
    operands[operand_] = point;
    return call_.run(call_.arguments, operands)[0];
  }

  at::Tensor Derivative(const at::Tensor& point) const {
    const bool in_graph = c10::GradMode::is_enabled() && point.requires_grad();
    if (known_ != nullptr && !in_graph && point.is_floating_point()) return known_(call_, point);
    c10::InferenceMode no_inference(false);
    c10::AutoGradMode grad(true);
    const at::Tensor leaf = in_graph ? point : point.detach().clone().set_requires_grad(true);
    const at::Tensor y = ResultAt(leaf);
    const at::Tensor gradient =
        torch::autograd::grad({y}, {leaf}, {at::ones_like(y)}, {}, /*create_graph=*/in_graph)[0];
    // A holomorphic function has one derivative, and its gradient is the conjugate of that.
    return gradient.is_complex() ? gradient.conj().resolve_conj() : gradient;
  }

  const RuleCall& call_;
  const Curve curve_;
  const KnownDerivative known_;
  const int operand_;
  RuleOperand x_;
};

}  // namespace

RuleResult Pointwise(const RuleCall& call, Curve curve, KnownDerivative known) {
  const Elementary function(call, curve, known);
  at::Tensor slope = function.Slope();
  std::vector<at::Tensor> stand_ins;
  const at::Tensor broken = function.Broken();
  if (broken.defined()) stand_ins = {function.LinearizeAtValue(broken, &slope)};
  // Pass nothing where f climbs infinitely (sqrt at 0) or is infinite itself: infinity times a row of zero is NaN.
  if (!slope.device().is_cpu() || !AllFinite(slope)) slope = FiniteOrZero(slope);
  const Nonlinearity choice = call.policy->nonlinearity;
  RuleResult result;
  result.kind = Kind::kPointwise;
  if (choice != Nonlinearity::kNone) result = Elementwise(call, Kind::kPointwise, {{function.operand(), slope}});
  if (!function.AlongSecant()) result.exact = false;
  if (choice == Nonlinearity::kAbsAffine) {
    result.joint = Spread(slope, std::nullopt);
  } else if (choice == Nonlinearity::kHybridAffine && call.policy->NonlinearityThreshold() > 0) {
    result.joint = Spread(slope, call.policy->NonlinearityThreshold());
  }
  if (curve == Curve::kSmooth) result.inner_terms = 1;
  result.stand_ins = std::move(stand_ins);
  return result;
}

}  // namespace addend
