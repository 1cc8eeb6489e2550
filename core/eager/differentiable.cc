#include "core/eager/differentiable.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace addend {

const std::vector<std::string>& DifferentiableRules() {
  static const auto& names = *new std::vector<std::string>{
      "aten::_adaptive_avg_pool2d",
      "aten::_to_copy",
      "aten::abs",
      "aten::add",
      "aten::addcmul",
      "aten::addmm",
      "aten::avg_pool2d",
      "aten::baddbmm",
      "aten::batch_norm",
      "aten::bmm",
      "aten::cat",
      "aten::clamp",
      "aten::clamp_max",
      "aten::clamp_min",
      "aten::constant_pad_nd",
      "aten::convolution",
      "aten::cos",
      "aten::cumsum",
      "aten::div",
      "aten::dot",
      "aten::elu",
      "aten::erf",
      "aten::exp",
      "aten::expm1",
      "aten::flip",
      "aten::gather",
      "aten::gelu",
      "aten::hardsigmoid",
      "aten::hardswish",
      "aten::hardtanh",
      "aten::index_select",
      "aten::leaky_relu",
      "aten::linear",
      "aten::log",
      "aten::log1p",
      "aten::log_sigmoid",
      "aten::log_softmax",
      "aten::masked_fill",
      "aten::matmul",
      "aten::mean",
      "aten::mish",
      "aten::mm",
      "aten::mul",
      "aten::mv",
      "aten::neg",
      "aten::pow",
      "aten::reciprocal",
      "aten::relu",
      "aten::relu6",
      "aten::repeat",
      "aten::roll",
      "aten::rsqrt",
      "aten::rsub",
      "aten::selu",
      "aten::sigmoid",
      "aten::silu",
      "aten::sin",
      "aten::softmax",
      "aten::softplus",
      "aten::sqrt",
      "aten::square",
      "aten::stack",
      "aten::sub",
      "aten::sum",
      "aten::tanh",
      "aten::tril",
      "aten::triu",
      "aten::where",
  };
  return names;
}

void RequireDifferentiable(const TracedCalls& traced) {
  const std::vector<std::string>& names = DifferentiableRules();
  for (const Call& call : traced.calls) {
    const bool carries_rows =
        std::any_of(call.outputs.begin(), call.outputs.end(), [](const Operand& output) { return output.decomposed; });
    if (call.is_view || !carries_rows) continue;
    const bool writes =
        std::any_of(call.operands.begin(), call.operands.end(), [](const Operand& operand) { return operand.written; });
    if (writes) {
      throw Error(absl::StatusCode::kUnimplemented,
                  absl::StrCat("no gradient passes through ", FullName(call.op.schema()), ", which writes in place"),
                  call.position, "use the form that returns its result, or detach the composition");
    }
    if (std::find(names.begin(), names.end(), RuleName(call.op.schema().name())) != names.end()) continue;
    throw Error(absl::StatusCode::kUnimplemented,
                absl::StrCat("no gradient passes through the rule of ", FullName(call.op.schema())), call.position,
                "detach the composition");
  }
}

void RequireDifferentiable(const Policy& policy) {
  if (policy.nonlinearity != Nonlinearity::kPath || policy.bias != Bias::kResidual || !policy.overrides.empty()) {
    throw Unimplemented("gradients pass through compositions under nonlinearity=path and bias=residual only");
  }
}

}  // namespace addend
