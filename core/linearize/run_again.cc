#include "core/linearize/run_again.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/intercept/tracing_scope.h"
#include "core/linearize/call_at_hand.h"
#include "core/linearize/fingerprint.h"
#include "core/linearize/rerun.h"
#include "core/linearize/storage_states.h"
#include "core/linearize/view.h"
#include "core/program/call_text.h"
#include "core/program/written_aside.h"

namespace addend {
namespace {

[[noreturn]] void Differs(const Call& call, const char* what) {
  throw Error(absl::StatusCode::kFailedPrecondition,
              absl::StrCat(FullName(call.op.schema()), " gives ", what,
                           " when it runs again, so that its results cannot ", "be dropped and made again"),
              call.position, "attribute without a memory limit");
}

// Runs a call on the value or on the baseline and returns the tensors of its outputs. Writes go to copies of the
// storages, which `written` gets.
std::vector<at::Tensor> Give(const TracedRun& trace, const Call& call, bool on_baseline,
                             absl::flat_hash_map<int, at::Tensor>* written) {
  const auto flat = [&](const Operand& operand) {
    const Kept& kept = trace.At(operand);
    const bool reference =
        on_baseline && kept.reference.defined() && (operand.written || operand.decomposed || trace.baseline_conditions);
    const at::Tensor& all = reference ? kept.reference : kept.value;
    if (!all.defined()) throw Internal("an operand of a call that runs again was dropped");
    return all;
  };
  for (const Operand& operand : call.operands) {
    if (operand.written && operand.storage >= 0) written->try_emplace(operand.storage, flat(operand).clone());
  }
  std::vector<at::Tensor> operands;
  std::vector<at::Tensor> given;  // what is written
  for (const Operand& operand : call.operands) {
    if (operand.storage < 0) {
      operands.emplace_back();
      continue;
    }
    const auto own = written->find(operand.storage);
    at::Tensor tensor = GivenAgain(own != written->end() ? own->second : flat(operand), operand);
    const bool aside = !operand.written && MayBeWrittenAside(call.op.schema().arguments()[operand.argument]);
    operands.push_back(aside ? tensor.clone() : tensor);
    if (operand.written) given.push_back(tensor);
  }
  Stack stack = StackRecipe(call, /*without_out=*/false).Make(call.arguments, operands);
  call.op.Run(&stack);
  return given.empty() ? TensorsIn(stack) : given;
}

void KeepOrCompare(const Call& call, const Operand& output, const at::Tensor& again, at::Tensor& kept) {
  if (!kept.defined()) {
    kept = again;
  } else if (!SameBits(ViewOf(kept, output), ViewOf(again, output))) {
    Differs(call, "other numbers");
  }
}

void RequireFingerprint(const Call& call, const Kept& kept) {
  if (kept.fingerprint != 0 && FingerprintOf(kept.value, kept.reference) != kept.fingerprint) {
    Differs(call, "other numbers");
  }
}

at::Tensor Nothing(const at::Tensor& value) { return at::full_like(value, std::numeric_limits<double>::quiet_NaN()); }

// Runs a call on the baseline. Returns NaN if the operator fails there, as ReferenceRun does.
std::vector<at::Tensor> ReferencesOf(const TracedRun& trace, const Call& call, const std::vector<at::Tensor>& values,
                                     absl::flat_hash_map<int, at::Tensor>* written) {
  try {
    return Give(trace, call, /*on_baseline=*/true, written);
  } catch (const c10::Error&) {
    for (const Operand& output : call.outputs) {
      if (output.written) ViewOf((*written)[output.storage], output).fill_(std::numeric_limits<double>::quiet_NaN());
    }
    std::vector<at::Tensor> references;
    for (const at::Tensor& value : values) references.push_back(value.defined() ? Nothing(value) : value);
    return references;
  }
}

}  // namespace

void RunAgain(TracedRun& trace, const Call& linearized) {
  const Call& call = linearized.AsMade();
  const TracingPause pause;
  const c10::AutoGradMode no_grad(false);
  // Its numbers are those of the operator that was rewritten.
  if (linearized.adopted != 0) Differs(call, "the numbers of its rewrite");
  absl::flat_hash_map<int, at::Tensor> values_written;
  absl::flat_hash_map<int, at::Tensor> references_written;
  const std::vector<at::Tensor> values = Give(trace, call, /*on_baseline=*/false, &values_written);
  const std::vector<at::Tensor> references = ReferencesOf(trace, call, values, &references_written);
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const Operand& output = call.outputs[k];
    if (!CarriesRows(output)) continue;
    Kept& kept = KeptOf(trace, output);
    const bool outdated = output.written && values_written.count(output.storage) == 0;
    if (outdated || k >= values.size() || !HasLayout(values[k], output)) Differs(call, "another layout");
    if (output.written) {
      KeepOrCompare(call, output, values_written[output.storage], kept.value);
      KeepOrCompare(call, output, references_written[output.storage], kept.reference);
      RequireFingerprint(call, kept);
      continue;
    }
    const StorageInfo& storage = trace.program.storages[output.storage];
    const bool other_shape = k >= references.size() || references[k].sizes() != values[k].sizes();
    const at::Tensor reference = other_shape ? Nothing(values[k]) : references[k];
    KeepOrCompare(call, output, Flat(values[k], storage, /*differentiable=*/false), kept.value);
    KeepOrCompare(call, output, FlatReference(output, storage, values[k], reference, /*differentiable=*/false),
                  kept.reference);
    RequireFingerprint(call, kept);
  }
}

std::vector<int64_t> CallsThatMake(const TracedRun& trace, const std::vector<Operand>& operands) {
  std::set<int64_t> open;
  const auto ask = [&](const Operand& operand) {
    if (trace.Misses(operand)) open.insert(trace.At(operand).made_by);
  };
  for (const Operand& operand : operands) ask(operand);
  std::vector<int64_t> calls;
  while (!open.empty()) {
    // Take the last call first: whatever it reads was made by earlier ones.
    calls.push_back(*open.rbegin());
    open.erase(calls.back());
    for (const Operand& operand : trace.program.calls[calls.back()].AsMade().operands) ask(operand);
  }
  std::reverse(calls.begin(), calls.end());
  return calls;
}

}  // namespace addend
