// The laws that every rule obeys, judged case by case. A new rule needs a line in Cases(): without one,
// EveryRuleHasACase fails.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>

#include "core/rules/rule_testing.h"

namespace addend {
namespace {

using Arguments = std::vector<Argument>;

struct Case {
  const char* op;
  const char* what;  // unique among the cases of the operator; may be empty
  std::function<Arguments(Draw&)> arguments;
  // The function has corners on the line, so that a quadrature of its derivative converges slowly.
  bool corners = false;
};

constexpr bool kCorners = true;

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
  for (const char* op : {"aten::round", "aten::floor", "aten::ceil", "aten::trunc", "aten::sign"}) {
    cases->push_back({op, "", anywhere});
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

void AddArithmetic(std::vector<Case>* cases) {
  // Every way in which two shapes meet.
  struct Shapes {
    const char* what;
    Sizes a, b;
  };
  const std::vector<Shapes> shapes = {
      {"equal", {2, 3}, {2, 3}},      {"b_lower_rank", {2, 4, 3}, {3}},     {"a_lower_rank", {3}, {2, 4, 3}},
      {"b_has_ones", {2, 3}, {2, 1}}, {"a_has_ones", {1, 3}, {4, 3}},       {"both_grow", {4, 1, 3}, {2, 1}},
      {"b_scalar", {2, 3}, {}},       {"a_scalar", {}, {2, 3}},             {"both_scalar", {}, {}},
      {"all_ones", {1, 1}, {1}},      {"one_and_more_ranks", {3}, {1, 3}},  {"no_elements", {0, 3}, {3}},
  };
  for (const Shapes& s : shapes) {
    for (const char* op : {"aten::add.Tensor", "aten::sub.Tensor", "aten::rsub.Tensor", "aten::mul.Tensor"}) {
      cases->push_back({op, s.what, [s](Draw& d) -> Arguments { return {d.Moving(s.a), d.Moving(s.b)}; }});
    }
    cases->push_back({"aten::div.Tensor", s.what, [s](Draw& d) -> Arguments {
                        return {d.Moving(s.a), d.MovingWithin(s.b, 0.5, 2)};
                      }});
  }
  const std::vector<Case> others = {
      {"aten::add.Tensor", "alpha", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({3}), 2.5}; }},
      {"aten::add.Tensor", "integers", [](Draw& d) -> Arguments { return {d.Moving({3}), d.Integers({2, 3}, 9)}; }},
      {"aten::add.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 1.5, 2}; }},
      {"aten::add_.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({3}), 0.5}; }},
      {"aten::sub.Tensor", "alpha", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({3}), -2.0}; }},
      {"aten::sub.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 1.5, 2}; }},
      {"aten::rsub.Tensor", "alpha", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({3}), 3}; }},
      {"aten::rsub.Scalar", "alpha", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 1.5, 2.0}; }},
      {"aten::mul.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), -1.5}; }},
      {"aten::mul.Tensor", "integers", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Integers({2, 3}, 9)}; }},
      {"aten::mul.Tensor", "booleans", [](Draw& d) -> Arguments { return {d.Booleans({2, 3}), d.Moving({3})}; }},
      {"aten::mul_.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({2, 1})}; }},
      {"aten::div.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 7.0}; }},
      {"aten::div.Tensor", "integers",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Integers({3}, 9) + 1}; }},
      {"aten::div.Tensor", "of_integers",
       [](Draw& d) -> Arguments { return {d.Integers({2, 3}, 9), d.MovingWithin({3}, 0.5, 2)}; }},
      {"aten::div.Tensor", "across_zero",
       [](Draw& d) -> Arguments {
         return {d.Moving({3}), Argument(d.Uniform({3}, 0.5, 2), d.Uniform({3}, -2, -0.5))};
       }},
      {"aten::div_.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.MovingWithin({1}, 1, 2)}; }},
      {"aten::neg", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::addcmul", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({3}), d.Moving({2, 1}), 0.7}; }},
      {"aten::addcmul", "grows", [](Draw& d) -> Arguments { return {d.Moving({}), d.Moving({2, 1}), d.Moving({3})}; }},
      {"aten::copy_", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({2, 3})}; }},
      {"aten::copy_", "grows", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({1})}; }},
      {"aten::fill_.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 1.5}; }},
      {"aten::fill_.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({})}; }},
      {"aten::zero_", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::where.self", "",
       [](Draw& d) -> Arguments { return {d.Booleans({2, 3}), d.Moving({2, 3}), d.Moving({2, 3})}; }},
      {"aten::where.self", "grows",
       [](Draw& d) -> Arguments { return {d.Booleans({4, 1, 3}), d.Moving({2, 1}), d.Moving({})}; }},
      {"aten::where.self", "condition_smaller",
       [](Draw& d) -> Arguments { return {d.Booleans({3}), d.Moving({2, 3}), d.Moving({1, 3})}; }},
      {"aten::where.ScalarOther", "", [](Draw& d) -> Arguments { return {d.Booleans({2, 3}), d.Moving({3}), 1.5}; }},
      {"aten::where.ScalarSelf", "", [](Draw& d) -> Arguments { return {d.Booleans({2, 3}), 1.5, d.Moving({3})}; }},
      {"aten::masked_fill.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Booleans({3}), -9.0}; }},
      {"aten::masked_fill.Scalar", "grows",
       [](Draw& d) -> Arguments { return {d.Moving({3}), d.Booleans({2, 3}), -9.0}; }},
      {"aten::masked_fill.Tensor", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Booleans({2, 1}), d.Moving({})}; }},
      {"aten::masked_fill_.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Booleans({3}), 4}; }},
  };
  cases->insert(cases->end(), others.begin(), others.end());
}

