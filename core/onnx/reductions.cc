// Reductions along axes, and sums and products up to each element.
#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/operands.h"

namespace addend::onnx {
namespace {

using at::Tensor;
using Sizes = std::vector<int64_t>;

// Parts of a node that all reductions share.
struct Reduction {
  Tensor x;
  Sizes axes;            // descending
  bool keeps = true;     // the axes, with size 1
  bool is_none = false;  // there is nothing to reduce: the function of one number remains
};

bool IsInteger(const Tensor& x) { return c10::isIntegralType(x.scalar_type(), /*includeBool=*/false); }

// Axes are an attribute, or an input from some version on. Without any they are all, or none with
// noop_with_empty_axes.
Reduction ReductionOf(const Context& context) {
  Reduction reduction;
  reduction.x = context.Tensor(0);
  reduction.keeps = context.FlagAttribute("keepdims", true);
  const int64_t rank = reduction.x.dim();
  reduction.axes = context.Axes(context.Has(1) ? context.Integers(1) : context.IntsAttribute("axes"), rank);
  reduction.is_none = reduction.axes.empty() && context.FlagAttribute("noop_with_empty_axes", false);
  if (reduction.axes.empty() && !reduction.is_none) {
    reduction.axes.resize(static_cast<size_t>(rank));
    std::iota(reduction.axes.begin(), reduction.axes.end(), 0);
  }
  std::sort(reduction.axes.rbegin(), reduction.axes.rend());
  reduction.axes.erase(std::unique(reduction.axes.begin(), reduction.axes.end()), reduction.axes.end());
  return reduction;
}

// The sum has the type of the elements, also for integers.
Tensor Sum(const Tensor& x, const Reduction& reduction) {
  if (reduction.is_none) return x;
  return IsInteger(x) ? at::sum(x, reduction.axes, reduction.keeps, x.scalar_type())
                      : at::sum(x, reduction.axes, reduction.keeps);
}

// A function of integers that is none: computed with many digits and cut.
Tensor ThroughReals(const Reduction& reduction, const std::function<Tensor(const Tensor&)>& function) {
  const at::ScalarType type = reduction.x.scalar_type();
  return IsInteger(reduction.x) ? function(reduction.x.to(at::kDouble)).to(type) : function(reduction.x);
}

Results ReduceSum(const Context& context) {
  const Reduction reduction = ReductionOf(context);
  return Sum(reduction.x, reduction);
}

Results ReduceMean(const Context& context) {
  const Reduction reduction = ReductionOf(context);
  const Tensor& x = reduction.x;
  if (reduction.is_none) return x;
  if (!IsInteger(x)) return at::mean(x, reduction.axes, reduction.keeps);
  int64_t count = 1;
  for (const int64_t axis : reduction.axes) count *= x.size(axis);
  return at::div(Sum(x, reduction), count, "trunc");
}

Results ReduceL1(const Context& context) {
  const Reduction reduction = ReductionOf(context);
  return Sum(at::abs(reduction.x), reduction);
}

Results ReduceL2(const Context& context) {
  const Reduction reduction = ReductionOf(context);
  if (reduction.is_none) return at::abs(reduction.x);
  return ThroughReals(reduction, [&](const Tensor& x) { return at::sqrt(Sum(at::square(x), reduction)); });
}

Results ReduceSumSquare(const Context& context) {
  const Reduction reduction = ReductionOf(context);
  return Sum(at::square(reduction.x), reduction);
}

Results ReduceLogSum(const Context& context) {
  const Reduction reduction = ReductionOf(context);
  return ThroughReals(reduction, [&](const Tensor& x) { return at::log(Sum(x, reduction)); });
}

Results ReduceLogSumExp(const Context& context) {
  const Reduction reduction = ReductionOf(context);
  if (reduction.is_none) return reduction.x;
  return ThroughReals(reduction, [&](const Tensor& x) { return at::logsumexp(x, reduction.axes, reduction.keeps); });
}

Results ReduceProd(const Context& context) {
  const Reduction reduction = ReductionOf(context);
  Tensor product = reduction.x;
  for (const int64_t axis : reduction.axes) product = at::prod(product, axis, reduction.keeps, product.scalar_type());
  return product;
}

// The least number of a type (or with `greatest` the greatest), which the extreme of no numbers is.
at::Scalar Bound(const Tensor& x, bool greatest) {
  switch (x.scalar_type()) {
    case at::kByte:
      return greatest ? std::numeric_limits<uint8_t>::max() : 0;
    case at::kChar:
      return greatest ? std::numeric_limits<int8_t>::max() : std::numeric_limits<int8_t>::min();
    case at::kShort:
      return greatest ? std::numeric_limits<int16_t>::max() : std::numeric_limits<int16_t>::min();
    case at::kInt:
      return greatest ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int32_t>::min();
    case at::kLong:
      return greatest ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
    case at::kBool:
      return greatest;
    default:
      return greatest ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  }
}

Results Extreme(const Context& context, bool greatest) {
  const Reduction reduction = ReductionOf(context);
  const Tensor& x = reduction.x;
  if (reduction.is_none) return x;
  const bool is_empty =
      std::any_of(reduction.axes.begin(), reduction.axes.end(), [&](int64_t axis) { return x.size(axis) == 0; });
  if (is_empty) {
    if (context.Input(0).HoldsIntegers()) throw context.Refused("it is the extreme of no integers");
    const Sizes sizes = at::sum(x, reduction.axes, reduction.keeps).sizes().vec();
    return at::full(sizes, Bound(x, !greatest), x.options());
  }
  return greatest ? at::amax(x, reduction.axes, reduction.keeps) : at::amin(x, reduction.axes, reduction.keeps);
}

Results ReduceMax(const Context& context) { return Extreme(context, /*greatest=*/true); }

Results ReduceMin(const Context& context) { return Extreme(context, /*greatest=*/false); }

// -------------------------------------------------------------------------------------------------- up to each element

// `neutral`: what the first element of an exclusive result is.
template <typename Accumulate>
Results Accumulated(const Context& context, int64_t neutral, const Accumulate& accumulate) {
  Tensor x = context.Tensor(0);
  const int64_t axis = context.Axis(context.Integer(1), x.dim());
  const int64_t size = x.size(axis);
  const bool reverse = context.FlagAttribute("reverse", false);
  if (size == 0) return x;
  if (reverse) x = at::flip(x, axis);
  if (context.FlagAttribute("exclusive", false)) {
    Sizes pads(2 * static_cast<size_t>(x.dim() - axis), 0);
    pads[pads.size() - 2] = 1;
    x = at::constant_pad_nd(at::slice(x, axis, 0, size - 1), pads, neutral);
  }
  const Tensor result = accumulate(x, axis);
  return reverse ? at::flip(result, axis) : result;
}

Results CumSum(const Context& context) {
  return Accumulated(context, 0, [](const Tensor& x, int64_t axis) {
    return IsInteger(x) ? at::cumsum(x, axis, x.scalar_type()) : at::cumsum(x, axis);
  });
}

Results CumProd(const Context& context) {
  return Accumulated(context, 1, [](const Tensor& x, int64_t axis) {
    return IsInteger(x) ? at::cumprod(x, axis, x.scalar_type()) : at::cumprod(x, axis);
  });
}

// `since_input`: the version from which on the axes are an input.
void AddReduction(OperatorTable& table, const char* name, OperatorFunction function, int64_t since_input = 18) {
  table.Add(name, 1, function).Attributes({"axes", "keepdims"});
  table.Add(name, since_input, function)
      .Inputs(1, 2)
      .Attributes({"keepdims", "noop_with_empty_axes"})
      .Known(KnownIf::kSizesConstant);
}

}  // namespace

void RegisterReductions(OperatorTable& table) {
  AddReduction(table, "ReduceSum", ReduceSum, /*since_input=*/13);
  AddReduction(table, "ReduceMean", ReduceMean);
  AddReduction(table, "ReduceMax", ReduceMax);
  AddReduction(table, "ReduceMin", ReduceMin);
  AddReduction(table, "ReduceProd", ReduceProd);
  AddReduction(table, "ReduceL1", ReduceL1);
  AddReduction(table, "ReduceL2", ReduceL2);
  AddReduction(table, "ReduceSumSquare", ReduceSumSquare);
  AddReduction(table, "ReduceLogSum", ReduceLogSum);
  AddReduction(table, "ReduceLogSumExp", ReduceLogSumExp);
  table.Add("CumSum", 11, CumSum).Inputs(2).Attributes({"exclusive", "reverse"});
  table.Add("CumProd", 26, CumProd).Inputs(2).Attributes({"exclusive", "reverse"});
  table.KeepIntegers({"ReduceMax", "ReduceMin"});
}

}  // namespace addend::onnx
