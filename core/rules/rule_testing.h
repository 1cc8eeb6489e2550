// Helpers for the tests of rules: random operands that depend on a seed only, calls described as the linearizer
// describes them, and numbers that judge a map.
#ifndef ADDEND_CORE_RULES_RULE_TESTING_H_
#define ADDEND_CORE_RULES_RULE_TESTING_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/policy.h"
#include "core/rules/registry.h"
#include "core/rules/rule.h"

namespace addend {

// An argument of an operator under test. A floating-point tensor whose `reference` differs from its `value` moves from
// the one to the other; everything else rests.
struct GivenArgument {
  template <typename T>
  GivenArgument(T both) : value(std::move(both)), reference(value) {}  // NOLINT(google-explicit-constructor): literals
  GivenArgument(c10::IValue at_value, c10::IValue at_reference)
      : value(std::move(at_value)), reference(std::move(at_reference)) {}
  c10::IValue value;
  c10::IValue reference;
};

using Sizes = std::vector<int64_t>;
const c10::IValue kNone;

// An argument that takes a list of tensors: moving and resting ones may be mixed.
GivenArgument ListOf(const std::vector<GivenArgument>& parts);
// An argument that takes a list of tensors some of which may be None, such as the indices of index.
c10::IValue OptionalListOf(const std::vector<c10::IValue>& parts);

// Draws operands. The numbers are the same on every machine and for every LibTorch, where the language says which draw
// comes first: in braces it does, but not among arguments in parentheses, nor among the operands of an operator.
class Draw {
 public:
  explicit Draw(at::ScalarType dtype, uint64_t seed = 1) : dtype_(dtype), engine_(seed) {}
  at::ScalarType dtype() const { return dtype_; }
  at::Tensor Normal(const Sizes& sizes, double scale = 1);
  at::Tensor Uniform(const Sizes& sizes, double low, double high);
  at::Tensor Complex(const Sizes& sizes, double scale = 1);  // normal real and imaginary parts of dtype()
  at::Tensor Integers(const Sizes& sizes, int64_t below);    // int64
  at::Tensor Booleans(const Sizes& sizes);
  // A tensor that moves, by default from one draw to another.
  GivenArgument Moving(const Sizes& sizes, double scale = 1);
  GivenArgument MovingWithin(const Sizes& sizes, double low, double high);
  GivenArgument MovingComplex(const Sizes& sizes, double scale = 1);

 private:
  double Unit();  // in (0, 1)
  at::ScalarType dtype_;
  std::mt19937_64 engine_;
};

// One call of an operator by name, "aten::add.Tensor" or "aten::relu_". Arguments that are left out take the defaults
// of the schema. Random operators draw the same numbers every time.
class OperatorCall {
 public:
  OperatorCall(const std::string& op, const std::vector<GivenArgument>& arguments);
  ~OperatorCall();

  // Number of tensors that move.
  int movable() const;
  // The call as the linearizer describes it. Of the tensors that move those are decomposed whose bit is set; the
  // others are plain, at their value. `policy` must outlive the result.
  RuleCall Describe(const Policy& policy, uint32_t decomposed = ~0u) const;
  // Variants of the call: with tensors of unusual strides, and with every reference at its value.
  OperatorCall Strided() const;
  OperatorCall AtRest() const;

 private:
  struct State;
  explicit OperatorCall(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

const Policy& Faithful();
const Policy& Fast();
const Policy& ByHalf();  // faithful, with every product by half

// The default rule for a call; throws where there is none.
const Rule& RuleOf(const RuleCall& call);
RuleResult BuildRule(const RuleCall& call);
// Whether this LibTorch has the operator ("aten::max.dim"): newer versions dropped some, such as symeig.
bool IsHere(const std::string& op);
// "aten::relu_" -> "aten::relu", "aten::add_.Tensor" -> ("aten::add", "aten::add.Tensor")
std::pair<std::string, std::string> RuleNames(const std::string& op);

// `count` random rows for each input of a rule.
Rows RandomRows(Draw& draw, const RuleCall& call, const RuleResult& rule, int64_t count);
// The moves of the inputs as one row.
Rows MoveRows(const RuleCall& call, const RuleResult& rule);
// A random cotangent for each floating-point output; undefined for others.
Rows RandomCotangents(Draw& draw, const RuleCall& call);
// Forward, with zeros where the rule has no map, and as many outputs as the call has: undefined for those without rows.
Rows Pass(const RuleCall& call, const RuleResult& rule, const Rows& rows, int64_t count);

// max |a - b| over the largest absolute value of both and `scale` (absolute where all are zero). NaN counts as
// infinite, and infinite elements must be the same.
double Difference(const at::Tensor& a, const at::Tensor& b, double scale = 0);
double Difference(const Rows& a, const Rows& b, double scale = 0);
// The real part of <a, b> = sum of conj(a) * b, and the sum of the absolute values of its terms.
std::pair<double, double> Inner(const Rows& a, const Rows& b);
// The largest element of value - reference - L(move) over all outputs, relative to the largest of the three terms and
// of the moves (an output may be zero because terms cancel). Elements where value and reference are the same infinity
// are left out: nothing can be missing there.
double RelativeBracket(const RuleCall& call, const RuleResult& rule);

// The gradient of <cotangents, outputs> by the inputs, averaged by autograd along the line from the references of all
// decomposed operands to their values: what the path rule's transpose must give, found without any rule. `smooth`:
// Gauss points of order 6 in `pieces` pieces, else as many midpoints as there are pieces.
Rows MeanGradient(const RuleCall& call, const std::vector<int>& inputs, const Rows& cotangents, int pieces,
                  bool smooth);

// A tensor carried through a chain of calls by their rules, one by one.
struct Tracked {
  at::Tensor value;
  at::Tensor reference;
  at::Tensor rows;             // undefined: plain
  uint32_t content_first = 0;  // as in RuleOperand
  uint32_t by_magnitude = 0;
};
// The first output of an operator whose arguments are tracked tensors or anything else.
struct TrackedArgument {
  template <typename T>
  TrackedArgument(T other) : fixed(std::move(other)) {}  // NOLINT(google-explicit-constructor): literals
  TrackedArgument(Tracked own) : tracked(std::move(own)), is_tracked(true) {}  // NOLINT(google-explicit-constructor)
  c10::IValue fixed;
  Tracked tracked;
  bool is_tracked = false;
};
Tracked Through(const std::string& op, const std::vector<TrackedArgument>& arguments,
                const Policy& policy = Faithful());

}  // namespace addend

#endif  // ADDEND_CORE_RULES_RULE_TESTING_H_
