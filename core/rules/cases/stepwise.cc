#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "core/rules/cases/cases.h"

namespace addend {
namespace {

at::Tensor Integers(const std::vector<int64_t>& list) { return at::tensor(list, at::kLong); }

// Two trees of seven branches and eight leaves, with each mode, and a chain that compares one feature with two numbers.
Arguments TwoTrees(Draw& d, const GivenArgument& input, int64_t num_targets) {
  std::vector<int64_t> starts = {0}, targets;
  for (int64_t leaf = 0; leaf < 8; ++leaf) {
    for (int64_t k = 0; k < num_targets; ++k) {
      if (k == 0 || (leaf + k) % 3 > 0) targets.push_back(k);
    }
    starts.push_back(static_cast<int64_t>(targets.size()));
  }
  const at::Tensor modes = Integers({0, 1, 2, 3, 4, 4, 5});
  // Two numbers of the input are tested for, so that some comparison for equality holds.
  at::Tensor thresholds = d.Normal({7}, 0.5);
  const at::Tensor equal = input.value.toTensor().select(1, 3);
  thresholds.select(0, 4).copy_(equal.select(0, 0));
  thresholds.select(0, 5).copy_(equal.select(0, 1));
  return {input,
          Integers({0, 4}),
          Integers({0, 1, 2, 0, 3, 3, 1}),
          modes,
          thresholds,
          Integers({1, 2, -1, -2, -3, 3, -4, -5, 6, 5, 6, -6, -7, -8}).reshape({7, 2}),
          d.Booleans({7}),
          Integers(starts),
          Integers(targets),
          d.Normal({static_cast<int64_t>(targets.size())}),
          num_targets};
}

}  // namespace

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
  cases->push_back({"addend::tree_ensemble", "", [](Draw& d) -> Arguments { const GivenArgument x = d.Moving({3, 4}); return TwoTrees(d, x, 1); }});
  cases->push_back({"addend::tree_ensemble", "targets", [](Draw& d) -> Arguments { const GivenArgument x = d.Moving({3, 4}); return TwoTrees(d, x, 3); }});
}

}  // namespace addend
