#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "core/rules/cases/element_cases.h"

namespace addend {

// One case, one line, as far as it goes.
// clang-format off

void AddResampling(std::vector<Case>* cases) {
  const std::vector<Case> own = {
      {"aten::reflection_pad1d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 4}), Sizes{1, 2}}; }},
      {"aten::reflection_pad1d", "one", [](Draw& d) -> Arguments { return {d.Moving({2, 4}), Sizes{3, 0}}; }},
      {"aten::reflection_pad2d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 3, 4}), Sizes{1, 2, 0, 1}}; }},
      {"aten::reflection_pad2d", "one", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), Sizes{1, 2, 0, 1}}; }},
      {"aten::reflection_pad3d", "", [](Draw& d) -> Arguments { return {d.Moving({1, 2, 2, 2, 3}), Sizes{1, 2, 0, 1, 1, 0}}; }},
      {"aten::replication_pad1d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 4}), Sizes{1, 2}}; }},
      {"aten::replication_pad2d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 3, 4}), Sizes{1, 2, 0, 1}}; }},
      {"aten::replication_pad3d", "", [](Draw& d) -> Arguments { return {d.Moving({1, 2, 2, 2, 3}), Sizes{1, 2, 0, 1, 1, 0}}; }},
      {"aten::replication_pad3d", "one", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 2, 3}), Sizes{1, 2, 0, 1, 1, 0}}; }},
      {"aten::upsample_nearest1d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 3}), Sizes{7}}; }},
      {"aten::upsample_nearest1d.vec", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 3}), kNone, std::vector<double>{1.7}}; }},
      {"aten::upsample_nearest2d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 3, 2}), Sizes{7, 3}}; }},
      {"aten::upsample_nearest2d.vec", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 2, 3, 2}), kNone, std::vector<double>{2.0, 1.5}};
       }},
      {"aten::upsample_nearest3d", "", [](Draw& d) -> Arguments { return {d.Moving({1, 2, 2, 3, 2}), Sizes{3, 4, 5}}; }},
      {"aten::_upsample_nearest_exact1d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 3}), Sizes{7}}; }},
      {"aten::_upsample_nearest_exact2d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 3, 2}), Sizes{7, 3}}; }},
      {"aten::_upsample_nearest_exact3d", "", [](Draw& d) -> Arguments { return {d.Moving({1, 2, 2, 3, 2}), Sizes{3, 4, 5}}; }},
      {"aten::upsample_linear1d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 3}), Sizes{7}, false}; }},
      {"aten::upsample_linear1d.vec", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 3}), Sizes{5}, true, kNone}; }},
      {"aten::upsample_bilinear2d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 3, 2}), Sizes{7, 3}, false}; }},
      {"aten::upsample_bilinear2d", "smaller", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 5, 4}), Sizes{2, 3}, true}; }},
      {"aten::upsample_bilinear2d.vec", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 2, 3, 2}), kNone, false, std::vector<double>{2.0, 1.5}};
       }},
      {"aten::upsample_bicubic2d", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 3, 4}), Sizes{7, 3}, false}; }},
      {"aten::upsample_bicubic2d.vec", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 3, 4}), Sizes{5, 5}, true, kNone}; }},
      {"aten::upsample_trilinear3d", "", [](Draw& d) -> Arguments { return {d.Moving({1, 2, 2, 3, 2}), Sizes{3, 4, 5}, false}; }},
      {"aten::_upsample_bilinear2d_aa", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 6, 5}), Sizes{3, 2}, false}; }},
      {"aten::_upsample_bicubic2d_aa", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 6, 5}), Sizes{3, 2}, false}; }},
      {"aten::_upsample_lanczos2d_aa", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 6, 5}), Sizes{3, 2}, false}; }},
      {"aten::affine_grid_generator", "", [](Draw& d) -> Arguments { return {d.Moving({2, 2, 3}), Sizes{2, 1, 3, 4}, true}; }},
      {"aten::affine_grid_generator", "solid", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), Sizes{2, 1, 2, 3, 2}, false}; }},
      // grid_sampler(input, grid, interpolation, padding, align_corners); both moving: see resample_test.cc
      {"aten::grid_sampler_2d", "image", [](Draw& d) -> Arguments {
         return {d.Moving({2, 2, 3, 4}), d.Normal({2, 3, 2, 2}), int64_t{2}, int64_t{2}, false};
       }},
      {"aten::grid_sampler_2d", "grid", [](Draw& d) -> Arguments {
         return {d.Normal({2, 2, 3, 4}), d.Moving({2, 3, 2, 2}), int64_t{0}, int64_t{0}, false};
       }, kCorners},
      {"aten::grid_sampler_2d", "grid_border", [](Draw& d) -> Arguments {
         return {d.Normal({1, 2, 3, 4}), d.Moving({1, 2, 2, 2}), int64_t{0}, int64_t{1}, true};
       }, kCorners},
      {"aten::grid_sampler_2d", "grid_cubic", [](Draw& d) -> Arguments {
         return {d.Normal({1, 2, 3, 4}), d.Moving({1, 2, 2, 2}), int64_t{2}, int64_t{2}, true};
       }, kCorners},
      {"aten::grid_sampler_3d", "image", [](Draw& d) -> Arguments {
         return {d.Moving({2, 2, 2, 3, 4}), d.Normal({2, 1, 3, 2, 3}), int64_t{0}, int64_t{1}, true};
       }},
      {"aten::grid_sampler_3d", "grid", [](Draw& d) -> Arguments {
         return {d.Normal({1, 1, 2, 3, 4}), d.Moving({1, 1, 3, 1, 3}), int64_t{0}, int64_t{2}, false};
       }, kCorners},
      {"aten::col2im", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 8, 6}), Sizes{3, 4}, Sizes{2, 2}, Sizes{1, 1}, Sizes{0, 0}, Sizes{1, 1}};
       }},
      {"aten::col2im", "one", [](Draw& d) -> Arguments {
         return {d.Moving({8, 6}), Sizes{3, 4}, Sizes{2, 2}, Sizes{1, 1}, Sizes{0, 0}, Sizes{1, 1}};
       }},
      {"aten::col2im", "complex", [](Draw& d) -> Arguments {
         return {d.MovingComplex({2, 8, 6}), Sizes{3, 4}, Sizes{2, 2}, Sizes{1, 1}, Sizes{0, 0}, Sizes{1, 1}};
       }},
      {"torchvision::roi_align", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 5, 6}), at::tensor({0.0, 0.5, 0.2, 4.1, 3.7, 1.0, -2.0, 1.0, 7.5, 4.9}, d.dtype()).view({2, 5}),
                 0.9, int64_t{2}, int64_t{3}, int64_t{2}, true};
       }},
      {"aten::_trilinear", "", [](Draw& d) -> Arguments {  // as nn.functional.bilinear calls it
         return {d.Moving({4, 2}), d.Moving({3, 2, 5}), d.Moving({4, 5}), Sizes{1, 3}, Sizes{0}, Sizes{1, 2}, Sizes{2, 3}};
       }},
  };
  cases->insert(cases->end(), own.begin(), own.end());
}

// clang-format on

}  // namespace addend
