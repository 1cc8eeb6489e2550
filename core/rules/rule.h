// Rules: a rule turns one call of an operator, known by values and references, into a linear map on rows.
//
// Note [Rows]
// Rows are stacked in front: a tensor of shape S has rows of shape [R, *S], one row for each component, then one for
// the leftover and one for the move (see Note [The move row] in forward_step.h). A rule never asks what a row stands
// for. Broadcasting happens behind the row axis (RightAlign), and every map folds the rows into a batch: one kernel for
// all rows, no loop over them.
#ifndef ADDEND_CORE_RULES_RULE_H_
#define ADDEND_CORE_RULES_RULE_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/policy.h"
#include "core/rules/call_arguments.h"
#include "core/rules/precision.h"

namespace addend {

enum class Kind {
  kStart,      // rows begin here: an input, or an embedding of labelled ids
  kLinear,     // the operator itself on every row
  kAffine,     // the operator without its constant on every row, the constant goes to the reference
  kPointwise,  // secant slope of an elementwise function
  kBilinear,   // products: see Note [Products] in kinds.h
  kSelection,  // shares of the line on which each candidate wins
  kOpaque,     // piecewise constant: nothing passes
  kRewrite,    // composed of covered operators in closed form
  kPath,       // quadrature along the line
  kAbsorbed,   // no rule: everything is leftover, by the caller's choice
};
std::string KindName(Kind kind);

using Rows = std::vector<at::Tensor>;

// A linear map from the rows of some operands of a call to the rows of its floating-point outputs. Const and
// thread-safe once built.
class LinearMap {
 public:
  virtual ~LinearMap() = default;
  // Maps rows: one tensor [R, *input sizes] for each input to one [R, *output sizes] for each output. R may be any
  // number. Rows have the dtype of their tensor: complex where it is complex.
  virtual Rows Forward(const Rows& rows) const = 0;
  // Transposes: one cotangent [*output sizes] for each output to one [*input sizes] for each input. With <a, b> = sum
  // of conj(a) * b it is the map for which Re <g, Forward(r)> = Re <Transpose(g), r>: gradients as in PyTorch, where a
  // product with c transposes to one with conj(c).
  virtual Rows Transpose(const Rows& cotangents) const = 0;
  // Transposes several cotangents at once: one tensor [R, *output sizes] for each output, at least one of them defined
  // (undefined: zero); returns [R, *input sizes]. The default transposes one after the other.
  virtual Rows TransposeRows(const Rows& cotangents) const;
  // The factor if the only output is input 0 times this tensor, of the same shape; else null. A sweep may then scale in
  // place.
  virtual const at::Tensor* Scale() const { return nullptr; }
  // True if the only output equals input 0, element by element: a sweep may share the rows.
  virtual bool Identity() const { return false; }
  // True if output = input 0 + AddTo's rest: a sweep may accumulate into the rows of an in-place operand.
  virtual bool Accumulates() const { return false; }
  // Adds the contribution of all inputs but the first to `target` [R, *output sizes]; only if Accumulates().
  virtual void AddTo(at::Tensor& target, const Rows& rows) const;
};

// A tensor argument of a call. Half types are given as float32.
struct RuleOperand {
  at::Tensor value;      // before the call
  at::Tensor reference;  // equal to value where the operand is plain
  bool decomposed = false;
  uint32_t marks = 0;          // bits of Freeze: where the operand comes from
  uint32_t content_first = 0;  // the same, of those kinds that are content_first; only where it is not frozen
  uint32_t by_magnitude = 0;   // those of these kinds that share by magnitude
  int argument = -1;           // position in the schema
  bool written = false;
  bool finite = false;  // value and reference were seen to be; false: not looked at
};

struct RuleOutput {
  at::Tensor value;
  at::Tensor reference;
  bool finite = false;  // the reference was seen to be; false: not looked at
};

// One call as a rule sees it: tensors among `arguments` are replaced by None, they are operands.
struct RuleCall : CallArguments {
  std::vector<RuleOperand> operands;
  std::vector<RuleOutput> outputs;  // every tensor output; those that are not floating-point carry no rows
  const Policy* policy = nullptr;
  // Calls the operator with these `arguments` on other operand values, out of place and untraced.
  std::function<std::vector<at::Tensor>(const std::vector<c10::IValue>& arguments,
                                        const std::vector<at::Tensor>& operands)>
      run;

