#include <ATen/TensorOperators.h>

#include "core/rules/cases/cases.h"

namespace addend {

// One case, one line, as far as it goes.
// clang-format off

void AddArithmetic(std::vector<Case>* cases) {
  // Every way in which two shapes meet.
  struct Shapes {
    const char* what;
    Sizes a, b;
  };
  const std::vector<Shapes> shapes = {
      {"equal", {2, 3}, {2, 3}},      {"b_lower_rank", {2, 4, 3}, {3}},     {"a_lower_rank", {3}, {2, 4, 3}},
      {"b_has_ones", {2, 3}, {2, 1}}, {"a_has_ones", {1, 3}, {4, 3}},       {"both_grow", {4, 1, 3}, {2, 1}},
      {"b_scalar", {2, 3}, {}},       {"a_scalar", {}, {2, 3}},             {"both_scalar", {}, {}},
      {"all_ones", {1, 1}, {1}},      {"one_and_more_ranks", {3}, {1, 3}},  {"no_elements", {0, 3}, {3}},
  };
  for (const Shapes& s : shapes) {
    for (const char* op : {"aten::add.Tensor", "aten::sub.Tensor", "aten::rsub.Tensor", "aten::mul.Tensor"}) {
      cases->push_back({op, s.what, [s](Draw& d) -> Arguments { return {d.Moving(s.a), d.Moving(s.b)}; }});
    }
    cases->push_back({"aten::div.Tensor", s.what, [s](Draw& d) -> Arguments {
                        return {d.Moving(s.a), d.MovingWithin(s.b, 0.5, 2)};
                      }});
  }
  const std::vector<Case> others = {
      {"aten::add.Tensor", "alpha", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({3}), 2.5}; }},
      {"aten::add.Tensor", "integers", [](Draw& d) -> Arguments { return {d.Moving({3}), d.Integers({2, 3}, 9)}; }},
      {"aten::add.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 1.5, 2}; }},
      {"aten::add_.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({3}), 0.5}; }},
      {"aten::sub.Tensor", "alpha", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({3}), -2.0}; }},
      {"aten::sub.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 1.5, 2}; }},
      {"aten::rsub.Tensor", "alpha", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({3}), 3}; }},
      {"aten::rsub.Scalar", "alpha", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 1.5, 2.0}; }},
      {"aten::mul.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), -1.5}; }},
      {"aten::mul.Tensor", "integers", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Integers({2, 3}, 9)}; }},
      {"aten::mul.Tensor", "booleans", [](Draw& d) -> Arguments { return {d.Booleans({2, 3}), d.Moving({3})}; }},
      {"aten::mul_.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({2, 1})}; }},
      {"aten::div.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 7.0}; }},
      {"aten::div.Tensor", "integers",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Integers({3}, 9) + 1}; }},
      {"aten::div.Tensor", "of_integers",
       [](Draw& d) -> Arguments { return {d.Integers({2, 3}, 9), d.MovingWithin({3}, 0.5, 2)}; }},
      {"aten::div.Tensor", "across_zero",
       [](Draw& d) -> Arguments {
         return {d.Moving({3}), GivenArgument{d.Uniform({3}, 0.5, 2), d.Uniform({3}, -2, -0.5)}};
       }},
      {"aten::div_.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.MovingWithin({1}, 1, 2)}; }},
      {"aten::neg", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::addcmul", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({3}), d.Moving({2, 1}), 0.7}; }},
      {"aten::addcmul", "grows", [](Draw& d) -> Arguments { return {d.Moving({}), d.Moving({2, 1}), d.Moving({3})}; }},
      {"aten::copy_", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({2, 3})}; }},
      {"aten::copy_", "grows", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({1})}; }},
      {"aten::fill_.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 1.5}; }},
      {"aten::fill_.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({})}; }},
      {"aten::zero_", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::where.self", "",
       [](Draw& d) -> Arguments { return {d.Booleans({2, 3}), d.Moving({2, 3}), d.Moving({2, 3})}; }},
      {"aten::where.self", "grows",
       [](Draw& d) -> Arguments { return {d.Booleans({4, 1, 3}), d.Moving({2, 1}), d.Moving({})}; }},
      {"aten::where.self", "condition_smaller",
       [](Draw& d) -> Arguments { return {d.Booleans({3}), d.Moving({2, 3}), d.Moving({1, 3})}; }},
      {"aten::where.ScalarOther", "", [](Draw& d) -> Arguments { return {d.Booleans({2, 3}), d.Moving({3}), 1.5}; }},
      {"aten::where.ScalarSelf", "", [](Draw& d) -> Arguments { return {d.Booleans({2, 3}), 1.5, d.Moving({3})}; }},
      {"aten::masked_fill.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Booleans({3}), -9.0}; }},
      {"aten::masked_fill.Scalar", "grows",
       [](Draw& d) -> Arguments { return {d.Moving({3}), d.Booleans({2, 3}), -9.0}; }},
      {"aten::masked_fill.Tensor", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Booleans({2, 1}), d.Moving({})}; }},
      {"aten::masked_fill_.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Booleans({3}), 4}; }},
  };
  cases->insert(cases->end(), others.begin(), others.end());
}

// clang-format on

}  // namespace addend
