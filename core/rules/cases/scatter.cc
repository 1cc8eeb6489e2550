#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "core/rules/cases/element_cases.h"

namespace addend {
namespace {

at::Tensor Ids(const std::vector<int64_t>& ids) { return at::tensor(ids, at::kLong); }

}  // namespace

// One case, one line, as far as it goes.
// clang-format off

void AddScatters(std::vector<Case>* cases) {
  const auto list = [](std::vector<c10::IValue> parts) { return OptionalListOf(parts); };
  // Several elements meet in one place, some places get none.
  const auto meeting = [] { return Ids({0, 2, 2, 0, 2, 1, 0, 2}).view({4, 2}); };
  const std::vector<Case> own = {
      {"aten::scatter_add", "", [=](Draw& d) -> Arguments { return {d.Moving({5, 3}), int64_t{0}, meeting(), d.Moving({4, 2})}; }},
      {"aten::scatter_add", "last", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), int64_t{-1}, meeting(), d.Moving({4, 2})}; }},
      {"aten::scatter_add", "larger_source", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), int64_t{-1}, meeting(), d.Moving({6, 3})}; }},
      {"aten::scatter_add", "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), int64_t{0}, d.Integers({}, 1), d.Moving({})}; }},
      {"aten::scatter_add", "nothing", [](Draw& d) -> Arguments { return {d.Moving({3}), int64_t{0}, d.Integers({0}, 3), d.Moving({0})}; }},
      {"aten::scatter.reduce", "add", [=](Draw& d) -> Arguments { return {d.Moving({5, 3}), int64_t{0}, meeting(), d.Moving({4, 2}), "add"}; }},
      {"aten::scatter.reduce", "multiply", [=](Draw& d) -> Arguments { return {d.Moving({5, 3}), int64_t{0}, meeting(), d.Moving({4, 2}), "multiply"}; }},
      {"aten::scatter.value_reduce", "add", [=](Draw& d) -> Arguments { return {d.Moving({5, 3}), int64_t{0}, meeting(), 1.5, "add"}; }},
      {"aten::scatter.value_reduce", "multiply", [=](Draw& d) -> Arguments { return {d.Moving({5, 3}), int64_t{0}, meeting(), 1.5, "multiply"}; }},
      {"aten::index_add", "", [](Draw& d) -> Arguments { return {d.Moving({4, 3}), int64_t{0}, Ids({2, 0, 2}), d.Moving({3, 3})}; }},
      {"aten::index_add", "alpha", [](Draw& d) -> Arguments { return {d.Moving({2, 4}), int64_t{-1}, Ids({2, 0, 2}), d.Moving({2, 3}), 0.5}; }},
      {"aten::index_add", "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), int64_t{0}, Ids({0}), d.Moving({})}; }},
      {"aten::put", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), Ids({3, -1, 0}), d.Moving({3})}; }},
      {"aten::put", "accumulate", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), Ids({3, -1, 3, 0}).view({2, 2}), d.Moving({4}), true}; }},
      {"aten::index_put", "", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), list({kNone, Ids({2, 0})}), d.Moving({4, 2})}; }},
      {"aten::index_put", "mask", [=](Draw& d) -> Arguments {
         return {d.Moving({2, 3}), list({Ids({1, 0, 1, 1, 0, 1}).view({2, 3}).to(at::kBool)}), d.Moving({4})};
       }},
      {"aten::index_put", "broadcast", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), list({Ids({-1, 0})}), d.Moving({})}; }},
      {"aten::index_put", "accumulate", [=](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), list({Ids({2, -2, 0}), Ids({1})}), d.Moving({3}), true};
       }},
      {"aten::index_put", "accumulate_apart", [=](Draw& d) -> Arguments {
         return {d.Moving({4, 3, 2}), list({Ids({2, 2}), kNone, Ids({1, 1})}), d.Moving({1, 3}), true};
       }},
      {"aten::_index_put_impl_", "", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), list({Ids({2, 2})}), d.Moving({2, 3}), true}; }},
      {"aten::_unsafe_index_put", "", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), list({Ids({2, 2})}), d.Moving({2, 3}), true}; }},
      {"aten::_index_put_impl_", "overwrites", [=](Draw& d) -> Arguments { return {d.Moving({4, 3}), list({Ids({2, 1})}), d.Moving({2, 3})}; }},
  };
  cases->insert(cases->end(), own.begin(), own.end());
  for (const char* how : {"sum", "mean", "prod", "amax", "amin"}) {
    const bool corners = how[0] == 'a';
    for (const bool include_self : {true, false}) {
      static const char* const names[2][5] = {{"sum_alone", "mean_alone", "prod_alone", "amax_alone", "amin_alone"},
                                              {"sum", "mean", "prod", "amax", "amin"}};
      const int which = how[0] == 's' ? 0 : how[0] == 'm' ? 1 : how[0] == 'p' ? 2 : how[2] == 'a' ? 3 : 4;
      const char* what = names[include_self ? 1 : 0][which];
      cases->push_back({"aten::scatter_reduce.two", what, [=](Draw& d) -> Arguments {
                          return {d.Moving({5, 3}), int64_t{0}, meeting(), d.Moving({4, 2}), how, include_self};
                        }, corners});
      if (which == 0) continue;
      cases->push_back({"aten::index_reduce", what, [=](Draw& d) -> Arguments {
                          return {d.Moving({2, 4}), int64_t{1}, Ids({2, 0, 2, 2}), d.Moving({2, 4}), how, include_self};
                        }, corners});
    }
  }
  // segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe, initial)
  const auto lengths = [] { return Ids({2, 1, 3}); };
  const auto offsets = [] { return Ids({0, 2, 3, 6}); };
  const std::vector<Case> segments = {
      {"aten::segment_reduce", "sum", [=](Draw& d) -> Arguments { return {d.Moving({6, 2}), "sum", lengths()}; }},
      {"aten::segment_reduce", "mean", [=](Draw& d) -> Arguments { return {d.Moving({6}), "mean", lengths()}; }},
      {"aten::segment_reduce", "mean_from", [=](Draw& d) -> Arguments {
         return {d.Moving({6, 2}), "mean", lengths(), kNone, kNone, int64_t{0}, false, 1.5};
       }},
      {"aten::segment_reduce", "max", [=](Draw& d) -> Arguments { return {d.Moving({6, 2}), "max", lengths()}; }, kCorners},
      {"aten::segment_reduce", "max_from", [=](Draw& d) -> Arguments {
         return {d.Moving({6, 2}), "max", lengths(), kNone, kNone, int64_t{0}, false, 0.25};
       }, kCorners},
      {"aten::segment_reduce", "min", [=](Draw& d) -> Arguments {
         return {d.Moving({6, 2}), "min", kNone, kNone, offsets()};
       }, kCorners},
      {"aten::segment_reduce", "prod", [=](Draw& d) -> Arguments { return {d.Moving({6, 2}), "prod", lengths()}; }},
      {"aten::segment_reduce", "prod_from", [=](Draw& d) -> Arguments {
         return {d.Moving({6, 2}), "prod", lengths(), kNone, kNone, int64_t{0}, false, 1.5};
       }},
      {"aten::segment_reduce", "behind", [=](Draw& d) -> Arguments {
         return {d.Moving({2, 4, 3}), "sum", Ids({3, 1, 0, 0, 2, 2}).view({2, 3}), kNone, kNone, int64_t{1}};
       }},
  };
  cases->insert(cases->end(), segments.begin(), segments.end());
}

// clang-format on

}  // namespace addend
