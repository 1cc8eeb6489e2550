// Sums, means and maxima along dimensions.
#include <ATen/ops/cumsum.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

// The dimensions that a reduction sums over, not negative, in order; all of them where none are given.
std::vector<int64_t> ReducedDims(const RuleCall& call) {
  const int64_t rank = call.Require("self").value.dim();
  if (rank == 0) return {};  // a number has no dimensions, but dim 0 or -1 of it is legal
  std::vector<int64_t> dims = call.Ints("dim");
  if (dims.empty()) {
    dims.resize(rank);
    std::iota(dims.begin(), dims.end(), 0);
  }
  for (int64_t& d : dims) d = d < 0 ? d + rank : d;
  std::sort(dims.begin(), dims.end());
  return dims;
}

RuleResult Reduce(const RuleCall& call, bool mean) {
  // sum(self, *, dtype) reduces everything; sum.dim_IntList(self, dim, keepdim, *, dtype) some.
  const auto dims = ReducedDims(call);
  const bool keep = call.Bool("keepdim", false);
  const at::DimVector sizes(call.Require("self").value.sizes());
  // A dtype may be asked for: then the operator computes in it.
  const at::ScalarType dtype = call.outputs[0].value.scalar_type();
  const at::ScalarType input_dtype = call.Require("self").value.scalar_type();
  std::vector<int64_t> row_dims = dims;
  double scale = 1;
  for (int64_t& d : row_dims) {
    if (mean) scale /= static_cast<double>(sizes[d]);
    ++d;
  }
  return LinearIn(
      call, Kind::kLinear, "self",
      [=](const at::Tensor& rows) {
        const at::Tensor own = rows.to(dtype);
        if (row_dims.empty()) return own;
        return mean ? at::mean(own, row_dims, keep) : at::sum(own, row_dims, keep);
      },
      [=](const at::Tensor& g) {
        at::Tensor spread = (g * scale).to(input_dtype);
        for (const int64_t d : dims) spread = keep ? spread : spread.unsqueeze(d);
        return spread.expand(sizes);
      });
}

RuleResult CumulativeSum(const RuleCall& call) {
  const int64_t rank = call.Require("self").value.dim();
  const int64_t dim = RowDim(call.Int("dim", 0), rank);
  const at::ScalarType dtype = call.outputs[0].value.scalar_type();
  return LinearIn(call, Kind::kLinear, "self",
                  [=](const at::Tensor& rows) { return rank == 0 ? rows.to(dtype) : at::cumsum(rows.to(dtype), dim); });
}

// nansum(self, dim, keepdim, dtype): what is no number at the value does not count, in no row.
RuleResult NanSum(const RuleCall& call) {
  const RuleOperand& input = call.Require("self");
  std::vector<int64_t> dims = ReducedDims(call);
  for (int64_t& d : dims) ++d;
  const bool keep = call.Bool("keepdim", false);
  const at::ScalarType dtype = call.outputs[0].value.scalar_type();
  const at::Tensor left_out = input.value.ne(input.value);
  RuleResult result = LinearIn(call, Kind::kLinear, "self", [=](const at::Tensor& rows) {
    const at::Tensor counted = rows.masked_fill(left_out, 0).to(dtype);
    return dims.empty() ? counted : at::sum(counted, dims, keep);
  });
  result.exact = ReadEqual(left_out, input.reference.ne(input.reference));
  return result;
}

// The largest (sign 1) or smallest (-1) along dimensions; min is the maximum of the negated lines.
RuleResult Extremum(const RuleCall& call, double sign) {
  const RuleOperand& input = call.Require("self");
  const int64_t rank = input.value.dim();
  if (call.Find("other") != nullptr) throw Unimplemented(call.name + " of two tensors");
  const std::vector<int64_t> dims = ReducedDims(call);
  // The reduced dimensions become one, behind all others.
  std::vector<int64_t> kept;
  for (int64_t d = 0; d < rank; ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) kept.push_back(d);
  }
  std::vector<int64_t> order = kept;
  order.insert(order.end(), dims.begin(), dims.end());
  at::DimVector kept_sizes;
  for (const int64_t d : kept) kept_sizes.push_back(input.value.size(d));
  at::DimVector flat = kept_sizes;
  flat.push_back(std::accumulate(dims.begin(), dims.end(), int64_t{1},
                                 [&](int64_t n, int64_t d) { return n * input.value.size(d); }));
  const at::Tensor value = input.value.permute(order).reshape(flat) * sign;
  const bool fast = call.policy->preset == Preset::kFast;
  const at::Tensor shares =
      fast ? WinnerShares(value) : EnvelopeShares(value, input.reference.permute(order).reshape(flat) * sign);
  std::vector<int64_t> row_order = {0};
  for (const int64_t d : order) row_order.push_back(d + 1);
  const at::DimVector output_sizes(call.outputs[0].value.sizes());
  RuleResult result;
  result.kind = Kind::kSelection;
  result.inputs = {call.OperandAt("self")};
  result.exact = !fast;
  result.map = MakeMap(call, result.inputs, [=](const Rows& rows) -> Rows {
    at::DimVector sizes = WithRows(rows[0].size(0), shares.sizes());
    const at::Tensor chosen = (rows[0].permute(row_order).reshape(sizes) * shares).sum(-1);
    at::DimVector out = WithRows(rows[0].size(0), output_sizes);
    return {chosen.view(out)};
  });
  return result;
}

}  // namespace

void RegisterReduction(Registry& registry) {
  registry.Register(Rule{"aten::sum", Kind::kLinear, [](const RuleCall& c) { return Reduce(c, false); }}
                        .MadeOfSizes()
                        .CoversComplex());
  registry.Register(Rule{"aten::mean", Kind::kLinear, [](const RuleCall& c) { return Reduce(c, true); }}
                        .MadeOfSizes()
                        .CoversComplex());
  registry.Register(Rule{"aten::cumsum", Kind::kLinear, CumulativeSum}.CoversComplex());
  registry.Register({"aten::nansum", Kind::kLinear, NanSum});
  registry.Register({"aten::max", Kind::kSelection, [](const RuleCall& c) { return Extremum(c, 1); }});
  registry.Register({"aten::min", Kind::kSelection, [](const RuleCall& c) { return Extremum(c, -1); }});
  registry.Register({"aten::amax", Kind::kSelection, [](const RuleCall& c) { return Extremum(c, 1); }});
  registry.Register({"aten::amin", Kind::kSelection, [](const RuleCall& c) { return Extremum(c, -1); }});
}

}  // namespace addend
