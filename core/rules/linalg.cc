// Inverses, solutions of linear systems, determinants and the matrix exponential. See Note [Secants of equations].
#include <ATen/TensorOperators.h>
#include <ATen/ops/cholesky_inverse.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_det.h>
#include <ATen/ops/linalg_inv_ex.h>
#include <ATen/ops/linalg_lu_solve.h>
#include <ATen/ops/linalg_matrix_exp.h>
#include <ATen/ops/linalg_pinv.h>
#include <ATen/ops/linalg_slogdet.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/lu_unpack.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/host_read.h"
#include "core/rules/ends.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"
#include "core/rules/row_product.h"

namespace addend {
namespace {

using RowsToRows = std::function<at::Tensor(const at::Tensor&)>;

at::Tensor EyeLike(const at::Tensor& matrix) { return at::eye(matrix.size(-1), matrix.options()); }

// ---------------------------------------------------------------------------------------------------------- inverses

// A^-1 - B^-1 = -A^-1 (A - B) B^-1, and the same with A and B exchanged: the mean of both.
RowsToRows InverseSecant(const Ends& inverse) {
  return [inverse](const at::Tensor& rows) {
    const at::Tensor one = PlainTimesRows(inverse.value, RowsTimesPlain(rows, inverse.reference));
    const at::Tensor other = PlainTimesRows(inverse.reference, RowsTimesPlain(rows, inverse.value));
    return (one + other) / -2;
  };
}

RuleResult Inverse(const RuleCall& call) {
  RequireReal(call);
  const Ends own = EndsOf(call.outputs[0]);
  const at::Tensor missing = MissingReference(own);
  RuleResult result = LinearIn(call, Kind::kRewrite, "A", InverseSecant(ValueWhere(missing, own)));
  MeetValue(call, missing, &result);
  return result;
}

// The pseudoinverse of any two matrices of one shape, V = A^+ and W = B^+ (P.-A. Wedin, Perturbation theory for
// pseudo-inverses, 1973):  V - W = -V X W + V V^T X^T (1 - B W) + (1 - V A) X^T W^T W  with X = A - B.
struct PseudoInverse {
  Ends matrix;
  Ends inverse;

  at::Tensor Secant(const at::Tensor& rows) const {
    return (OneWay(rows, inverse.value, inverse.reference, matrix.value, matrix.reference) +
            OneWay(rows, inverse.reference, inverse.value, matrix.reference, matrix.value)) /
           2;
  }

