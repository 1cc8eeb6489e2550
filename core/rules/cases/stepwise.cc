#include <ATen/TensorOperators.h>

#include "core/rules/cases/cases.h"

namespace addend {

// One case, one line, as far as it goes.
// clang-format off

void AddStepwise(std::vector<Case>* cases) {
  const auto anywhere = [](Draw& d) -> Arguments { return {d.Moving({2, 5}, 2)}; };
  const auto two = [](Draw& d) -> Arguments { return {d.Moving({2, 5}, 3), d.MovingWithin({5}, 0.5, 2)}; };
  for (const char* op : {"aten::round", "aten::floor", "aten::ceil", "aten::trunc", "aten::sign", "aten::sgn"}) {
    cases->push_back({op, "", anywhere});
  }
  cases->push_back({"aten::round.decimals", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), int64_t{1}}; }});
  cases->push_back({"aten::floor_divide", "", two});
  cases->push_back({"aten::div.Tensor_mode", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}, 3), d.MovingWithin({5}, 0.5, 2), std::string("floor")}; }});
  cases->push_back({"aten::div.Scalar_mode", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}, 3), 0.7, std::string("trunc")}; }});
  cases->push_back({"aten::div.Tensor_mode", "none", [](Draw& d) -> Arguments { return {d.Moving({2, 5}, 3), d.MovingWithin({5}, 0.5, 2), kNone}; }});
  cases->push_back({"aten::heaviside", "", [](Draw& d) -> Arguments { return {d.Integers({6}, 3).to(d.dtype()) - 1, d.Moving({6})}; }});
  cases->push_back({"aten::heaviside", "both", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.Moving({5})}; }});
}

}  // namespace addend