void AddProducts(std::vector<Case>* cases) {
  struct Shapes {
    const char* what;
    Sizes a, b;
  };
  const std::vector<Shapes> matmuls = {
      {"matrices", {3, 4}, {4, 2}},           {"dot", {4}, {4}},
      {"vector_matrix", {4}, {4, 2}},         {"matrix_vector", {3, 4}, {4}},
      {"batch_matrix", {2, 3, 4}, {4, 5}},    {"matrix_batch", {3, 4}, {2, 4, 5}},
      {"batches", {2, 3, 4}, {2, 4, 5}},      {"batch_vector", {2, 3, 4}, {4}},
      {"vector_batch", {4}, {2, 4, 5}},       {"broadcast", {2, 1, 3, 4}, {3, 4, 2}},
      {"both_grow", {2, 1, 3, 4}, {1, 3, 4, 2}}, {"a_lower_rank", {3, 2, 4}, {2, 3, 4, 2}},
      {"ones", {1, 1}, {1, 1}},               {"no_batch", {0, 3, 4}, {4, 2}},
  };
  for (const Shapes& s : matmuls) {
    cases->push_back({"aten::matmul", s.what, [s](Draw& d) -> Arguments { return {d.Moving(s.a), d.Moving(s.b)}; }});
  }
  const std::vector<Case> others = {
      {"aten::mm", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({4, 2})}; }},
      {"aten::bmm", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), d.Moving({2, 4, 5})}; }},
      {"aten::mv", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({4})}; }},
      {"aten::dot", "", [](Draw& d) -> Arguments { return {d.Moving({4}), d.Moving({4})}; }},
      {"aten::linear", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), d.Moving({5, 4}), d.Moving({5})}; }},
      {"aten::linear", "matrix",
       [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({5, 4}), d.Moving({5})}; }},
      {"aten::linear", "vector", [](Draw& d) -> Arguments { return {d.Moving({4}), d.Moving({5, 4}), d.Moving({5})}; }},
      {"aten::linear", "no_bias", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({5, 4}), kNone}; }},
      {"aten::linear", "rank4",
       [](Draw& d) -> Arguments { return {d.Moving({2, 1, 3, 4}), d.Moving({5, 4}), d.Moving({5})}; }},
      {"aten::addmm", "",
       [](Draw& d) -> Arguments { return {d.Moving({2}), d.Moving({3, 4}), d.Moving({4, 2}), 0.5, 2.0}; }},
      {"aten::addmm", "full",
       [](Draw& d) -> Arguments { return {d.Moving({3, 2}), d.Moving({3, 4}), d.Moving({4, 2})}; }},
      {"aten::addmm", "column",
       [](Draw& d) -> Arguments { return {d.Moving({3, 1}), d.Moving({3, 4}), d.Moving({4, 2}), 2, 3}; }},
      {"aten::addmm", "no_addend",
       [](Draw& d) -> Arguments { return {d.Moving({3, 2}), d.Moving({3, 4}), d.Moving({4, 2}), 0, 1}; }},
      {"aten::baddbmm", "",
       [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 5}), d.Moving({2, 3, 4}), d.Moving({2, 4, 5}), 0.5, 2.0};
       }},
      {"aten::baddbmm", "mask",
       [](Draw& d) -> Arguments { return {d.Moving({3, 5}), d.Moving({2, 3, 4}), d.Moving({2, 4, 5})}; }},
      {"aten::addmv", "",
       [](Draw& d) -> Arguments { return {d.Moving({3}), d.Moving({3, 4}), d.Moving({4}), 0.5, 2.0}; }},
  };
  cases->insert(cases->end(), others.begin(), others.end());
}

