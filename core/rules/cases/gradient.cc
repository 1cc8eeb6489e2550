#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "core/rules/cases/cases.h"

namespace addend {

// One case, one line, as far as it goes.
// clang-format off

void AddGradients(std::vector<Case>* cases) {
  const auto anywhere = [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.Moving({2, 5}, 2)}; };
  cases->push_back({"aten::gelu_backward", "", anywhere});
  // Wide enough for some of ten elements to cross a step at 3 or -3, whatever is drawn.
  const auto across = [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.Moving({2, 5}, 4)}; };
  for (const char* op : {"aten::hardsigmoid_backward", "aten::hardswish_backward"}) {
    cases->push_back({op, "", across, kCorners});
  }
  for (const char* op : {"aten::softshrink_backward", "aten::hardshrink_backward", "aten::threshold_backward"}) {
    cases->push_back({op, "", [](Draw& d) -> Arguments { return {d.Moving({9}), d.Moving({9}), 0.3}; }, kCorners});
  }
  const std::vector<Case> others = {
      {"aten::tanh_backward", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.MovingWithin({2, 5}, -0.9, 0.9)}; }},
      {"aten::sigmoid_backward", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.MovingWithin({2, 5}, 0.1, 0.9)}; }},
      {"aten::sigmoid_backward", "grows", [](Draw& d) -> Arguments { return {d.Moving({5}), d.MovingWithin({2, 5}, 0.1, 0.9)}; }},
      {"aten::sigmoid_backward", "shrinks", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.MovingWithin({5}, 0.1, 0.9)}; }},
      {"aten::gelu_backward", "tanh", [](Draw& d) -> Arguments { return {d.Moving({7}), d.Moving({7}, 2), std::string("tanh")}; }},
      {"aten::softplus_backward", "", [](Draw& d) -> Arguments { return {d.Moving({7}), d.Moving({7}), 2.0, 20.0}; }},
      {"aten::elu_backward", "", [](Draw& d) -> Arguments { return {d.Moving({9}), 1.0, 1.0, 1.0, false, d.Moving({9})}; }, kCorners},
      {"aten::elu_backward", "result", [](Draw& d) -> Arguments { return {d.Moving({9}), 1.5, 2.0, 0.5, true, d.MovingWithin({9}, -2.5, 2)}; }, kCorners},
      {"aten::leaky_relu_backward", "", [](Draw& d) -> Arguments { return {d.Moving({9}), d.Moving({9}), 0.3, false}; }, kCorners},
      {"aten::hardtanh_backward", "", [](Draw& d) -> Arguments { return {d.Moving({9}), d.Moving({9}), -0.2, 0.9}; }, kCorners},
      {"aten::rrelu_with_noise_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({9}), d.Moving({9}), d.Uniform({9}, 0.1, 0.3), 0.1, 0.3, false, false};
       }, kCorners},
      {"aten::rrelu_with_noise_backward", "training", [](Draw& d) -> Arguments {
         return {d.Moving({9}), d.Moving({9}), d.Uniform({9}, 0.1, 0.3), 0.1, 0.3, true, false};
       }},
      {"aten::avg_pool2d_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 2, 3}), d.Normal({2, 3, 4, 6}), Sizes{2, 2}, Sizes{}, Sizes{0, 0}, false, true, kNone};
       }},
      {"aten::avg_pool2d_backward", "one_image", [](Draw& d) -> Arguments {
         return {d.Moving({3, 2, 3}), d.Moving({3, 4, 6}), Sizes{3, 2}, Sizes{2, 2}, Sizes{1, 0}, false, false, kNone};
       }},
      {"aten::avg_pool3d_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 1, 2, 1, 2}), d.Normal({2, 1, 4, 3, 4}), Sizes{2, 2, 2}, Sizes{}, Sizes{0, 0, 0}, false, true, kNone};
       }},
      {"aten::_adaptive_avg_pool2d_backward", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 2, 3}), d.Normal({2, 3, 5, 7})}; }},
      {"aten::_adaptive_avg_pool3d_backward", "", [](Draw& d) -> Arguments { return {d.Moving({1, 2, 2, 3, 2}), d.Normal({1, 2, 3, 4, 5})}; }},
      {"aten::reflection_pad1d_backward", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 7}), d.Normal({2, 3, 4}), Sizes{1, 2}}; }},
      {"aten::reflection_pad2d_backward", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 5, 6}), d.Normal({2, 2, 3, 4}), Sizes{1, 1, 2, 0}}; }},
      {"aten::reflection_pad3d_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({1, 2, 3, 4, 5}), d.Normal({1, 2, 2, 3, 4}), Sizes{1, 0, 0, 1, 1, 0}};
       }},
      {"aten::replication_pad1d_backward", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 7}), d.Normal({2, 3, 4}), Sizes{1, 2}}; }},
      {"aten::replication_pad1d_backward", "one", [](Draw& d) -> Arguments { return {d.Moving({3, 7}), d.Normal({3, 4}), Sizes{1, 2}}; }},
      {"aten::replication_pad2d_backward", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 5, 6}), d.Normal({2, 2, 3, 4}), Sizes{1, 1, 2, 0}}; }},
      {"aten::replication_pad3d_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({1, 2, 3, 4, 5}), d.Normal({1, 2, 2, 3, 4}), Sizes{1, 0, 0, 1, 1, 0}};
       }},
      // Indices name an element of their own window.
      {"aten::adaptive_max_pool2d_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 2, 2, 1}), d.Normal({2, 2, 4, 3}), (d.Integers({2, 2, 2, 1}, 2) * 2 + 3).contiguous()};
       }},
      {"aten::adaptive_max_pool3d_backward", "", [](Draw& d) -> Arguments {
         const at::Tensor corner = at::tensor({0, 4, 16, 20}, at::kLong).view({2, 2, 1});
         return {d.Moving({2, 1, 2, 2, 1}), d.Normal({2, 1, 4, 4, 2}), corner + d.Integers({2, 1, 2, 2, 1}, 2) * 8};
       }},
      {"aten::fractional_max_pool2d_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 2, 2, 1}), d.Normal({2, 2, 4, 3}), Sizes{2, 2}, Sizes{2, 1}, (d.Integers({2, 2, 2, 1}, 2) * 2 + 3).contiguous()};
       }},
      {"aten::fractional_max_pool3d_backward", "", [](Draw& d) -> Arguments {
         const at::Tensor corner = at::tensor({0, 4, 16, 20}, at::kLong).view({2, 2, 1});
         return {d.Moving({2, 1, 2, 2, 1}), d.Normal({2, 1, 4, 4, 2}), Sizes{2, 2, 2}, Sizes{2, 2, 1}, corner + d.Integers({2, 1, 2, 2, 1}, 2) * 8};
       }},
  };
  cases->insert(cases->end(), others.begin(), others.end());

  const Sizes plane[] = {{2, 3, 4}, {2, 3, 3, 4}, {1, 2, 2, 3, 4}};
  struct Resampling {
    const char* op;
    size_t spatial;
    bool corners_argument;
  };
  for (const Resampling& r : std::vector<Resampling>{{"aten::upsample_nearest1d_backward", 1, false},
                                                     {"aten::upsample_nearest2d_backward", 2, false},
                                                     {"aten::upsample_nearest3d_backward", 3, false},
                                                     {"aten::_upsample_nearest_exact1d_backward", 1, false},
                                                     {"aten::_upsample_nearest_exact2d_backward", 2, false},
                                                     {"aten::_upsample_nearest_exact3d_backward", 3, false},
                                                     {"aten::upsample_linear1d_backward", 1, true},
                                                     {"aten::upsample_bilinear2d_backward", 2, true},
                                                     {"aten::upsample_bicubic2d_backward", 2, true},
                                                     {"aten::upsample_trilinear3d_backward", 3, true},
                                                     {"aten::_upsample_bilinear2d_aa_backward", 2, true},
                                                     {"aten::_upsample_bicubic2d_aa_backward", 2, true}}) {
    const Sizes& given = plane[r.spatial - 1];
    Sizes larger = given;
    for (size_t d = 2; d < larger.size(); ++d) larger[d] = larger[d] * 2 - 1;
    const Sizes output(larger.begin() + 2, larger.end());
    cases->push_back({r.op, "", [=](Draw& d) -> Arguments {
                        Arguments arguments = {d.Moving(larger), output, given};
                        if (r.corners_argument) arguments.push_back(true);
                        return arguments;
                      }});
  }
}

// clang-format on

}  // namespace addend
