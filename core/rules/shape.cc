// Copies, joins and rearrangements. Views have no rule: they are geometry.
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/triu.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

RuleResult SameElements(const RuleCall& call) {
  return Elementwise(call, Kind::kLinear, {{call.OperandAt(call.First()), 1.0}});
}

// The elements in order, under the sizes of the output.
RuleResult SameElementsInOrder(const RuleCall& call) {
  const at::DimVector sizes(call.outputs[0].value.sizes());
  return LinearIn(call, Kind::kLinear, "self", [sizes](const at::Tensor& rows) {
    at::DimVector all = WithRows(rows.size(0), sizes);
    return rows.reshape(all);
  });
}

// A conversion to another dtype: rows go along, except that half types keep float32 rows.
RuleResult ToCopy(const RuleCall& call) {
  const at::ScalarType dtype = call.outputs[0].value.scalar_type();
  if (dtype == call.Require("self").value.scalar_type()) return SameElements(call);
  return LinearIn(call, Kind::kLinear, "self", [dtype](const at::Tensor& rows) { return rows.to(dtype); });
}

// _to_copy(self, dtype, ...): floating-point numbers of one byte are scaled and rounded for one product only. Their
// sums are not numbers of their own, so that parts of them would not be either.
void RequireTwoBytes(const CallArguments& call) {
  if (!call.Given("dtype").isInt()) return;
  const at::ScalarType dtype = call.Given("dtype").toScalarType();
  if (!at::isFloatingType(dtype) || c10::elementSize(dtype) > 1) return;
  throw Unimplemented(absl::StrCat("aten::_to_copy to ", c10::toString(dtype),
                                   ", whose numbers cannot be summed; decompose the model before it is quantized"));
}

// cat and stack: plain parts stand as zeros between the rows of the others.
RuleResult Join(const RuleCall& call, bool stack) {
  const int64_t rank = call.outputs[0].value.dim();
  const int64_t dim = RowDim(call.Int("dim", 0), rank);
  RuleResult result;
  result.kind = Kind::kAffine;
  std::vector<at::DimVector> sizes;
  std::vector<bool> moves;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const RuleOperand& operand = call.operands[k];
    if (operand.argument != call.At("tensors")) continue;
    sizes.emplace_back(operand.value.sizes());
    moves.push_back(operand.decomposed);
    if (operand.decomposed) result.inputs.push_back(static_cast<int>(k));
  }
  const at::TensorOptions options = call.outputs[0].value.options();
  result.map = MakeMap(call, result.inputs, [=](const Rows& rows) -> Rows {
    std::vector<at::Tensor> parts;
    size_t next = 0;
    for (size_t k = 0; k < sizes.size(); ++k) {
      const at::Tensor own = moves[k] ? rows[next++] : at::Tensor();
      // An empty one-dimensional part is legal beside parts of any rank and adds nothing.
      if (!stack && sizes[k].size() == 1 && sizes[k][0] == 0 && static_cast<int64_t>(sizes[k].size()) != rank) continue;
      if (own.defined()) {
        parts.push_back(own);
        continue;
      }
      at::DimVector shape = WithRows(rows[0].size(0), sizes[k]);
      parts.push_back(at::zeros(shape, options));
    }
    return {stack ? at::stack(parts, dim) : at::cat(parts, dim)};
  });
  return result;
}

RuleResult Repeat(const RuleCall& call) {
  const auto repeats = call.Ints("repeats");
  return LinearIn(call, Kind::kLinear, "self", [=](const at::Tensor& rows) {
    at::DimVector all = {1};
    all.append(repeats.begin(), repeats.end());
    return RightAlign(rows, static_cast<int64_t>(repeats.size())).repeat(all);
  });
}

std::vector<int64_t> RowDims(const std::vector<int64_t>& dims, int64_t rank) {
  std::vector<int64_t> moved;
  for (const int64_t d : dims) moved.push_back(RowDim(d, rank));
  return moved;
}

RuleResult Flip(const RuleCall& call) {
  const auto dims = RowDims(call.Ints("dims"), call.Require("self").value.dim());
  return LinearIn(call, Kind::kLinear, "self", [=](const at::Tensor& rows) { return at::flip(rows, dims); });
}

RuleResult Roll(const RuleCall& call) {
  if (call.Require("self").value.dim() == 0) return SameElements(call);
  const auto shifts = call.Ints("shifts");
  const auto dims = RowDims(call.Ints("dims"), call.Require("self").value.dim());
  return LinearIn(call, Kind::kLinear, "self", [=](const at::Tensor& rows) {
    return dims.empty() ? at::roll(rows.flatten(1), shifts, {1}).view(rows.sizes()) : at::roll(rows, shifts, dims);
  });
}

