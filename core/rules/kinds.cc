#include "core/rules/kinds.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/real.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/views.h"
#include "core/rules/for_loops.h"
#include "core/rules/kernels.h"
#include "core/rules/rows.h"

namespace addend {
namespace {

// Sizes and options of a tensor that a function reads.
struct InputShape {
  at::DimVector sizes;
  at::TensorOptions options;
  at::Tensor Zeros(int64_t rows) const { return at::zeros(WithRows(rows, sizes), options); }
};

// Transposes a linear function by differentiating it: exact, because it is linear. Rows do not meet each other, so that
// one backward pass serves all of them. cotangents: [R, *output sizes]; `inputs`: without the row axis.
Rows TransposeByAutograd(const RowsFunction& forward, const std::vector<InputShape>& inputs, const Rows& cotangents) {
  c10::InferenceMode no_inference(false);  // under it nothing is differentiated, and the transpose would be zero
  c10::AutoGradMode grad(true);
  int64_t count = 1;
  for (const at::Tensor& g : cotangents) count = g.defined() ? g.size(0) : count;
  Rows leaves;
  for (const InputShape& input : inputs) leaves.push_back(input.Zeros(count).set_requires_grad(true));
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
    if (!result[k].defined()) result[k] = inputs[k].Zeros(count);
  }
  return result;
}

class FunctionMap : public LinearMap {
 public:
  FunctionMap(std::vector<InputShape> inputs, RowsFunction forward, RowsFunction transpose)
      : inputs_(std::move(inputs)), forward_(std::move(forward)), transpose_(std::move(transpose)) {}

  Rows Forward(const Rows& rows) const override { return forward_(rows); }
  Rows Transpose(const Rows& cotangents) const override {
    return transpose_ ? transpose_(cotangents) : TransposeByRows(*this, cotangents);
  }
  Rows TransposeRows(const Rows& cotangents) const override {
    return transpose_ ? LinearMap::TransposeRows(cotangents) : TransposeByAutograd(forward_, inputs_, cotangents);
  }

