#include "core/rules/kinds.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/real.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/rules/envelope_kernel.h"
#include "core/rules/for_loops.h"
#include "core/rules/joint.h"
#include "core/rules/kernels.h"

namespace addend {
namespace {

// Transposes a linear function by differentiating it: exact, because it is linear. Rows do not meet each other, so that
// one backward pass serves all of them. cotangents: [R, *output sizes]; `like`: without the row axis.
Rows TransposeByAutograd(const RowsFunction& forward, const std::vector<at::Tensor>& like, const Rows& cotangents) {
  c10::InferenceMode no_inference(false);  // under it nothing is differentiated, and the transpose would be zero
  c10::AutoGradMode grad(true);
  int64_t count = 1;
  for (const at::Tensor& g : cotangents) count = g.defined() ? g.size(0) : count;
  Rows leaves;
  for (const at::Tensor& input : like) {
    leaves.push_back(at::zeros(WithRows(count, input.sizes()), input.options()).set_requires_grad(true));
  }
  const Rows outputs = forward(leaves);
  std::vector<at::Tensor> roots;
  std::vector<at::Tensor> seeds;
  for (size_t k = 0; k < outputs.size() && k < cotangents.size(); ++k) {
    if (!cotangents[k].defined() || !outputs[k].defined() || !outputs[k].requires_grad()) continue;
    roots.push_back(outputs[k]);
    seeds.push_back(cotangents[k]);
  }
  Rows result(leaves.size());
  if (!roots.empty()) {
    const auto grads = torch::autograd::grad(roots, leaves, seeds, {}, false, /*allow_unused=*/true);
    for (size_t k = 0; k < grads.size(); ++k) {
      if (grads[k].defined()) result[k] = grads[k];
    }
  }
  for (size_t k = 0; k < result.size(); ++k) {
    if (!result[k].defined()) result[k] = at::zeros(WithRows(count, like[k].sizes()), like[k].options());
  }
  return result;
}

class FunctionMap : public LinearMap {
 public:
  FunctionMap(std::vector<at::Tensor> like, RowsFunction forward, RowsFunction transpose)
      : like_(std::move(like)), forward_(std::move(forward)), transpose_(std::move(transpose)) {}

  Rows Forward(const Rows& rows) const override { return forward_(rows); }
  Rows Transpose(const Rows& cotangents) const override {
    if (transpose_) return transpose_(cotangents);
    Rows rows;
    for (const at::Tensor& g : cotangents) rows.push_back(g.defined() ? g.unsqueeze(0) : g);
    rows = TransposeByAutograd(forward_, like_, rows);
    for (at::Tensor& one : rows) one = one.squeeze(0);
    return rows;
  }
  Rows TransposeRows(const Rows& cotangents) const override {
    return transpose_ ? LinearMap::TransposeRows(cotangents) : TransposeByAutograd(forward_, like_, cotangents);
  }

 private:
  std::vector<at::Tensor> like_;  // one element expanded to each input's shape: sizes, dtype and device
  RowsFunction forward_;
  RowsFunction transpose_;
};

class ElementwiseMap : public LinearMap {
 public:
  struct Input {
    at::DimVector sizes;
    at::ScalarType dtype;
    double number = 1;
    at::Tensor tensor;  // undefined: the number
    bool IsOne() const { return !tensor.defined() && number == 1; }
  };

  ElementwiseMap(std::vector<Input> inputs, at::IntArrayRef output_sizes, const at::TensorOptions& options)
      : inputs_(std::move(inputs)),
        output_sizes_(output_sizes),
        options_(options),
        dtype_(at::typeMetaToScalarType(options.dtype())) {
    if (inputs_.size() == 1 && !inputs_[0].IsOne() && SameShape(0)) {
      scale_ = inputs_[0].tensor.defined() ? inputs_[0].tensor : at::scalar_tensor(inputs_[0].number, options);
    }
  }

