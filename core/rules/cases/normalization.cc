#include <ATen/TensorOperators.h>

#include "core/rules/cases/cases.h"

namespace addend {

// One case, one line, as far as it goes.
// clang-format off

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
      {"aten::layer_norm", "all_move",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3, 8}), Sizes{8}, d.Moving({8}), d.Moving({8})}; }},
      {"aten::native_layer_norm", "all_move",
       [](Draw& d) -> Arguments { return {d.Moving({3, 2, 4}), Sizes{2, 4}, d.Moving({2, 4}), d.Moving({2, 4}), 1e-3}; }},
      {"aten::group_norm", "all_move",
       [](Draw& d) -> Arguments { return {d.Moving({2, 6, 4}), int64_t{3}, d.Moving({6}), d.Moving({6})}; }},
      {"aten::native_group_norm", "",
       [](Draw& d) -> Arguments {
         return {d.Moving({2, 6, 4}), d.Moving({6}), d.Moving({6}), int64_t{2}, int64_t{6}, int64_t{4}, int64_t{3}, 1e-3};
       }},
      {"aten::batch_norm", "all_move",
       [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 4}), d.Moving({3}), d.Moving({3}), d.Normal({3}), d.Uniform({3}, 0.5, 2),
                 false, 0.1, 1e-3, false};
       }},
      {"aten::batch_norm", "training",
       [](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), d.Moving({3}), d.Moving({3}), kNone, kNone, true, 0.1, 1e-3, false};
       }},
      {"aten::native_batch_norm", "training",
       [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 2, 2}), d.Moving({3}), d.Moving({3}), kNone, kNone, true, 0.1, 1e-3};
       }},
      {"aten::_native_batch_norm_legit.no_stats", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3, 2, 2}), d.Moving({3}), d.Moving({3}), true, 0.1, 1e-3}; }},
      {"aten::_native_batch_norm_legit", "",
       [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 2, 2}), d.Moving({3}), d.Moving({3}), d.Normal({3}), d.Uniform({3}, 0.5, 2),
                 true, 0.1, 1e-3};
       }},
      {"aten::_native_batch_norm_legit", "evaluation",
       [](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), d.Normal({3}), d.Normal({3}), d.Normal({3}), d.Uniform({3}, 0.5, 2), false, 0.1, 1e-3};
       }},
      {"aten::_batch_norm_with_update", "",
       [](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), d.Moving({3}), d.Moving({3}), d.Normal({3}), d.Uniform({3}, 0.5, 2), 0.1, 1e-3};
       }},
      {"aten::_native_batch_norm_legit_no_training", "",
       [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 4}), d.Moving({3}), d.Moving({3}), d.Normal({3}), d.Uniform({3}, 0.5, 2), 0.1, 1e-3};
       }},
  };
  cases->insert(cases->end(), own.begin(), own.end());
}

// clang-format on

}  // namespace addend
