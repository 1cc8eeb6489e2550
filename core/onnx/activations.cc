// Activations: functions of one number that networks put between their layers.
#include <ATen/ATen.h>

#include "core/onnx/context.h"
#include "core/onnx/families.h"

namespace addend::onnx {
namespace {

using at::Tensor;

Results Relu(const Context& context) { return at::relu(context.Tensor(0)); }

Results LeakyRelu(const Context& context) {
  return at::leaky_relu(context.Tensor(0), context.FloatAttribute("alpha", 0.01));
}

// The slope is aligned from the right; before version 7 it is one for each channel.
Results PRelu(const Context& context) {
  const Tensor x = context.Tensor(0);
  Tensor slope = context.Tensor(1);
  const auto number = context.Number(1);
  if (number && slope.dim() <= x.dim() && c10::isFloatingType(x.scalar_type())) return at::leaky_relu(x, *number);
  if (context.version() < 7 && slope.dim() == 1 && slope.numel() > 1 && x.dim() > 2) {
    std::vector<int64_t> sizes(static_cast<size_t>(x.dim() - 1), 1);
    sizes[0] = slope.numel();
    slope = at::reshape(slope, sizes);
  }
  // No condition on x: its components pass.
  return at::add(at::clamp_min(x, 0), at::mul(slope, at::clamp_max(x, 0)));
}

Results Elu(const Context& context) { return at::elu(context.Tensor(0), context.FloatAttribute("alpha", 1)); }

Results Celu(const Context& context) { return at::celu(context.Tensor(0), context.FloatAttribute("alpha", 1)); }

Results Selu(const Context& context) {
  const bool old = context.version() < 6;
  const double alpha = context.FloatAttribute("alpha", old ? 1.6732 : 1.67326319217681884765625);
  const double gamma = context.FloatAttribute("gamma", old ? 1.0507 : 1.05070102214813232421875);
  return at::elu(context.Tensor(0), alpha, gamma);
}

Results Gelu(const Context& context) {
  return at::gelu(context.Tensor(0), context.TextAttribute("approximate", "none"));
}

Results HardSigmoid(const Context& context) {
  const double alpha = context.FloatAttribute("alpha", 0.2);
  const double beta = context.FloatAttribute("beta", 0.5);
  return at::clamp(at::add(at::mul(context.Tensor(0), alpha), beta), 0, 1);
}

Tensor SwishOfFirst(const Context& context) {
  const Tensor x = context.Tensor(0);
  const double alpha = context.FloatAttribute("alpha", 1);
  return alpha == 1 ? at::silu(x) : at::mul(x, at::sigmoid(at::mul(x, alpha)));
}

Results Swish(const Context& context) { return SwishOfFirst(context); }

Results SwiGlu(const Context& context) {
  if (context.Tensor(0).sizes() != context.Tensor(1).sizes()) throw context.Invalid("the inputs are not of one size");
  return at::mul(SwishOfFirst(context), context.Tensor(1));
}

Results Softsign(const Context& context) {
  const Tensor x = context.Tensor(0);
  return at::div(x, at::add(at::abs(x), 1));
}

Results ThresholdedRelu(const Context& context) {
  return at::threshold(context.Tensor(0), context.FloatAttribute("alpha", 1), 0);
}

// Between -lambd and lambd zero, outside moved towards zero by the bias.
Results Shrink(const Context& context) {
  const double lambd = context.FloatAttribute("lambd", 0.5);
  const double bias = context.FloatAttribute("bias", 0);
  const Tensor x = context.Tensor(0);
  if (bias == lambd) return at::softshrink(x, lambd);
  const Tensor shrunk = at::hardshrink(x, lambd);
  return bias == 0 ? shrunk : at::sub(shrunk, at::mul(at::sign(shrunk), bias));
}

}  // namespace

void RegisterActivations(OperatorTable& table) {
  table.Add("Relu", 1, Relu).Attributes({"consumed_inputs"}).KeepsIntegers();
  table.Add("LeakyRelu", 1, LeakyRelu).Attributes({"alpha", "consumed_inputs"});
  table.Add("PRelu", 1, PRelu).Inputs(2).Attributes({"consumed_inputs"});
  table.Add("Elu", 1, Elu).Attributes({"alpha", "consumed_inputs"});
  table.Add("Celu", 12, Celu).Attributes({"alpha"});
  table.Add("Selu", 1, Selu).Attributes({"alpha", "gamma", "consumed_inputs"});
  table.Add("Gelu", 20, Gelu).Attributes({"approximate"});
  table.Add("HardSigmoid", 1, HardSigmoid).Attributes({"alpha", "beta", "consumed_inputs"});
  table.Add("HardSwish", 14, [](const Context& c) -> Results { return at::hardswish(c.Tensor(0)); });
  table.Add("Mish", 18, [](const Context& c) -> Results { return at::mish(c.Tensor(0)); });
  table.Add("Sigmoid", 1, [](const Context& c) -> Results { return at::sigmoid(c.Tensor(0)); })
      .Attributes({"consumed_inputs"});
  table.Add("Softplus", 1, [](const Context& c) -> Results { return at::softplus(c.Tensor(0)); });
  table.Add("Softsign", 1, Softsign);
  table.Add("Swish", 24, Swish).Attributes({"alpha"});
  table.Add("SwiGLU", 28, SwiGlu).Inputs(2).Attributes({"alpha"});
  table.Add("Tanh", 1, [](const Context& c) -> Results { return at::tanh(c.Tensor(0)); })
      .Attributes({"consumed_inputs"});
  table.Add("ThresholdedRelu", 10, ThresholdedRelu).Attributes({"alpha"});
  table.Add("Shrink", 9, Shrink).Attributes({"bias", "lambd"});
}

}  // namespace addend::onnx
