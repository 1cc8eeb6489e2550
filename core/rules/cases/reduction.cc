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
      {"aten::sum", "dtype", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), static_cast<int64_t>(at::kDouble)}; }},
      {"aten::mean.dim", "dtype", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), Sizes{1}, false, static_cast<int64_t>(at::kDouble)}; }},
      {"aten::cumsum", "dtype", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), int64_t{1}, static_cast<int64_t>(at::kDouble)}; }},
      {"aten::nansum", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), Sizes{0, -1}, true}; }},
      {"aten::nansum", "all", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::prod", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::prod", "scalar", [](Draw& d) -> Arguments { return {d.Moving({})}; }},
      {"aten::prod.dim_int", "", [](Draw& d) -> Arguments { return {d.Moving({2, 7, 3}), int64_t{1}}; }},
      {"aten::prod.dim_int", "keep", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), int64_t{-1}, true, static_cast<int64_t>(at::kDouble)}; }},
      {"aten::prod.dim_int", "long", [](Draw& d) -> Arguments { return {d.MovingWithin({2, 300}, 0.9, 1.1), int64_t{1}}; }},
      {"aten::prod.dim_int", "empty", [](Draw& d) -> Arguments { return {d.Moving({0, 3}), int64_t{0}}; }},
      {"aten::cumprod", "", [](Draw& d) -> Arguments { return {d.Moving({2, 6, 3}), int64_t{1}}; }},
      {"aten::cumprod", "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), int64_t{0}}; }},
      {"aten::cumprod", "long", [](Draw& d) -> Arguments { return {d.MovingWithin({140, 2}, 0.9, 1.1), int64_t{0}}; }},
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