  Rows Forward(const Rows& rows) const override {
    at::Tensor sum;
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const at::Tensor row = Aligned(rows[k]);
      if (!sum.defined()) {
        sum = Times(row, inputs_[k]);
      } else if (inputs_[k].tensor.defined()) {
        sum = at::addcmul(sum, row, inputs_[k].tensor);
      } else {
        sum = at::add(sum, row, inputs_[k].number);
      }
    }
    // Real numbers beside complex ones, which may have been plain, become complex; copied into real ones, those lose
    // their imaginary part.
    if (at::isComplexType(dtype_) && !sum.is_complex()) sum = sum.to(dtype_);
    if (!at::isComplexType(dtype_) && sum.is_complex()) sum = at::real(sum);
    const bool whole = sum.sizes().slice(1) == at::IntArrayRef(output_sizes_);
    return {whole ? sum : sum.expand(WithRows(sum.size(0), output_sizes_))};
  }

  Rows Transpose(const Rows& cotangents) const override {
    Rows result;
    for (const Input& input : inputs_) {
      // Only other outputs, which this map gives no rows, have a cotangent.
      if (!cotangents[0].defined()) {
        result.push_back(at::zeros(input.sizes, options_.dtype(input.dtype)));
        continue;
      }
      result.push_back(AsInput(at::sum_to(TimesConjugate(cotangents[0], input), input.sizes), input));
    }
    return result;
  }
  Rows TransposeRows(const Rows& cotangents) const override {
    if (!cotangents[0].defined()) return LinearMap::TransposeRows(cotangents);
    const int64_t count = cotangents[0].size(0);
    Rows result;
    for (const Input& input : inputs_) {
      // Right-aligned behind the rows, summed, and without the dimensions that only the output has.
      at::DimVector sizes(output_sizes_.size() - input.sizes.size(), 1);
      sizes.append(input.sizes.begin(), input.sizes.end());
      const at::Tensor back = at::sum_to(TimesConjugate(cotangents[0], input), WithRows(count, sizes));
      result.push_back(AsInput(back.reshape(WithRows(count, input.sizes)), input));
    }
    return result;
  }

  const at::Tensor* Scale() const override { return scale_.defined() ? &scale_ : nullptr; }
  bool Identity() const override { return inputs_.size() == 1 && inputs_[0].IsOne() && SameShape(0); }
  bool Accumulates() const override { return inputs_.size() > 1 && inputs_[0].IsOne() && SameShape(0); }
  void AddTo(at::Tensor& target, const Rows& rows) const override {
    for (size_t k = 1; k < inputs_.size(); ++k) {
      const at::Tensor row = Aligned(rows[k]);
      if (inputs_[k].tensor.defined()) {
        target.addcmul_(row, inputs_[k].tensor);
      } else {
        target.add_(row, inputs_[k].number);
      }
    }
  }

 private:
  bool SameShape(size_t k) const { return inputs_[k].sizes == output_sizes_ && inputs_[k].dtype == dtype_; }
  at::Tensor Aligned(const at::Tensor& rows) const {
    return RightAlign(rows, static_cast<int64_t>(output_sizes_.size()));
  }
  // A real input takes the real part of what comes back; a complex one beside a real output gets complex numbers.
  static at::Tensor AsInput(const at::Tensor& back, const Input& input) {
    const bool complex = at::isComplexType(input.dtype);
    return back.is_complex() == complex ? back : complex ? back.to(input.dtype) : at::real(back);
  }
  static at::Tensor Times(const at::Tensor& t, const Input& input) {
    if (input.IsOne()) return t;
    return input.tensor.defined() ? t * input.tensor : t * input.number;
  }
  static at::Tensor TimesConjugate(const at::Tensor& t, const Input& input) {
    const bool complex = input.tensor.defined() && input.tensor.is_complex();
    return complex ? t * input.tensor.conj() : Times(t, input);
  }

  std::vector<Input> inputs_;
  at::DimVector output_sizes_;
  at::TensorOptions options_;
  at::ScalarType dtype_;  // of the output
  at::Tensor scale_;
};

}  // namespace

at::Tensor RightAlign(const at::Tensor& rows, int64_t rank) {
  if (rows.dim() - 1 >= rank) return rows;
  at::Tensor aligned = rows;
  for (int64_t d = rows.dim() - 1; d < rank; ++d) aligned = aligned.unsqueeze(1);
  return aligned;
}

at::DimVector WithRows(int64_t rows, at::IntArrayRef sizes) {
  at::DimVector all;
  all.push_back(rows);
  all.append(sizes.begin(), sizes.end());
  return all;
}

int64_t RowDim(int64_t dim, int64_t rank) { return (dim < 0 ? dim + std::max<int64_t>(rank, 1) : dim) + 1; }

