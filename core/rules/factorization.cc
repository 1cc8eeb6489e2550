// Cholesky, LU and QR. All three solve bilinear equations, so that their secants are closed forms; see Note [Secants of
// equations].
//
// Note [Steps of factorizations]
// LAPACK chooses row exchanges (LU) and signs (QR) by comparing numbers, so the factors jump where the choice changes.
// The rules follow the branch on which the value lies: signs of the reference are turned to the value's before the
// secant is taken, and where other rows were exchanged, where the branch ends in between (a determinant that changes
// its sign) or where both ends are nearly opposite, the derivative at the value stands in for the secant. The jump is
// left over and reported.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_eigvalsh.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/lu_unpack.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <tuple>

#include "core/base/host_read.h"
#include "core/rules/ends.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"
#include "core/rules/row_product.h"

namespace addend {
namespace {

bool Any(const at::Tensor& mask) { return mask.defined() && ReadFlag(mask.any()); }

at::Tensor EyeOf(const at::Tensor& matrix) { return at::eye(matrix.size(-1), matrix.options()).expand(matrix.sizes()); }

at::Tensor InverseOfTriangle(const at::Tensor& matrix, bool upper) {
  return at::linalg_solve_triangular(matrix, EyeOf(matrix), upper);
}

// The part of a square matrix that a triangular factor gets of a symmetric sum of two: half of the diagonal.
at::Tensor HalvedTriangle(const at::Tensor& rows, bool upper) {
  const at::Tensor eye = at::eye(rows.size(-1), rows.options());
  return (upper ? rows.triu() : rows.tril()) - rows * (eye / 2);
}

at::Tensor LargestOf(const at::Tensor& matrix) {
  if (matrix.size(-1) == 0 || matrix.size(-2) == 0) return matrix.sum({-2, -1});
  return matrix.abs().amax({-2, -1});
}

// Mask of matrices that the product of their factors differs from, [*batch].
at::Tensor Differs(const at::Tensor& product, const at::Tensor& matrix) {
  const double limit = matrix.scalar_type() == at::kDouble ? 1e-8 : 1e-3;
  return LargestOf(product - matrix).le(LargestOf(matrix) * limit).logical_not();
}

at::Tensor ZeroUnlessFinite(const at::Tensor& t) {
  return AllFinite(t) ? t : t.masked_fill(at::isfinite(t).logical_not(), 0);
}

// ---------------------------------------------------------------------------------------------------------- Cholesky

// A = L L^T: with N the middle of both factors, N D^T + D N^T = X, so D = N (half triangle of N^-1 X N^-T).
RuleResult Cholesky(const RuleCall& call) {
  RequireReal(call);
  const bool upper = call.Bool("upper", false);
  const Ends matrix = Both(EndsOf(call.Require("self")), [upper](const at::Tensor& t) { return Mirrored(t, upper); });
  Ends factor = EndsOf(call.outputs[0]);
  if (upper) factor = TransposeMatrix(factor);
  // Zero is no positive definite matrix, but its factor is known.
  const auto column = [](const at::Tensor& mask) { return mask.unsqueeze(-1).unsqueeze(-1); };
  const at::Tensor zero = LargestOf(matrix.reference).eq(0);
  factor.reference = at::where(column(zero), at::zeros_like(factor.reference), factor.reference);
  const at::Tensor missing = Differs(factor.reference.matmul(TransposeMatrix(factor.reference)), matrix.reference)
                                 .logical_or_(factor.reference.diagonal(0, -2, -1).gt(0).all(-1).logical_not_())
                                 .logical_and_(zero.logical_not());
  factor = ValueWhere(missing, factor);
  const at::Tensor middle = factor.Middle();
  const at::Tensor inverse = InverseOfTriangle(middle, /*upper=*/false);
  const auto read = SymmetricRows(call.Require("self"), upper, /*halves=*/true);
  RuleResult result = LinearIn(call, Kind::kRewrite, "self", [=](const at::Tensor& rows) {
    const at::Tensor between = PlainTimesRows(inverse, RowsTimesPlain(read(rows), TransposeMatrix(inverse)));
    const at::Tensor moved = PlainTimesRows(middle, HalvedTriangle(between, /*upper=*/false));
    return upper ? TransposeMatrix(moved) : moved;
  });
  const at::Tensor known = Any(zero) && !AllFinite(call.outputs[0].reference) ? zero : at::Tensor();
  const at::Tensor met = Any(missing) ? Either(known, missing) : known;
  MeetValue(call, met, &result);
  return result;
}

// ---------------------------------------------------------------------------------------------------------------- LU

// A = P L U with the value's P: X' = P^T X = dL U + L dU at the middles.
class LuSecant {
 public:
  LuSecant(const Ends& matrix, const at::Tensor& permutation, Ends lower, Ends upper)
      : back_(TransposeMatrix(permutation)), rank_(std::min(lower.value.size(-2), upper.value.size(-1))) {
    at_value_ = Differs(permutation.matmul(lower.reference).matmul(upper.reference), matrix.reference);
    const at::Tensor own = upper.value.diagonal(0, -2, -1);
    // A middle far smaller than the value's own pivot would blow up rows.
    const at::Tensor middle = upper.Middle().diagonal(0, -2, -1);
    at_value_ = at_value_.logical_or(middle.abs().lt(own.abs() * 1e-3).any(-1));
    lower = ValueWhere(at_value_, lower);
    upper = ValueWhere(at_value_, upper);
    lower_ = lower.Middle();
    upper_ = upper.Middle();
    lower_inverse_ = InverseOfTriangle(lower_.narrow(-2, 0, rank_), /*upper=*/false);
    const at::Tensor inverse = InverseOfTriangle(upper_.narrow(-1, 0, rank_), /*upper=*/true);
    singular_ = !AllFinite(inverse);
    upper_inverse_ = ZeroUnlessFinite(inverse);
  }