void AddWindows(std::vector<Case>* cases) {
  struct Window {
    const char* what;
    Sizes input, weight, stride, padding, dilation;
    bool transposed = false;
    Sizes output_padding = {0, 0};
    int64_t groups = 1;
  };
  const std::vector<Window> windows = {
      {"two", {2, 3, 5, 6}, {4, 3, 3, 2}, {1, 1}, {0, 0}, {1, 1}},
      {"padded", {2, 3, 5, 6}, {4, 3, 3, 3}, {2, 1}, {1, 2}, {1, 1}},
      {"dilated", {1, 2, 7, 7}, {3, 2, 3, 3}, {1, 2}, {2, 0}, {2, 3}},
      {"groups", {2, 4, 5, 5}, {6, 2, 3, 3}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 2},
      {"depthwise", {2, 3, 5, 5}, {3, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 3},
      {"one", {2, 3, 8}, {4, 3, 3}, {2}, {1}, {1}, false, {0}},
      {"three", {1, 2, 4, 4, 4}, {3, 2, 2, 2, 2}, {1, 1, 2}, {0, 1, 0}, {1, 1, 1}, false, {0, 0, 0}},
      {"transposed", {2, 3, 4, 4}, {3, 2, 3, 3}, {2, 2}, {1, 1}, {1, 1}, true, {1, 0}},
      {"transposed_groups", {2, 4, 4, 4}, {4, 1, 2, 2}, {1, 1}, {0, 0}, {1, 1}, true, {0, 0}, 2},
      {"no_batch", {0, 3, 5, 5}, {4, 3, 3, 3}, {1, 1}, {0, 0}, {1, 1}},
  };
  for (const Window& w : windows) {
    const int64_t outputs = w.transposed ? w.weight[1] * w.groups : w.weight[0];
    cases->push_back({"aten::convolution", w.what, [w, outputs](Draw& d) -> Arguments {
                        return {d.Moving(w.input), d.Normal(w.weight), d.Normal({outputs}), w.stride, w.padding,
                                w.dilation,        w.transposed,       w.output_padding,    w.groups};
                      }});
  }
  cases->push_back({"aten::_convolution", "", [](Draw& d) -> Arguments {
                      return {d.Moving({2, 3, 5, 5}), d.Normal({4, 3, 3, 3}), kNone, Sizes{1, 1}, Sizes{1, 1},
                              Sizes{1, 1}, false, Sizes{0, 0}, int64_t{1}, false, false, true, true};
                    }});

  struct Pool {
    const char* what;
    Sizes input, size, stride, padding, dilation;
    bool ceil = false;
  };
  const std::vector<Pool> pools = {
      {"plain", {2, 3, 4, 6}, {2, 2}, {}, {0, 0}, {1, 1}},
      {"one_number", {1, 2, 6, 6}, {3}, {}, {0}, {1}},
      {"overlapping", {2, 1, 5, 5}, {3, 2}, {1, 2}, {1, 0}, {1, 1}},
      {"dilated", {1, 2, 7, 7}, {2, 3}, {2, 1}, {1, 1}, {3, 2}},
      {"ceil", {1, 2, 5, 6}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, true},
      {"ceil_padded", {1, 1, 6, 7}, {3, 3}, {2, 3}, {1, 1}, {1, 1}, true},
      {"ceil_drops_window", {1, 1, 4, 5}, {2, 2}, {3, 3}, {1, 1}, {1, 1}, true},
      {"one_image", {2, 5, 5}, {2, 2}, {}, {0, 0}, {1, 1}},
      {"global", {2, 2, 3, 3}, {3, 3}, {}, {0, 0}, {1, 1}},
  };
  for (const Pool& p : pools) {
    cases->push_back({"aten::max_pool2d_with_indices", p.what,
                      [p](Draw& d) -> Arguments {
                        return {d.Moving(p.input), p.size, p.stride, p.padding, p.dilation, p.ceil};
                      },
                      kCorners});
  }
  const std::vector<Case> others = {
      {"aten::avg_pool2d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4, 6}), Sizes{2, 2}}; }},
      {"aten::avg_pool2d", "padded",
       [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 5, 6}), Sizes{3, 2}, Sizes{2, 1}, Sizes{1, 1}, true, false};
       }},
      {"aten::avg_pool2d", "divisor",
       [](Draw& d) -> Arguments {
         return {d.Moving({2, 5, 6}), Sizes{3}, Sizes{2}, Sizes{1}, false, true, int64_t{5}};
       }},
      {"aten::_adaptive_avg_pool2d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 5, 7}), Sizes{2, 3}}; }},
      {"aten::_adaptive_avg_pool2d", "global",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3, 5, 7}), Sizes{1, 1}}; }},
  };
  cases->insert(cases->end(), others.begin(), others.end());
}

void AddNormalizations(std::vector<Case>* cases) {
  const std::vector<Case> own = {
      {"aten::layer_norm", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3, 8}), Sizes{8}, d.Normal({8}), d.Normal({8})}; }},
      {"aten::layer_norm", "two_dims",
       [](Draw& d) -> Arguments { return {d.Moving({3, 2, 4}), Sizes{2, 4}, d.Normal({2, 4}), kNone, 1e-3}; }},
      {"aten::layer_norm", "no_weight", [](Draw& d) -> Arguments { return {d.Moving({5}), Sizes{5}}; }},
      {"aten::layer_norm", "no_rows", [](Draw& d) -> Arguments { return {d.Moving({0, 5}), Sizes{5}}; }},
      {"aten::native_layer_norm", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3, 8}), Sizes{8}, d.Normal({8}), d.Normal({8}), 1e-5}; }},
      {"aten::group_norm", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 6, 4}), int64_t{3}, d.Normal({6}), d.Normal({6})}; }},
      {"aten::group_norm", "images",
       [](Draw& d) -> Arguments { return {d.Moving({2, 4, 3, 3}), int64_t{2}, d.Normal({4}), d.Normal({4}), 1e-2}; }},
      {"aten::group_norm", "no_weight", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), int64_t{1}}; }},
      {"aten::batch_norm", "",
       [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 4}), d.Normal({3}), d.Normal({3}), d.Normal({3}), d.Uniform({3}, 0.5, 2),
                 false, 0.1, 1e-3, false};
       }},
      {"aten::batch_norm", "matrix",
       [](Draw& d) -> Arguments {
         return {d.Moving({5, 3}), kNone, kNone, d.Normal({3}), d.Uniform({3}, 0.5, 2), false, 0.1, 1e-5, false};
       }},
      {"aten::native_batch_norm", "",
       [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 2, 2}), d.Normal({3}), d.Normal({3}), d.Normal({3}), d.Uniform({3}, 0.5, 2),
                 false, 0.1, 1e-5};
       }},
  };
  cases->insert(cases->end(), own.begin(), own.end());
}

