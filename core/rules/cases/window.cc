#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <initializer_list>

#include "core/rules/cases/cases.h"

namespace addend {

namespace {

GivenArgument Single(const GivenArgument& argument) {
  return {argument.value.toTensor().to(at::kFloat), argument.reference.toTensor().to(at::kFloat)};
}

// Terms in the order of the list, in which they are drawn.
at::Tensor Sum(std::initializer_list<at::Tensor> terms) {
  at::Tensor sum;
  for (const at::Tensor& term : terms) sum = sum.defined() ? sum + term : term;
  return sum;
}

}  // namespace

// One case, one line, as far as it goes.
// clang-format off

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
                        return {d.Moving(w.input), d.Moving(w.weight), d.Moving({outputs}), w.stride, w.padding,
                                w.dilation,        w.transposed,       w.output_padding,    w.groups};
                      }});
  }
  cases->push_back({"aten::_convolution", "", [](Draw& d) -> Arguments {
                      return {d.Moving({2, 3, 5, 5}), d.Normal({4, 3, 3, 3}), kNone, Sizes{1, 1}, Sizes{1, 1},
                              Sizes{1, 1}, false, Sizes{0, 0}, int64_t{1}, false, false, true, true};
                    }});

  // Many images of one channel each.
  cases->push_back({"aten::convolution", "planes", [](Draw& d) -> Arguments {
                      return {Single(d.Moving({9, 1, 6, 5})), Single(d.Normal({1, 1, 3, 2})), Single(d.Moving({1})), Sizes{2, 1},
                              Sizes{1, 0}, Sizes{1, 2}, false, Sizes{0, 0}, int64_t{1}};
                    }});
  cases->push_back({"aten::convolution", "lines", [](Draw& d) -> Arguments {
                      return {Single(d.Moving({17, 1, 9})), Single(d.Normal({1, 1, 4})), kNone, Sizes{1},
                              Sizes{2}, Sizes{1}, false, Sizes{0}, int64_t{1}};
                    }});

  const std::vector<Case> convolutions = {
      {"aten::mkldnn_convolution", "", [](Draw& d) -> Arguments {
         // has no double precision
         return {Single(d.Moving({2, 4, 5, 5})), Single(d.Moving({6, 2, 3, 3})), Single(d.Moving({6})), Sizes{1, 1}, Sizes{2, 1},
                 Sizes{1, 1}, int64_t{2}};
       }},
      {"aten::_slow_conv2d_forward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 5, 5}), d.Moving({4, 3, 3, 2}), Sizes{3, 2}, d.Moving({4}), Sizes{2, 1}, Sizes{1, 0}};
       }},
      {"aten::slow_conv3d_forward", "", [](Draw& d) -> Arguments {
         return {d.Moving({1, 2, 3, 4, 4}), d.Moving({3, 2, 2, 2, 2}), Sizes{2, 2, 2}, d.Moving({3}), Sizes{1, 1, 2}, Sizes{0, 1, 0}};
       }},
      {"aten::slow_conv_dilated2d", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 5, 5}), d.Moving({4, 3, 2, 2}), Sizes{2, 2}, d.Moving({4}), Sizes{1, 1}, Sizes{1, 0}, Sizes{2, 3}};
       }},
      {"aten::slow_conv_dilated3d", "", [](Draw& d) -> Arguments {
         return {d.Moving({1, 2, 3, 4, 4}), d.Moving({3, 2, 2, 2, 2}), Sizes{2, 2, 2}, d.Moving({3}), Sizes{1, 1, 1}, Sizes{0, 1, 0},
                 Sizes{2, 1, 1}};
       }},
      {"aten::slow_conv_transpose2d", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 3, 3}), d.Moving({3, 4, 2, 2}), Sizes{2, 2}, d.Moving({4}), Sizes{2, 2}, Sizes{0, 1}, Sizes{1, 0}};
       }},
      {"aten::slow_conv_transpose2d", "one_image", [](Draw& d) -> Arguments {
         return {d.Moving({3, 3, 3}), d.Moving({3, 4, 2, 2}), Sizes{2, 2}, d.Moving({4})};
       }},
      {"aten::slow_conv_transpose3d", "", [](Draw& d) -> Arguments {
         return {d.Moving({1, 2, 2, 2, 3}), d.Moving({2, 3, 2, 2, 2}), Sizes{2, 2, 2}, d.Moving({3}), Sizes{2, 2, 1}};
       }},
      {"aten::conv_tbc", "", [](Draw& d) -> Arguments { return {d.Moving({5, 2, 3}), d.Moving({3, 3, 4}), d.Moving({4}), int64_t{1}}; }},
  };
  cases->insert(cases->end(), convolutions.begin(), convolutions.end());

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
      {"aten::max_pool1d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 9}), Sizes{3}, Sizes{2}, Sizes{1}, Sizes{2}, true}; }, kCorners},
      {"aten::max_pool1d", "one", [](Draw& d) -> Arguments { return {d.Moving({3, 6}), Sizes{2}}; }, kCorners},
      {"aten::max_pool3d_with_indices", "", [](Draw& d) -> Arguments {
         return {d.Moving({1, 2, 4, 5, 3}), Sizes{2, 3, 2}, Sizes{1, 2, 2}, Sizes{1, 1, 0}, Sizes{1, 1, 1}, true};
       }, kCorners},
      {"aten::max_pool3d_with_indices", "one", [](Draw& d) -> Arguments { return {d.Moving({2, 4, 4, 3}), Sizes{2}}; }, kCorners},
      {"aten::adaptive_max_pool2d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 5, 7}), Sizes{2, 3}}; }, kCorners},
      {"aten::adaptive_max_pool2d", "one", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 3}), Sizes{1, 1}}; }, kCorners},
      {"aten::adaptive_max_pool2d", "larger", [](Draw& d) -> Arguments { return {d.Moving({1, 1, 2, 3}), Sizes{3, 5}}; }, kCorners},
      {"aten::adaptive_max_pool3d", "", [](Draw& d) -> Arguments { return {d.Moving({1, 2, 3, 4, 5}), Sizes{2, 3, 2}}; }, kCorners},
      {"aten::fractional_max_pool2d", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 2, 7, 6}), Sizes{2, 3}, Sizes{4, 3}, d.Uniform({2, 2, 2}, 0, 1)};
       }, kCorners},
      {"aten::fractional_max_pool3d", "", [](Draw& d) -> Arguments {
         return {d.Moving({1, 2, 5, 6, 4}), Sizes{2, 3, 2}, Sizes{3, 2, 1}, d.Uniform({1, 2, 3}, 0, 1)};
       }, kCorners},
      // Indices name an element of their own window: the CPU's kernel would add any, CUDA's looks only into windows.
      {"aten::max_pool2d_with_indices_backward", "", [](Draw& d) -> Arguments {  // two windows meet in one element
         return {d.Moving({2, 2, 2, 1}), d.Normal({2, 2, 4, 3}), Sizes{3, 2}, Sizes{1, 1}, Sizes{0, 0}, Sizes{1, 2}, false,
                 (d.Integers({2, 2, 2, 1}, 2) * 2 + 3).contiguous()};
       }},
      {"aten::max_pool2d_with_indices_backward", "one", [](Draw& d) -> Arguments {
         const at::Tensor corner = at::tensor({0, 2, 8, 10}, at::kLong).view({2, 2});
         return {d.Moving({2, 2, 2}), d.Moving({2, 4, 4}), Sizes{2, 2}, Sizes{2, 2}, Sizes{0, 0}, Sizes{1, 1}, false,
                 Sum({corner, d.Integers({2, 2, 2}, 2) * 4, d.Integers({2, 2, 2}, 2)})};
       }},
      {"aten::max_pool3d_with_indices_backward", "", [](Draw& d) -> Arguments {
         const at::Tensor corner = at::tensor({0, 4, 16, 20}, at::kLong).view({2, 2, 1});
         const Sizes pooled = {2, 1, 2, 2, 1};
         return {d.Moving(pooled), d.Normal({2, 1, 4, 4, 2}), Sizes{2, 2, 2}, Sizes{2, 2, 2}, Sizes{0, 0, 0},
                 Sizes{1, 1, 1}, false,
                 Sum({corner, d.Integers(pooled, 2) * 8, d.Integers(pooled, 2) * 2, d.Integers(pooled, 2)})};
       }},
      {"aten::avg_pool3d", "", [](Draw& d) -> Arguments {
         return {d.Moving({1, 2, 4, 5, 3}), Sizes{2, 3, 2}, Sizes{1, 2, 2}, Sizes{1, 1, 0}, true, false};
       }},
      {"aten::avg_pool3d", "one", [](Draw& d) -> Arguments { return {d.Moving({2, 4, 5, 3}), Sizes{2}}; }},
      {"aten::_adaptive_avg_pool3d", "", [](Draw& d) -> Arguments { return {d.Moving({1, 2, 3, 4, 5}), Sizes{2, 3, 2}}; }},
      {"aten::_adaptive_avg_pool3d", "one", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4, 5}), Sizes{2, 3, 2}}; }},
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

// clang-format on

}  // namespace addend
