#include "core/linearize/references.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <vector>

#include "core/base/error.h"
#include "core/program/invoke.h"
#include "core/program/operator_traits.h"
#include "core/program/view.h"
#include "core/run/role.h"

namespace addend {

TracedRun& References::Changed() {
  if (own_ == nullptr) {
    own_ = std::make_shared<TracedRun>(*trace_);
    trace_ = own_;
  }
  return *own_;
}

void References::Write(const Operand& target, const at::Tensor& before, const at::Tensor& now) {
  Version& kept = VersionOf(Changed(), target);
  // A version that a write made keeps what was not written.
  kept.reference = before.defined() ? before.clone() : at::zeros({kept.value.numel()}, kept.value.options());
  ViewOf(kept.reference, target).copy_(now);
  kept.Forget();
  changed_.insert(VersionIdOf(target));
}

at::Tensor References::BeforeWrite(const Call& call, const Operand& target) const {
  for (const Operand& operand : call.operands) {
    if (!target.written || call.resized_output || operand.storage != target.storage) continue;
    const Version& kept = trace_->At(operand);
    return kept.reference.defined() ? kept.reference : kept.value;
  }
  return {};
}

void References::ReplaceStart(const Operand& start, const at::Tensor& reference) {
  const c10::AutoGradMode grad(trace_->differentiable);
  Write(start, at::Tensor(), reference);
}

void References::AbsorbStartLeftovers() {
  for (size_t k = 0; k < trace_->starts.size(); ++k) {
    const Start& start = trace_->starts[k];
    if (!start.leftover.defined()) continue;
    const Operand operand = start.operand;
    ReplaceStart(operand, trace_->Reference(operand) + ViewOf(start.leftover, operand).to(operand.dtype));
    Changed().starts[k].leftover = at::Tensor();
  }
}

void References::Replace(const Call& call, size_t output, const at::Tensor& reference) {
  const c10::AutoGradMode grad(trace_->differentiable);
  Write(call.outputs[output], BeforeWrite(call, call.outputs[output]), reference);
}

void References::Evaluate(const Call& call, const Rule* rule) {
  if (call.is_view || !call.Traced()) return;
  bool affected = false;
  for (const Operand& operand : call.operands) {
    affected = affected || (operand.decomposed && changed_.contains(VersionIdOf(operand)));
  }
  if (!affected) return;
  const c10::AutoGradMode grad(trace_->differentiable);
  std::vector<at::Tensor> operands;
  for (const Operand& operand : call.operands) {
    operands.push_back(trace_->OnBaseline(operand));
  }
  std::vector<at::Tensor> results;
  if (rule != nullptr && rule->evaluate != nullptr) {
    results = rule->evaluate(ArgumentsOf(call, call.arguments), operands[0],
                             [&](size_t k) { return trace_->Value(call.outputs[k]); });
  } else if (OperatorTraits(call.op.schema()).Draws(call.arguments)) {
    throw Error(absl::StatusCode::kUnimplemented, "a random operator would have to run again on another reference",
                call.position);
  } else {
    results = Invoke(call, operands);
  }
  for (size_t k = 0; k < call.outputs.size() && k < results.size(); ++k) {
    const Operand& target = call.outputs[k];
    if (target.storage < 0 || !target.decomposed) continue;
    Write(target, BeforeWrite(call, target), results[k]);
  }
}

}  // namespace addend
