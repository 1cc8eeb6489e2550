#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "core/intercept/operator.h"
#include "core/rules/cases/element_cases.h"

namespace addend {
namespace {

at::Tensor Ids(const std::vector<int64_t>& ids) { return at::tensor(ids, at::kLong); }

}  // namespace

// One case, one line, as far as it goes.
// clang-format off

void AddRearrangements(std::vector<Case>* cases) {
  const auto mask = [] { return Ids({1, 0, 1, 1, 0, 1}).view({2, 3}).to(at::kBool); };
  const std::vector<Case> own = {
      {"aten::take", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), Ids({5, -1, 0, 0}).view({2, 2})}; }},
      {"aten::masked_select", "", [=](Draw& d) -> Arguments { return {d.Moving({2, 3}), mask()}; }},
      {"aten::masked_select", "broadcast", [=](Draw& d) -> Arguments { return {d.Moving({3}), mask()}; }},
      {"aten::diag", "matrix", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), int64_t{1}}; }},
      {"aten::diag", "vector", [](Draw& d) -> Arguments { return {d.Moving({3}), int64_t{-1}}; }},
      {"aten::diag_embed", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), int64_t{1}, int64_t{0}, int64_t{-1}}; }},
      {"aten::rot90", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 2}), int64_t{1}, Sizes{0, 1}}; }},
      {"aten::rot90", "back", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), int64_t{-1}, Sizes{1, 0}}; }},
      {"aten::block_diag", "", [](Draw& d) -> Arguments { return {ListOf({d.Moving({2, 3}), d.Normal({2}), d.Moving({})})}; }},
      {"aten::pixel_shuffle", "", [](Draw& d) -> Arguments { return {d.Moving({1, 8, 2, 3}), int64_t{2}}; }},
      {"aten::pixel_unshuffle", "", [](Draw& d) -> Arguments { return {d.Moving({2, 4, 6}), int64_t{2}}; }},
      {"aten::channel_shuffle", "", [](Draw& d) -> Arguments { return {d.Moving({1, 6, 2, 1}), int64_t{3}}; }},
      {"aten::native_channel_shuffle", "", [](Draw& d) -> Arguments { return {d.Moving({1, 6, 2, 1}), int64_t{2}}; }},
      {"aten::im2col", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 2, 4, 5}), Sizes{2, 3}, Sizes{2, 1}, Sizes{1, 0}, Sizes{1, 2}};
       }},
      {"aten::im2col", "one_image", [](Draw& d) -> Arguments {
         return {d.Moving({2, 4, 5}), Sizes{2, 2}, Sizes{1, 1}, Sizes{0, 0}, Sizes{2, 2}};
       }},
      {"aten::max_unpool2d", "", [](Draw& d) -> Arguments {
         return {d.Moving({1, 2, 1, 2}), Ids({0, 7, 5, 10}).view({1, 2, 1, 2}), Sizes{3, 4}};
       }},
      {"aten::max_unpool3d", "", [](Draw& d) -> Arguments {
         return {d.Moving({1, 1, 1, 1, 2}), Ids({1, 6}).view({1, 1, 1, 1, 2}), Sizes{2, 2, 2}, Sizes{2, 2, 1}, Sizes{0, 0, 0}};
       }},
      {"aten::narrow_copy", "", [](Draw& d) -> Arguments { return {d.Moving({2, 4}), int64_t{1}, int64_t{1}, int64_t{2}}; }},
      {"aten::_pack_padded_sequence", "", [](Draw& d) -> Arguments { return {d.Moving({4, 3, 2}), Ids({4, 2, 2}), false}; }},
      {"aten::_pack_padded_sequence", "batch_first", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 2}), Ids({3, 1}), true}; }},
      {"aten::scatter.src", "", [](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), int64_t{0}, Ids({0, 2, 3, 1}).view({2, 2}), d.Moving({2, 2})};
       }},
      {"aten::scatter.src", "larger_source", [](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), int64_t{0}, Ids({0, 2, 3, 1}).view({2, 2}), d.Moving({3, 2})};
       }},
      {"aten::scatter.value", "", [](Draw& d) -> Arguments { return {d.Moving({4, 3}), int64_t{0}, Ids({0, 2, 3, 1}).view({2, 2}), 7.0}; }},
      {"aten::scatter.value", "in_range", [](Draw& d) -> Arguments { return {d.Moving({4}), int64_t{0}, Ids({0, 2}), 3.0}; }},
      {"aten::index_copy", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), int64_t{1}, Ids({2, 0}), d.Moving({3, 2})}; }},
      {"aten::index_fill.int_Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), int64_t{1}, Ids({2, 0}), 1.0}; }},
      {"aten::index_fill.int_Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), int64_t{0}, Ids({2, 0}), d.Moving({})}; }},
      {"aten::masked_scatter", "", [=](Draw& d) -> Arguments { return {d.Moving({2, 3}), mask(), d.Moving({5})}; }},
      {"aten::select_scatter", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({2}), int64_t{1}, int64_t{-1}}; }},
      {"aten::slice_scatter", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 5}), d.Moving({2, 2}), int64_t{1}, int64_t{1}, int64_t{5}, int64_t{2}};
       }},
      {"aten::diagonal_scatter", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({3}), int64_t{1}}; }},
      {"aten::as_strided_scatter", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({2, 2}), Sizes{2, 2}, Sizes{4, 2}, int64_t{1}};
       }},
  };
  cases->insert(cases->end(), own.begin(), own.end());
  const std::vector<Case> copies = {
      {"aten::view_copy", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), Sizes{6}}; }},
      {"aten::_reshape_alias_copy", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), Sizes{6}, Sizes{1}}; }},
      {"aten::permute_copy", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 2}), Sizes{2, 0, 1}}; }},
      {"aten::expand_copy", "", [](Draw& d) -> Arguments { return {d.Moving({2, 1}), Sizes{2, 2, 3}}; }},
      {"aten::select_copy.int", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), int64_t{1}, int64_t{2}}; }},
      {"aten::slice_copy.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), int64_t{1}, int64_t{1}}; }},
      {"aten::t_copy", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::transpose_copy.int", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), int64_t{0}, int64_t{-1}}; }},
      {"aten::unsqueeze_copy", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), int64_t{1}}; }},
      {"aten::squeeze_copy", "", [](Draw& d) -> Arguments { return {d.Moving({2, 1, 3})}; }},
      {"aten::squeeze_copy.dim", "", [](Draw& d) -> Arguments { return {d.Moving({2, 1, 3}), int64_t{1}}; }},
      {"aten::squeeze_copy.dims", "", [](Draw& d) -> Arguments { return {d.Moving({1, 2, 1, 3}), std::vector<int64_t>{0, 2}}; }},
      {"aten::diagonal_copy", "", [](Draw& d) -> Arguments { return {d.Moving({3, 3}), int64_t{1}}; }},
      {"aten::detach_copy", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::alias_copy", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
      {"aten::as_strided_copy", "", [](Draw& d) -> Arguments { return {d.Moving({6}), Sizes{2, 2}, Sizes{3, 1}}; }},
      {"aten::unfold_copy", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), int64_t{1}, int64_t{3}, int64_t{1}}; }},
      {"aten::split_copy.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({5, 2}), int64_t{2}}; }},
      {"aten::split_with_sizes_copy", "", [](Draw& d) -> Arguments { return {d.Moving({5, 2}), Sizes{1, 4}}; }},
      {"aten::unbind_copy.int", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), int64_t{1}}; }},
      {"aten::lift_fresh_copy", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3})}; }},
  };
  // Not every LibTorch has all of them.
  for (const Case& copy : copies) {
    const std::string name = copy.op;
    const size_t dot = name.find('.');
    if (Operator::Find(name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1))) cases->push_back(copy);
  }
}

// clang-format on

}  // namespace addend
