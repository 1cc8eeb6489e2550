#include <ATen/TensorOperators.h>

#include "core/rules/cases/cases.h"

namespace addend {

// One case, one line, as far as it goes.
// clang-format off

void AddProducts(std::vector<Case>* cases) {
  struct Shapes {
    const char* what;
    Sizes a, b;
  };
  const std::vector<Shapes> matmuls = {
      {"matrices", {3, 4}, {4, 2}},           {"dot", {4}, {4}},
      {"vector_matrix", {4}, {4, 2}},         {"matrix_vector", {3, 4}, {4}},
      {"batch_matrix", {2, 3, 4}, {4, 5}},    {"matrix_batch", {3, 4}, {2, 4, 5}},
      {"batches", {2, 3, 4}, {2, 4, 5}},      {"batch_vector", {2, 3, 4}, {4}},
      {"vector_batch", {4}, {2, 4, 5}},       {"broadcast", {2, 1, 3, 4}, {3, 4, 2}},
      {"both_grow", {2, 1, 3, 4}, {1, 3, 4, 2}}, {"a_lower_rank", {3, 2, 4}, {2, 3, 4, 2}},
      {"ones", {1, 1}, {1, 1}},               {"no_batch", {0, 3, 4}, {4, 2}},
  };
  for (const Shapes& s : matmuls) {
    cases->push_back({"aten::matmul", s.what, [s](Draw& d) -> Arguments { return {d.Moving(s.a), d.Moving(s.b)}; }});
  }
  const std::vector<Case> others = {
      {"aten::mm", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({4, 2})}; }},
      {"aten::bmm", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), d.Moving({2, 4, 5})}; }},
      {"aten::mv", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({4})}; }},
      {"aten::dot", "", [](Draw& d) -> Arguments { return {d.Moving({4}), d.Moving({4})}; }},
      {"aten::linear", "",
       [](Draw& d) -> Arguments { return {d.Moving({2, 3, 4}), d.Moving({5, 4}), d.Moving({5})}; }},
      {"aten::linear", "matrix",
       [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({5, 4}), d.Moving({5})}; }},
      {"aten::linear", "vector", [](Draw& d) -> Arguments { return {d.Moving({4}), d.Moving({5, 4}), d.Moving({5})}; }},
      {"aten::linear", "no_bias", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({5, 4}), kNone}; }},
      {"aten::linear", "rank4",
       [](Draw& d) -> Arguments { return {d.Moving({2, 1, 3, 4}), d.Moving({5, 4}), d.Moving({5})}; }},
      {"aten::addmm", "",
       [](Draw& d) -> Arguments { return {d.Moving({2}), d.Moving({3, 4}), d.Moving({4, 2}), 0.5, 2.0}; }},
      {"aten::addmm", "full",
       [](Draw& d) -> Arguments { return {d.Moving({3, 2}), d.Moving({3, 4}), d.Moving({4, 2})}; }},
      {"aten::addmm", "column",
       [](Draw& d) -> Arguments { return {d.Moving({3, 1}), d.Moving({3, 4}), d.Moving({4, 2}), 2, 3}; }},
      {"aten::addmm", "no_addend",
       [](Draw& d) -> Arguments { return {d.Moving({3, 2}), d.Moving({3, 4}), d.Moving({4, 2}), 0, 1}; }},
      {"aten::baddbmm", "",
       [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 5}), d.Moving({2, 3, 4}), d.Moving({2, 4, 5}), 0.5, 2.0};
       }},
      {"aten::baddbmm", "mask",
       [](Draw& d) -> Arguments { return {d.Moving({3, 5}), d.Moving({2, 3, 4}), d.Moving({2, 4, 5})}; }},
      {"aten::addmv", "",
       [](Draw& d) -> Arguments { return {d.Moving({3}), d.Moving({3, 4}), d.Moving({4}), 0.5, 2.0}; }},
  };
  cases->insert(cases->end(), others.begin(), others.end());
}

// clang-format on

}  // namespace addend
