#include "core/linearize/payments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/rules/joint.h"

namespace addend {
namespace {

// The choice of a policy that makes a node look at all components together, as a user writes it.
std::string ChoiceOf(const Node& node, const Policy& policy) {
  const char* field = node.joint ? "nonlinearity" : "bias";
  for (const auto& [key, value] : DescribePolicy(policy)) {
    if (key == field) return absl::StrCat(key, "=", value);
  }
  return field;
}

}  // namespace

bool PaysByShare(const Node& node) {
  return node.constant.defined() && node.bias == Bias::kSignThreshold && !node.joint;
}

bool LooksAtAll(const Node& node) { return node.joint || (node.constant.defined() && !PaysByShare(node)); }

PaidByShare PaymentOf(const Node& node, const at::Tensor& sum) {
  const at::Tensor constant = node.constant.to(sum.scalar_type());
  const at::Tensor paid = ConstantShares(sum.unsqueeze(0), constant, node.bias, node.bias_parameter).select(0, 0);
  return {paid, QuotientOrZero(paid, sum)};
}

void RequireLinear(const Linearization& linearization, const std::string& cannot, const std::string& hint) {
  for (const Node& node : linearization.nodes) RequireLinear(linearization, node, cannot, hint);
}

void RequireLinear(const Linearization& linearization, const Node& node, const std::string& cannot,
                   const std::string& hint) {
  if (!LooksAtAll(node)) return;
  const Call& call = linearization.trace->calls[node.call];
  const std::string name = FullName(call.op.schema());
  const Policy own = linearization.policy.For(name, call.position.module_path);
  throw Error(absl::StatusCode::kFailedPrecondition,
              absl::StrCat(name, " under the policy ", ChoiceOf(node, own),
                           " looks at all components together: they cannot ", cannot),
              call.position, hint);
}

}  // namespace addend
