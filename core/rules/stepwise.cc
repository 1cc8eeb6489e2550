// Functions that are flat between their steps: what they jump by belongs to no component and is left over. Those that
// run along an operand between the steps are in special.cc.
#include <ATen/TensorOperators.h>

#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

void RegisterFlat(Registry& registry, const char* name) { registry.Register({name, Kind::kOpaque, Opaque}); }

// 0 or 1, and `values` where the input is 0. Which it is, is taken from the value and holds for every row.
RuleResult Heaviside(const RuleCall& call) {
  const at::Tensor chosen = call.Require("self").value.eq(0).to(call.outputs[0].value.scalar_type());
  RuleResult result = Elementwise(call, Kind::kOpaque, {{call.OperandAt("values"), chosen}});
  result.exact = false;
  return result;
}

}  // namespace

void RegisterStepwise(Registry& registry) {
  RegisterFlat(registry, "aten::round");
  RegisterFlat(registry, "aten::floor");
  RegisterFlat(registry, "aten::ceil");
  RegisterFlat(registry, "aten::trunc");
  RegisterFlat(registry, "aten::sign");
  RegisterFlat(registry, "aten::sgn");
  RegisterFlat(registry, "aten::floor_divide");
  registry.Register({"aten::heaviside", Kind::kOpaque, Heaviside});
}

}  // namespace addend
