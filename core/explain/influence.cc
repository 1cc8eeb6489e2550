#include "core/explain/influence.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
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
  return absl::StrCat("the examples influence each other: ", what,
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

// [examples]: the elements of the Thue-Morse sequence.
at::Tensor Halves(int64_t examples, const at::TensorOptions& options) {
  std::vector<double> halves;
  for (int64_t e = 0; e < examples; ++e) {
    bool odd = false;
    for (int64_t rest = e; rest > 0; rest &= rest - 1) odd = !odd;
    halves.push_back(odd);
  }
  return at::tensor(halves, options.dtype(at::kDouble));
}

// One where the example has this number, [examples].
at::Tensor Alone(int64_t example, int64_t examples, const at::TensorOptions& options) {
  at::Tensor alone = at::zeros({examples}, options.dtype(at::kDouble));
  alone.select(0, example).fill_(1);
  return alone;
}

// A note where something comes back to an example from targets of the other half. second: [examples], one in the second
// half.
std::string OfHalves(const std::vector<Contributions>& targets, const at::Tensor& cotangent, size_t kind,
                     const at::Tensor& second, const SendBack& send_back) {
  const int64_t examples = cotangent.size(1);
  const at::Tensor in_half = at::stack({1 - second, second});  // [2, examples]
  at::DimVector sizes(static_cast<size_t>(cotangent.dim()), 1);
  sizes[0] = 2;
  sizes[1] = examples;
  const at::Tensor mask = in_half.to(RealDtype(cotangent.scalar_type())).view(sizes);
  at::Tensor leaked = at::zeros_like(in_half);
  for (const at::Tensor& elements : send_back(cotangent.select(0, static_cast<int64_t>(kind)).unsqueeze(0) * mask)) {
    if (!elements.defined() || elements.numel() == 0) continue;
    const at::Tensor magnitudes = elements.reshape({2, examples, -1}).abs().to(at::kDouble);
    const at::Tensor finite = magnitudes.masked_fill(at::isfinite(magnitudes).logical_not_(), 0);
    leaked += finite.sum(-1).to(in_half.device()) * (1 - in_half);
  }
  const std::vector<double> from_others = Doubles(std::get<0>(leaked.max(0)));
  for (size_t e = 0; e < from_others.size(); ++e) {
    const Contributions& own = targets[kind * static_cast<size_t>(examples) + e];
    if (!(from_others[e] > kMost * own.rounding)) continue;
    return Note(absl::StrCat("example ", e, " contributes ", TwoDigits(from_others[e]), " to targets of others"),
                "Attribute them one by one");
  }
  return {};
}

}  // namespace

std::string KnownInfluence::Find(const std::function<std::string()>& find) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!found_) found_ = find();
  return *found_;
}

std::string InfluenceOf(const Linearization& linearization, const std::vector<Contributions>& targets,
                        const at::Tensor& cotangent, const AdjointResult& result, const SendBack& send_back,
                        KnownInfluence* known) {
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
    if (OfHalves(targets, cotangent, *found / static_cast<size_t>(examples), alone, send_back).empty()) return {};
    return Note(absl::StrCat("example ", example, " has a leftover of ", TwoDigits(targets[*found].leftover),
                             ", which no operator left over"),
                "Attribute them one by one");
  }
  if (linearization.policy.check == Check::kOff) return {};
  const auto some = std::find_if(left.begin(), left.end(), [](double one) { return one != 0; });
  if (some == left.end()) return {};
  const auto find = [&] {
    return OfHalves(targets, cotangent, static_cast<size_t>(some - left.begin()), Halves(examples, cotangent.options()),
                    send_back);
  };
  return known == nullptr ? find() : known->Find(find);
}

}  // namespace addend