void AddReductions(std::vector<Case>* cases) {
  const std::vector<Case> own = {
      {"aten::sum", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4})}; }},
      {"aten::sum", "scalar", [](Draw& d) -> Arguments { return {d.Moving({})}; }},
      {"aten::sum.dim_IntList", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), Sizes{1}}; }},
      {"aten::sum.dim_IntList", "keep", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), Sizes{-1, 0}, true}; }},
      {"aten::sum.dim_IntList", "unordered", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), Sizes{2, 0}}; }},
      {"aten::sum.dim_IntList", "all", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), kNone, true}; }},
      {"aten::sum.dim_IntList", "empty", [](Draw& d) -> Arguments { return {d.Moving({2, 0, 3}), Sizes{1}}; }},
      {"aten::sum.dim_IntList", "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), Sizes{-1}}; }},
      {"aten::mean", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4})}; }},
      {"aten::mean.dim", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), Sizes{-2}}; }},
      {"aten::mean.dim", "keep", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), Sizes{2, 0}, true}; }},
      {"aten::mean.dim", "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), Sizes{0}}; }},
      {"aten::cumsum", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), int64_t{1}}; }},
      {"aten::cumsum", "last", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), int64_t{-1}}; }},
      {"aten::cumsum", "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), int64_t{0}}; }},
      {"aten::max", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4})}; }, kCorners},
      {"aten::max", "scalar", [](Draw& d) -> Arguments { return {d.Moving({})}; }, kCorners},
      {"aten::max.dim", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4, 2}), int64_t{1}}; }, kCorners},
      {"aten::max.dim", "keep", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), int64_t{-1}, true}; }, kCorners},
      {"aten::max.dim", "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), int64_t{-1}}; }, kCorners},
      {"aten::min", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4})}; }, kCorners},
      {"aten::min.dim", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), int64_t{0}}; }, kCorners},
      {"aten::amax", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4, 2}), Sizes{0, 2}}; }, kCorners},
      {"aten::amax", "all", [](Draw& d) -> Arguments { return {d.Moving({3, 4})}; }, kCorners},
      {"aten::amin", "keep", [](Draw& d) -> Arguments { return {d.Moving({3, 4, 2}), Sizes{-1, 0}, true}; }, kCorners},
  };
  cases->insert(cases->end(), own.begin(), own.end());
}

void AddIndexing(std::vector<Case>* cases) {
  const auto list = [](std::vector<c10::IValue> parts) { return OptionalListOf(parts); };
  const std::vector<Case> own = {
      {"aten::gather", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), int64_t{1}, d.Integers({2, 5, 3}, 3)}; }},
      {"aten::gather", "last",
       [](Draw& d) -> Arguments { return {d.Moving({2, 4}), int64_t{-1}, d.Integers({1, 6}, 4)}; }},
      {"aten::index_select", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), int64_t{-2}, d.Integers({5}, 3)}; }},
      {"aten::index_select", "first",
       [](Draw& d) -> Arguments { return {d.Moving({4}), int64_t{0}, d.Integers({2}, 4)}; }},
      {"aten::index.Tensor", "first",
       [=](Draw& d) -> Arguments { return {d.Moving({4, 3, 2}), list({d.Integers({2, 5}, 4)})}; }},
      {"aten::index.Tensor", "middle",
       [=](Draw& d) -> Arguments { return {d.Moving({4, 3, 2}), list({kNone, d.Integers({5}, 3)})}; }},
      {"aten::index.Tensor", "adjacent",
       [=](Draw& d) -> Arguments {
         return {d.Moving({4, 3, 2}), list({kNone, d.Integers({5}, 3), d.Integers({2, 1}, 2)})};
       }},
      {"aten::index.Tensor", "apart",
       [=](Draw& d) -> Arguments {
         return {d.Moving({4, 3, 2}), list({d.Integers({5}, 4), kNone, d.Integers({2, 1}, 2)})};
       }},
      {"aten::index.Tensor", "apart_in_the_middle",
       [=](Draw& d) -> Arguments {
         return {d.Moving({2, 4, 3, 2}), list({kNone, d.Integers({5}, 4), kNone, d.Integers({5}, 2)})};
       }},
      {"aten::index.Tensor", "mask",
       [=](Draw& d) -> Arguments { return {d.Moving({4, 3, 2}), list({d.Booleans({4, 3})})}; }},
      {"aten::index.Tensor", "mask_apart",
       [=](Draw& d) -> Arguments {
         const at::Tensor mask = d.Booleans({2, 3});
         mask.fill_(false).select(0, 1).fill_(true);
         return {d.Moving({2, 3, 4, 2}), list({mask, kNone, d.Integers({3}, 2)})};
       }},
      {"aten::index.Tensor", "one_number",
       [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), list({kNone, d.Integers({}, 3)})}; }},
      {"aten::index.Tensor", "nothing",
       [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), list({d.Integers({0}, 4)})}; }},
      {"aten::embedding", "", [](Draw& d) -> Arguments { return {d.Moving({6, 3}), d.Integers({2, 4}, 6)}; }},
      {"aten::embedding", "one", [](Draw& d) -> Arguments { return {d.Moving({6, 3}), d.Integers({}, 6)}; }},
  };
  cases->insert(cases->end(), own.begin(), own.end());
}

