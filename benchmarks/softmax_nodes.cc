// How far the scores of a trained model's attention move between a baseline and an input, how many nodes the paths of
// its softmax take for that, and what an attribution costs with them and without: see README.md.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "benchmarks/one_by_one.h"
#include "core/explain/attribute.h"
#include "core/load/load_model.h"
#include "core/model/model.h"
#include "core/program/tensor_io.h"
#include "core/rules/registry.h"
#include "core/rules/softmax_path.h"

namespace {

using addend::AttributeOptions;
using addend::Registry;
using addend::RuleCall;
using at::Tensor;

struct Row {
  double half_range = 0;
  size_t nodes = 0;
};

// Measures each row of a softmax: half the range by which its scores move, and the nodes that it takes in the dtype.
void Measure(const RuleCall& call, std::vector<Row>* rows) {
  const addend::RuleOperand& scores = call.operands[0];
  const Tensor stays = scores.value.eq(scores.reference);  // masked: infinite in both
  const Tensor move = (scores.value - scores.reference).masked_fill(stays, 0).movedim(call.Int("dim", -1), -1);
  const Tensor shown = scores.value.isfinite().movedim(call.Int("dim", -1), -1);
  constexpr double kFar = std::numeric_limits<float>::max();
  const Tensor half = (move.masked_fill(~shown, -kFar).amax(-1) - move.masked_fill(~shown, kFar).amin(-1)) / 2;
  const Tensor flat = half.to(at::kDouble).contiguous().view(-1);
  for (int64_t k = 0; k < flat.numel(); ++k) {
    const double own = flat.data_ptr<double>()[k];
    const auto rule = addend::PathNodes(own, scores.value.scalar_type());
    rows->push_back({own, rule == nullptr ? 0 : rule->nodes.size()});
  }
}

// Attention by its parts, with every softmax shown to `rows`.
Registry Watching(std::vector<Row>* rows) {
  Registry watching = OneByOne();
  for (const char* name : {"aten::softmax", "aten::_softmax"}) {
    addend::Rule own = *watching.Find(name, name);
    own.build = [rows, build = own.build](const RuleCall& call) {
      Measure(call, rows);
      return build(call);
    };
    watching.Register(std::move(own));
  }
  return watching;
}

double MedianSeconds(const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int k = 0; k < 9; ++k) {
    const auto start = std::chrono::steady_clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + 4, seconds.end());
  return seconds[4];
}

// The smallest of sorted numbers that a share of them does not exceed.
template <typename T>
T Quantile(const std::vector<T>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

// `baseline`: a number, or a token, which all parts have there.
void Run(const std::string& path, const std::string& file, const std::string& baseline) {
  const c10::AutoGradMode no_grad(false);
  const addend::TensorPlace place = addend::ParseTensorPlace(file);
  const Tensor all = addend::SelectTensor(addend::ReadTensorFile(place.path), place, {"input"}).second;
  const addend::TracedModel model(addend::LoadModel(path));
  addend::Input input;
  input.split = addend::Split::AlongDims({1});
  AttributeOptions options;
  options.policy.preset = addend::Preset::kFaithful;
  input.baseline = addend::Baseline::Of(std::stod(baseline));
  std::vector<Row> rows;
  const Registry watching = Watching(&rows);
  const int64_t samples = std::min<int64_t>(all.size(0), 8);
  for (int64_t k = 0; k < samples; ++k) {
    input.value = all.narrow(0, k, 1).clone();
    AttributeOptions watched = options;
    watched.registry = &watching;
    addend::Attribute(model, {input}, watched);
  }
  std::vector<double> half_ranges;
  std::vector<size_t> nodes;
  double sum = 0;
  for (const Row& row : rows) {
    half_ranges.push_back(row.half_range);
    nodes.push_back(row.nodes);
    sum += static_cast<double>(row.nodes);
  }
  std::sort(half_ranges.begin(), half_ranges.end());
  std::sort(nodes.begin(), nodes.end());
  std::printf("%s: %zu rows of %lld samples\n", path.c_str(), rows.size(), static_cast<long long>(samples));
  std::printf("half range of the move: median %.2f, 90 %% %.2f, largest %.2f\n", Quantile(half_ranges, 0.5),
              Quantile(half_ranges, 0.9), half_ranges.back());
  std::printf("nodes: mean %.1f, median %zu, 90 %% %zu, most %zu\n", sum / static_cast<double>(rows.size()),
              Quantile(nodes, 0.5), Quantile(nodes, 0.9), nodes.back());

  input.value = all.narrow(0, 0, 1).clone();
  const double plain = MedianSeconds([&] { model.model()->Run({input.value}); });
  const double path_seconds = MedianSeconds([&] { addend::Attribute(model, {input}, options); });
  addend::SetPolicyField(options.policy, "freeze", "attention");
  const double frozen = MedianSeconds([&] { addend::Attribute(model, {input}, options); });
  std::printf("plain run %.2f ms; attribution %.2f plain runs, with attention frozen %.2f\n", 1e3 * plain,
              path_seconds / plain, frozen / plain);
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  if (argc != 4) {
    std::fprintf(stderr, "usage: softmax_nodes MODEL FILE[#NAME] BASELINE\n  FILE: samples, [samples, parts, ...]\n");
    return 2;
  }
  try {
    Run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