 private:
  std::vector<InputShape> inputs_;
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
      result.push_back(AsInput(Reshaped(back, WithRows(count, input.sizes)), input));
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

// Dimensions over which one number of a coefficient multiplies several of the content: where it has one element and the
// content has more. The first dimension of the product is left out: it may be the batch, whose elements do not meet.
at::DimVector SpreadOver(at::IntArrayRef coefficient, at::IntArrayRef content) {
  const auto rank = static_cast<int64_t>(std::max(coefficient.size(), content.size()));
  at::DimVector over;
  for (int64_t d = 1; d < rank; ++d) {
    const int64_t c = d - rank + static_cast<int64_t>(coefficient.size());
    const int64_t v = d - rank + static_cast<int64_t>(content.size());
    if (c >= 0 && v >= 0 && coefficient[c] == 1 && content[v] > 1) over.push_back(v);
  }
  return over;
}

// Both factors at points, without a share by magnitude.
Meeting MeetAt(const MeetingPoints& points, const RuleOperand& first, const RuleOperand& second) {
  return {points.first_moves, points.second_moves, At(first, points.first), At(second, points.second)};
}

// The norm over some dimensions, which stay; of none of them the magnitude.
at::Tensor SizeOver(const at::Tensor& t, const at::DimVector& over) {
  return over.empty() ? t.abs() : at::linalg_vector_norm(t, 2, over, /*keepdim=*/true);
}

}  // namespace

Rows TransposeByRows(const LinearMap& map, const Rows& cotangents) {
  Rows rows;
  for (const at::Tensor& g : cotangents) rows.push_back(g.defined() ? Unsqueezed(g, 0) : g);
  rows = map.TransposeRows(rows);
  for (at::Tensor& back : rows) back = Select(back, 0, 0);
  return rows;
}

std::shared_ptr<const LinearMap> MakeMap(const RuleCall& call, const std::vector<int>& inputs, RowsFunction forward,
                                         RowsFunction transpose) {
  std::vector<InputShape> shapes;
  // A transpose written down by hand is for real numbers: among complex ones it would have to conjugate.
  bool complex = false;
  for (const RuleOutput& o : call.outputs) complex = complex || (o.value.defined() && o.value.is_complex());
  for (const int input : inputs) complex = complex || call.operands[input].value.is_complex();
  if (complex) transpose = nullptr;
  for (const int input : inputs) {
    const at::Tensor& value = call.operands[input].value;
    shapes.push_back({at::DimVector(value.sizes()), value.options()});
  }
  return std::make_shared<FunctionMap>(std::move(shapes), std::move(forward), std::move(transpose));
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

RuleResult Opaque(const RuleCall&) {
  RuleResult result;
  result.kind = Kind::kOpaque;
  result.exact = false;
  return result;
}

at::Tensor Middle(const RuleOperand& operand) {
  if (!operand.decomposed) return operand.value;
  const at::Tensor& x = operand.value;
  const at::Tensor& b = operand.reference;
  if (!ForFlatLoops(x, b)) return operand.finite ? at::lerp(b, x, 0.5) : (x + b).div_(2);
  const at::Tensor middle = at::empty(x.sizes(), x.options());
  DispatchReal(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    Middles(x.data_ptr<T>(), b.data_ptr<T>(), middle.data_ptr<T>(), x.numel());
  });
  return middle;
}

bool SharesByMagnitude(const RuleOperand& coefficient) {
  return coefficient.content_first != 0 && (coefficient.content_first & ~coefficient.by_magnitude) == 0;
}

const MagnitudeWeights& WeightsOfKinds(uint32_t by_magnitude) {
  // Round numbers out of a flat optimum, see docs/policies.md#by_magnitude.
  static constexpr MagnitudeWeights kOfAttention = {1.5, 1.5};
  static constexpr MagnitudeWeights kOfGates = {1.5, 5};
  return (by_magnitude & kFreezeAttention) != 0 ? kOfAttention : kOfGates;
}

at::Tensor RestOfContent(double weight, const at::Tensor& size, const at::Tensor& size_at_reference) {
  const bool is_double = size.scalar_type() == at::kDouble;
  const double least = is_double ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  return size_at_reference / at::add(size_at_reference, size, weight).clamp_min_(least);
}

at::Tensor RestOfContent(const MagnitudeWeights& weights, const at::Tensor& size, const at::Tensor& size_at_reference,
                         const at::Tensor& coefficient, const at::Tensor& at_reference) {
  const at::Tensor opens = RestOfContent(weights.opens, size, size_at_reference);
  if (weights.opens == weights.closes) return opens;
  return at::where(coefficient.abs().gt(at_reference.abs()), opens,
                   RestOfContent(weights.closes, size, size_at_reference));
}

MeetingPoints PointsOf(const Policy& policy, const RuleOperand& first, const RuleOperand& second) {
  const uint32_t kinds = policy.FrozenKinds();
  const bool first_frozen = first.decomposed && (first.marks & kinds) != 0;
  const bool second_frozen = second.decomposed && (second.marks & kinds) != 0;
  MeetingPoints points;
  points.first_moves = first.decomposed && !(first_frozen && second.decomposed && !second_frozen);
  points.second_moves = second.decomposed && !(second_frozen && first.decomposed && !first_frozen);
  const bool both = points.first_moves && points.second_moves;
  const bool first_leads = !first_frozen && first.content_first != 0;
  const bool second_leads = !second_frozen && second.content_first != 0;
  if (!both) return points;
  if (first_leads != second_leads) {
    points.first = second_leads ? Point::kReference : Point::kValue;
    points.second = first_leads ? Point::kReference : Point::kValue;
    const RuleOperand& coefficient = first_leads ? first : second;
    if (SharesByMagnitude(coefficient)) points.weights = &WeightsOfKinds(coefficient.by_magnitude);
  } else {
    points.first = points.second = Point::kMiddle;
  }
  return points;
}

at::Tensor At(const RuleOperand& operand, Point point) {
  switch (point) {
    case Point::kReference:
      return operand.reference;
    case Point::kMiddle:
      return Middle(operand);
    default:
      return operand.value;
  }
}

Meeting Meet(const Policy& policy, const RuleOperand& first, const RuleOperand& second) {
  return MeetAt(PointsOf(policy, first, second), first, second);
}

Meeting MeetByElement(const Policy& policy, const RuleOperand& first, const RuleOperand& second) {
  const MeetingPoints points = PointsOf(policy, first, second);
  if (points.weights == nullptr) return MeetAt(points, first, second);
  const bool first_leads = points.first == Point::kValue;
  const RuleOperand& coefficient = first_leads ? first : second;
  const RuleOperand& content = first_leads ? second : first;
  const at::DimVector over = SpreadOver(coefficient.value.sizes(), content.value.sizes());
  const at::Tensor rest = RestOfContent(*points.weights, SizeOver(content.value, over),
                                        SizeOver(content.reference, over), coefficient.value, coefficient.reference);
  const at::Tensor of_coefficient =
      coefficient.value - rest * MoveOf(coefficient.value, coefficient.reference, coefficient.finite);
  const at::Tensor of_content = content.reference + rest * MoveOf(content.value, content.reference, content.finite);
  return first_leads ? Meeting{true, true, of_coefficient, of_content}
                     : Meeting{true, true, of_content, of_coefficient};
}

}  // namespace addend
