#include <ATen/TensorOperators.h>

#include "core/rules/cases/cases.h"

namespace addend {

// One case, one line, as far as it goes.
// clang-format off

void AddActivations(std::vector<Case>* cases) {
  const auto anywhere = [](Draw& d) -> Arguments { return {d.Moving({2, 5}, 2)}; };
  const auto positive = [](Draw& d) -> Arguments { return {d.MovingWithin({2, 5}, 0.2, 3)}; };
  for (const char* op : {"aten::gelu", "aten::tanh", "aten::sigmoid", "aten::silu", "aten::mish", "aten::softplus",
                         "aten::log_sigmoid", "aten::exp", "aten::expm1", "aten::erf", "aten::sin", "aten::cos",
                         "aten::atan", "aten::sinh", "aten::cosh", "aten::square", "aten::gelu_", "aten::tanh_"}) {
    cases->push_back({op, "", anywhere});
  }
  for (const char* op : {"aten::sqrt", "aten::rsqrt", "aten::reciprocal", "aten::log", "aten::log2", "aten::log10",
                         "aten::log1p"}) {
    cases->push_back({op, "", positive});
  }
  for (const char* op : {"aten::relu", "aten::relu_", "aten::relu6", "aten::leaky_relu", "aten::hardtanh",
                         "aten::hardsigmoid", "aten::hardswish", "aten::softshrink", "aten::abs", "aten::elu",
                         "aten::selu", "aten::celu"}) {
    cases->push_back({op, "", anywhere, kCorners});
  }
  const std::vector<Case> others = {
      {"aten::relu", "scalar", [](Draw& d) -> Arguments { return {d.Moving({})}; }, kCorners},
      {"aten::tanh", "empty", [](Draw& d) -> Arguments { return {d.Moving({0, 3})}; }},
      {"aten::gelu", "tanh", [](Draw& d) -> Arguments { return {d.Moving({7}, 2), std::string("tanh")}; }},
      {"aten::softplus", "beta", [](Draw& d) -> Arguments { return {d.Moving({7}), 3.0, 10.0}; }, kCorners},
      {"aten::elu", "scales", [](Draw& d) -> Arguments { return {d.Moving({9}), 2.0, 1.5, 0.5}; }, kCorners},
      {"aten::celu", "alpha", [](Draw& d) -> Arguments { return {d.Moving({9}), 0.5}; }, kCorners},
      {"aten::leaky_relu", "slope", [](Draw& d) -> Arguments { return {d.Moving({9}), 0.3}; }, kCorners},
      {"aten::threshold", "", [](Draw& d) -> Arguments { return {d.Moving({9}), 0.0, 0.0}; }, kCorners},
      {"aten::softshrink", "lambda", [](Draw& d) -> Arguments { return {d.Moving({9}), 0.7}; }, kCorners},
      {"aten::hardtanh", "limits", [](Draw& d) -> Arguments { return {d.Moving({9}), -0.2, 0.9}; }, kCorners},
      {"aten::pow.Tensor_Scalar", "square", [](Draw& d) -> Arguments { return {d.Moving({7}), 2}; }},
      {"aten::pow.Tensor_Scalar", "cube", [](Draw& d) -> Arguments { return {d.Moving({7}), 3.0}; }},
      {"aten::pow.Tensor_Scalar", "root", [](Draw& d) -> Arguments { return {d.MovingWithin({7}, 0.1, 2), 0.5}; }},
      {"aten::pow.Tensor_Scalar", "inverse", [](Draw& d) -> Arguments { return {d.MovingWithin({7}, 0.1, 2), -1.5}; }},
      {"aten::clamp", "", [](Draw& d) -> Arguments { return {d.Moving({9}), -0.5, 0.5}; }, kCorners},
      {"aten::clamp", "below", [](Draw& d) -> Arguments { return {d.Moving({9}), -0.5, kNone}; }, kCorners},
      {"aten::clamp", "above", [](Draw& d) -> Arguments { return {d.Moving({9}), kNone, 0.5}; }, kCorners},
      {"aten::clamp.Tensor", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 9}), d.Uniform({9}, -1, 0), d.Uniform({2, 1}, 0, 1)}; },
       kCorners},
      {"aten::clamp_min", "", [](Draw& d) -> Arguments { return {d.Moving({9}), -0.1}; }, kCorners},
      {"aten::clamp_max", "", [](Draw& d) -> Arguments { return {d.Moving({9}), 0.1}; }, kCorners},
  };
  cases->insert(cases->end(), others.begin(), others.end());
}

// clang-format on

}  // namespace addend
