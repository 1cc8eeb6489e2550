#include <ATen/TensorOperators.h>

#include <limits>

#include "core/rules/cases/cases.h"

namespace addend {

// One case, one line, as far as it goes.
// clang-format off

void AddAttention(std::vector<Case>* cases) {
  const auto masked = [](Draw& d, const Sizes& sizes) -> GivenArgument {
    const at::Tensor value = d.Normal(sizes, 2);
    const at::Tensor reference = d.Normal(sizes, 2);
    const double never = -std::numeric_limits<double>::infinity();
    const at::Tensor mask = value.gt(0.8).logical_and(value.lt(value.amax(-1, true)));
    return {value.masked_fill(mask, never), reference.masked_fill(mask, never)};
  };
  // Moves of very different lengths beside each other, so that many node counts occur in one call.
  const auto wide = [](Draw& d, const Sizes& sizes) -> GivenArgument {
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
  const c10::IValue twice = static_cast<int64_t>(at::kDouble);
  const std::vector<Case> others = {
      {"aten::softmax.int", "dtype", [=](Draw& d) -> Arguments { return {d.Moving({3, 5}), int64_t{-1}, twice}; }},
      {"aten::log_softmax.int", "dtype", [=](Draw& d) -> Arguments { return {d.Moving({3, 5}), int64_t{-1}, twice}; }},
      {"aten::logsumexp", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5, 3}), Sizes{1}}; }},
      {"aten::logsumexp", "two_dims", [](Draw& d) -> Arguments { return {d.Moving({2, 5, 3}), Sizes{2, 0}, true}; }},
      {"aten::logsumexp", "ranges", [=](Draw& d) -> Arguments { return {wide(d, {40, 4}), Sizes{-1}}; }},
      {"aten::logsumexp", "masked", [=](Draw& d) -> Arguments { return {masked(d, {4, 6}), Sizes{-1}}; }},
      {"aten::logsumexp", "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), Sizes{0}}; }},
      {"aten::logcumsumexp", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5, 3}), int64_t{1}}; }},
      {"aten::logcumsumexp", "last", [](Draw& d) -> Arguments { return {d.Moving({3, 6}, 2), int64_t{-1}}; }},
      {"aten::logcumsumexp", "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), int64_t{0}}; }},
  };
  cases->insert(cases->end(), others.begin(), others.end());
}

// clang-format on

}  // namespace addend
