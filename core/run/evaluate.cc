#include "core/run/evaluate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/call_text.h"
#include "core/program/invoke.h"
#include "core/program/view.h"
#include "core/run/fingerprint.h"
#include "core/run/storage_states.h"

namespace addend {
namespace {

[[noreturn]] void Differs(const Call& call, const char* what) {
  throw Error(absl::StatusCode::kFailedPrecondition,
              absl::StrCat(FullName(call.op.schema()), " gives ", what,
                           " when it runs again, so that its results cannot ", "be dropped and made again"),
              call.position, "attribute without a memory limit");
}

// Runs a call on the value or on the baseline.
Invoked Give(const TracedRun& trace, const Call& call, const StackRecipe& recipe, bool on_baseline) {
  return Invoke(call, recipe, [&](size_t k) -> const at::Tensor& {
    const Operand& operand = call.operands[k];
    const Version& kept = trace.At(operand);
    const at::Tensor& all =
        on_baseline && operand.on_baseline && kept.reference.defined() ? kept.reference : kept.value;
    if (!all.defined()) throw Internal("an operand of a call that runs again was dropped");
    return all;
  });
}

void KeepOrCompare(const Call& call, const Operand& output, const at::Tensor& again, at::Tensor& kept) {
  if (!kept.defined()) {
    kept = again;
  } else if (!ReadSameNumbers(ViewOf(kept, output), ViewOf(again, output))) {
    Differs(call, "other numbers");
  }
}

void RequireFingerprint(const Call& call, const Version& kept) {
  if (kept.fingerprint != 0 && FingerprintOf(kept.value, kept.reference) != kept.fingerprint) {
    Differs(call, "other numbers");
  }
}

at::Tensor Nothing(const at::Tensor& value) { return at::full_like(value, std::numeric_limits<double>::quiet_NaN()); }

// Runs a call on the baseline. Gives NaN if the operator fails there, as ReferenceRun does.
Invoked GiveReferences(const TracedRun& trace, const Call& call, const StackRecipe& recipe, const Invoked& values) {
  try {
    return Give(trace, call, recipe, /*on_baseline=*/true);
  } catch (const c10::Error&) {
    Invoked references;
    for (const Operand& operand : call.operands) {
      if (!operand.written || operand.storage < 0) continue;
      const Version& kept = trace.At(operand);
      references.written.try_emplace(operand.storage, (kept.reference.defined() ? kept.reference : kept.value).clone());
    }
    for (const Operand& output : call.outputs) {
      if (output.written) {
        ViewOf(references.written[output.storage], output).fill_(std::numeric_limits<double>::quiet_NaN());
      }
    }
    for (const at::Tensor& value : values.outputs) {
      references.outputs.push_back(value.defined() ? Nothing(value) : value);
    }
    return references;
  }
}

}  // namespace

void Evaluate(TracedRun& trace, const Call& linearized) {
  const Call& call = linearized.AsMade();
  const TracingPause pause;
  const c10::AutoGradMode no_grad(false);
  // Its numbers are those of the operator that was rewritten.
  if (linearized.adopted != 0) Differs(call, "the numbers of its rewrite");
  const StackRecipe recipe(call);
  Invoked own = Give(trace, call, recipe, /*on_baseline=*/false);
  Invoked on_baseline = GiveReferences(trace, call, recipe, own);
  const std::vector<at::Tensor>& values = own.outputs;
  const std::vector<at::Tensor>& references = on_baseline.outputs;
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const Operand& output = call.outputs[k];
    if (!CarriesRows(output)) continue;
    Version& kept = VersionOf(trace, output);
    const bool outdated = output.written && own.written.count(output.storage) == 0;
    if (outdated || k >= values.size() || !HasLayout(values[k], output)) Differs(call, "another layout");
    if (output.written) {
      KeepOrCompare(call, output, own.written[output.storage], kept.value);
      KeepOrCompare(call, output, on_baseline.written[output.storage], kept.reference);
      RequireFingerprint(call, kept);
      continue;
    }
    const StorageInfo& storage = trace.storages[output.storage];
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
    for (const Operand& operand : trace.calls[calls.back()].AsMade().operands) ask(operand);
  }
  std::reverse(calls.begin(), calls.end());
  return calls;
}

}  // namespace addend
