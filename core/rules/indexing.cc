// Reading elements by index. Indices are plain: what is read where is taken from the value.
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/masked_fill.h>

#include "core/base/error.h"
#include "core/rules/element_map.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"
#include "core/rules/rewrite.h"

namespace addend {
namespace {

RuleResult Gather(const RuleCall& call) {
  if (call.Require("self").value.dim() == 0) return Rearrangement(call, Kind::kLinear);  // a number has no dimension
  const int64_t dim = RowDim(call.Int("dim", 0), call.Require("self").value.dim());
  const at::Tensor index = call.Require("index").value;
  return LinearIn(call, Kind::kLinear, "self", [=](const at::Tensor& rows) {
    at::DimVector sizes = WithRows(rows.size(0), index.sizes());
    return at::gather(rows, dim, index.unsqueeze(0).expand(sizes));
  });
}

RuleResult IndexSelect(const RuleCall& call) {
  if (call.Require("self").value.dim() == 0) return Rearrangement(call, Kind::kLinear);
  const int64_t dim = RowDim(call.Int("dim", 0), call.Require("self").value.dim());
  const at::Tensor index = call.Require("index").value;
  return LinearIn(call, Kind::kLinear, "self",
                  [=](const at::Tensor& rows) { return at::index_select(rows, dim, index); });
}

// tensor[i, :, j]: the recorded list says which dimensions have an index.
RuleResult Index(const RuleCall& call) {
  c10::List<Optional<at::Tensor>> indices;
  indices.push_back(Optional<at::Tensor>());  // the row axis
  const std::vector<int64_t> present = call.Ints("indices");
  size_t next = 0;
  while (next < call.operands.size() && call.operands[next].argument != call.At("indices")) ++next;
  // LibTorch puts the indexed dimensions first where they are not adjacent; then the row axis comes behind them.
  int runs = 0;
  int64_t index_rank = 0;
  bool in_run = false;
  for (size_t d = 0; d < present.size(); ++d) {
    // Python writes a tensor that is not defined for a dimension that is taken whole, TorchScript None.
    const at::Tensor index = present[d] != 0 ? call.operands[next++].value : at::Tensor();
    if (index.defined() && !in_run) ++runs;
    in_run = index.defined();
    if (!in_run) {
      indices.push_back(Optional<at::Tensor>());
      continue;
    }
    index_rank = std::max(index_rank, index.scalar_type() == at::kBool ? int64_t{1} : index.dim());
    indices.push_back(Optional<at::Tensor>(index));
  }
  return LinearIn(call, Kind::kLinear, "self", [=](const at::Tensor& rows) {
    const at::Tensor taken = at::index(rows, indices);
    return runs > 1 ? taken.movedim(index_rank, 0) : taken;
  });
}

// Indices that may lie outside where a mask says that nothing is read or written: there they name some element.
c10::List<Optional<at::Tensor>> WithinSizes(const RewriteCall& call) {
  const at::Tensor self = call.Tensor("self");
  c10::List<Optional<at::Tensor>> within;
  int64_t d = 0;
  for (const at::Tensor& index : call.Tensors("indices")) {
    const int64_t size = self.size(d++);
    within.push_back(index.defined() ? Optional<at::Tensor>(at::clamp(index, -size, size - 1))
                                     : Optional<at::Tensor>());
  }
  return within;
}

// _unsafe_masked_index(self, mask, indices, fill)
std::vector<at::Tensor> MaskedIndex(const RewriteCall& call) {
  const at::Tensor self = call.Tensor("self");
  if (self.numel() == 0) throw Unimplemented(call.name + " of a tensor without elements");
  return {at::index(self, WithinSizes(call)).masked_fill(call.Tensor("mask").logical_not(), call.Double("fill", 0))};
}

// _unsafe_masked_index_put_accumulate(self, mask, indices, values)
std::vector<at::Tensor> MaskedIndexPut(const RewriteCall& call) {
  const at::Tensor self = call.Tensor("self");
  if (self.numel() == 0) return {at::Tensor()};
  const at::Tensor values = call.Tensor("values").masked_fill(call.Tensor("mask").logical_not(), 0);
  return {at::index_put(self, WithinSizes(call), values, /*accumulate=*/true)};
}

}  // namespace

void RegisterIndexing(Registry& registry) {
  registry.Register(Rule{"aten::gather", Kind::kLinear, Gather}.MadeOfSizes().KeepsMarks().CoversComplex());
  registry.Register(Rule{"aten::index_select", Kind::kLinear, IndexSelect}.MadeOfSizes().KeepsMarks().CoversComplex());
  registry.Register(Rule{"aten::index", Kind::kLinear, Index}.MadeOfSizes().KeepsMarks().CoversComplex());
  registry.Register({"aten::_unsafe_index", Kind::kLinear, Index});
  registry.Register(Rewrite{"aten::_unsafe_masked_index", MaskedIndex});
  registry.Register(Rewrite{"aten::_unsafe_masked_index_put_accumulate", MaskedIndexPut});
}

}  // namespace addend