void AddShapes(std::vector<Case>* cases) {
  const std::vector<Case> own = {
      {"aten::clone", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::_to_copy", "same", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::_to_copy", "double",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3}), static_cast<int64_t>(at::kDouble)}; }},
      {"aten::_to_copy", "float",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3}), static_cast<int64_t>(at::kFloat)}; }},
      {"aten::_unsafe_view", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), Sizes{2, 3}}; }},
      {"aten::_unsafe_view", "reshaped", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), Sizes{6}}; }},
      {"aten::cat", "", [](Draw& d) -> Arguments { return {ListOf({d.Moving({2, 3}), d.Moving({1, 3})})}; }},
      {"aten::cat", "with_plain",
       [](Draw& d) -> Arguments {
         return {ListOf({d.Normal({2, 1}), d.Moving({2, 3}), d.Normal({2, 2}), d.Moving({2, 2})}), int64_t{-1}};
       }},
      {"aten::cat", "with_empty",
       [](Draw& d) -> Arguments { return {ListOf({d.Normal({0}), d.Moving({2, 3}), d.Moving({2, 3})}), int64_t{1}}; }},
      {"aten::stack", "", [](Draw& d) -> Arguments { return {ListOf({d.Moving({2, 3}), d.Moving({2, 3})})}; }},
      {"aten::stack", "last",
       [](Draw& d) -> Arguments { return {ListOf({d.Moving({2, 3}), d.Normal({2, 3})}), int64_t{-1}}; }},
      {"aten::stack", "middle",
       [](Draw& d) -> Arguments { return {ListOf({d.Moving({2, 3}), d.Moving({2, 3})}), int64_t{1}}; }},
      {"aten::stack", "scalars",
       [](Draw& d) -> Arguments { return {ListOf({d.Moving({}), d.Normal({}), d.Moving({})})}; }},
      {"aten::repeat", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), Sizes{2, 2}}; }},
      {"aten::repeat", "more_dims", [](Draw& d) -> Arguments { return {d.Moving({3}), Sizes{2, 1, 2}}; }},
      {"aten::repeat", "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), Sizes{3}}; }},
      {"aten::flip", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), Sizes{0, -1}}; }},
      {"aten::roll", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), Sizes{1, -2}, Sizes{0, 2}}; }},
      {"aten::roll", "flat", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), Sizes{5}}; }},
      {"aten::constant_pad_nd", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), Sizes{1, 2, 0, 1}, 1.5}; }},
      {"aten::constant_pad_nd", "crops", [](Draw& d) -> Arguments { return {d.Moving({2, 4}), Sizes{-1, 2}}; }},
      {"aten::triu", "", [](Draw& d) -> Arguments { return {d.Moving({2, 4, 3}), int64_t{1}}; }},
      {"aten::tril", "", [](Draw& d) -> Arguments { return {d.Moving({4, 4}), int64_t{-1}}; }},
      {"aten::native_dropout", "train", [](Draw& d) -> Arguments { return {d.Moving({20}), 0.4, true}; }},
      {"aten::native_dropout", "drops_all", [](Draw& d) -> Arguments { return {d.Moving({20}), 1.0, true}; }},
      {"aten::native_dropout", "eval", [](Draw& d) -> Arguments { return {d.Moving({20}), 0.4, false}; }},
  };
  cases->insert(cases->end(), own.begin(), own.end());
}

void AddAttention(std::vector<Case>* cases) {
  const auto masked = [](Draw& d, const Sizes& sizes) -> Argument {
    const at::Tensor value = d.Normal(sizes, 2);
    const at::Tensor reference = d.Normal(sizes, 2);
    const double never = -std::numeric_limits<double>::infinity();
    const at::Tensor mask = value.gt(0.8).logical_and(value.lt(value.amax(-1, true)));
    return {value.masked_fill(mask, never), reference.masked_fill(mask, never)};
  };
  // Moves of very different lengths beside each other, so that many node counts occur in one call.
  const auto wide = [](Draw& d, const Sizes& sizes) -> Argument {
    const at::Tensor scale = d.Uniform(Sizes(sizes.begin(), sizes.end() - 1), -3, 2).unsqueeze(-1).exp();
    return {d.Normal(sizes) * scale, d.Normal(sizes) * scale};
  };
  for (const char* op : {"aten::softmax.int", "aten::log_softmax.int", "aten::_softmax", "aten::_log_softmax"}) {
    const c10::IValue last = std::string(op).find('_', 6) == 6 ? c10::IValue(false) : c10::IValue();
    cases->push_back({op, "", [=](Draw& d) -> Arguments { return {d.Moving({3, 5}), int64_t{-1}, last}; }});
    cases->push_back({op, "first_dim", [=](Draw& d) -> Arguments { return {d.Moving({4, 3, 2}), int64_t{0}, last}; }});
    cases->push_back({op, "middle_dim",
                      [=](Draw& d) -> Arguments { return {d.Moving({2, 6, 3}, 2), int64_t{1}, last}; }});
    cases->push_back({op, "ranges", [=](Draw& d) -> Arguments { return {wide(d, {40, 4}), int64_t{1}, last}; }});
    cases->push_back({op, "one_candidate", [=](Draw& d) -> Arguments { return {d.Moving({3, 1}), int64_t{1}, last}; }});
    cases->push_back({op, "scalar", [=](Draw& d) -> Arguments { return {d.Moving({}), int64_t{0}, last}; }});
    cases->push_back({op, "masked", [=](Draw& d) -> Arguments { return {masked(d, {4, 6}), int64_t{-1}, last}; }});
    cases->push_back({op, "no_rows", [=](Draw& d) -> Arguments { return {d.Moving({0, 6}), int64_t{-1}, last}; }});
  }
}

