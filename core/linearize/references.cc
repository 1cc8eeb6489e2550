#include "core/linearize/references.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/linearize/random.h"
#include "core/linearize/rerun.h"
#include "core/linearize/view.h"

namespace addend {
namespace {

Kept& KeptOf(TracedRun& trace, const Operand& operand) {
  for (Kept& kept : trace.storages[operand.storage]) {
    if (kept.version == operand.version) return kept;
  }
  throw Internal("a traced tensor was not kept");
}

// native_dropout(input, p, train) -> (output, mask): the mask that the value's run drew holds for the reference.
std::vector<at::Tensor> DropAgain(const TracedRun& trace, const Call& call, const at::Tensor& input) {
  const double p = call.arguments[1].toDouble();
  const bool train = call.arguments[2].isNone() || call.arguments[2].toBool();
  if (!train) return {input};
  return {input.mul(trace.Value(call.outputs[1])).mul_(p < 1 ? 1 / (1 - p) : 0)};
}

}  // namespace

void References::Write(const Operand& target, const at::Tensor& before, const at::Tensor& now) {
  Kept& kept = KeptOf(*trace_, target);
  // A version that a write made keeps what was not written.
  kept.reference = before.defined() ? before.clone() : at::zeros({kept.value.numel()}, kept.value.options());
  ViewOf(kept.reference, target).copy_(now);
  kept.reference_is_finite = false;
  changed_.emplace(target.storage, target.version);
}

at::Tensor References::BeforeWrite(const Call& call, const Operand& target) const {
  for (const Operand& operand : call.operands) {
    if (!target.written || call.resized_output || operand.storage != target.storage) continue;
    const Kept& kept = KeptOf(*trace_, operand);
    return kept.reference.defined() ? kept.reference : kept.value;
  }
  return {};
}

void References::ReplaceStart(const Operand& start, const at::Tensor& reference) {
  const c10::AutoGradMode grad(trace_->differentiable);
  Write(start, at::Tensor(), reference);
}

void References::Replace(const Call& call, size_t output, const at::Tensor& reference) {
  const c10::AutoGradMode grad(trace_->differentiable);
  Write(call.outputs[output], BeforeWrite(call, call.outputs[output]), reference);
}

void References::Follow(const Call& call) {
  if (call.is_view || !call.Traced()) return;
  bool affected = false;
  for (const Operand& operand : call.operands) {
    affected = affected || (operand.decomposed && changed_.contains(std::make_pair(operand.storage, operand.version)));
  }
  if (!affected) return;
  const c10::AutoGradMode grad(trace_->differentiable);
  std::vector<at::Tensor> operands;
  for (const Operand& operand : call.operands) {
    operands.push_back(trace_->OnBaseline(operand));
  }
  const std::string name = RuleName(call.op.schema().name());
  if (name != "aten::native_dropout" && DrawsRandomNumbers(name)) {
    throw Error(absl::StatusCode::kUnimplemented, "a random operator would have to run again on another reference",
                call.position);
  }
  const std::vector<at::Tensor> results =
      name == "aten::native_dropout" ? DropAgain(*trace_, call, operands[0]) : Rerun(call, operands);
  for (size_t k = 0; k < call.outputs.size() && k < results.size(); ++k) {
    const Operand& target = call.outputs[k];
    if (target.storage < 0 || !target.decomposed) continue;
    Write(target, BeforeWrite(call, target), results[k]);
  }
}

}  // namespace addend