  // Index of the (first) operand for an argument, or -1 where it is None or no tensor.
  int OperandAt(std::string_view argument) const;
  const RuleOperand* Find(std::string_view argument) const;
  const RuleOperand& Require(std::string_view argument) const;
  bool Decomposed(std::string_view argument) const;
  bool IsNone(std::string_view argument) const;

  // value - reference, zero where both are equal, also where both are the same infinity or NaN.
  at::Tensor Move(int operand) const;
};

// Makes the rows of the outputs from all rows of the inputs together: components, then leftover, then the move (see
// Note [The move row] in forward_step.h), which goes through as through the map.
using JointFunction = std::function<Rows(const Rows&)>;

struct RuleResult {
  Kind kind = Kind::kLinear;
  std::vector<int> inputs;               // operand indices whose rows the map reads, in its order
  std::shared_ptr<const LinearMap> map;  // null: the rows of every output are zero
  bool exact = true;                     // the bracket is zero up to rounding and is checked, not added
  double quadrature = 0;                 // relative error that a quadrature may leave; kPath only
  double inner_terms = 0;                // magnitude of terms that the operator cancels inside: exp(x) - 1 has 1
  at::Tensor unread_terms;               // in its place: the same on a device, a number of one element; infinite: 0
  // Set where the policy's choice is not linear in the components: used in place of the map, which is set as well and
  // says what it comes to for the move.
  JointFunction joint = nullptr;
  // The constant that the operator adds to its first output whatever its inputs are, for the policy's bias. Affine
  // kinds need not set it: there it is f(reference) - L(reference).
  at::Tensor constant;
  // Stand-ins by output, undefined or missing where none is needed: the reference of an output whose f(reference) is
  // not finite and which is linearized at the value. See Note [Stand-ins] in references.h.
  std::vector<at::Tensor> stand_ins;
};

using RuleFunction = std::function<RuleResult(const RuleCall&)>;

// Note [Provenance]
// Provenance says which operator made a tensor; Policy::freeze goes by it (see Freeze in core/base/policy.h). A result
// of softmax is "attention", one of sqrt or rsqrt (so of a norm, which ends in one) "normalizer", one of reciprocal, or
// of a plain numerator over it, "denominator". A result of sigmoid is "gate"; one of the functions that multiply
// their argument by a gate (silu, gelu) is "activation", which counts where it is a factor of something else, as in
// SwiGLU. Views have the mark of their storage; copies, rearrangements, masks, dropout, scaling and plain addends (a
// normalizer's epsilon, 1 - gate) keep the mark that all their decomposed operands share. Products, quotients and
// matrix products use a marked and frozen factor as a plain one.

// Returns what the arguments of a call say about the provenance of its result (bits of Freeze), beyond the operator's
// name. Tensors among the arguments are replaced by None; `decomposed`: by operand.
using MarkFunction = uint32_t (*)(const CallArguments& call, const std::vector<bool>& decomposed);

// Computes the results of a call that drew random numbers, with the same draws, on another operand 0. `drawn`: the
// call's results; those that no number depends on may be undefined tensors.
using EvaluateFunction = std::vector<at::Tensor> (*)(const CallArguments& call, const at::Tensor& operand,
                                                     const std::function<at::Tensor(size_t)>& drawn);

// The values that a rule's map is made of, beside plain operands: those of decomposed operands, and those of outputs. A
// run within a limit does not make the others again.
struct ValuesRead {
  bool operands = true;
  bool outputs = true;
};

// A sum with coefficients: of how many arguments, from the first on, and what each is multiplied by.
struct Addends {
  int count = 0;
  double (*coefficient)(const RuleCall& call, int argument) = nullptr;
};

// Role of an operator in attention that a model writes out; see Note [Written-out attention] in core/linearize.
enum class AttentionStep {
  kNone,
  kProduct,   // of queries with keys, or of weights with values
  kMultiply,  // scores by a number
  kDivide,
  kAdd,   // a mask of summands
  kHide,  // masked_fill(scores, mask, number)
  kShow,  // where(mask, scores, number)
  kSoftmax,
};

// Everything that is known of one operator. A line of a registration says what is special by name:
// Rule{"aten::mul", Kind::kBilinear, Multiply}.KeepsMarks().CoversComplex().
struct Rule {
  std::string name;  // "aten::relu", or "aten::max.dim" for one overload
  Kind kind = Kind::kLinear;
  RuleFunction build = nullptr;
  uint32_t mark = 0;               // provenance that the output gets (bits of Freeze), see Note [Provenance]
  MarkFunction mark_by = nullptr;  // more of it, where the arguments decide
  uint32_t second_mark = 0;        // the same of the second output
  bool keeps_marks = false;        // the output keeps the provenance that all decomposed operands share
  bool gates = false;              // the product of a gate with what it was computed from is a gate too
  bool plain_output = false;       // the result depends on sizes only: zeros_like and its kind
  bool complex = false;            // covers complex tensors too
  // Outputs that carry rows; those behind them are for the operator's own derivative only. -1: all of them.
  int carried = -1;
  // Called before the operator runs, with its arguments; throws if the call cannot be decomposed. May be empty.
  std::function<void(const CallArguments&)> precondition = nullptr;
  // The function may have a pole between a reference and a value that are both finite: 1 / x. Then the rule gives a
  // stand-in, and is asked before anything uses the reference. Kind::kPath need not say so.
  bool has_poles = false;
  Addends addends = {};        // of sums
  bool made_of_sizes = false;  // the map is made of sizes and plain operands only
  bool multiplies = false;     // the map of one decomposed operand is made of the others, not of the output
  AttentionStep in_attention = AttentionStep::kNone;
  Products products = Products::kNone;  // see Note [Reduced precision]
  EvaluateFunction evaluate = nullptr;  // of operators that draw random numbers and can do without drawing them again