// clang-format on

const std::vector<Case>& Cases() {
  static const auto& cases = *[] {
    auto* all = new std::vector<Case>;
    AddActivations(all);
    AddArithmetic(all);
    AddProducts(all);
    AddWindows(all);
    AddNormalizations(all);
    AddReductions(all);
    AddIndexing(all);
    AddShapes(all);
    AddAttention(all);
    return all;
  }();
  return cases;
}

TEST(CasesTest, EveryRuleHasACase) {
  std::set<const Rule*> covered;
  for (const Case& c : Cases()) {
    const auto names = RuleNames(c.op);
    const Rule* rule = Registry::Default().Find(names.first, names.second);
    EXPECT_NE(rule, nullptr) << c.op;
    covered.insert(rule);
  }
  for (const Rule* rule : Registry::Default().All()) {
    // Results that depend on sizes only carry no rows, so that there is nothing to judge.
    if (rule->plain_output) continue;
    EXPECT_EQ(covered.count(rule), 1u) << rule->name << " has no case: add one to Cases() in this file";
  }
}

TEST(CasesTest, PlainOutputsPassNothing) {
  int found = 0;
  for (const Rule* rule : Registry::Default().All()) {
    if (!rule->plain_output) continue;
    ++found;
    const RuleResult result = rule->build(RuleCall());
    EXPECT_EQ(result.map, nullptr) << rule->name;
    EXPECT_TRUE(result.inputs.empty()) << rule->name;
  }
  EXPECT_GT(found, 0);
}

// ---------------------------------------------------------------------------------------------------------- the laws

// What rounding leaves of a relation that holds exactly: the sums here have some hundred terms at most. float32 loses
// up to eps / 2e-3 = 6e-5 of a slope to cancellation just above the move at which the derivative replaces the secant,
// but that is a part of the move, not of the value.
double Rounding(const RuleCall& call) {
  bool single = false;
  for (const RuleOperand& operand : call.operands)
    single |= operand.decomposed && operand.value.scalar_type() == at::kFloat;
  for (const RuleOutput& output : call.outputs) single |= output.value.scalar_type() == at::kFloat;
  return single ? 2e-5 : 1e-10;
}

using Parameter = std::tuple<size_t, at::ScalarType>;

std::string NameOf(const testing::TestParamInfo<Parameter>& info) {
  const Case& c = Cases()[std::get<0>(info.param)];
  std::string name = std::string(c.op).substr(6) + (c.what[0] == '\0' ? "" : "_") + c.what;
  for (char& letter : name) letter = letter == '.' ? '_' : letter;
  return name + (std::get<1>(info.param) == at::kDouble ? "_f64" : "_f32");
}

class LawTest : public testing::TestWithParam<Parameter> {
 protected:
  const Case& TheCase() const { return Cases()[std::get<0>(GetParam())]; }
  OperatorCall Call() const {
    Draw draw(std::get<1>(GetParam()), 1000 + std::get<0>(GetParam()));
    return OperatorCall(TheCase().op, TheCase().arguments(draw));
  }
  Draw Drawer() const { return Draw(std::get<1>(GetParam()), 7); }

  // Difference between what rows and cotangents of size one give.
  template <typename T>
  static double Apart(const T& a, const T& b) {
    return Difference(a, b, 1);
  }

  // What autograd can judge: it knows the statistics of a norm as numbers only, and it differentiates outputs that stay
  // infinite, through which rules pass nothing.
  static Rows Judged(const RuleCall& call, Rows cotangents) {
    for (size_t k = 1; k < cotangents.size(); ++k) cotangents[k] = at::Tensor();
    const RuleOutput& output = call.outputs[0];
    cotangents[0].masked_fill_(output.value.isinf().logical_and(output.value.eq(output.reference)), 0);
    return cotangents;
  }

  // For every choice of operands that are decomposed and both presets.
  void ForEach(const OperatorCall& op, const std::function<void(const RuleCall&, const RuleResult&)>& judge,
               bool faithful_only = false) const {
    ASSERT_GT(op.movable(), 0);
    for (uint32_t decomposed = 1; decomposed < (1u << op.movable()); ++decomposed) {
      for (const Policy* policy : {&Faithful(), &Fast()}) {
        if (faithful_only && policy == &Fast()) continue;
        SCOPED_TRACE(testing::Message() << "decomposed operands " << decomposed << ", preset "
                                        << PresetName(policy->preset));
        const RuleCall call = op.Describe(*policy, decomposed);
        judge(call, BuildRule(call));
      }
    }
  }
};

