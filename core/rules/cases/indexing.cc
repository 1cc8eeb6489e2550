#include <ATen/TensorOperators.h>

#include "core/rules/cases/cases.h"

namespace addend {

// One case, one line, as far as it goes.
// clang-format off

void AddIndexing(std::vector<Case>* cases) {
  const auto list = [](std::vector<c10::IValue> parts) { return OptionalListOf(parts); };
  const std::vector<Case> own = {
      {"aten::gather", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), int64_t{1}, d.Integers({2, 5, 3}, 3)}; }},
      {"aten::gather", "last",
       [](Draw& d) -> Arguments { return {d.Moving({2, 4}), int64_t{-1}, d.Integers({1, 6}, 4)}; }},
      {"aten::gather", "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), int64_t{0}, d.Integers({}, 1)}; }},
      {"aten::index_select", "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), int64_t{-1}, d.Integers({1}, 1)}; }},
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
      {"aten::_unsafe_index.Tensor", "",
       [=](Draw& d) -> Arguments { return {d.Moving({4, 3, 2}), list({kNone, d.Integers({5}, 3)})}; }},
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
  };
  cases->insert(cases->end(), own.begin(), own.end());
}

// clang-format on

}  // namespace addend
