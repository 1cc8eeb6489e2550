// The rule kinds: how coefficients act on rows, each written once. Families pick a kind; how coefficients are found
// stands in pointwise.h, shares.h and path.h.
#ifndef ADDEND_CORE_RULES_KINDS_H_
#define ADDEND_CORE_RULES_KINDS_H_

#include <ATen/TensorOperators.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/rules/pointwise.h"
#include "core/rules/quadrature.h"
#include "core/rules/rows.h"
#include "core/rules/rule.h"
#include "core/rules/shares.h"

namespace addend {

// LibTorch's optional: its own class in older versions, std::optional in newer ones.
template <typename T>
using Optional = decltype(std::declval<const c10::IValue&>().toOptional<T>());

// ---- maps

// Makes a map from two functions. If `transpose` is empty, or complex numbers are involved, autograd derives the
// transpose from `forward`.
using RowsFunction = std::function<Rows(const Rows&)>;
std::shared_ptr<const LinearMap> MakeMap(const RuleCall& call, const std::vector<int>& inputs, RowsFunction forward,
                                         RowsFunction transpose = nullptr);

// LinearMap::Transpose() of a map that transposes any number of cotangents at once: as one of them.
Rows TransposeByRows(const LinearMap& map, const Rows& cotangents);

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

// Note [Products]
// A product of a and v moves from a' v' to a v. A sharing is complete if the rows of one factor meet a point of the
// other factor, and the other's rows the opposite point. By half both meet the middle: dv (a + a') / 2 + da (v + v') /
// 2. If a is a coefficient of v (Policy::content_first), da meets v' and dv meets a: the coefficient moves while the
// content is the reference's, then the content moves at the coefficient's value. So no content is multiplied by a
// coefficient of the reference, which may be huge (1 / std of nothing), and a move of the coefficient alone is weighed
// by the reference's content. A frozen factor (Policy::freeze) is met at its value, and its own rows are not read. Two
// coefficients, and two frozen factors, move by half.
//
// Note [Shares by magnitude]
// A coefficient that shares by magnitude (Policy::by_magnitude) leaves content the share s of the interaction (a - a')
// (v - v'), by what stands there on both sides: dv meets a' + s (a - a'), and da meets v' + (1 - s) (v - v'), with
//   s = w |v| / (w |v| + |v'|),   w = opens where |a| > |a'|, closes elsewhere; of attention both are the same.
// s is 1 where content appears, 0 where it vanishes; s = 1/2 is by half, and s = 1 content first. It depends on value
// and reference only, so that the map stays linear in the rows, and at |a| = |a'|, where w jumps, there is no
// interaction. One number of the coefficient has one share: |v| is the norm of all the content that it multiplies, in
// products of matrices that of a row (or column) of the content.
struct MagnitudeWeights {
  double opens;
  double closes;
};
// Whether a coefficient shares by magnitude: every kind for which its content comes first says so.
bool SharesByMagnitude(const RuleOperand& coefficient);
// The weights of the kinds `by_magnitude` of a coefficient.
const MagnitudeWeights& WeightsOfKinds(uint32_t by_magnitude);
// The share of the coefficient, 1 - s = |v'| / (w |v| + |v'|), for sizes of one shape; 0 where nothing stands on either
// side.
at::Tensor RestOfContent(double weight, const at::Tensor& size, const at::Tensor& size_at_reference);
// The rest 1 - s of each number of a coefficient, whose shape broadcasts with that of the sizes.
at::Tensor RestOfContent(const MagnitudeWeights& weights, const at::Tensor& size, const at::Tensor& size_at_reference,
                         const at::Tensor& coefficient, const at::Tensor& at_reference);

struct Meeting {
  bool first_moves = false;  // whether the rows of the first factor are read
  bool second_moves = false;
  at::Tensor first;  // what the rows of the second factor meet
  at::Tensor second;
};
// For products of every kind. Where a share by magnitude is asked for, the content takes all.
Meeting Meet(const Policy& policy, const RuleOperand& first, const RuleOperand& second);
// For products element by element, which broadcast; what is met then has the shape of the product.
Meeting MeetByElement(const Policy& policy, const RuleOperand& first, const RuleOperand& second);

// Names of points, for factors that are not at hand as tensors: PointsOf chooses as Meet does.
enum class Point { kValue, kReference, kMiddle };
struct MeetingPoints {
  bool first_moves = false;
  bool second_moves = false;
  Point first = Point::kValue;
  Point second = Point::kValue;
  // Set where the factor that is met at its value is a coefficient that shares by magnitude. The points are those of
  // content first.
  const MagnitudeWeights* weights = nullptr;
};
// Only whether they are decomposed, and the marks of both operands are looked at.
MeetingPoints PointsOf(const Policy& policy, const RuleOperand& first, const RuleOperand& second);
at::Tensor At(const RuleOperand& operand, Point point);

// The opaque kind: nothing passes, the rows of the outputs are zero, and the bracket becomes leftover.
RuleResult Opaque(const RuleCall& call);

// The middle of the line, (value + reference) / 2, with the shared infinities of both kept.
at::Tensor Middle(const RuleOperand& operand);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_KINDS_H_
