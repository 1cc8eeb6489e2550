#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "core/rules/cases/element_cases.h"

namespace addend {
namespace {

at::Tensor Ids(const std::vector<int64_t>& ids) { return at::tensor(ids, at::kLong); }

}  // namespace

// One case, one line, as far as it goes.
// clang-format off

void AddEmbeddings(std::vector<Case>* cases) {
  constexpr int64_t kSum = 0;
  constexpr int64_t kMean = 1;
  constexpr int64_t kMax = 2;
  // _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
  // padding_idx): the second bag is empty.
  const auto ids = [] { return Ids({1, 3, 3, 0, 2, 1}); };
  const auto offsets = [] { return Ids({0, 2, 2, 5}); };
  const std::vector<Case> own = {
      {"aten::embedding", "", [](Draw& d) -> Arguments { return {d.Moving({6, 3}), d.Integers({2, 4}, 6)}; }},
      {"aten::embedding", "one", [](Draw& d) -> Arguments { return {d.Moving({6, 3}), d.Integers({}, 6)}; }},
      {"aten::_embedding_bag", "sum", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), ids(), offsets(), false, kSum}; }},
      {"aten::_embedding_bag", "mean", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), ids(), offsets(), false, kMean}; }},
      {"aten::_embedding_bag", "max", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), ids(), offsets(), false, kMax}; }, kCorners},
      {"aten::_embedding_bag", "weighted", [=](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), ids(), offsets(), false, kSum, false, d.Moving({6})};
       }},
      {"aten::_embedding_bag", "padding", [=](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), ids(), offsets(), false, kMean, false, kNone, false, int64_t{3}};
       }},
      {"aten::_embedding_bag", "last_offset", [=](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), ids(), Ids({0, 2, 6}), false, kSum, false, d.Moving({6}), true, int64_t{0}};
       }},
      {"aten::embedding_renorm_", "", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}, 2), Ids({1, 3, 1}), 1.5, 2.0}; }},
      {"aten::embedding_renorm_", "absolute", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), ids(), 2.0, 1.0}; }},
      {"aten::embedding_renorm_", "cubic", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), ids(), 0.75, 3.0}; }},
      {"aten::_embedding_bag_forward_only", "sum", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), ids(), offsets()}; }},
  };
  cases->insert(cases->end(), own.begin(), own.end());
}

void AddRandom(std::vector<Case>* cases) {
  const std::vector<Case> own = {
      {"aten::normal.Tensor_float", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 0.5}; }},
      {"aten::normal.float_Tensor", "", [](Draw& d) -> Arguments { return {1.5, d.MovingWithin({2, 3}, 0.5, 2)}; }},
      {"aten::normal.Tensor_Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.MovingWithin({2, 3}, 0.5, 2)}; }},
      {"aten::normal_", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 0.5, 2.0}; }},
      {"aten::uniform_", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::random_", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::exponential_", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::cauchy_", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::log_normal_", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::geometric_", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), 0.5}; }},
      {"aten::bernoulli", "", [](Draw& d) -> Arguments { return {d.MovingWithin({20}, 0, 1)}; }},
      {"aten::bernoulli_.float", "", [](Draw& d) -> Arguments { return {d.Moving({20}), 0.5}; }},
  };
  cases->insert(cases->end(), own.begin(), own.end());
}

// clang-format on

}  // namespace addend