namespace {

// Whether loops can walk over all elements in some order: then the order of dimensions does not matter.
bool IsDenseOnCpu(const at::Tensor& t) {
  return t.device().is_cpu() && t.is_non_overlapping_and_dense() &&
         (t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble);
}

}  // namespace

bool AllFinite(const at::Tensor& tensor) {
  if (tensor.is_complex()) return AllFinite(at::view_as_real(tensor.resolve_conj()));
  if (IsDenseOnCpu(tensor)) {
    return tensor.scalar_type() == at::kFloat ? AllFiniteNumbers(tensor.data_ptr<float>(), tensor.numel())
                                              : AllFiniteNumbers(tensor.data_ptr<double>(), tensor.numel());
  }
  // A sum is finite only if all of its terms are. It may overflow all the same: then it takes a closer look.
  return std::isfinite(tensor.sum().item<double>()) || at::isfinite(tensor).all().item<bool>();
}

at::Tensor FiniteOrZero(const at::Tensor& tensor) { return tensor.masked_fill(at::isfinite(tensor).logical_not_(), 0); }

at::Tensor FoldBatch(const at::Tensor& rows, const std::function<at::Tensor(const at::Tensor&)>& f) {
  at::DimVector folded;
  folded.push_back(rows.size(0) * rows.size(1));
  folded.append(rows.sizes().begin() + 2, rows.sizes().end());
  const at::Tensor result = f(rows.reshape(folded));
  at::DimVector unfolded;
  unfolded.push_back(rows.size(0));
  unfolded.push_back(rows.size(1));
  unfolded.append(result.sizes().begin() + 1, result.sizes().end());
  return result.reshape(unfolded);
}

std::shared_ptr<const LinearMap> MakeMap(const RuleCall& call, const std::vector<int>& inputs, RowsFunction forward,
                                         RowsFunction transpose) {
  std::vector<at::Tensor> like;
  // A transpose written down by hand is for real numbers: among complex ones it would have to conjugate.
  bool complex = false;
  for (const RuleOutput& o : call.outputs) complex = complex || (o.value.defined() && o.value.is_complex());
  for (const int input : inputs) complex = complex || call.operands[input].value.is_complex();
  if (complex) transpose = nullptr;
  for (const int input : inputs) {
    const at::Tensor& value = call.operands[input].value;
    like.push_back(at::zeros({}, value.options()).expand(value.sizes()));
  }
  return std::make_shared<FunctionMap>(std::move(like), std::move(forward), std::move(transpose));
}

RuleResult Elementwise(const RuleCall& call, Kind kind, std::vector<Term> terms) {
  RuleResult result;
  result.kind = kind;
  std::vector<ElementwiseMap::Input> inputs;
  for (Term& term : terms) {
    const RuleOperand& operand = call.operands[term.operand];
    if (!operand.decomposed) continue;
    result.inputs.push_back(term.operand);
    inputs.push_back({at::DimVector(operand.value.sizes()), operand.value.scalar_type(), term.coefficient.number,
                      term.coefficient.tensor});
  }
  if (!inputs.empty()) {
    const at::Tensor& output = call.outputs[0].value;
    result.map = std::make_shared<ElementwiseMap>(std::move(inputs), output.sizes(), output.options());
  }
  return result;
}

RuleResult LinearIn(const RuleCall& call, Kind kind, std::string_view argument,
                    std::function<at::Tensor(const at::Tensor&)> forward,
                    std::function<at::Tensor(const at::Tensor&)> transpose) {
  RuleResult result;
  result.kind = kind;
  const int operand = call.OperandAt(argument);
  if (operand < 0 || !call.operands[operand].decomposed) {
    throw Unimplemented(
        absl::StrCat("rule of ", call.name, " covers a decomposed argument ", std::string(argument), " only"));
  }
  result.inputs = {operand};
  RowsFunction transposed;
  if (transpose) transposed = [transpose](const Rows& g) -> Rows { return {transpose(g[0])}; };
  result.map = MakeMap(
      call, result.inputs, [forward](const Rows& rows) -> Rows { return {forward(rows[0])}; }, std::move(transposed));
  return result;
}

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

using Derivative = std::function<at::Tensor(const at::Tensor&)>;