TEST_P(LawTest, RowsMoveLinearlyAndAlone) {
  ForEach(Call(), [&](const RuleCall& call, const RuleResult& rule) {
    for (const int input : rule.inputs) EXPECT_TRUE(call.operands[input].decomposed);
    if (!rule.map) return;
    Draw draw = Drawer();
    const int64_t count = 5;
    const Rows r = RandomRows(draw, call, rule, count);
    const Rows s = RandomRows(draw, call, rule, count);
    Rows mixed;
    Rows untouched;
    Rows transposed_strides;
    for (size_t k = 0; k < r.size(); ++k) {
      mixed.push_back(2.5 * r[k] - 0.75 * s[k]);
      untouched.push_back(r[k].clone());
      transposed_strides.push_back(r[k].transpose(0, -1).contiguous().transpose(0, -1));
    }
    const Rows of_r = rule.map->Forward(r);
    const Rows of_s = rule.map->Forward(s);
    ASSERT_GE(of_r.size(), 1u);
    ASSERT_LE(of_r.size(), call.outputs.size());
    for (size_t k = 0; k < r.size(); ++k) EXPECT_TRUE(r[k].equal(untouched[k])) << "Forward writes into its rows";
    Rows sum;
    for (size_t k = 0; k < of_r.size(); ++k) {
      Sizes sizes(call.outputs[k].value.sizes().begin(), call.outputs[k].value.sizes().end());
      sizes.insert(sizes.begin(), count);
      EXPECT_EQ(of_r[k].sizes(), at::IntArrayRef(sizes));
      sum.push_back(2.5 * of_r[k] - 0.75 * of_s[k]);
    }
    EXPECT_LE(Apart(rule.map->Forward(mixed), sum), Rounding(call));
    EXPECT_LE(Apart(rule.map->Forward(transposed_strides), of_r), Rounding(call)) << "rows of unusual strides";
    for (const int64_t i : {int64_t{0}, count - 1}) {
      Rows one;
      for (const at::Tensor& rows : r) one.push_back(rows.narrow(0, i, 1));
      const Rows of_one = rule.map->Forward(one);
      ASSERT_EQ(of_one.size(), of_r.size());
      for (size_t k = 0; k < of_r.size(); ++k) {
        EXPECT_LE(Apart(of_one[k], of_r[k].narrow(0, i, 1)), Rounding(call)) << "row " << i << " alone";
      }
    }
  });
}

TEST_P(LawTest, TransposeIsTheAdjoint) {
  ForEach(Call(), [&](const RuleCall& call, const RuleResult& rule) {
    if (!rule.map) return;
    Draw draw = Drawer();
    const Rows rows = RandomRows(draw, call, rule, 1);
    Rows cotangents = RandomCotangents(draw, call);
    const Rows forward = Pass(call, rule, rows, 1);
    const Rows back = rule.map->Transpose(cotangents);
    ASSERT_EQ(back.size(), rule.inputs.size());
    for (size_t k = 0; k < back.size(); ++k) {
      EXPECT_EQ(back[k].sizes(), call.operands[rule.inputs[k]].value.sizes());
    }
    Rows flat;
    for (const at::Tensor& output : forward) flat.push_back(output.defined() ? output.select(0, 0) : output);
    Rows row;
    for (const at::Tensor& input : rows) row.push_back(input.select(0, 0));
    const auto left = Inner(cotangents, flat);
    const auto right = Inner(back, row);
    EXPECT_LE(std::abs(left.first - right.first), Rounding(call) * (1 + left.second + right.second));
    // Cotangents of other strides, as they come out of views.
    for (at::Tensor& g : cotangents) {
      if (g.defined() && g.dim() > 1) g = g.transpose(0, -1).contiguous().transpose(0, -1);
    }
    EXPECT_LE(Apart(rule.map->Transpose(cotangents), back), Rounding(call)) << "cotangents of unusual strides";
  });
}

TEST_P(LawTest, NothingIsLeftOver) {
  ForEach(
      Call(),
      [&](const RuleCall& call, const RuleResult& rule) {
        if (rule.kind == Kind::kOpaque) {
          EXPECT_FALSE(rule.exact);
          return;
        }
        EXPECT_EQ(rule.exact, rule.kind != Kind::kPath);
        EXPECT_EQ(rule.quadrature > 0, rule.kind == Kind::kPath);
        EXPECT_LE(RelativeBracket(call, rule), Rounding(call) + 4 * rule.quadrature);
      },
      /*faithful_only=*/true);
}

// Where a rule still claims an empty bracket under the preset fast, it is empty.
TEST_P(LawTest, FastClaimsNothingFalse) {
  ForEach(Call(), [&](const RuleCall& call, const RuleResult& rule) {
    size_t decomposed = 0;
    for (const RuleOperand& operand : call.operands) decomposed += operand.decomposed;
    if (rule.exact && rule.inputs.size() == decomposed) {
      EXPECT_LE(RelativeBracket(call, rule), Rounding(call));
    }
  });
}

TEST_P(LawTest, ShortcutsAgreeWithForward) {
  ForEach(Call(), [&](const RuleCall& call, const RuleResult& rule) {
    if (!rule.map) return;
    Draw draw = Drawer();
    const Rows rows = RandomRows(draw, call, rule, 3);
    const at::Tensor forward = rule.map->Forward(rows)[0];
    if (rule.map->Scale() != nullptr) {
      EXPECT_EQ(rows.size(), 1u);
      EXPECT_EQ(
          call.outputs.size() > 1 && call.outputs[1].value.is_floating_point() && call.outputs[1].value.numel() > 0,
          false);
      EXPECT_LE(Apart(rows[0] * *rule.map->Scale(), forward), Rounding(call));
    }
    if (rule.map->Identity()) {
      EXPECT_EQ(rows.size(), 1u);
      EXPECT_EQ(Difference(rows[0], forward), 0);
    }
    if (rule.map->Accumulates()) {
      at::Tensor target = rows[0].clone();
      Rows rest = rows;
      rest[0] = at::Tensor();  // a sweep does not give the rows that it writes
      rule.map->AddTo(target, rest);
      EXPECT_LE(Apart(target, forward), Rounding(call));
    }
  });
}

