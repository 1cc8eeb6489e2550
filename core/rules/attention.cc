// Softmax and its kin: the path rule by quadrature; Note [Softmax path] in softmax_path.h.
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"
#include "core/rules/softmax_path.h"

namespace addend {
namespace {

// A dtype may be asked for: then the operator computes in it.
at::ScalarType DtypeOf(const RuleCall& call) { return call.outputs[0].value.scalar_type(); }

// Lets a result that follows a path claim what that may miss. by_row: an output as [G, N], with the rows of the path.
void ClaimError(const RuleCall& call, const SoftmaxPath& path,
                const std::function<at::Tensor(const at::Tensor&)>& by_row, RuleResult* result) {
  result->exact = false;
  result->quadrature = path.error;
  if (path.far.empty()) return;
  const at::Tensor moved = result->map->Forward({call.Move(result->inputs[0]).unsqueeze(0)})[0].select(0, 0);
  const RuleOutput& output = call.outputs[0];
  result->quadrature = ErrorToClaim(path, by_row(output.value), by_row(output.reference), by_row(moved));
}

// A softmax call: its dimension moved last and all others flattened.
struct PathAlongDim {
  SoftmaxPath path;
  int64_t dim = -1;

  // Flattens a tensor of the input's sizes to [G, T].
  at::Tensor Flat(const at::Tensor& t) const {
    const at::Tensor last = t.dim() == 0 ? t : t.movedim(dim, -1);
    return last.reshape({path.reference.size(0), path.width});
  }
};

PathAlongDim MakePath(const RuleCall& call, int64_t dim) {
  const RuleOperand& input = call.Require("self");
  const int64_t rank = input.value.dim();
  const int64_t own = rank == 0 ? 0 : (dim < 0 ? dim + rank : dim);
  const int64_t width = rank == 0 ? 1 : input.value.size(own);
  const auto flat = [&](const at::Tensor& t) {
    const at::Tensor last = rank == 0 ? t : t.movedim(own, -1);
    return last.reshape({width == 0 ? 0 : t.numel() / width, width}).to(DtypeOf(call)).contiguous();
  };
  return {MakeSoftmaxPath(call.name, flat(input.value), flat(input.reference), input.finite), own};
}

// Brings rows [R, *sizes] to [R, G, T] and back.
at::Tensor OnFlat(const PathAlongDim& along, const at::Tensor& rows,
                  const std::function<at::Tensor(const at::Tensor&)>& f) {
  const at::Tensor moved = rows.dim() == 1 ? rows.unsqueeze(-1) : rows.movedim(along.dim + 1, -1);
  const at::Tensor flat = moved.reshape({rows.size(0), along.path.reference.size(0), along.path.width});
  const at::Tensor result = f(flat).reshape(moved.sizes());
  return rows.dim() == 1 ? result.squeeze(-1) : result.movedim(-1, along.dim + 1);
}

RuleResult Softmax(const RuleCall& call) {
  const PathAlongDim along = MakePath(call, call.Int("dim", -1));
  const auto apply = [along, dtype = DtypeOf(call)](const at::Tensor& rows, bool transposed) {
    return OnFlat(along, rows.to(dtype),
                  [&](const at::Tensor& flat) { return AlongSoftmaxPath(along.path, flat, transposed); });
  };
  const at::ScalarType input_dtype = call.Require("self").value.scalar_type();
  RuleResult result = LinearIn(
      call, Kind::kPath, "self", [apply](const at::Tensor& rows) { return apply(rows, false); },
      [apply, input_dtype](const at::Tensor& g) { return apply(g.unsqueeze(0), true).squeeze(0).to(input_dtype); });
  ClaimError(
      call, along.path, [&](const at::Tensor& t) { return along.Flat(t); }, &result);
  return result;
}

// Mask of outputs that stay infinite: they have no parts, so rows there would be leftover of nothing.
at::Tensor Stays(const RuleCall& call) {
  const RuleOutput& output = call.outputs[0];
  return output.value.isinf().logical_and_(output.value.eq(output.reference));
}

RuleResult LogSoftmax(const RuleCall& call) {
  const PathAlongDim along = MakePath(call, call.Int("dim", -1));
  const at::Tensor mean = MeanProbabilities(along.path);
  const at::Tensor stays = Stays(call);
  const bool some_stay = MayHaveAny(stays);
  const at::ScalarType dtype = DtypeOf(call);
  RuleResult result = LinearIn(call, Kind::kPath, "self", [=](const at::Tensor& rows) {
    const at::Tensor out = OnFlat(along, rows.to(dtype), [&](const at::Tensor& flat) {
      if (along.path.width == 1) return at::zeros_like(flat);  // one alone is a sure thing
      if (along.path.far.empty()) return mean.defined() ? flat - (mean * flat).sum(-1, true) : flat;
      // Less the row of the surest one: large numbers that rows share cancel before they are weighed.
      const at::Tensor surest = mean.argmax(1, /*keepdim=*/true).expand({flat.size(0), flat.size(1), 1});
      const at::Tensor apart = flat.to(at::kDouble) - flat.to(at::kDouble).gather(2, surest);
      return (apart - (mean * apart).sum(-1, true)).to(flat.scalar_type());
    });
    return some_stay ? out.masked_fill(stays, 0) : out;
  });
  ClaimError(
      call, along.path, [&](const at::Tensor& t) { return along.Flat(t); }, &result);
  // The logarithm of what is almost sure is almost zero: the score less almost itself.
  const at::Tensor scores = call.Require("self").value;
  if (scores.numel() > 0) {
    const at::Tensor infinite = at::isfinite(scores).logical_not_();
    result.inner_terms = ReadNumber(scores.abs().masked_fill(infinite, 0).max());
  }
  return result;
}

// logsumexp(self, dim, keepdim)
RuleResult LogSumExp(const RuleCall& call) {
  const RuleOperand& input = call.Require("self");
  const int64_t rank = input.value.dim();
  // The reduced dimensions come last, as one; the row axis comes first.
  std::vector<int64_t> dims = call.Ints("dim");
  for (int64_t& d : dims) d = d < 0 ? d + rank : d;
  std::sort(dims.begin(), dims.end());
  std::vector<int64_t> order = {0};
  int64_t groups = 1;
  int64_t width = 1;
  for (int64_t d = 0; d < rank; ++d) {
    if (std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
    order.push_back(d + 1);
    groups *= input.value.size(d);
  }
  for (int64_t k = 0; rank > 0 && k < static_cast<int64_t>(dims.size()); ++k) {
    order.push_back(dims[k] + 1);
    width *= input.value.size(dims[k]);
  }
  const auto flat = [=](const at::Tensor& rows) { return rows.permute(order).reshape({rows.size(0), groups, width}); };
  const auto one = [&](const at::Tensor& t) { return flat(t.unsqueeze(0)).select(0, 0).contiguous(); };
  const SoftmaxPath path = MakeSoftmaxPath(call.name, one(input.value), one(input.reference));
  at::Tensor mean = MeanProbabilities(path);
  if (mean.defined()) mean = mean.masked_fill(Stays(call).reshape({groups, 1}), 0);
  const at::DimVector sizes(call.outputs[0].value.sizes());
  RuleResult result = LinearIn(call, Kind::kPath, "self", [=](const at::Tensor& rows) {
    at::DimVector all = WithRows(rows.size(0), sizes);
    const at::Tensor moved = flat(rows);
    return (mean.defined() ? moved * mean : moved).sum(-1).to(rows.scalar_type()).view(all);
  });
  ClaimError(
      call, path,
      [&](const at::Tensor& t) {
        return t.reshape({groups, 1});
      },
      &result);
  return result;
}

// logcumsumexp(self, dim): element k is the logsumexp of elements 0..k.
RuleResult LogCumulativeSumExp(const RuleCall& call) {
  const RuleOperand& input = call.Require("self");
  const int64_t rank = input.value.dim();
  const int64_t dim = rank == 0 ? 0 : (call.Int("dim", 0) + rank) % rank;
  const int64_t n = rank == 0 ? 1 : input.value.size(dim);
  const int64_t groups = n == 0 ? 0 : input.value.numel() / n;
  constexpr int64_t kMostElements = int64_t{1} << 26;
  if (input.value.numel() > kMostElements / std::max<int64_t>(n, 1)) {
    throw Unimplemented(call.name + " of so many elements: its derivative is too large");
  }
  const auto last = [=](const at::Tensor& rows) {
    return (rank == 0 ? rows : rows.movedim(dim + 1, -1)).reshape({rows.size(0), groups, n});
  };
  const at::Tensor index = at::arange(n, input.value.options().dtype(at::kLong));
  const at::Tensor later = index.unsqueeze(0).gt(index.unsqueeze(1));
  // Elements that come later are infinitely low. [groups * n, n]
  const auto prefixes = [&](const at::Tensor& t) {
    return last(t.unsqueeze(0))
        .reshape({groups, 1, n})
        .expand({groups, n, n})
        .masked_fill(later, -std::numeric_limits<double>::infinity())
        .reshape({groups * n, n});
  };
  const SoftmaxPath path = MakeSoftmaxPath(call.name, prefixes(input.value), prefixes(input.reference));
  at::Tensor mean = MeanProbabilities(path);
  if (mean.defined()) {
    mean = mean.masked_fill(last(Stays(call).unsqueeze(0)).reshape({groups * n, 1}), 0).view({groups, n, n});
  }
  RuleResult result = LinearIn(call, Kind::kPath, "self", [=](const at::Tensor& rows) {
    if (!mean.defined()) return rows;
    const at::Tensor moved = rank == 0 ? rows.unsqueeze(-1) : rows.movedim(dim + 1, -1);
    const at::Tensor weighed = at::bmm(mean, last(rows).permute({1, 2, 0}).to(mean.scalar_type()));
    const at::Tensor sums = weighed.permute({2, 0, 1}).reshape(moved.sizes()).to(rows.scalar_type());
    return rank == 0 ? sums.squeeze(-1) : sums.movedim(-1, dim + 1);
  });
  const auto by_row = [&](const at::Tensor& t) { return last(t.unsqueeze(0)).reshape({groups * n, 1}); };
  ClaimError(call, path, by_row, &result);
  return result;
}

}  // namespace

void RegisterAttention(Registry& registry) {
  for (const char* name : {"aten::softmax", "aten::_softmax"}) {
    registry.Register(Rule{name, Kind::kPath, Softmax}.Marks(kFreezeAttention).InAttention(AttentionStep::kSoftmax));
  }
  registry.Register({"aten::log_softmax", Kind::kPath, LogSoftmax});
  registry.Register({"aten::_log_softmax", Kind::kPath, LogSoftmax});
  registry.Register({"aten::logsumexp", Kind::kPath, LogSumExp});
  registry.Register({"aten::logcumsumexp", Kind::kPath, LogCumulativeSumExp});
}

}  // namespace addend
