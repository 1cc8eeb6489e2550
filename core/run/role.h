// Role of an operator in tracing, looked up once for each schema.
#ifndef ADDEND_CORE_RUN_ROLE_H_
#define ADDEND_CORE_RUN_ROLE_H_

#include <ATen/core/function_schema.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/intercept/operator.h"
#include "core/program/operator_traits.h"
#include "core/program/traced_calls.h"
#include "core/rules/call_arguments.h"
#include "core/rules/id_flow.h"
#include "core/rules/registry.h"
#include "core/rules/rewrite.h"
#include "core/rules/rule.h"

namespace addend {

struct Role {
  Role(const Registry& registry, const Operator& op);

  // Whether the rule lets rows follow an output of floating-point or complex numbers.
  bool CarriesRows(size_t output) const;
  // How elements of a float result depend on those of float operands; see Note [Steps] in tracked_ids.h.
  IdFlow StepFlow() const;

  std::string full_name;
  OperatorTraits traits;
  // Its own, or the one that stands in for its rewrite; see Note [Fused rewrites] in core/rules/fused.h.
  const Rule* rule = nullptr;
  const Rewrite* rewrite = nullptr;  // null where it has a rule of its own
  bool expands = false;              // neither rule nor rewrite, and LibTorch defines it by other operators
  bool sizes_only = false;           // its results are made of sizes and dtypes: they are plain
  IdFlow flow = IdFlow::kEnds;
};

class Roles {
 public:
  // The registry must outlive the roles.
  explicit Roles(const Registry* registry) : registry_(registry) {}
  // Stays where it is.
  const Role& Of(const Operator& op);

 private:
  const Registry* registry_;
  absl::flat_hash_map<const c10::FunctionSchema*, std::unique_ptr<const Role>> roles_;
};

// The values that the node of a call is made of, as far as the rule tells; all of them without a rule.
ValuesRead ValuesReadBy(const Rule* rule, const Call& call);

// The arguments of a call as rules and rewrites read them. `arguments`: by schema position.
CallArguments ArgumentsOf(const Call& call, std::vector<c10::IValue> arguments);

}  // namespace addend

#endif  // ADDEND_CORE_RUN_ROLE_H_
