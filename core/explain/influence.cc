#include "core/explain/influence.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/explain/notes.h"
#include "core/program/view.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

// Beyond so many allowances of a target, a number is not rounding.
constexpr double kMost = 16;

// Whether an operator normalizes by the numbers of a batch of so many examples.
bool NormalizesByBatch(const Call& call, int64_t examples) {
  const c10::FunctionSchema& schema = call.op.schema();
  if (!absl::StrContains(schema.name(), "batch_norm") || absl::EndsWith(schema.name(), "no_training")) return false;
  // An instance normalization calls it, too, and makes one example of all.
  if (call.operands.empty() || call.operands[0].geometry.sizes.empty() ||
      call.operands[0].geometry.sizes[0] != examples) {
    return false;
  }
  const auto training = schema.argumentIndexWithName("training");
  if (!training || !call.arguments[*training].isBool() || call.arguments[*training].toBool()) return true;
  const auto mean = schema.argumentIndexWithName("running_mean");
  return std::none_of(call.operands.begin(), call.operands.end(), [&](const Operand& operand) {
    return mean && operand.storage >= 0 && operand.argument == *mean;
  });
}

std::string Note(const std::string& what, const std::string& remedy) {
  return absl::StrCat(WordsOf(NoteKind::kInfluence).begins, what,
                      "; what an example gives to the others counts as its own contribution, and what it gets from "
                      "them as its leftover. ",
                      remedy);
}

std::string OfNormalization(const Linearization& linearization, int64_t examples) {
  for (const Call& call : linearization.trace->calls) {
    if (!NormalizesByBatch(call, examples)) continue;
    return Note(absl::StrCat(FirstPositions({call.position}), " normalizes by the numbers of the batch"),
                "Put the model into evaluation mode");
  }
  return {};
}

// The first target with a leftover that no operator left over; none where there is none. left: by kind of target, what
// operators left over.
std::optional<size_t> WithLeftover(const std::vector<Contributions>& targets, const std::vector<double>& left,
                                   size_t examples) {
  for (size_t t = 0; t < targets.size(); ++t) {
    const Contributions& target = targets[t];
    if (left[t / examples] != 0 || !std::isfinite(target.leftover)) continue;
    if (target.target.quantity != Target::Quantity::kElement || std::abs(target.leftover) <= kMost * target.rounding)
      continue;
    return t;
  }
  return std::nullopt;
}

// One where the example has this number, [examples].
at::Tensor Alone(int64_t example, int64_t examples, const at::TensorOptions& options) {
  at::Tensor alone = at::zeros({examples}, options.dtype(at::kDouble));
  alone.select(0, example).fill_(1);
  return alone;
}

// [rows, examples, elements] of each input that has any.
std::vector<at::Tensor> ByExample(const std::vector<at::Tensor>& elements, int64_t rows, int64_t examples) {
  std::vector<at::Tensor> by_example;
  for (const at::Tensor& own : elements) {
    if (own.defined() && own.numel() > 0) by_example.push_back(own.reshape({rows, examples, -1}));
  }
  return by_example;
}

// Gives what comes to the elements of examples, [R, examples, elements], from targets whose examples have the weights
// [R, examples]; one tensor for each input.
std::vector<at::Tensor> Send(const at::Tensor& cotangent, size_t kind, const at::Tensor& weights,
                             const SendBack& send_back) {
  const int64_t examples = cotangent.size(1);
  at::DimVector sizes(static_cast<size_t>(cotangent.dim()), 1);
  sizes[0] = weights.size(0);
  sizes[1] = examples;
  const at::Tensor mask = weights.to(RealDtype(cotangent.scalar_type())).view(sizes);
  return ByExample(send_back(cotangent.select(0, static_cast<int64_t>(kind)).unsqueeze(0) * mask), sizes[0], examples);
}

// The sums of magnitudes over the last dimension, where they are finite, on the device of `like`.
at::Tensor Magnitudes(const at::Tensor& t, const at::Tensor& like) {
  const at::Tensor magnitudes = t.abs().to(at::kDouble);
  return magnitudes.masked_fill(at::isfinite(magnitudes).logical_not_(), 0).sum(-1).to(like.device());
}

// A note where something comes back to an example from targets of another group. second: [examples], one in the second
// group.
std::string BetweenGroups(const std::vector<Contributions>& targets, const at::Tensor& cotangent, size_t kind,
                          const at::Tensor& second, const SendBack& send_back) {
  const at::Tensor in_group = at::stack({1 - second, second});  // [2, examples]
  at::Tensor leaked = at::zeros_like(in_group);
  for (const at::Tensor& sent : Send(cotangent, kind, in_group, send_back)) {
    leaked += Magnitudes(sent, leaked) * (1 - in_group);
  }
  const std::vector<double> from_others = Doubles(std::get<0>(leaked.max(0)));
  for (size_t e = 0; e < from_others.size(); ++e) {
    const Contributions& own = targets[kind * from_others.size() + e];
    if (!(from_others[e] > kMost * own.rounding)) continue;
    return Note(absl::StrCat("example ", e, " contributes ", TwoDigits(from_others[e]), " to targets of others"),
                "Attribute them one by one");
  }
  return {};
}

