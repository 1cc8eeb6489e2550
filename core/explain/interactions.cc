#include "core/explain/interactions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/explain/examples.h"

namespace addend {
namespace {

std::vector<double> ByGroup(const std::vector<double>& contributions, const std::vector<int64_t>& groups,
                            int64_t count) {
  std::vector<double> sums(static_cast<size_t>(count), 0.0);
  for (size_t c = 0; c < groups.size(); ++c) sums[groups[c]] += contributions[c];
  return sums;
}

double AsymmetryOf(const std::vector<std::vector<double>>& matrix) {
  double apart = 0;
  double size = 0;
  for (size_t i = 0; i < matrix.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      apart += std::abs(matrix[i][j] - matrix[j][i]);
      size += std::abs(matrix[i][j]) + std::abs(matrix[j][i]);
    }
  }
  return size == 0 ? 0 : apart / size;
}

}  // namespace

Interactions AttributeInteractions(const TracedModel& model, const std::vector<Input>& inputs,
                                   const std::vector<int64_t>& groups, const AttributeOptions& options,
                                   int64_t at_once) {
  if (options.each_example || options.targets.size() != 1) {
    throw InvalidArgument("interactions are those of one target of one example; ask for one at a time");
  }
  const PreparedInputs prepared = Prepare(inputs, model.model()->NamedTensors());
  if (static_cast<int64_t>(groups.size()) != prepared.numc) {
    throw InvalidArgument(
        absl::StrCat("there are ", groups.size(), " numbers of groups for ", prepared.numc, " components"));
  }
  int64_t count = 0;
  for (const int64_t group : groups) {
    if (group < 0) throw InvalidArgument("groups count from 0");
    count = std::max(count, group + 1);
  }
  Examples runner(model, inputs, prepared, options, "with a group at its baseline", at_once);
  Interactions result;
  result.attribution = runner.First(inputs);
  result.numbers = result.attribution.targets.at(0);
  const Target target = result.numbers.target;
  // The group of each element, by input; -1: none.
  const at::Tensor by_component = at::tensor(groups, at::kLong);
  std::vector<at::Tensor> group_of;
  for (const PreparedInput& own : prepared.inputs) {
    if (own.kind == Split::Kind::kPlain) {
      group_of.emplace_back();
      continue;
    }
    const at::Tensor labels = own.labels.to(at::kCPU);
    const at::Tensor taken = by_component.index_select(0, labels.clamp_min(0).reshape({-1})).view(labels.sizes());
    group_of.push_back(taken.masked_fill(labels.lt(0), -1).to(own.value.device()));
  }
  // Number 0 is the input, number j + 1 has group j at its baseline.
  const auto example = [&](int64_t i) {
    Example own;
    own.target = target;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const PreparedInput& one = prepared.inputs[k];
      const bool plain = one.kind == Split::Kind::kPlain;
      own.values.push_back(plain || i == 0 ? one.value
                                           : at::where(group_of[k].eq(i - 1), one.reference, one.value).contiguous());
      own.baselines.push_back(plain ? at::Tensor() : one.reference);
      own.labels.push_back(plain ? at::Tensor() : one.labels);
    }
    return own;
  };
  std::vector<std::vector<double>> without(static_cast<size_t>(count));
  const auto take = [&](int64_t i, ExampleAttribution one) {
    std::vector<double> sums = ByGroup(one.numbers.contributions, groups, count);
    if (i == 0) {
      // That of the same batch, so that rounding is the same in all.
      result.contributions = std::move(sums);
      result.numbers.contributions = std::move(one.numbers.contributions);
      result.numbers.reference = one.numbers.reference;
      result.numbers.leftover = one.numbers.leftover;
      AddUp(result.numbers);
      return;
    }
    without[i - 1] = std::move(sums);
    result.values.push_back(one.numbers.value);
    result.leftovers.push_back(one.numbers.leftover);
  };
  runner.Run(count + 1, example, take);
  runner.Finish();
  result.matrix.assign(static_cast<size_t>(count), std::vector<double>(static_cast<size_t>(count), 0.0));
  for (int64_t i = 0; i < count; ++i) {
    double rest = 0;
    for (int64_t j = 0; j < count; ++j) {
      if (j == i) continue;
      result.matrix[i][j] = result.contributions[i] - without[j][i];
      rest += result.matrix[i][j];
    }
    result.matrix[i][i] = result.contributions[i] - rest;
  }
  result.asymmetry = AsymmetryOf(result.matrix);
  runner.AddTo(result.attribution.report);
  return result;
}

}  // namespace addend