// Linear and affine rules are the operator itself without its constant, applied to one row after the other.
TEST_P(LawTest, LinearKindsAreTheOperatorRowByRow) {
  ForEach(Call(), [&](const RuleCall& call, const RuleResult& rule) {
    if (rule.kind != Kind::kLinear && rule.kind != Kind::kAffine) return;
    Draw draw = Drawer();
    const int64_t count = 3;
    const Rows rows = RandomRows(draw, call, rule, count);
    const Rows forward = Pass(call, rule, rows, count);
    const auto run = [&](int64_t row) {
      std::vector<at::Tensor> operands;
      for (const RuleOperand& operand : call.operands) {
        operands.push_back(operand.decomposed ? operand.value * 0 : operand.value);
      }
      for (size_t k = 0; row >= 0 && k < rows.size(); ++k) operands[rule.inputs[k]] = rows[k].select(0, row);
      return call.run(operands);
    };
    const auto constant = run(-1);
    for (int64_t row = 0; row < count; ++row) {
      const auto expected = run(row);
      for (size_t k = 0; k < expected.size(); ++k) {
        if (!forward[k].defined()) continue;
        EXPECT_LE(Apart(forward[k].select(0, row), expected[k] - constant[k]), Rounding(call)) << "row " << row;
      }
    }
  });
}

TEST_P(LawTest, StridesOfOperandsDoNotMatter) {
  const OperatorCall op = Call();
  const std::string name = std::string(TheCase().op) + " " + TheCase().what;
  if (name == "aten::convolution no_batch") return;  // LibTorch itself fails
  if (name.find("aten::_unsafe_view") == 0) return;  // views only what has the strides for it
  const OperatorCall strided = op.Strided();
  ForEach(op, [&](const RuleCall& call, const RuleResult& rule) {
    uint32_t decomposed = 0;
    int movable = 0;
    const RuleCall all = op.Describe(*call.policy);
    for (size_t k = 0; k < all.operands.size(); ++k) {
      if (!all.operands[k].decomposed) continue;
      decomposed |= (call.operands[k].decomposed ? 1u : 0u) << movable++;
    }
    const RuleCall other_call = strided.Describe(*call.policy, decomposed);
    const RuleResult other = BuildRule(other_call);
    ASSERT_EQ(other.inputs, rule.inputs);
    ASSERT_EQ(other.map == nullptr, rule.map == nullptr);
    if (!rule.map) return;
    Draw draw = Drawer();
    const Rows rows = RandomRows(draw, call, rule, 4);
    EXPECT_LE(Apart(other.map->Forward(rows), rule.map->Forward(rows)), Rounding(call));
    const Rows cotangents = RandomCotangents(draw, call);
    EXPECT_LE(Apart(other.map->Transpose(cotangents), rule.map->Transpose(cotangents)), Rounding(call));
  });
}

// Where nothing moves, L is the operator's derivative.
TEST_P(LawTest, WithoutAMoveItIsTheDerivative) {
  ForEach(
      Call().AtRest(),
      [&](const RuleCall& call, const RuleResult& rule) {
        EXPECT_EQ(RelativeBracket(call, rule), 0);
        if (!rule.map || rule.kind == Kind::kOpaque) return;
        Draw draw = Drawer();
        const Rows cotangents = Judged(call, RandomCotangents(draw, call));
        EXPECT_LE(Apart(rule.map->Transpose(cotangents), MeanGradient(call, rule.inputs, cotangents, 1, false)),
                  Rounding(call));
      },
      /*faithful_only=*/true);
}

// The sum of all cases in both dtypes takes seconds; the next law differentiates each operator hundreds of times.
INSTANTIATE_TEST_SUITE_P(Rules, LawTest,
                         testing::Combine(testing::Range<size_t>(0, Cases().size()),
                                          testing::Values(at::kFloat, at::kDouble)),
                         NameOf);

class PathLawTest : public LawTest {};

// One operator by the path rule: its transpose is the mean of autograd's gradients along the line. This holds for all
// kinds but Rewrite and division, which are several operators, each by its own path rule.
TEST_P(PathLawTest, TheMapIsTheMeanDerivative) {
  ForEach(
      Call(),
      [&](const RuleCall& call, const RuleResult& rule) {
        if (!rule.map || rule.kind == Kind::kRewrite || rule.kind == Kind::kOpaque) return;
        if (call.name == "aten::div" && rule.inputs.size() > 1) return;
        if (std::string(TheCase().what) == "across_zero") return;  // a pole on the line: the mean does not exist
        const bool corners = TheCase().corners;
        // Corners: every piece that holds one is wrong by at most its length, and there are a few of them per element.
        const int pieces = corners ? 2000 : 100;
        const double tolerance = corners ? 4.0 / pieces : Rounding(call) + 4 * rule.quadrature;
        Draw draw = Drawer();
        const Rows cotangents = Judged(call, RandomCotangents(draw, call));
        EXPECT_LE(Apart(rule.map->Transpose(cotangents), MeanGradient(call, rule.inputs, cotangents, pieces, !corners)),
                  tolerance);
      },
      /*faithful_only=*/true);
}

INSTANTIATE_TEST_SUITE_P(Rules, PathLawTest,
                         testing::Combine(testing::Range<size_t>(0, Cases().size()), testing::Values(at::kDouble)),
                         NameOf);

}  // namespace
}  // namespace addend
