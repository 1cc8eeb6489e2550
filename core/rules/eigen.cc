// Eigenvalues and singular values with their vectors, by the path rule: their derivative is known at every point of the
// line, so the mean over nodes takes one decomposition for each node, whatever the number of rows.
//
// Note [Where eigenvectors do not go on]
// Eigenvectors are known up to their sign, and LAPACK's choice is not continuous; along the line signs are turned to
// those of the value. What separates the reference's own signs from those is left over. Where two eigenvalues meet on
// the line (a reference of zeros, whose eigenvalues are all alike, is the usual case), the vectors' derivative has a
// pole and its mean does not exist: then vectors are linearized at the value, and the bracket is left over. Eigenvalues
// always have a mean derivative.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <tuple>
#include <utility>

#include "core/base/host_read.h"
#include "core/rules/ends.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"
#include "core/rules/row_product.h"

namespace addend {
namespace {

// The derivatives of an operator at some points of the line, given from the value's end to the reference's.
using DerivativesAt = std::function<std::vector<RowsFunction>(const std::vector<at::Tensor>& points)>;

Rows Accumulate(Rows sum, Rows more, double weight) {
  for (at::Tensor& t : more) {
    if (t.defined()) t = t * weight;
  }
  if (sum.empty()) return more;
  for (size_t k = 0; k < sum.size(); ++k) {
    if (sum[k].defined()) sum[k] = sum[k] + more[k];
  }
  return sum;
}

RowsFunction MeanOf(std::vector<RowsFunction> derivatives, std::vector<double> weights) {
  return [derivatives = std::move(derivatives), weights = std::move(weights)](const Rows& rows) {
    Rows sum;
    for (size_t k = 0; k < derivatives.size(); ++k) {
      sum = Accumulate(std::move(sum), derivatives[k](rows), weights[k]);
    }
    return sum;
  };
}

RowsFunction MeanDerivative(const Ends& line, const DerivativesAt& derivatives_at, int count) {
  const Quadrature rule = GaussLegendre(count);
  std::vector<std::pair<double, double>> nodes;
  for (size_t k = 0; k < rule.nodes.size(); ++k) nodes.emplace_back(rule.nodes[k], rule.weights[k]);
  std::sort(nodes.rbegin(), nodes.rend());
  std::vector<at::Tensor> points;
  std::vector<double> weights;
  for (const auto& [node, weight] : nodes) {
    points.push_back(line.reference + (line.value - line.reference) * node);
    weights.push_back(weight);
  }
  return MeanOf(derivatives_at(points), std::move(weights));
}

// The move and two rows of random signs, of the move's size: what a quadrature is judged by.
at::Tensor ProbeRows(const Ends& line) {
  const at::Tensor move = line.value - line.reference;
  std::mt19937 random(20260214);
  std::vector<double> signs(2 * move.numel());
  for (double& sign : signs) sign = (random() & 1) != 0 ? 1 : -1;
  at::DimVector sizes = {2};
  sizes.append(move.sizes().begin(), move.sizes().end());
  const at::Tensor drawn = at::tensor(signs, move.options()).view(sizes);
  return at::cat({move.unsqueeze(0), drawn * move.abs().amax()});
}

double Apart(const at::Tensor& a, const at::Tensor& b, double scale) {
  if (a.numel() == 0) return 0;
  const double largest = std::max(scale, ReadNumber(b.abs().max()));
  const double apart = ReadNumber((a - b).abs().max());
  return largest > 0 ? apart / largest : apart;
}

// The path rule with as many nodes as it takes: their number doubles until two results agree. Outputs for which they
// never do are linearized at the value.
RuleResult AlongLine(const RuleCall& call, const DerivativesAt& derivatives_at) {
  const Ends line = EndsOf(call.Require(call.First()));
  RuleResult result;
  result.kind = Kind::kPath;
  result.inputs = {call.OperandAt(call.First())};
  const double tolerance = line.value.scalar_type() == at::kDouble ? 1e-11 : 1e-5;
  constexpr double kUseless = 1e-3;
  constexpr int kMostNodes = 128;
  RowsFunction mean;
  std::vector<size_t> poles;
  if (ReadEqual(line.value, line.reference) || line.value.numel() == 0) {
    mean = derivatives_at({line.value})[0];
  } else {
    const Rows probes = {ProbeRows(line)};
    Rows before;
    for (int count = 4; count <= kMostNodes; count *= 2) {
      mean = MeanDerivative(line, derivatives_at, count);
      const Rows now = mean(probes);
      double worst = 0;
      poles.clear();
      for (size_t k = 0; k < now.size() && !before.empty(); ++k) {
        if (!now[k].defined()) continue;
        const at::Tensor& output = call.outputs[k].value;
        const double scale = output.numel() == 0 ? 0 : ReadNumber(output.abs().max());
        const double apart = Apart(now[k], before[k], scale);
        if (!(apart <= kUseless)) poles.push_back(k);
        if (!(apart <= worst)) worst = apart;
      }
      const bool done = !before.empty() && worst <= tolerance;
      before = now;
      if (done) break;
    }
  }
  if (!poles.empty()) {
    const RowsFunction at_value = derivatives_at({line.value})[0];
    const RowsFunction along = mean;
    mean = [=](const Rows& rows) {
      Rows outputs = along(rows);
      const Rows tangent = at_value(rows);
      for (const size_t k : poles) outputs[k] = tangent[k];
      return outputs;
    };
  }
  result.map = MakeMap(call, result.inputs, mean);
  KeepBracket(call, &result);
  return result;
}

// Columns with the signs of others.
at::Tensor SignsOf(const at::Tensor& own, const at::Tensor& other) {
  const at::Tensor along = (own * other).sum(-2, /*keepdim=*/true);
  return at::where(along.lt(0), -at::ones_like(along), at::ones_like(along));
}

// 1 / (column - row), zero where both are the same but for rounding: nothing passes a degenerate pair.
at::Tensor InverseGaps(const at::Tensor& numbers) {
  const at::Tensor gaps = numbers.unsqueeze(-2) - numbers.unsqueeze(-1);
  if (numbers.size(-1) == 0) return gaps;
  const double eps = numbers.scalar_type() == at::kDouble ? 1e-14 : 1e-6;
  const at::Tensor same = gaps.abs().le(numbers.abs().amax(-1, true).unsqueeze(-1) * eps);
  return gaps.reciprocal().masked_fill(same, 0);
}

// 1 / (one of the row + one of the column), zero where both are zero but for rounding.
at::Tensor InverseSums(const at::Tensor& rows, const at::Tensor& columns) {
  const at::Tensor sums = rows.unsqueeze(-1) + columns.unsqueeze(-2);
  if (sums.numel() == 0) return sums;
  const double eps = sums.scalar_type() == at::kDouble ? 1e-14 : 1e-6;
  return sums.reciprocal().masked_fill(sums.abs().le(sums.abs().amax({-2, -1}, true) * eps), 0);
}

// A V = V diag(e):  de = diag(V^T dA V),  dV = V (F o V^T dA V).
// P. Mike Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation, 2008.
RuleResult Eigh(const RuleCall& call, bool upper, bool with_vectors) {
  RequireReal(call);
  const auto read = SymmetricRows(call.Require(call.First()), upper, /*halves=*/true);
  const at::Tensor vectors_at_value = call.outputs[1].value;
  return AlongLine(call, [=](const std::vector<at::Tensor>& points) {
    std::vector<RowsFunction> derivatives;
    at::Tensor last = with_vectors ? vectors_at_value : at::Tensor();
    for (const at::Tensor& point : points) {
      const auto parts = at::linalg_eigh(point, upper ? "U" : "L");
      at::Tensor vectors = std::get<1>(parts);
      if (with_vectors) vectors = vectors * SignsOf(vectors, last);
      last = vectors;
      const at::Tensor inverse_gaps = InverseGaps(std::get<0>(parts));
      derivatives.emplace_back([=](const Rows& rows) -> Rows {
        const at::Tensor between = PlainTimesRows(TransposeMatrix(vectors), RowsTimesPlain(read(rows[0]), vectors));
        const at::Tensor values = between.diagonal(0, -2, -1);
        if (!with_vectors) return {values, at::zeros({rows[0].size(0), 0}, values.options())};
        return {values, PlainTimesRows(vectors, between * inverse_gaps)};
      });
    }
    return derivatives;
  });
}

// _linalg_eigh(A, UPLO, compute_v)
RuleResult LinalgEigh(const RuleCall& call) {
  const std::string half = call.String("UPLO", "L");
  return Eigh(call, half == "U" || half == "u", call.Bool("compute_v", true));
}

// symeig(A, eigenvectors, upper)
RuleResult Symeig(const RuleCall& call) {
  return Eigh(call, call.Bool("upper", true), call.Bool("eigenvectors", false));
}

// A = U diag(s) V^T:  with P = U^T dA V and F_ij = 1 / (s_j^2 - s_i^2)
//   ds = diag P,  dU = U (F o (P s + s P^T)) + (1 - U U^T) dA V / s,  dV = V (F o (s P + P^T s)) + (1 - V V^T) dA^T U /
//   s
RuleResult Svd(const RuleCall& call) {
  RequireReal(call);
  const bool with_vectors = call.Bool("compute_uv", true);
  const at::Tensor& matrix = call.Require("A").value;
  const int64_t rank = std::min(matrix.size(-2), matrix.size(-1));
  at::Tensor u_at_value;
  int64_t beside = 0;  // columns of U behind those that belong to singular values
  int64_t below = 0;   // and rows of V^T
  if (with_vectors) {
    beside = call.outputs[0].value.size(-1) - rank;
    below = call.outputs[2].value.size(-2) - rank;
    u_at_value = call.outputs[0].value.narrow(-1, 0, rank);
  }
  return AlongLine(call, [=](const std::vector<at::Tensor>& points) {
    std::vector<RowsFunction> derivatives;
    at::Tensor last = u_at_value;
    for (const at::Tensor& point : points) {
      const auto parts = at::linalg_svd(point, /*full_matrices=*/false);
      at::Tensor u = std::get<0>(parts);
      const at::Tensor s = std::get<1>(parts);
      at::Tensor v = TransposeMatrix(std::get<2>(parts));
      if (with_vectors) {
        const at::Tensor sign = SignsOf(u, last);
        u = u * sign;
        v = v * sign;
        last = u;
      }
      const at::Tensor inverse_gaps = InverseGaps(s.square());
      const at::Tensor smallest =
          s.numel() == 0 ? s : s.amax(-1, true) * (s.scalar_type() == at::kDouble ? 1e-14 : 1e-6);
      const at::Tensor inverse = s.reciprocal().masked_fill(s.le(smallest), 0).unsqueeze(-2);
      const at::Tensor across = s.unsqueeze(-2);  // scales columns
      const at::Tensor down = s.unsqueeze(-1);    // scales rows
      derivatives.emplace_back([=](const Rows& rows) -> Rows {
        const at::Tensor along_v = RowsTimesPlain(rows[0], v);
        const at::Tensor p = PlainTimesRows(TransposeMatrix(u), along_v);
        const at::Tensor values = p.diagonal(0, -2, -1);
        if (!with_vectors) {
          const at::Tensor none = at::zeros({rows[0].size(0), 0}, values.options());
          return {none, values, none};
        }
        const at::Tensor pt = TransposeMatrix(p);
        const at::Tensor along_u = RowsTimesPlain(TransposeMatrix(rows[0]), u);
        at::Tensor du = PlainTimesRows(u, (p * across + down * pt) * inverse_gaps);
        if (u.size(-2) > u.size(-1)) du = du + (along_v - PlainTimesRows(u, p)) * inverse;
        at::Tensor dv = PlainTimesRows(v, (down * p + pt * across) * inverse_gaps);
        if (v.size(-2) > v.size(-1)) dv = dv + (along_u - PlainTimesRows(v, pt)) * inverse;
        return {at::constant_pad_nd(du, {0, beside}), values,
                at::constant_pad_nd(TransposeMatrix(dv), {0, 0, 0, below})};
      });
    }
    return derivatives;
  });
}

// A = U H with U = W V^T and H = V diag(s) V^T:  with P = W^T dA V and F_ij = 1 / (s_i + s_j)
//   dU = W (F o (P - P^T)) V^T + (1 - W W^T) dA V / s V^T,  dH = V (F o (s P + P^T s)) V^T
// Unlike singular vectors, both are known where singular values meet, and end only where the matrix is singular.
RuleResult Polar(const RuleCall& call) {
  RequireReal(call);
  return AlongLine(call, [](const std::vector<at::Tensor>& points) {
    std::vector<RowsFunction> derivatives;
    for (const at::Tensor& point : points) {
      const auto parts = at::linalg_svd(point, /*full_matrices=*/false);
      const at::Tensor w = std::get<0>(parts);
      const at::Tensor s = std::get<1>(parts);
      const at::Tensor vt = std::get<2>(parts);
      const at::Tensor v = TransposeMatrix(vt);
      const at::Tensor down = s.unsqueeze(-1);
      const at::Tensor across = s.unsqueeze(-2);
      const at::Tensor sums = InverseSums(s, s);
      const at::Tensor inverse = InverseSums(s, at::zeros_like(s).narrow(-1, 0, std::min<int64_t>(s.size(-1), 1)));
      derivatives.emplace_back([=](const Rows& rows) -> Rows {
        const at::Tensor along_v = RowsTimesPlain(rows[0], v);
        const at::Tensor p = PlainTimesRows(TransposeMatrix(w), along_v);
        const at::Tensor pt = TransposeMatrix(p);
        at::Tensor turned = PlainTimesRows(w, (p - pt) * sums);
        if (w.size(-2) > w.size(-1)) {
          turned = turned + (along_v - PlainTimesRows(w, p)) * TransposeMatrix(inverse);
        }
        const at::Tensor stretched = PlainTimesRows(v, (down * p + pt * across) * sums);
        return {RowsTimesPlain(turned, vt), RowsTimesPlain(stretched, vt)};
      });
    }
    return derivatives;
  });
}

// X X = A of symmetric matrices that are not negative. X X - Y Y = A - B means X D + D Y = A - B for D = X - Y: a
// closed form, in the bases in which X and Y are diagonal. See Note [Secants of equations] in core/rules/ends.h.
RuleResult SymmetricRoot(const RuleCall& call) {
  RequireReal(call);
  const Ends own = EndsOf(call.outputs[0]);
  const at::Tensor missing = MissingReference(own);
  const Ends root = ValueWhere(missing, own);
  const auto value = at::linalg_eigh(root.value, "L");
  const auto reference = at::linalg_eigh(root.reference, "L");
  const at::Tensor v = std::get<1>(value);
  const at::Tensor w = std::get<1>(reference);
  const at::Tensor sums = InverseSums(std::get<0>(value), std::get<0>(reference));
  const auto read = SymmetricRows(call.Require(call.First()), /*upper=*/false, /*halves=*/true);
  RuleResult result = LinearIn(call, Kind::kRewrite, call.First(), [=](const at::Tensor& rows) {
    const at::Tensor between = PlainTimesRows(TransposeMatrix(v), RowsTimesPlain(read(rows), w)) * sums;
    const at::Tensor one = PlainTimesRows(v, RowsTimesPlain(between, TransposeMatrix(w)));
    return (one + TransposeMatrix(one)) / 2;  // D Y + X D and Y D + D X alike
  });
  MeetValue(call, missing, &result);
  // Keep the bracket if the operator's result is not a root: for a matrix with negative eigenvalues it takes the
  // nearest one without.
  const Ends matrix =
      Both(EndsOf(call.Require(call.First())), [](const at::Tensor& t) { return Mirrored(t, /*upper=*/false); });
  const auto solves = [](const at::Tensor& x, const at::Tensor& a) {
    const double limit = a.scalar_type() == at::kDouble ? 1e-12 : 1e-5;
    return a.numel() == 0 || ReadFlag((x.matmul(x) - a).abs().max().le(a.abs().max() * limit));
  };
  if (!solves(own.value, matrix.value) || !solves(own.reference, matrix.reference)) KeepBracket(call, &result);
  return result;
}

}  // namespace

void RegisterEigen(Registry& registry) {
  registry.Register({"aten::_linalg_eigh", Kind::kPath, LinalgEigh});
  registry.Register({"aten::symeig", Kind::kPath, Symeig});
  registry.Register({"aten::_linalg_svd", Kind::kPath, Svd});
  registry.Register({"aten::linalg_polar", Kind::kPath, Polar});
  registry.Register({"aten::linalg_matrix_sqrth", Kind::kRewrite, SymmetricRoot});
}

}  // namespace addend