  bool leaves_over() const { return singular_ || Any(at_value_); }
  const at::Tensor& at_value() const { return at_value_; }

  // Rows of L and U.
  std::pair<at::Tensor, at::Tensor> Forward(const at::Tensor& rows) const {
    const at::Tensor moved = PlainTimesRows(back_, rows);
    const int64_t m = moved.size(-2);
    const int64_t n = moved.size(-1);
    const at::Tensor square = moved.narrow(-2, 0, rank_).narrow(-1, 0, rank_);
    const at::Tensor between = RowsTimesPlain(PlainTimesRows(lower_inverse_, square), upper_inverse_);
    at::Tensor lower = PlainTimesRows(lower_.narrow(-2, 0, rank_), between.tril(-1));
    at::Tensor upper = RowsTimesPlain(between.triu(), upper_.narrow(-1, 0, rank_));
    if (n > rank_) {
      const at::Tensor rest = moved.narrow(-1, rank_, n - rank_);
      const at::Tensor seen = RowsTimesPlain(lower, upper_.narrow(-1, rank_, n - rank_));
      upper = at::cat({upper, PlainTimesRows(lower_inverse_, rest - seen)}, -1);
    }
    if (m > rank_) {
      const at::Tensor rest = moved.narrow(-2, rank_, m - rank_);
      const at::Tensor seen = PlainTimesRows(lower_.narrow(-2, rank_, m - rank_), upper);
      lower = at::cat({lower, RowsTimesPlain(rest - seen, upper_inverse_)}, -2);
    }
    return {lower, upper};
  }

  // Both in one matrix, as LAPACK stores them.
  at::Tensor Compact(const at::Tensor& rows) const {
    const auto parts = Forward(rows);
    const int64_t below = rows.size(-2) - rank_;
    const int64_t beside = rows.size(-1) - rank_;
    return at::constant_pad_nd(parts.first, {0, beside}) + at::constant_pad_nd(parts.second, {0, 0, 0, below});
  }

