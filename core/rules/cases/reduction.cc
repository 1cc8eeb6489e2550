#include <ATen/TensorOperators.h>

#include "core/rules/cases/cases.h"

namespace addend {

// One case, one line, as far as it goes.
// clang-format off

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

// clang-format on

}  // namespace addend