  // The values that the map of a call with so many decomposed operands is made of. Values that a rule does not read are
  // described to it by sizes and dtypes, and are NaN.
  ValuesRead Reads(int decomposed) const;

  Rule&& Marks(uint32_t kinds) && { return mark = kinds, std::move(*this); }
  Rule&& MarksBy(MarkFunction function) && { return mark_by = function, std::move(*this); }
  Rule&& KeepsMarks() && { return keeps_marks = true, std::move(*this); }
  Rule&& Gates() && { return gates = true, std::move(*this); }
  Rule&& GivesSizesOnly() && { return plain_output = true, std::move(*this); }
  Rule&& CoversComplex() && { return complex = true, std::move(*this); }
  Rule&& Carries(int outputs) && { return carried = outputs, std::move(*this); }
  Rule&& Requires(std::function<void(const CallArguments&)> function) && {
    return precondition = std::move(function), std::move(*this);
  }
  Rule&& HasPoles() && { return has_poles = true, std::move(*this); }
  Rule&& Adds(int count, double (*coefficient)(const RuleCall& call, int argument)) && {
    return addends = {count, coefficient}, std::move(*this);
  }
  Rule&& MadeOfSizes() && { return made_of_sizes = true, std::move(*this); }
  Rule&& Multiplies() && { return multiplies = true, std::move(*this); }
  Rule&& By(Products kernels) && { return products = kernels, std::move(*this); }
  Rule&& InAttention(AttentionStep step) && { return in_attention = step, std::move(*this); }
  Rule&& EvaluatedBy(EvaluateFunction function) && { return evaluate = function, std::move(*this); }
};

// value - reference, zero where both are equal, also where both are the same infinity or NaN. `finite`: both are known
// to be.
at::Tensor MoveOf(const at::Tensor& value, const at::Tensor& reference, bool finite = false);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_RULE_H_