// The derivative at some points.
template <typename T>
std::vector<T> DerivativesAt(const Derivative& derivative, const std::vector<T>& points, const at::Tensor& like) {
  at::Tensor at_points = at::empty({static_cast<int64_t>(points.size())}, like.options());
  std::copy(points.begin(), points.end(), at_points.data_ptr<T>());
  const at::Tensor found = derivative(at_points).contiguous();
  return {found.data_ptr<T>(), found.data_ptr<T>() + found.numel()};
}

// What SecantSlope does about small moves, for the elements `small` of a function that is the same for each.
template <typename T>
class SmallMoves {
 public:
  SmallMoves(const SecantView<T>& view, Curve curve, const Derivative& derivative, const at::Tensor& slope)
      : view_(view), curve_(curve), derivative_(derivative), slope_(slope), out_(slope.data_ptr<T>()) {}

  void Settle(const std::vector<int64_t>& small) const {
    const bool kinked = curve_ == Curve::kPiecewiseLinear || curve_ == Curve::kUnitPieces;
    kinked ? SettleKinked(small) : SettleSmooth(small);
  }

 private:
  T MoveAt(int64_t i) const {
    return view_.value[i] == view_.reference[i] ? T(0) : view_.value[i] - view_.reference[i];
  }
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
      const bool exact = curve_ == Curve::kUnitPieces && (rise == 0 || rise == std::abs(MoveAt(i)));
      if (!exact || MoveAt(i) == 0) unsure.push_back(i);
    }
    if (unsure.empty()) return;
    const std::vector<T> ends = AtBothEnds(unsure);
    for (size_t k = 0; k < unsure.size(); ++k) {
      const T at_value = ends[k];
      if (at_value == ends[unsure.size() + k] || MoveAt(unsure[k]) == 0) out_[unsure[k]] = at_value;
    }
  }

  void SettleSmooth(const std::vector<int64_t>& small) const {
    const bool power = curve_ == Curve::kPower;
    std::vector<T> middles;
    for (const int64_t i : small) middles.push_back(view_.reference[i] + MoveAt(i) / 2);
    const std::vector<T> tangents = DerivativesAt(derivative_, middles, slope_);
    std::vector<int64_t> unsure;
    std::vector<T> tangents_of_unsure;
    for (size_t k = 0; k < small.size(); ++k) {
      const int64_t i = small[k];
      const T tangent = tangents[k];
      const T missed = std::abs(RiseAt(i) - tangent * MoveAt(i));
      const T conditioning =
          power ? std::abs(middles[k] * tangent) : std::abs(view_.value[i]) + std::abs(view_.reference[i]);
      const T noise = (std::abs(view_.f_value[i]) + std::abs(view_.f_reference[i]) + conditioning) *
                      (4 * std::numeric_limits<T>::epsilon());
      if (missed <= noise || MoveAt(i) == 0) {
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
  const Derivative& derivative_;
  const at::Tensor& slope_;
  T* out_;
};

// The slopes in one pass over all elements and another look at the small moves. Undefined where there are such and the
// derivative is not told element by element.
template <typename T>
at::Tensor SecantsOnCpu(const SecantView<T>& view, const at::Tensor& like, Curve curve, const Derivative& derivative,
                        bool pointwise) {
  const at::Tensor slope = at::empty_like(like, at::MemoryFormat::Contiguous);
  const std::vector<int64_t> small = SecantQuotients(view, slope.data_ptr<T>());
  if (!small.empty() && !pointwise) return {};
  if (!small.empty()) SmallMoves<T>(view, curve, derivative, slope).Settle(small);
  return slope;
}

}  // namespace

at::Tensor SecantSlope(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& f_value,
                       const at::Tensor& f_reference, Curve curve,
                       const std::function<at::Tensor(const at::Tensor&)>& derivative, bool pointwise) {
  if (ForSecantLoops(value, reference, f_value, f_reference)) {
    const at::Tensor slope = value.scalar_type() == at::kFloat
                                 ? SecantsOnCpu(ViewOf<float>(value, reference, f_value, f_reference, curve), value,
                                                curve, derivative, pointwise)
                                 : SecantsOnCpu(ViewOf<double>(value, reference, f_value, f_reference, curve), value,
                                                curve, derivative, pointwise);
    if (slope.defined()) return slope;
  }
  const at::Tensor move = MoveOf(value, reference);
  // A quotient that is not taken may be 0 / 0, but where gradients pass it has to be finite.
  const bool needs_graph = IsFollowed(value) || IsFollowed(reference);
  const at::Tensor slope = (f_value - f_reference) / (needs_graph ? move.masked_fill(move.eq(0), 1) : move);
  const at::Tensor middle = reference + move / 2;
  // Below this the secant loses digits to cancellation, and the derivative at the middle errs by move^2 / 24 only.
  const bool is_double = value.scalar_type() == at::kDouble || value.scalar_type() == at::kComplexDouble;
  const double limit = SmallLimit(value.scalar_type());
  at::Tensor small = curve == Curve::kPower ? move.abs().le(middle.abs() * limit) : move.abs().le(limit);
  if (!small.any().item<bool>()) return slope;
  if (pointwise) {
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
  const at::Tensor missed = (f_value - f_reference - tangent * move).abs();
  const bool power = curve == Curve::kPower;
  const at::Tensor conditioning = power ? (middle * tangent).abs() : value.abs() + reference.abs();
  at::Tensor good = missed.le((f_value.abs() + f_reference.abs() + conditioning) * (4 * eps)).logical_or(move.eq(0));
  if (small.logical_and(good.logical_not()).any().item<bool>()) {
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

}  // namespace

RuleResult Pointwise(const RuleCall& call, Curve curve, KnownDerivative known) {
  const int operand = call.OperandAt(call.First());
  if (operand < 0 || !call.operands[operand].decomposed) {
    throw Unimplemented(absl::StrCat("rule of ", call.name, " covers a decomposed argument 0 only"));
  }
  for (size_t k = 0; k < call.operands.size(); ++k) {
    if (static_cast<int>(k) != operand && call.operands[k].decomposed && !call.operands[k].written) {
      throw Unimplemented(absl::StrCat(call.name, ".", call.overload, " with more than one decomposed argument"));
    }
  }
  // A plain operand, such as the bound of a clamp, may have a larger shape: each element has a slope of its own.
  RuleOperand x = call.operands[operand];
  if (x.value.sizes() != call.outputs[0].value.sizes()) {
    x.value = x.value.expand_as(call.outputs[0].value);
    x.reference = x.reference.expand_as(call.outputs[0].value);
  }
  const auto derivative = [&](const at::Tensor& point) {
    const bool in_graph = c10::GradMode::is_enabled() && point.requires_grad();
    if (known != nullptr && !in_graph && point.is_floating_point()) return known(call, point);
    c10::InferenceMode no_inference(false);
    c10::AutoGradMode grad(true);
    const at::Tensor leaf = in_graph ? point : point.detach().clone().set_requires_grad(true);
    std::vector<at::Tensor> operands;
    for (const RuleOperand& o : call.operands) operands.push_back(o.value);
    operands[operand] = leaf;
    const at::Tensor y = call.run(call.arguments, operands)[0];
    const at::Tensor gradient =
        torch::autograd::grad({y}, {leaf}, {at::ones_like(y)}, {}, /*create_graph=*/in_graph)[0];
    // A holomorphic function has one derivative, and its gradient is the conjugate of that.
    return gradient.is_complex() ? gradient.conj().resolve_conj() : gradient;
  };
  const Nonlinearity choice = call.policy->nonlinearity;
  const bool scaling = choice == Nonlinearity::kScaling;
  const bool along_secant = !scaling && choice != Nonlinearity::kGradient && choice != Nonlinearity::kNone;
  at::Tensor slope;
  if (along_secant) {
    slope = SecantSlope(x.value, x.reference, call.outputs[0].value, call.outputs[0].reference, curve, derivative,
                        /*pointwise=*/call.operands.size() == 1);
  } else if (choice == Nonlinearity::kNone) {
    slope = at::zeros_like(x.value);
  } else {
    slope = scaling ? QuotientOrZero(call.outputs[0].value, x.value) : derivative(x.value);
  }
  // Where f(reference) is not finite although f(value) is, no secant exists. The operator is linearized at the value,
  // and the reference becomes what makes the two meet: f(value) - slope * move.
  const at::Tensor& f_reference = call.outputs[0].reference;
  std::vector<at::Tensor> stand_ins;
  at::Tensor broken;
  if (!AllFinite(f_reference)) {
    broken = at::isfinite(f_reference).logical_not_().logical_and_(at::isfinite(call.outputs[0].value));
  }
  if (curve == Curve::kPower) {
    // Nor does it mean anything across a pole, which such functions have at 0: 1 / x from -1 to 2.
    const at::Tensor crosses = PassesZero(x.reference, x.value).logical_and_(at::isfinite(call.outputs[0].value));
    if (crosses.any().item<bool>()) {
      std::vector<at::Tensor> operands;
      for (const RuleOperand& o : call.operands) operands.push_back(o.value);
      operands[operand] = at::zeros_like(x.value);
      const c10::AutoGradMode no_grad(false);
      const at::Tensor pole = at::isfinite(call.run(call.arguments, operands)[0]).logical_not_().logical_and_(crosses);
      broken = broken.defined() ? broken.logical_or(pole) : pole;
    }
  }
  if (broken.defined() && broken.any().item<bool>()) {
    const at::Tensor move = call.Move(operand);
    at::Tensor tangent = along_secant ? derivative(x.value) : slope.clone();
    tangent.masked_fill_(at::isfinite(move).logical_and(at::isfinite(tangent)).logical_not_(), 0);
    slope = at::where(broken, tangent, slope);
    const at::Tensor met = call.outputs[0].value - tangent * move.masked_fill(at::isfinite(move).logical_not_(), 0);
    stand_ins = {at::where(broken, met, f_reference)};
  }
  // Where f climbs infinitely (sqrt at 0) or is infinite itself, nothing passes: infinity times a row of zero is NaN.
  if (!AllFinite(slope)) slope = slope.masked_fill(at::isfinite(slope).logical_not_(), 0);
  RuleResult result;
  result.kind = Kind::kPointwise;
  if (choice != Nonlinearity::kNone) result = Elementwise(call, Kind::kPointwise, {{operand, slope}});
  if (!along_secant) result.exact = false;
  if (choice == Nonlinearity::kAbsAffine) {
    result.joint = Spread(slope, std::nullopt);
  } else if (choice == Nonlinearity::kHybridAffine && call.policy->NonlinearityThreshold() > 0) {
    result.joint = Spread(slope, call.policy->NonlinearityThreshold());
  }
  if (curve == Curve::kSmooth) result.inner_terms = 1;
  result.stand_ins = std::move(stand_ins);
  return result;
}

RuleResult Opaque(const RuleCall&) {
  RuleResult result;
  result.kind = Kind::kOpaque;
  result.exact = false;
  return result;
}

at::Tensor EnvelopeShares(const at::Tensor& value, const at::Tensor& reference) {
  const int64_t k = value.size(-1);
  if (value.numel() == 0) return at::zeros_like(value);
  const bool in_graph = c10::GradMode::is_enabled() && (value.requires_grad() || reference.requires_grad());
  // Among more, pairs would take too much memory.
  constexpr int64_t kMostPairs = 64;
  const at::ScalarType dtype = value.scalar_type();
  const bool loops = value.device().is_cpu() && (dtype == at::kFloat || dtype == at::kDouble) &&
                     reference.scalar_type() == dtype && (!in_graph || k > kMostPairs);
  if (!loops) return EnvelopeSharesOfPairs(value, reference);
  const at::Tensor x = value.detach().resolve_neg().contiguous();
  const at::Tensor b = reference.detach().resolve_neg().contiguous();
  at::Tensor shares = at::empty_like(x);
  if (dtype == at::kFloat) {
    UpperEnvelopes(x.data_ptr<float>(), b.data_ptr<float>(), shares.data_ptr<float>(), x.numel() / k, k);
  } else {
    UpperEnvelopes(x.data_ptr<double>(), b.data_ptr<double>(), shares.data_ptr<double>(), x.numel() / k, k);
  }
  return shares;
}

at::Tensor EnvelopeSharesOfPairs(const at::Tensor& value, const at::Tensor& reference) {
  const int64_t k = value.size(-1);
  if (value.numel() == 0) return at::zeros_like(value);
  const at::Tensor x = value.reshape({-1, k});
  const at::Tensor b = reference.reshape({-1, k});
  at::Tensor shares = at::zeros_like(x);
  const at::Tensor move = MoveOf(x, b);
  // In pieces, so that memory stays bounded.
  const int64_t piece = std::max<int64_t>(1, (int64_t{1} << 22) / (k * k));
  for (int64_t start = 0; start < x.size(0); start += piece) {
    const int64_t length = std::min(piece, x.size(0) - start);
    const at::Tensor bj = b.narrow(0, start, length).unsqueeze(2);
    const at::Tensor bi = b.narrow(0, start, length).unsqueeze(1);
    const at::Tensor mj = move.narrow(0, start, length).unsqueeze(2);
    const at::Tensor mi = move.narrow(0, start, length).unsqueeze(1);
    const at::Tensor rise = mi - mj;          // how much faster i grows than j
    const at::Tensor ahead = MoveOf(bj, bi);  // by how much j leads at t = 0
    const at::Tensor crossing = ahead / rise;
    const at::Tensor parallel = rise.eq(0);
    const at::Tensor last = at::where(rise.gt(0), crossing, at::ones_like(crossing)).amin(2).clamp_max_(1);
    const at::Tensor first = at::where(rise.lt(0), crossing, at::zeros_like(crossing)).amax(2).clamp_min_(0);
    const at::Tensor beaten = parallel.logical_and(ahead.lt(0)).any(2);
    const at::Tensor ties = parallel.logical_and(ahead.eq(0)).sum(2).to(x.scalar_type());
    const at::Tensor share = ((last - first).clamp_min_(0) / ties).masked_fill_(beaten, 0);
    shares.narrow(0, start, length).copy_(share);
  }
  const at::Tensor nan = at::isnan(x).logical_or(at::isnan(b)).any(-1, /*keepdim=*/true);
  if (nan.any().item<bool>()) shares = shares.masked_fill(nan, std::numeric_limits<double>::quiet_NaN());
  return shares.view(value.sizes());
}

at::Tensor WinnerShares(const at::Tensor& value) {
  return at::zeros_like(value).scatter_(-1, at::argmax(value, -1, /*keepdim=*/true), 1.0);
}

Quadrature GaussLegendre(int count) {
  Quadrature rule;
  for (int i = 0; i < count; ++i) {
    // Newton's method on the Legendre polynomial, started at the usual asymptotic guess of its i-th root.
    double z = std::cos(M_PI * (i + 0.75) / (count + 0.5));
    double slope = 1;
    for (int step = 0; step < 100; ++step) {
      double p = 1;
      double before = 0;
      for (int j = 0; j < count; ++j) {
        const double next = ((2 * j + 1) * z * p - j * before) / (j + 1);
        before = p;
        p = next;
      }
      slope = count * (z * p - before) / (z * z - 1);
      const double correction = p / slope;
      z -= correction;
      if (std::abs(correction) < 1e-16) break;
    }
    rule.nodes.push_back((1 - z) / 2);
    rule.weights.push_back(1 / ((1 - z * z) * slope * slope));
  }
  return rule;
}

at::Tensor Middle(const RuleOperand& operand) {
  if (!operand.decomposed) return operand.value;
  const at::Tensor& x = operand.value;
  const at::Tensor& b = operand.reference;
  if (!ForFlatLoops(x, b)) return (x + b).div_(2);
  const at::Tensor middle = at::empty(x.sizes(), x.options());
  if (x.scalar_type() == at::kFloat) {
    Middles(x.data_ptr<float>(), b.data_ptr<float>(), middle.data_ptr<float>(), x.numel());
  } else {
    Middles(x.data_ptr<double>(), b.data_ptr<double>(), middle.data_ptr<double>(), x.numel());
  }
  return middle;
}

Meeting Meet(const Policy& policy, const RuleOperand& first, const RuleOperand& second) {
  const uint32_t kinds = policy.FrozenKinds();
  const bool first_frozen = first.decomposed && (first.marks & kinds) != 0;
  const bool second_frozen = second.decomposed && (second.marks & kinds) != 0;
  Meeting meeting;
  meeting.first_moves = first.decomposed && !(first_frozen && second.decomposed && !second_frozen);
  meeting.second_moves = second.decomposed && !(second_frozen && first.decomposed && !first_frozen);
  const bool both = meeting.first_moves && meeting.second_moves;
  const bool first_leads = !first_frozen && first.content_first != 0;
  const bool second_leads = !second_frozen && second.content_first != 0;
  if (!both || first_leads != second_leads) {
    meeting.first = both && second_leads ? first.reference : first.value;
    meeting.second = both && first_leads ? second.reference : second.value;
  } else {
    meeting.first = Middle(first);
    meeting.second = Middle(second);
  }
  return meeting;
}

}  // namespace addend
