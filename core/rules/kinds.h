// The rule kinds: how coefficients are found and how they act on rows, each written once. Families pick a kind.
#ifndef ADDEND_CORE_RULES_KINDS_H_
#define ADDEND_CORE_RULES_KINDS_H_

#include <ATen/TensorOperators.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/rules/rule.h"

namespace addend {

// LibTorch's optional: its own class in older versions, std::optional in newer ones.
template <typename T>
using Optional = decltype(std::declval<const c10::IValue&>().toOptional<T>());

// ---- helpers on rows

// [R, *s] -> [R, 1, ..., 1, *s] with `rank` dimensions behind the row axis.
at::Tensor RightAlign(const at::Tensor& rows, int64_t rank);
// A dimension of a tensor with `rank` dimensions, as a dimension of its rows.
int64_t RowDim(int64_t dim, int64_t rank);
// The sizes of rows of a tensor with `sizes`: [rows, *sizes].
at::DimVector WithRows(int64_t rows, at::IntArrayRef sizes);
// No NaN and no infinity. Cheap where that is so.
bool AllFinite(const at::Tensor& tensor);
// Zero where it is not.
at::Tensor FiniteOrZero(const at::Tensor& tensor);
// Folds the rows into dimension 0, which `f` treats as a batch, and unfolds them: [R, N, *s] -> f([R * N, *s]).
at::Tensor FoldBatch(const at::Tensor& rows, const std::function<at::Tensor(const at::Tensor&)>& f);

// ---- maps

// A map from two functions. Where `transpose` is empty, or complex numbers are involved, it is derived from `forward`
// by autograd.
using RowsFunction = std::function<Rows(const Rows&)>;
std::shared_ptr<const LinearMap> MakeMap(const RuleCall& call, const std::vector<int>& inputs, RowsFunction forward,
                                         RowsFunction transpose = nullptr);

// A coefficient of an elementwise map: a tensor that broadcasts to the output, or a number.
struct Coefficient {
  Coefficient(double n) : number(n) {}                 // NOLINT(google-explicit-constructor): 1.0 reads as what it is
  Coefficient(at::Tensor t) : tensor(std::move(t)) {}  // NOLINT(google-explicit-constructor)
  double number = 1;
  at::Tensor tensor;
};

struct Term {
  int operand;
  Coefficient coefficient;
};

// ---- kinds

// output = sum of coefficient * operand, elementwise with broadcasting. Terms of plain operands are dropped.
RuleResult Elementwise(const RuleCall& call, Kind kind, std::vector<Term> terms);

// The operator itself on every row of its operand `argument`: `forward` gets and gives rows.
RuleResult LinearIn(const RuleCall& call, Kind kind, std::string_view argument,
                    std::function<at::Tensor(const at::Tensor&)> forward,
                    std::function<at::Tensor(const at::Tensor&)> transpose = nullptr);

// How near to each other value and reference may be before the secant slope gives way to the derivative.
enum class Curve {
  kSmooth,           // bends on the scale of 1: tanh, gelu, exp
  kPower,            // bends on the scale of its argument: sqrt, log, pow
  kPiecewiseLinear,  // kinks: leaky_relu, hardsigmoid
  kUnitPieces,       // kinks between pieces that are x, -x or a constant: relu, abs, clamp
};
// The derivative of an elementwise function at some points, of a shape of their own.
using KnownDerivative = at::Tensor (*)(const RuleCall& call, const at::Tensor& points);
// Elementwise functions of the first argument. Without `known` autograd differentiates them, which takes longer.
RuleResult Pointwise(const RuleCall& call, Curve curve, KnownDerivative known = nullptr);
// The slope alone: f(value) - f(reference) over the move. `derivative` is called with points of value's shape, or,
// where it is the same function for each element (`pointwise`), with some of the points in one dimension.
at::Tensor SecantSlope(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& f_value,
                       const at::Tensor& f_reference, Curve curve,
                       const std::function<at::Tensor(const at::Tensor&)>& derivative, bool pointwise = false);

// Note [Products]
// A product of a and v moves from a' v' to a v. Complete is whatever lets one factor's rows meet a point of the other
// and the other's rows the opposite point: by half both meet the middle, dv (a + a') / 2 + da (v + v') / 2. Where a is
// a coefficient of v (Policy::content_first), da meets v' and dv meets a: the coefficient moves while the content is
// the reference's, then the content moves at the coefficient's value. So no content is multiplied by a coefficient of
// the reference, which may be huge (1 / std of nothing), and what moves in the coefficient alone is weighed by what the
// reference had there. A frozen factor (Policy::freeze) is met at its value, and its own rows are not read. Of two
// coefficients, and of two frozen factors, both move by half.
struct Meeting {
  bool first_moves = false;  // whether the rows of the first factor are read
  bool second_moves = false;
  at::Tensor first;  // what the rows of the second factor meet
  at::Tensor second;
};
Meeting Meet(const Policy& policy, const RuleOperand& first, const RuleOperand& second);

// Nothing passes: the rows of the outputs are zero and the bracket becomes leftover.
RuleResult Opaque(const RuleCall& call);

// Shares of the path on which each candidate along the last dimension of reference + t * (value - reference),
// t in 0..1, is the largest: the exact upper envelope of lines, ties shared. Same shape as value; sums to 1.
at::Tensor EnvelopeShares(const at::Tensor& value, const at::Tensor& reference);
// The same from LibTorch's operators, for all devices, and where gradients pass: k^2 memory for k candidates.
at::Tensor EnvelopeSharesOfPairs(const at::Tensor& value, const at::Tensor& reference);
// All of the share to the largest value (the first of several).
at::Tensor WinnerShares(const at::Tensor& value);

// Gauss-Legendre nodes and weights on 0..1.
struct Quadrature {
  std::vector<double> nodes;
  std::vector<double> weights;
};
Quadrature GaussLegendre(int count);

// The middle of the line, (value + reference) / 2, with the shared infinities of both kept.
at::Tensor Middle(const RuleOperand& operand);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_KINDS_H_