 private:
  at::Tensor back_;  // P^T
  int64_t rank_;
  at::Tensor at_value_;
  bool singular_ = false;
  at::Tensor lower_;
  at::Tensor upper_;
  at::Tensor lower_inverse_;
  at::Tensor upper_inverse_;
};

LuSecant SecantOfCompact(const Ends& matrix, const Ends& compact, const at::Tensor& pivots) {
  const auto value = at::lu_unpack(compact.value, pivots);
  const auto reference = at::lu_unpack(compact.reference, pivots);
  return LuSecant(matrix, std::get<0>(value), {std::get<1>(value), std::get<1>(reference)},
                  {std::get<2>(value), std::get<2>(reference)});
}

void FinishLu(const RuleCall& call, const LuSecant& secant, RuleResult* result) {
  if (Any(secant.at_value())) MeetValue(call, secant.at_value(), result);
  if (secant.leaves_over()) KeepBracket(call, result);
}

// linalg_lu_factor_ex(A, *, pivot, check_errors)
RuleResult LuFactor(const RuleCall& call) {
  RequireReal(call);
  const LuSecant secant = SecantOfCompact(EndsOf(call.Require("A")), EndsOf(call.outputs[0]), call.outputs[1].value);
  RuleResult result =
      LinearIn(call, Kind::kRewrite, "A", [secant](const at::Tensor& rows) { return secant.Compact(rows); });
  FinishLu(call, secant, &result);
  return result;
}

// linalg_lu(A, *, pivot) gives P, L and U; the row exchanges are constant but for steps.
RuleResult Lu(const RuleCall& call) {
  RequireReal(call);
  const at::Tensor permutation = call.outputs[0].value;
  const LuSecant secant(EndsOf(call.Require("A")), permutation, EndsOf(call.outputs[1]), EndsOf(call.outputs[2]));
  RuleResult result;
  result.kind = Kind::kRewrite;
  result.inputs = {call.OperandAt("A")};
  const at::DimVector sizes(permutation.sizes());
  result.map = MakeMap(call, result.inputs, [=](const Rows& rows) -> Rows {
    const auto parts = secant.Forward(rows[0]);
    at::DimVector all = {rows[0].size(0)};
    all.append(sizes.begin(), sizes.end());
    return {at::zeros({}, rows[0].options()).expand(all), parts.first, parts.second};
  });
  FinishLu(call, secant, &result);
  if (result.exact && !ReadEqual(permutation, call.outputs[0].reference)) KeepBracket(call, &result);
  return result;
}

// lu_unpack(LU, pivots, unpack_data, unpack_pivots): P, which the pivots say, L and U.
RuleResult UnpackLu(const RuleCall& call) {
  RuleResult result;
  result.kind = Kind::kAffine;
  if (!call.Bool("unpack_data", true)) return result;
  const int64_t rank = std::min(call.outputs[1].value.size(-2), call.outputs[2].value.size(-1));
  result.inputs = {call.OperandAt("LU_data")};
  const at::DimVector sizes(call.outputs[0].value.sizes());
  result.map = MakeMap(call, result.inputs, [=](const Rows& rows) -> Rows {
    at::DimVector all = {rows[0].size(0)};
    all.append(sizes.begin(), sizes.end());
    return {at::zeros({}, rows[0].options()).expand(all), rows[0].tril(-1).narrow(-1, 0, rank),
            rows[0].triu().narrow(-2, 0, rank)};
  });
  return result;
}

// ---------------------------------------------------------------------------------------------------------------- QR

// A = Q R with Q^T Q = 1. At the middles X = Q dR + dQ R with Q^T dQ antisymmetric. For T = dR R^-1, which is upper
// triangular, and G = Q^T Q = S^T S with S upper triangular, that is G T + T^T G = C + C^T with C = Q^T X R^-1, so
// S T S^-1 is the half triangle of S^-T (C + C^T) S^-1. Columns behind the square part follow from R = Q^T A.
class QrSecant {
 public:
  QrSecant(const Ends& matrix, Ends q, Ends r) : rank_(q.value.size(-1)) {
    const at::Tensor own = r.value.diagonal(0, -2, -1);
    const at::Tensor other = r.reference.diagonal(0, -2, -1);
    const at::Tensor along = (q.value * q.reference).sum(-2);
    const at::Tensor by = at::where(own.eq(0).logical_or(other.eq(0)), along, own * other);
    const at::Tensor sign = at::where(by.lt(0), -at::ones_like(by), at::ones_like(by));
    turned_ = Any(sign.lt(0));
    q.reference = q.reference * sign.unsqueeze(-2);
    r.reference = r.reference * sign.unsqueeze(-1);

    const auto gram_of = [](const Ends& ends) {
      const at::Tensor middle = ends.Middle();
      return TransposeMatrix(middle).matmul(middle);
    };
    // The cosine of half the widest angle between both ends, squared.
    at_value_ = Differs(q.reference.matmul(r.reference), matrix.reference);
    if (rank_ > 0) {
      const at::Tensor gram = gram_of(ValueWhere(at_value_, q));
      at_value_ = at_value_.logical_or(at::linalg_eigvalsh(gram).amin(-1).lt(1e-2));
    }
    const Ends a = ValueWhere(at_value_, matrix);
    q = ValueWhere(at_value_, q);
    r = ValueWhere(at_value_, r);
    q_ = q.Middle();
    r_ = r.Middle().narrow(-1, 0, rank_);
    rest_ = a.Middle().narrow(-1, rank_, matrix.value.size(-1) - rank_);
    s_ = TransposeMatrix(std::get<0>(at::linalg_cholesky_ex(gram_of(q))));
    s_inverse_ = InverseOfTriangle(s_, /*upper=*/true);
    const at::Tensor inverse = InverseOfTriangle(r_, /*upper=*/true);
    singular_ = !AllFinite(inverse);
    r_inverse_ = ZeroUnlessFinite(inverse);
  }

