// Rewrites: operators computed by other operators that have rules. They are used where LibTorch fuses what has closed
// forms part by part: recurrent cells, attention, normalizations.
//
// Note [Rewrites]
// A rewrite runs in place of the operator, with tracing on: the operators that it calls are recorded one by one, like
// the parts of a composite operator. Its results are compared with those of the operator itself, and then replaced by
// them bit for bit, in value and reference. So a rewrite cannot change a model, and a wrong one is an error; the
// rounding between both goes to the leftover. In-place and out= forms use the rewrite of the functional form.
#ifndef ADDEND_CORE_RULES_REWRITE_H_
#define ADDEND_CORE_RULES_REWRITE_H_

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/rules/call_arguments.h"
#include "core/rules/rule.h"

namespace addend {

// A call as a rewrite sees it: its tensors are arguments as any other.
struct RewriteCall : CallArguments {
  // Undefined where the argument is None.
  at::Tensor Tensor(std::string_view argument) const;
  // Tensors of a list; the missing ones of a list of optional tensors are undefined.
  std::vector<at::Tensor> Tensors(std::string_view argument) const;
};

// Returns the tensors among the operator's results, lists flattened, in their order. Undefined: the operator's own
// result is used, for results that are not floating-point or have no elements. Throws Unimplemented(sentence) for calls
// that it does not cover.
using RewriteFunction = std::function<std::vector<at::Tensor>(const RewriteCall&)>;

// See Note [Fused rewrites] in fused.h.
struct FusedRule {
  Rule rule;
  // Whether the rule covers a call. `moves`: by argument, whether a tensor of it is decomposed; the references of those
  // are finite.
  std::function<bool(const RewriteCall&, const std::vector<bool>& moves)> covers;
};

struct Rewrite {
  std::string name;  // "aten::group_norm", or "aten::lstm.input" for one overload
  RewriteFunction run = nullptr;
  // Arguments that the operator updates although its schema does not say so, such as running statistics. The model's
  // own run updates them; afterwards their elements count as unknown.
  std::vector<int> updates = {};
  // The rule that stands in for the rewrite, if there is one.
  std::optional<FusedRule> fused = {};
  Products products = Products::kNone;  // of the operator's own kernel; see Note [Reduced precision]
};

}  // namespace addend

#endif  // ADDEND_CORE_RULES_REWRITE_H_
