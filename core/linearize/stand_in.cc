#include "core/linearize/stand_in.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/base/error.h"
#include "core/linearize/random.h"
#include "core/linearize/rerun.h"

namespace addend {
namespace {

Kept& KeptOf(TracedRun& trace, const Operand& operand) {
  for (Kept& kept : trace.storages[operand.storage]) {
    if (kept.version == operand.version) return kept;
  }
  throw Internal("a traced tensor was not kept");
}

}  // namespace

void ReplaceReference(TracedRun& trace, int64_t first, size_t output, const at::Tensor& reference) {
  const c10::AutoGradMode no_grad(false);
  absl::flat_hash_set<std::pair<int, int>> changed;  // storage and version
  const auto replace = [&](const Operand& target, const at::Tensor& before, const at::Tensor& now) {
    Kept& kept = KeptOf(trace, target);
    // A version that a write made keeps what was not written.
    kept.reference = before.defined() ? before.clone() : at::zeros({kept.value.numel()}, kept.value.options());
    ViewOf(kept.reference, target.geometry).copy_(now);
    changed.emplace(target.storage, target.version);
  };
  const auto before_write = [&](const Call& call, const Operand& target) -> at::Tensor {
    for (const Operand& operand : call.operands) {
      if (!target.written || call.resized_output || operand.storage != target.storage) continue;
      const Kept& kept = KeptOf(trace, operand);
      return kept.reference.defined() ? kept.reference : kept.value;
    }
    return {};
  };
  const std::vector<Call>& calls = trace.program.calls;
  const Operand& replaced = calls[first].outputs[output];
  replace(replaced, before_write(calls[first], replaced), reference);
  for (size_t c = first + 1; c < calls.size(); ++c) {
    const Call& call = calls[c];
    if (call.is_view || !call.Traced()) continue;
    bool affected = false;
    std::vector<at::Tensor> operands;
    for (const Operand& operand : call.operands) {
      affected = affected || (operand.decomposed && changed.contains(std::make_pair(operand.storage, operand.version)));
      operands.push_back(operand.decomposed ? trace.Reference(operand) : trace.Value(operand));
    }
    if (!affected) continue;
    if (DrawsRandomNumbers(RuleName(call.op.schema().name()))) {
      throw Error(absl::StatusCode::kUnimplemented, "a reference that is not finite reaches a random operator",
                  call.position, "choose another baseline");
    }
    const std::vector<at::Tensor> results = Rerun(call, operands);
    for (size_t k = 0; k < call.outputs.size() && k < results.size(); ++k) {
      const Operand& target = call.outputs[k];
      if (target.storage < 0 || !target.decomposed) continue;
      replace(target, before_write(call, target), results[k]);
    }
  }
}

}  // namespace addend