// Pads count from the last dimension backwards, so that they fit the rows as they are; the constant is the reference's.
RuleResult Pad(const RuleCall& call) {
  const auto pad = call.Ints("pad");
  return LinearIn(call, Kind::kAffine, "self",
                  [=](const at::Tensor& rows) { return at::constant_pad_nd(rows, pad, 0); });
}

RuleResult Triangle(const RuleCall& call, bool upper) {
  const int64_t diagonal = call.Int("diagonal", 0);
  return LinearIn(call, Kind::kLinear, "self",
                  [=](const at::Tensor& rows) { return upper ? at::triu(rows, diagonal) : at::tril(rows, diagonal); });
}

// native_dropout(input, p, train) -> (output, mask): the mask of the value's run holds for every row.
RuleResult Dropout(const RuleCall& call) {
  const at::Tensor& output = call.outputs[0].value;
  const double keep = 1 - call.Double("p", 0);
  const bool train = call.Bool("train", true);
  if (!train) return SameElements(call);
  const at::Tensor mask = call.outputs[1].value.to(output.scalar_type());
  return Elementwise(call, Kind::kLinear, {{call.OperandAt("input"), mask * (keep > 0 ? 1 / keep : 0)}});
}

// The mask that the value's run drew holds for another operand.
std::vector<at::Tensor> DropAgain(const CallArguments& call, const at::Tensor& operand,
                                  const std::function<at::Tensor(size_t)>& drawn) {
  const double p = call.Double("p", 0);
  if (!call.Bool("train", true)) return {operand};
  return {operand.mul(drawn(1)).mul_(p < 1 ? 1 / (1 - p) : 0)};
}

void RegisterPlain(Registry& registry, const char* name) {
  registry.Register(Rule{name, Kind::kOpaque, Opaque}.GivesSizesOnly());
}

}  // namespace

void RegisterShape(Registry& registry) {
  registry.Register(Rule{"aten::clone", Kind::kLinear, SameElements}.MadeOfSizes().KeepsMarks().CoversComplex());
  registry.Register(Rule{"aten::_lazy_clone", Kind::kLinear, SameElements}.MadeOfSizes().KeepsMarks());
  registry.Register(Rule{"aten::_to_copy", Kind::kLinear, ToCopy}
                        .MadeOfSizes()
                        .Requires(RequireTwoBytes)
                        .KeepsMarks()
                        .CoversComplex());
  registry.Register(
      Rule{"aten::_unsafe_view", Kind::kLinear, SameElementsInOrder}.MadeOfSizes().KeepsMarks().CoversComplex());
  registry.Register(Rule{"aten::cat", Kind::kAffine, [](const RuleCall& c) { return Join(c, false); }}
                        .MadeOfSizes()
                        .KeepsMarks()
                        .CoversComplex());
  registry.Register(Rule{"aten::stack", Kind::kAffine, [](const RuleCall& c) { return Join(c, true); }}
                        .MadeOfSizes()
                        .KeepsMarks()
                        .CoversComplex());
  registry.Register(Rule{"aten::repeat", Kind::kLinear, Repeat}.MadeOfSizes().KeepsMarks().CoversComplex());
  registry.Register(Rule{"aten::flip", Kind::kLinear, Flip}.MadeOfSizes().KeepsMarks().CoversComplex());
  registry.Register(Rule{"aten::roll", Kind::kLinear, Roll}.MadeOfSizes().KeepsMarks().CoversComplex());
  registry.Register(Rule{"aten::constant_pad_nd", Kind::kAffine, Pad}.MadeOfSizes().KeepsMarks().CoversComplex());
  registry.Register(Rule{"aten::triu", Kind::kLinear, [](const RuleCall& c) { return Triangle(c, true); }}
                        .MadeOfSizes()
                        .KeepsMarks()
                        .CoversComplex());
  registry.Register(Rule{"aten::tril", Kind::kLinear, [](const RuleCall& c) { return Triangle(c, false); }}
                        .MadeOfSizes()
                        .KeepsMarks()
                        .CoversComplex());
  registry.Register(Rule{"aten::native_dropout", Kind::kLinear, Dropout}.EvaluatedBy(DropAgain).KeepsMarks());
  for (const char* name : {"aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::empty_like",
                           "aten::rand_like", "aten::randn_like", "aten::new_zeros", "aten::new_ones", "aten::new_full",
                           "aten::new_empty", "aten::new_empty_strided"}) {
    RegisterPlain(registry, name);
  }
}

}  // namespace addend