 private:
  static at::Tensor OneWay(const at::Tensor& rows, const at::Tensor& v, const at::Tensor& w, const at::Tensor& a,
                           const at::Tensor& b) {
    const at::Tensor bw = b.matmul(w);
    const at::Tensor va = v.matmul(a);
    const at::Tensor transposed = TransposeMatrix(rows);
    const at::Tensor inner = PlainTimesRows(v, RowsTimesPlain(rows, w));
    const at::Tensor left = PlainTimesRows(v.matmul(TransposeMatrix(v)), RowsTimesPlain(transposed, EyeLike(bw) - bw));
    const at::Tensor right = PlainTimesRows(EyeLike(va) - va, RowsTimesPlain(transposed, TransposeMatrix(w).matmul(w)));
    return left + right - inner;
  }
};

// Whether some V is no pseudoinverse, because small singular values were cut off: then A V A is not A.
bool CutsOff(const PseudoInverse& p) {
  const auto cuts = [](const at::Tensor& a, const at::Tensor& v) {
    if (a.numel() == 0) return false;
    const double limit = a.scalar_type() == at::kDouble ? 1e-10 : 1e-4;
    return !ReadFlag((a.matmul(v).matmul(a) - a).abs().max() <= a.abs().max() * limit);
  };
  return cuts(p.matrix.value, p.inverse.value) || cuts(p.matrix.reference, p.inverse.reference);
}

// How large the terms are that products with the inverse sum up: of an ill-conditioned matrix, far larger than what
// they come to; and the operator itself, which goes through singular values, errs by that times the dimension. `right`,
// if defined, is what the inverse is multiplied with.
double TermsOf(const PseudoInverse& p, const at::Tensor& right) {
  if (p.matrix.value.numel() == 0) return 0;
  const at::Tensor matrix = p.matrix.value.abs() + p.matrix.reference.abs();
  const at::Tensor inverse = p.inverse.value.abs() + p.inverse.reference.abs();
  at::Tensor reach = inverse.matmul(matrix).matmul(inverse);
  if (right.defined()) reach = reach.matmul(right);
  if (reach.numel() == 0) return 0;
  const double largest = ReadNumber(reach.max());
  return std::isfinite(largest) ? largest * static_cast<double>(std::max(matrix.size(-1), matrix.size(-2))) : 0;
}

// linalg_pinv(self, ..., hermitian). Tolerances only choose the rank: nothing passes through them.
RuleResult Pinv(const RuleCall& original) {
  RequireReal(original);
  RuleCall call = original;
  bool tolerances_move = false;
  for (RuleOperand& operand : call.operands) {
    if (operand.argument == call.At(call.First())) continue;
    tolerances_move = tolerances_move || operand.decomposed;
    operand.decomposed = false;
  }
  if (!call.Decomposed("self")) return Opaque(call);
  // The only flag among the arguments, whatever the overload.
  bool hermitian = false;
  for (const c10::IValue& argument : call.arguments) hermitian |= argument.isBool() && argument.toBool();
  PseudoInverse p{EndsOf(call.Require("self")), EndsOf(call.outputs[0])};
  RowsToRows read = [](const at::Tensor& rows) { return rows; };
  if (hermitian) {
    read = SymmetricRows(call.Require("self"), /*upper=*/false, /*halves=*/false);
    p.matrix = Both(p.matrix, [](const at::Tensor& t) { return Mirrored(t, false); });
  }
  const at::Tensor missing = MissingReference(p.inverse);
  p = {ValueWhere(missing, p.matrix), ValueWhere(missing, p.inverse)};
  RuleResult result =
      LinearIn(call, Kind::kRewrite, "self", [p, read](const at::Tensor& rows) { return p.Secant(read(rows)); });
  MeetValue(call, missing, &result);
  if (tolerances_move || CutsOff(p)) KeepBracket(call, &result);
  result.inner_terms = TermsOf(p, at::Tensor());
  return result;
}

// -------------------------------------------------------------------------------------------------- linear systems

// Y = A^-1 B, or B A^-1. `inverse` of A and `right` are B, as matrices [*batch, M, N], at both ends; `read` makes rows
// of A out of rows of the operand that A comes from.
struct System {
  int matrix_operand = -1;
  int right_operand = -1;
  Ends inverse;
  Ends right;
  RowsToRows read = [](const at::Tensor& rows) { return rows; };
  bool left = true;
  bool vector = false;  // B is a batch of vectors
};

// Whether B holds vectors rather than matrices: it is one, or it has the shape of A's batch of rows.
bool IsVector(const at::Tensor& a, const at::Tensor& b) {
  return b.dim() == 1 || (b.dim() == a.dim() - 1 && b.sizes() == a.sizes().slice(0, a.dim() - 1));
}

// dY = mean(A^-1) dB - (V dA W + W dA V) middle(B) / 2: the product of both secants.
RuleResult Solution(const RuleCall& call, System system) {
  RequireReal(call);
  const RuleOperand& a = call.operands[system.matrix_operand];
  const RuleOperand& b = call.operands[system.right_operand];
  if (system.vector) {
    system.right = Both(system.right, [](const at::Tensor& t) { return t.unsqueeze(-1); });
  }
  const at::Tensor missing = MissingReference(system.inverse);
  system.inverse = ValueWhere(missing, system.inverse);
  at::Tensor right = system.right.Middle();
  // Take everything at the value, B too, if A has no inverse on the reference.
  if (missing.defined()) right = at::where(missing.unsqueeze(-1).unsqueeze(-1), system.right.value, right);
  const at::Tensor& v = system.inverse.value;
  const at::Tensor& w = system.inverse.reference;
  const at::Tensor mean = system.inverse.Middle();
  const at::Tensor by_v = system.left ? v.matmul(right) : right.matmul(v);
  const at::Tensor by_w = system.left ? w.matmul(right) : right.matmul(w);

  RuleResult result;
  result.kind = Kind::kRewrite;
  if (a.decomposed) result.inputs.push_back(system.matrix_operand);
  if (b.decomposed) result.inputs.push_back(system.right_operand);
  const at::DimVector sizes(call.outputs[0].value.sizes());
  const int64_t matrix_rank = static_cast<int64_t>(sizes.size()) + (system.vector ? 1 : 0);
  result.map =
      MakeMap(call, result.inputs, [=, a_moves = a.decomposed, b_moves = b.decomposed](const Rows& rows) -> Rows {
        at::Tensor sum;
        if (a_moves) {
          const at::Tensor own = system.read(rows[0]);
          const at::Tensor both =
              system.left ? PlainTimesRows(v, RowsTimesPlain(own, by_w)) + PlainTimesRows(w, RowsTimesPlain(own, by_v))
                          : RowsTimesPlain(PlainTimesRows(by_w, own), v) + RowsTimesPlain(PlainTimesRows(by_v, own), w);
          sum = both / -2;
        }
        if (b_moves) {
          const at::Tensor own = system.vector ? rows.back().unsqueeze(-1) : rows.back();
          const at::Tensor moved = system.left ? PlainTimesRows(mean, own) : RowsTimesPlain(own, mean);
          sum = sum.defined() ? RightAlign(sum, matrix_rank) + RightAlign(moved, matrix_rank) : moved;
        }
        if (system.vector) sum = sum.squeeze(-1);
        at::DimVector all = {sum.size(0)};
        all.append(sizes.begin(), sizes.end());
        Rows outputs = {RightAlign(sum, static_cast<int64_t>(sizes.size())).expand(all)};
        return outputs;
      });
  if (missing.defined()) {
    const at::IntArrayRef batch = at::IntArrayRef(sizes).slice(0, matrix_rank - 2);
    MeetValue(call, missing.expand(batch), &result);
  }
  return result;
}

Ends InverseOf(const Ends& matrices) {
  return Both(matrices, [](const at::Tensor& m) { return std::get<0>(at::linalg_inv_ex(m)); });
}

// linalg_solve(A, B, *, left) and linalg_solve_ex. What both are made of, _linalg_solve_ex, hands out LU factors that
// nobody asked for, as _linalg_det and _linalg_slogdet do: those are not covered by themselves.
RuleResult Solve(const RuleCall& call) {
  System system;
  system.matrix_operand = call.OperandAt("A");
  system.right_operand = call.OperandAt("B");
  system.inverse = InverseOf(EndsOf(call.Require("A")));
  system.right = EndsOf(call.Require("B"));
  system.left = call.Bool("left", true);
  system.vector = IsVector(call.Require("A").value, call.Require("B").value);
  return Solution(call, system);
}

// The triangle of A that is read; `unit`: its diagonal counts as ones.
RowsToRows Triangle(bool upper, bool unit, bool transpose) {
  return [=](const at::Tensor& rows) {
    const at::Tensor part = upper ? rows.triu(unit ? 1 : 0) : rows.tril(unit ? -1 : 0);
    return transpose ? TransposeMatrix(part) : part;
  };
}

Ends TriangularInverse(const Ends& matrices, bool upper, bool unit) {
  return Both(matrices, [=](const at::Tensor& m) {
    return at::linalg_solve_triangular(m, EyeLike(m).expand(m.sizes()), upper, /*left=*/true, unit);
  });
}

// linalg_solve_triangular(A, B, *, upper, left, unitriangular)
RuleResult SolveTriangular(const RuleCall& call) {
  const bool upper = call.Bool("upper", false);
  const bool unit = call.Bool("unitriangular", false);
  System system;
  system.matrix_operand = call.OperandAt("self");
  system.right_operand = call.OperandAt("B");
  system.inverse = TriangularInverse(EndsOf(call.Require("self")), upper, unit);
  system.right = EndsOf(call.Require("B"));
  system.read = Triangle(upper, unit, false);
  system.left = call.Bool("left", true);
  return Solution(call, system);
}

// triangular_solve(B, A, upper, transpose, unitriangular) gives the solution and a copy of A.
RuleResult OldTriangularSolve(const RuleCall& call) {
  const bool upper = call.Bool("upper", true);
  const bool transpose = call.Bool("transpose", false);
  const bool unit = call.Bool("unitriangular", false);
  System system;
  system.matrix_operand = call.OperandAt("A");
  system.right_operand = call.OperandAt("self");
  system.inverse = TriangularInverse(EndsOf(call.Require("A")), upper, unit);
  if (transpose) system.inverse = TransposeMatrix(system.inverse);
  system.right = EndsOf(call.Require("self"));
  system.read = Triangle(upper, unit, transpose);
  RuleResult result = Solution(call, system);
  if (!call.Decomposed("A")) return result;
  const auto solve = result.map;
  const at::DimVector copied(call.outputs[1].value.sizes());
  result.map = MakeMap(call, result.inputs, [=](const Rows& rows) -> Rows {
    Rows outputs = solve->Forward(rows);
    at::DimVector all = {rows[0].size(0)};
    all.append(copied.begin(), copied.end());
    outputs.push_back(RightAlign(rows[0], static_cast<int64_t>(copied.size())).expand(all));
    return outputs;
  });
  return result;
}

// A = L L^T or U^T U, of which the operand is the factor.
RowsToRows FromCholesky(const Ends& factor, bool upper) {
  const at::Tensor middle = upper ? factor.Middle().triu() : factor.Middle().tril();
  return [=](const at::Tensor& rows) {
    const at::Tensor part = upper ? rows.triu() : rows.tril();
    const at::Tensor product =
        upper ? PlainTimesRows(TransposeMatrix(middle), part) : RowsTimesPlain(part, TransposeMatrix(middle));
    return product + TransposeMatrix(product);
  };
}

// The inverse of a matrix from its Cholesky factor. A factor with a zero on its diagonal has none, and LAPACK reports
// it by an error or not at all.
Ends CholeskyInverseOf(const Ends& factor, bool upper) {
  Ends inverse = TriangularInverse(factor, upper, false);
  return Both(inverse, [upper](const at::Tensor& i) {
    return upper ? i.matmul(TransposeMatrix(i)) : TransposeMatrix(i).matmul(i);
  });
}

// cholesky_inverse(L, upper)
RuleResult CholeskyInverse(const RuleCall& call) {
  RequireReal(call);
  const bool upper = call.Bool("upper", false);
  const Ends factor = EndsOf(call.Require("self"));
  const Ends inverse = CholeskyInverseOf(factor, upper);
  const at::Tensor missing = MissingReference(inverse);
  const RowsToRows read = FromCholesky(ValueWhere(missing, factor), upper);
  const RowsToRows secant = InverseSecant(ValueWhere(missing, inverse));
  RuleResult result =
      LinearIn(call, Kind::kRewrite, "self", [=](const at::Tensor& rows) { return secant(read(rows)); });
  MeetValue(call, missing, &result);
  return result;
}

// cholesky_solve(B, L, upper)
RuleResult CholeskySolve(const RuleCall& call) {
  const bool upper = call.Bool("upper", false);
  const Ends factor = EndsOf(call.Require("input2"));
  System system;
  system.matrix_operand = call.OperandAt("input2");
  system.right_operand = call.OperandAt("self");
  system.inverse = CholeskyInverseOf(factor, upper);
  system.right = EndsOf(call.Require("self"));
  system.read = FromCholesky(ValueWhere(MissingReference(system.inverse), factor), upper);
  return Solution(call, system);
}

// linalg_lu_solve(LU, pivots, B, *, left, adjoint): the pivots are those of the value at both ends.
RuleResult LuSolve(const RuleCall& call) {
  RequireReal(call);
  const bool adjoint = call.Bool("adjoint", false);
  const Ends factors = EndsOf(call.Require("LU"));
  const at::Tensor pivots = call.Require("pivots").value;
  System system;
  system.matrix_operand = call.OperandAt("LU");
  system.right_operand = call.OperandAt("B");
  system.inverse = Both(factors, [&](const at::Tensor& lu) {
    return at::linalg_lu_solve(lu, pivots, EyeLike(lu).expand(lu.sizes()), /*left=*/true, adjoint);
  });
  system.right = EndsOf(call.Require("B"));
  system.left = call.Bool("left", true);
  const Ends at_ends = ValueWhere(MissingReference(system.inverse), factors);
  const at::Tensor middle = at_ends.Middle();
  const auto unpacked = at::lu_unpack(middle.expand(factors.value.sizes()), pivots);
  const at::Tensor permutation = std::get<0>(unpacked);
  const at::Tensor lower = std::get<1>(unpacked);
  const at::Tensor upper = std::get<2>(unpacked);
  system.read = [=](const at::Tensor& rows) {
    const at::Tensor product = RowsTimesPlain(rows.tril(-1), upper) + PlainTimesRows(lower, rows.triu());
    const at::Tensor matrix = PlainTimesRows(permutation, product);
    return adjoint ? TransposeMatrix(matrix) : matrix;
  };
  return Solution(call, system);
}

// linalg_lstsq(A, B, rcond, *, driver): the solution is A^+ B. The sum of squares that it misses B by comes along where
// LAPACK knows it; the singular values of some drivers, which autograd does not know either, are left over.
RuleResult LeastSquares(const RuleCall& call) {
  RequireReal(call);
  const RuleOperand& a = call.Require("self");
  const RuleOperand& b = call.Require("b");
  const bool vector = IsVector(a.value, b.value);
  const auto as_matrix = [vector](const at::Tensor& t) { return vector ? t.unsqueeze(-1) : t; };
  Ends right = Both(EndsOf(b), as_matrix);
  Ends solution = Both(EndsOf(call.outputs[0]), as_matrix);
  PseudoInverse p{EndsOf(a), Both(EndsOf(a), [](const at::Tensor& t) { return at::linalg_pinv(t); })};
  const at::Tensor missing = MissingReference(solution);
  p = {ValueWhere(missing, p.matrix), ValueWhere(missing, p.inverse)};
  right = ValueWhere(missing, right);
  solution = ValueWhere(missing, solution);
  const at::Tensor right_middle = right.Middle();
  const at::Tensor inverse_middle = p.inverse.Middle();
  const at::Tensor matrix_middle = p.matrix.Middle();
  const at::Tensor solution_middle = solution.Middle();
  const Ends missed = {p.matrix.value.matmul(solution.value) - right.value,
                       p.matrix.reference.matmul(solution.reference) - right.reference};
  const at::Tensor missed_middle = missed.Middle();
  const bool has_residuals = call.outputs.size() > 1 && call.outputs[1].value.numel() > 0;
  const at::DimVector sizes(call.outputs[0].value.sizes());
  const at::DimVector residual_sizes(has_residuals ? call.outputs[1].value.sizes() : at::IntArrayRef());

  RuleResult result;
  result.kind = Kind::kRewrite;
  if (a.decomposed) result.inputs.push_back(call.OperandAt("self"));
  if (b.decomposed) result.inputs.push_back(call.OperandAt("b"));
  result.map =
      MakeMap(call, result.inputs, [=, a_moves = a.decomposed, b_moves = b.decomposed](const Rows& rows) -> Rows {
        at::Tensor moved;
        at::Tensor misses;
        if (a_moves) {
          moved = RowsTimesPlain(p.Secant(rows[0]), right_middle);
          misses = RowsTimesPlain(rows[0], solution_middle);
        }
        if (b_moves) {
          const at::Tensor own = as_matrix(rows.back());
          const at::Tensor product = PlainTimesRows(inverse_middle, own);
          moved = moved.defined() ? moved + product : product;
          misses = misses.defined() ? misses - own : -own;
        }
        const int64_t count = moved.size(0);
        Rows outputs = {moved.reshape(WithRows(count, sizes))};
        if (has_residuals) {
          misses = misses + PlainTimesRows(matrix_middle, moved);
          outputs.push_back((misses * missed_middle).sum(-2).mul(2).reshape(WithRows(count, residual_sizes)));
        }
        return outputs;
      });
  MeetValue(call, missing, &result);
  const bool has_singular_values = call.outputs.size() > 3 && call.outputs[3].value.numel() > 0;
  if (CutsOff(p) || has_singular_values) KeepBracket(call, &result);
  result.inner_terms = TermsOf(p, right.value.abs() + right.reference.abs());
  return result;
}

// ------------------------------------------------------------------------------------------------------ determinants

// det A is a polynomial of degree n along the line, so its mean gradient, the mean of the cofactors, is exact with
// enough nodes. Cofactors come from singular values, so that singular matrices have them too; all are divided by
// exp(scale), the determinants' own size [*batch], which may be too large for a number.
at::Tensor Cofactors(const at::Tensor& matrix, const at::Tensor& scale) {
  const auto parts = at::linalg_svd(matrix, /*full_matrices=*/false);
  const at::Tensor& u = std::get<0>(parts);
  const at::Tensor& vh = std::get<2>(parts);
  const int64_t n = matrix.size(-1);
  at::DimVector square(matrix.sizes());
  const at::Tensor others = EyeLike(matrix).eq(0);
  // Products of all other singular values: the logarithm of zero is minus infinity, and its exponential zero again.
  const at::Tensor logs = std::get<1>(parts).log().unsqueeze(-2).expand(square);
  const at::Tensor sums = at::where(others, logs, at::zeros_like(logs)).sum(-1);
  const at::Tensor sign = at::linalg_det(u) * at::linalg_det(vh);
  const at::Tensor products = (sums - scale.unsqueeze(-1)).exp() * sign.unsqueeze(-1);
  return n == 0 ? matrix : (u * products.unsqueeze(-2)).matmul(vh);
}

at::Tensor MeanCofactors(const Ends& matrix, const at::Tensor& scale) {
  const int64_t n = matrix.value.size(-1);
  const Quadrature rule = GaussLegendre(static_cast<int>(n + 1) / 2);
  at::Tensor mean = at::zeros_like(matrix.value);
  for (size_t k = 0; k < rule.nodes.size(); ++k) {
    const at::Tensor point = matrix.reference + (matrix.value - matrix.reference) * rule.nodes[k];
    mean = mean + Cofactors(point, scale) * rule.weights[k];
  }
  return mean;
}

at::Tensor Contract(const at::Tensor& rows, const at::Tensor& matrix) { return (rows * matrix).sum({-2, -1}); }

// How large a determinant between the ends can be, the largest of all matrices: the product of the norms of its rows
// (Hadamard's inequality). That of a singular matrix is the rounding of such terms.
double LargestDeterminant(const Ends& matrix) {
  const at::Tensor rows = matrix.value.norm(2, {-1}).maximum(matrix.reference.norm(2, {-1}));
  const at::Tensor products = rows.to(at::kDouble).prod(-1);
  if (products.numel() == 0) return 0;
  const double largest = ReadNumber(products.max());
  return std::isfinite(largest) ? largest : 0;
}

// linalg_det(A)
RuleResult Determinant(const RuleCall& call) {
  RequireReal(call);
  const Ends matrix = EndsOf(call.Require("A"));
  const at::Tensor mean = MeanCofactors(matrix, at::zeros_like(call.outputs[0].value));
  RuleResult result = LinearIn(
      call, Kind::kBilinear, "A", [mean](const at::Tensor& rows) { return Contract(rows, mean); },
      [mean](const at::Tensor& g) { return mean * g.unsqueeze(-1).unsqueeze(-1); });
  result.inner_terms = LargestDeterminant(matrix);
  return result;
}

// log |det A| is the logarithm of a polynomial: its secant slope times the determinant's mean gradient. Returns that
// gradient; `missing`: where the reference has no logarithm.
at::Tensor LogDeterminantGradient(const Ends& matrix, at::Tensor* missing) {
  const auto at_value = at::linalg_slogdet(matrix.value);
  const auto at_reference = at::linalg_slogdet(matrix.reference);
  const at::Tensor logarithm = std::get<1>(at_value);
  const at::Tensor sign = std::get<0>(at_value);
  *missing =
      MissingReference({logarithm.unsqueeze(-1).unsqueeze(-1), std::get<1>(at_reference).unsqueeze(-1).unsqueeze(-1)});
  const Ends line = ValueWhere(*missing, matrix);
  const auto unless_missing = [&](const at::Tensor& value, const at::Tensor& reference) {
    return missing->defined() ? at::where(*missing, value, reference) : reference;
  };
  const at::Tensor logarithm_reference = unless_missing(logarithm, std::get<1>(at_reference));
  const at::Tensor sign_reference = unless_missing(sign, std::get<0>(at_reference));
  const at::Tensor scale = at::maximum(logarithm, logarithm_reference);
  const at::Tensor apart = logarithm - logarithm_reference;
  const at::Tensor size = apart.abs();
  // Both determinants over exp(scale): one is 1, the other exp(-size).
  const at::Tensor same = at::where(size.eq(0), at::ones_like(size), size / -(-size).expm1());
  const at::Tensor slope = sign * at::where(sign.eq(sign_reference), same, apart / (1 + (-size).exp()));
  const at::Tensor gradient = MeanCofactors(line, scale) * slope.unsqueeze(-1).unsqueeze(-1);
  // A singular value: the logarithm is infinite, and nothing passes.
  return gradient.masked_fill(at::isfinite(logarithm).logical_not().unsqueeze(-1).unsqueeze(-1), 0);
}

RuleResult LogDeterminant(const RuleCall& call) {
  RequireReal(call);
  at::Tensor missing;
  at::Tensor gradient = LogDeterminantGradient(EndsOf(call.Require("self")), &missing);
  // A negative determinant has no logarithm.
  const auto column = [](const at::Tensor& t) { return t.unsqueeze(-1).unsqueeze(-1); };
  const RuleOutput& output = call.outputs[0];
  const at::Tensor negative = MissingReference({column(output.value), column(output.reference)});
  if (negative.defined()) {
    missing = Either(missing, negative);
    const Ends matrix = ValueWhere(missing, EndsOf(call.Require("self")));
    at::Tensor none;
    gradient = LogDeterminantGradient(matrix, &none);
  }
  gradient = gradient.masked_fill(column(at::isfinite(output.value).logical_not()), 0);
  RuleResult result = LinearIn(
      call, Kind::kRewrite, "self", [gradient](const at::Tensor& rows) { return Contract(rows, gradient); },
      [gradient](const at::Tensor& g) { return gradient * g.unsqueeze(-1).unsqueeze(-1); });
  MeetValue(call, missing, &result);
  return result;
}

// linalg_slogdet(A): the sign is constant but for steps.
RuleResult SignAndLogDeterminant(const RuleCall& call) {
  RequireReal(call);
  at::Tensor missing;
  const at::Tensor gradient = LogDeterminantGradient(EndsOf(call.Require("A")), &missing);
  RuleResult result;
  result.kind = Kind::kRewrite;
  result.inputs = {call.OperandAt("A")};
  result.map = MakeMap(call, result.inputs, [gradient](const Rows& rows) -> Rows {
    const at::Tensor logarithm = Contract(rows[0], gradient);
    return {at::zeros_like(logarithm), logarithm};
  });
  MeetValue(call, missing, &result);
  if (!ReadEqual(call.outputs[0].value, call.outputs[0].reference)) KeepBracket(call, &result);
  return result;
}

// ------------------------------------------------------------------------------------------------------- exponential

// exp A - exp B = int_0^1 exp(sA) (A - B) exp((1 - s)B) ds, which is the upper right block of exp [[A, A - B], [0, B]]
// (C. Van Loan, Computing integrals involving the matrix exponential, 1978), and the same with A and B exchanged.
at::Tensor ExponentialSecant(const at::Tensor& a, const at::Tensor& b, const at::Tensor& rows) {
  const int64_t n = rows.size(-1);
  at::DimVector sizes(rows.sizes());
  sizes[sizes.size() - 1] = sizes[sizes.size() - 2] = 2 * n;
  at::Tensor blocks = at::zeros({}, rows.options()).expand(sizes).clone(at::MemoryFormat::Contiguous);
  blocks.narrow(-2, 0, n).narrow(-1, 0, n).copy_(a.expand(rows.sizes()));
  blocks.narrow(-2, 0, n).narrow(-1, n, n).copy_(rows);
  blocks.narrow(-2, n, n).narrow(-1, n, n).copy_(b.expand(rows.sizes()));
  return at::linalg_matrix_exp(blocks).narrow(-2, 0, n).narrow(-1, n, n);
}

RuleResult Exponential(const RuleCall& call) {
  RequireReal(call);
  const Ends matrix = EndsOf(call.Require("self"));
  const auto both = [](const at::Tensor& a, const at::Tensor& b, const at::Tensor& rows) {
    if (rows.numel() == 0) return rows.clone();
    // Large rows would cost digits: each is brought to the size of one and back.
    const at::Tensor size = rows.abs().amax({-2, -1}, /*keepdim=*/true);
    const at::Tensor scale = at::where(size.gt(0), size, at::ones_like(size));
    const at::Tensor unit = rows / scale;
    return (ExponentialSecant(a, b, unit) + ExponentialSecant(b, a, unit)) * (scale / 2);
  };
  const at::Tensor a = matrix.value;
  const at::Tensor b = matrix.reference;
  return LinearIn(
      call, Kind::kRewrite, "self", [=](const at::Tensor& rows) { return both(a, b, rows); },
      [=](const at::Tensor& g) { return both(TransposeMatrix(a), TransposeMatrix(b), g.unsqueeze(0)).squeeze(0); });
}

}  // namespace

void RegisterLinalg(Registry& registry) {
  registry.Register({"aten::linalg_inv_ex", Kind::kRewrite, Inverse});
  for (const char* name : {"aten::linalg_solve", "aten::linalg_solve_ex"}) {
    registry.Register({name, Kind::kRewrite, Solve});
  }
  registry.Register({"aten::linalg_pinv", Kind::kRewrite, Pinv});
  registry.Register({"aten::linalg_solve_triangular", Kind::kRewrite, SolveTriangular});
  registry.Register({"aten::triangular_solve", Kind::kRewrite, OldTriangularSolve});
  registry.Register({"aten::cholesky_inverse", Kind::kRewrite, CholeskyInverse});
  registry.Register({"aten::cholesky_solve", Kind::kRewrite, CholeskySolve});
  registry.Register({"aten::linalg_lu_solve", Kind::kRewrite, LuSolve});
  registry.Register({"aten::linalg_lstsq", Kind::kRewrite, LeastSquares});
  registry.Register({"aten::linalg_det", Kind::kBilinear, Determinant});
  registry.Register({"aten::logdet", Kind::kRewrite, LogDeterminant});
  registry.Register({"aten::linalg_slogdet", Kind::kRewrite, SignAndLogDeterminant});
  registry.Register({"aten::linalg_matrix_exp", Kind::kRewrite, Exponential});
}

}  // namespace addend