  bool leaves_over() const { return turned_ || singular_ || Any(at_value_); }
  const at::Tensor& at_value() const { return at_value_; }

  // Rows of Q and R.
  std::pair<at::Tensor, at::Tensor> Forward(const at::Tensor& rows) const {
    const at::Tensor transposed = TransposeMatrix(q_);
    const at::Tensor square = rows.narrow(-1, 0, rank_);
    const at::Tensor c = PlainTimesRows(transposed, RowsTimesPlain(square, r_inverse_));
    const at::Tensor between =
        PlainTimesRows(TransposeMatrix(s_inverse_), RowsTimesPlain(c + TransposeMatrix(c), s_inverse_));
    const at::Tensor t = PlainTimesRows(s_inverse_, RowsTimesPlain(HalvedTriangle(between, /*upper=*/true), s_));
    at::Tensor r = RowsTimesPlain(t, r_);
    const at::Tensor q = RowsTimesPlain(square - PlainTimesRows(q_, r), r_inverse_);
    if (rest_.size(-1) > 0) {
      const at::Tensor behind = rows.narrow(-1, rank_, rest_.size(-1));
      r = at::cat({r, PlainTimesRows(transposed, behind) + RowsTimesPlain(TransposeMatrix(q), rest_)}, -1);
    }
    return {q, r};
  }

 private:
  int64_t rank_;
  bool turned_ = false;
  bool singular_ = false;
  at::Tensor at_value_;
  at::Tensor q_;
  at::Tensor r_;     // its square part
  at::Tensor rest_;  // the columns of A behind it
  at::Tensor s_;
  at::Tensor s_inverse_;
  at::Tensor r_inverse_;
};

// linalg_qr(A, mode): "reduced", "complete" or "r", which leaves Q out. The columns by which a complete Q goes beyond
// the matrix are any basis of the rest of the space, so nothing can be said about them: they are left over.
RuleResult Qr(const RuleCall& call) {
  RequireReal(call);
  const Ends matrix = EndsOf(call.Require("A"));
  const auto at_value = at::linalg_qr(matrix.value);
  const auto at_reference = at::linalg_qr(matrix.reference);
  const QrSecant secant(matrix, {std::get<0>(at_value), std::get<0>(at_reference)},
                        {std::get<1>(at_value), std::get<1>(at_reference)});
  const at::Tensor& q = call.outputs[0].value;
  const at::Tensor& r = call.outputs[1].value;
  const int64_t rank = std::get<0>(at_value).size(-1);
  const int64_t beside = q.numel() == 0 ? 0 : q.size(-1) - rank;
  const int64_t below = r.size(-2) - rank;
  const bool leaves_q_out = q.dim() != r.dim();
  RuleResult result;
  result.kind = Kind::kRewrite;
  result.inputs = {call.OperandAt("A")};
  result.map = MakeMap(call, result.inputs, [=](const Rows& rows) -> Rows {
    const auto parts = secant.Forward(rows[0]);
    const at::Tensor of_r = at::constant_pad_nd(parts.second, {0, 0, 0, below});
    if (leaves_q_out) return {at::zeros({rows[0].size(0), 0}, rows[0].options()), of_r};
    return {at::constant_pad_nd(parts.first, {0, beside}), of_r};
  });
  if (Any(secant.at_value())) MeetValue(call, secant.at_value(), &result);
  if (secant.leaves_over() || beside > 0) KeepBracket(call, &result);
  return result;
}

}  // namespace

void RegisterFactorization(Registry& registry) {
  for (const char* name : {"aten::cholesky", "aten::linalg_cholesky", "aten::linalg_cholesky_ex"}) {
    registry.Register({name, Kind::kRewrite, Cholesky});
  }
  registry.Register({"aten::linalg_lu_factor_ex", Kind::kRewrite, LuFactor});
  registry.Register({"aten::linalg_lu", Kind::kRewrite, Lu});
  registry.Register({"aten::lu_unpack", Kind::kAffine, UnpackLu});
  registry.Register({"aten::linalg_qr", Kind::kRewrite, Qr});
}

}  // namespace addend
