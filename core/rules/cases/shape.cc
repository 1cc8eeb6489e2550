#include <ATen/TensorOperators.h>

#include "core/rules/cases/cases.h"

namespace addend {

// One case, one line, as far as it goes.
// clang-format off

void AddShapes(std::vector<Case>* cases) {
  const std::vector<Case> own = {
      {"aten::clone", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::_lazy_clone", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
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
      {"aten::roll", "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), Sizes{1}}; }},
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

// clang-format on

}  // namespace addend
