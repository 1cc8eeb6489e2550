#include "core/run/role.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/program/view.h"
#include "core/rules/fused.h"

namespace addend {
namespace {

// Whether a call names its dimensions, x.sum("C"): rules read their numbers, which its parts have.
bool NamesDimensions(const c10::FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(), [](const c10::Argument& argument) {
    return argument.name() == "dim" && argument.type()->str().find("str") != std::string::npos;
  });
}

}  // namespace

Role::Role(const Registry& registry, const Operator& op) : full_name(FullName(op.schema())), traits(op.schema()) {
  const std::string name = RuleName(op.schema().name());
  flow = IdFlowOf(name);
  const bool apart = op.composite() && NamesDimensions(op.schema());
  if (!apart) rule = RuleOrFused(registry, name, full_name);
  // Treat one_hot as a whole: in its own steps a whole vector would depend on one id.
  const bool whole = !apart && (registry.Find(name, full_name) != nullptr || flow == IdFlow::kOneHot);
  if (!whole && !apart) rewrite = registry.FindRewrite(name, full_name);
  expands = !whole && rewrite == nullptr && op.composite();
  sizes_only = (rule != nullptr && rule->plain_output) || traits.Uninitialized();
}

bool Role::CarriesRows(size_t output) const {
  return rule == nullptr || rule->carried < 0 || static_cast<int>(output) < rule->carried;
}

IdFlow Role::StepFlow() const {
  return flow == IdFlow::kEnds && rule != nullptr && rule->kind == Kind::kPointwise ? IdFlow::kElementwise : flow;
}

const Role& Roles::Of(const Operator& op) {
  std::unique_ptr<const Role>& role = roles_[&op.schema()];
  if (role == nullptr) role = std::make_unique<const Role>(*registry_, op);
  return *role;
}

ValuesRead ValuesReadBy(const Rule* rule, const Call& call) {
  if (rule == nullptr) return {};
  return rule->Reads(static_cast<int>(std::count_if(call.operands.begin(), call.operands.end(), CarriesRows)));
}

CallArguments ArgumentsOf(const Call& call, std::vector<c10::IValue> arguments) {
  const c10::FunctionSchema& schema = call.op.schema();
  return {RuleName(schema.name()), schema.overload_name(), &schema, std::move(arguments)};
}

}  // namespace addend
