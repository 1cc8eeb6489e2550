// Products along a dimension.
//
// Note [Product path]
// Where n factors move along lines, the derivative of their product by one of them is a polynomial in t of degree n -
// 1, so that Gauss-Legendre with n / 2 nodes, rounded up, integrates it exactly. Very long products take no more than a
// fixed number of nodes: what that misses is measured, left over and reported.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumprod.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

constexpr int64_t kMostNodes = 64;

// The dimension that is multiplied along, moved behind all others: [groups, n].
struct Factors {
  int64_t dim = 0;
  int64_t n = 1;
  int64_t groups = 1;
  bool everything = false;
  at::ScalarType dtype = at::kFloat;
  at::Tensor value, reference, move;

  at::Tensor Flat(const at::Tensor& t) const {
    const at::Tensor own = t.to(dtype);
    return (everything ? own : own.movedim(dim, -1)).reshape({groups, n});
  }
  at::Tensor FlatRows(const at::Tensor& rows) const {
    const at::Tensor own = rows.to(dtype);
    return (everything ? own : own.movedim(dim + 1, -1)).reshape({rows.size(0), groups, n});
  }
};

Factors MakeFactors(const RuleCall& call, bool everything, int64_t dim) {
  const RuleOperand& input = call.Require("self");
  const int64_t rank = input.value.dim();
  Factors factors;
  factors.everything = everything || rank == 0;
  factors.dtype = call.outputs[0].value.scalar_type();  // a dtype may be asked for
  factors.dim = rank > 0 && dim < 0 ? dim + rank : dim;
  factors.n = factors.everything ? input.value.numel() : input.value.size(factors.dim);
  for (int64_t d = 0; !factors.everything && d < rank; ++d) {
    factors.groups *= d == factors.dim ? 1 : input.value.size(d);
  }
  factors.value = factors.Flat(input.value);
  factors.reference = factors.Flat(input.reference);
  factors.move = MoveOf(factors.value, factors.reference);
  return factors;
}

// Sums weight * partial(point) over the nodes, where `partial` gives the derivatives [groups, ..., n] at a point.
at::Tensor Integrate(const Factors& factors, const std::function<at::Tensor(const at::Tensor&)>& partial) {
  const int64_t needed = std::max<int64_t>((factors.n + 1) / 2, 1);
  const Quadrature rule = GaussLegendre(static_cast<int>(std::min(needed, kMostNodes)));
  at::Tensor sum;
  for (size_t k = 0; k < rule.nodes.size(); ++k) {
    const at::Tensor own = partial(factors.reference + factors.move * rule.nodes[k]) * rule.weights[k];
    sum = sum.defined() ? sum + own : own;
  }
  return sum;
}

// Products of all factors in front of each one: [groups, n].
at::Tensor Before(const at::Tensor& factors) {
  const at::Tensor one = at::ones_like(factors.narrow(1, 0, 1));
  return at::cat({one, at::cumprod(factors.narrow(1, 0, factors.size(1) - 1), 1)}, 1);
}

// Sets what the rule claims. Partial products in between may be larger than both ends.
void Claim(const RuleCall& call, const Factors& factors, const at::Tensor& passed_magnitude, RuleResult* result) {
  const RuleOutput& output = call.outputs[0];
  if (output.value.numel() == 0) return;
  const at::Tensor largest = passed_magnitude.max();
  // Each product has been rounded once for each factor, and there is one for each node.
  const double roundings = std::max(1.0, static_cast<double>(factors.n) / 8);
  if (ReadFlag(at::isfinite(largest))) result->inner_terms = ReadNumber(largest) * roundings;
  if (factors.n <= 2 * kMostNodes) return;
  result->kind = Kind::kPath;
  result->exact = false;
  const at::Tensor passed = result->map->Forward({call.Move(result->inputs[0]).unsqueeze(0)})[0].select(0, 0);
  const at::Tensor rise = MoveOf(output.value, output.reference);
  const double missed = ReadNumber((rise - passed).abs().max());
  const double size = ReadNumber(at::maximum(output.value.abs(), output.reference.abs()).max());
  const double rounding = output.value.scalar_type() == at::kDouble ? 1e-12 : 1e-6;
  result->quadrature = std::max(rounding, size > 0 ? missed / size : missed);
}

// prod(self, dtype) of everything, or prod.dim_int(self, dim, keepdim, dtype).
RuleResult Product(const RuleCall& call) {
  const bool everything = call.overload.empty() || call.overload == "out";
  const Factors factors = MakeFactors(call, everything, call.Int("dim", 0));
  const at::DimVector out(call.outputs[0].value.sizes());
  const at::DimVector in(call.Require("self").value.sizes());
  const at::Tensor partial =
      factors.n == 0
          ? at::zeros_like(factors.value)
          : Integrate(factors, [](const at::Tensor& y) { return Before(y) * Before(y.flip({1})).flip({1}); });
  RuleResult result = LinearIn(call, Kind::kBilinear, "self", [=](const at::Tensor& rows) {
    at::DimVector sizes = WithRows(rows.size(0), out);
    return (factors.FlatRows(rows) * partial).sum(-1).view(sizes);
  });
  Claim(call, factors, (partial * factors.move).abs().sum(-1), &result);
  return result;
}

// Elements that the matrices of a running product may have.
constexpr int64_t kMostElements = int64_t{1} << 26;

RuleResult CumulativeProduct(const RuleCall& call) {
  const Factors factors = MakeFactors(call, false, call.Int("dim", 0));
  const int64_t n = factors.n;
  const int64_t groups = factors.value.size(0);
  if (factors.value.numel() > kMostElements / std::max<int64_t>(n, 1)) {
    throw Unimplemented(absl::StrCat(call.name, " of ", groups, " times ", n, " factors: its derivative is too large"));
  }
  // Row j: the running product without factor j, from j on. [groups, n, n]
  const at::Tensor index = at::arange(n, factors.value.options().dtype(at::kLong));
  const at::Tensor own = index.unsqueeze(1).eq(index.unsqueeze(0));
  const at::Tensor earlier = index.unsqueeze(1).gt(index.unsqueeze(0));
  const at::Tensor partial = Integrate(factors, [&](const at::Tensor& y) {
    return at::cumprod(y.unsqueeze(1).expand({groups, n, n}).masked_fill(own, 1), 2).masked_fill_(earlier, 0);
  });
  const at::DimVector sizes(call.Require("self").value.sizes());
  RuleResult result = LinearIn(call, Kind::kBilinear, "self", [=](const at::Tensor& rows) {
    const at::Tensor moved = at::bmm(factors.FlatRows(rows).transpose(0, 1), partial).transpose(0, 1);
    if (sizes.empty()) return moved.reshape({rows.size(0)});
    at::DimVector last;
    last.push_back(rows.size(0));
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (static_cast<int64_t>(d) != factors.dim) last.push_back(sizes[d]);
    }
    last.push_back(n);
    return moved.reshape(last).movedim(-1, factors.dim + 1);
  });
  Claim(call, factors, (partial * factors.move.unsqueeze(2)).abs().sum(1), &result);
  return result;
}

}  // namespace

void RegisterProduct(Registry& registry) {
  registry.Register(Rule{"aten::prod", Kind::kBilinear, Product});
  registry.Register(Rule{"aten::cumprod", Kind::kBilinear, CumulativeProduct});
}

}  // namespace addend