// Powers of two, by which numbers are multiplied without rounding, [examples]. The first sixteen differ; which of the
// others are equal follows no pattern that a model might follow as well.
at::Tensor Weights(int64_t examples, const at::TensorOptions& options) {
  std::mt19937_64 draw;  // the same numbers everywhere
  std::vector<double> weights;
  for (int64_t e = 0; e < examples; ++e) {
    weights.push_back(std::ldexp(1, static_cast<int>(e < 16 ? e : static_cast<int64_t>(draw() >> 60)) - 8));
  }
  return at::tensor(weights, options.dtype(at::kDouble));
}

// The example whose share changes most, beside its rounding, when each example's target is multiplied by a weight, in
// another way than by its own weight; none where that is rounding. given: what comes to the elements of examples
// without weights, [examples, elements] of each input.
std::optional<int64_t> MostSuspect(const std::vector<Contributions>& targets, const at::Tensor& cotangent, size_t kind,
                                   const std::vector<at::Tensor>& given, const SendBack& send_back) {
  const at::Tensor weights = Weights(cotangent.size(1), cotangent.options());
  at::Tensor changed = at::zeros_like(weights);
  const std::vector<at::Tensor> sent = Send(cotangent, kind, weights.unsqueeze(0), send_back);
  for (size_t k = 0; k < sent.size(); ++k) {
    const at::Tensor own = weights.to(sent[k].device(), RealDtype(sent[k].scalar_type())).unsqueeze(1);
    changed += Magnitudes(sent[k][0] / own - given[k], changed);
  }
  const std::vector<double> by_example = Doubles(changed);
  std::optional<int64_t> found;
  double most = kMost;
  for (size_t e = 0; e < by_example.size(); ++e) {
    const double beside = by_example[e] / targets[kind * by_example.size() + e].rounding;
    if (!(beside > most)) continue;
    most = beside;
    found = static_cast<int64_t>(e);
  }
  return found;
}

}  // namespace

std::string KnownInfluence::Find(const std::function<std::string()>& find) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!found_) found_ = find();
  return *found_;
}

std::string InfluenceOf(const Linearization& linearization, const std::vector<Contributions>& targets,
                        const at::Tensor& cotangent, const AdjointResult& result,
                        const std::vector<at::Tensor>& elements, const SendBack& send_back, KnownInfluence* known) {
  const c10::AutoGradMode no_grad(false);
  const int64_t examples = cotangent.size(1);
  if (examples < 2) return {};
  std::string note = OfNormalization(linearization, examples);
  if (!note.empty()) return note;
  const std::vector<double> left = Doubles(result.leftover);
  if (const auto found = WithLeftover(targets, left, static_cast<size_t>(examples))) {
    const auto example = static_cast<int64_t>(*found) % examples;
    // Rounding leaves something as well; then nothing passes between this example and the others.
    const at::Tensor alone = Alone(example, examples, cotangent.options());
    if (BetweenGroups(targets, cotangent, *found / static_cast<size_t>(examples), alone, send_back).empty()) return {};
    return Note(absl::StrCat("example ", example, " has a leftover of ", TwoDigits(targets[*found].leftover),
                             ", which no operator left over"),
                "Attribute them one by one");
  }
  if (linearization.policy.check == Check::kOff) return {};
  const auto some = std::find_if(left.begin(), left.end(), [](double one) { return one != 0; });
  const size_t kind = some == left.end() ? 0 : static_cast<size_t>(some - left.begin());
  const auto find = [&]() -> std::string {
    // The first sweep is that of all pieces of a line that is cut, and others are of one piece.
    const bool cut = linearization.policy.segments > 1;
    std::vector<at::Tensor> given =
        cut ? Send(cotangent, kind, at::ones({1, examples}, cotangent.options().dtype(at::kDouble)), send_back)
            : ByExample(elements, cotangent.size(0), examples);
    for (at::Tensor& own : given) own = own.select(0, cut ? 0 : static_cast<int64_t>(kind));
    const auto suspect = MostSuspect(targets, cotangent, kind, given, send_back);
    if (!suspect) return {};
    // Terms that cancel may round otherwise. What is nothing stays nothing.
    return BetweenGroups(targets, cotangent, kind, Alone(*suspect, examples, cotangent.options()), send_back);
  };
  return known == nullptr ? find() : known->Find(find);
}

}  // namespace addend
