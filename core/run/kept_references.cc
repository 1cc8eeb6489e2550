#include "core/run/kept_references.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/host_read.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/memory.h"

namespace addend {
namespace {

// Larger tensors that the run wrote are not copied for the sake of the next run.
constexpr int64_t kLargestCopy = 65536;

bool SameArgument(const c10::IValue& a, const c10::IValue& b) {
  if (a.tagKind() != b.tagKind()) return false;
  // Objects have an identity only, and comparing some of them throws.
  if (a.isObject() || a.isPyObject() || a.isStream() || a.isGenerator()) return false;
  return a == b;
}

bool SameOperand(const Operand& a, const Operand& b) {
  return a.SamePlace(b) && a.version == b.version && a.argument == b.argument && a.decomposed == b.decomposed &&
         a.labelled == b.labelled && a.written == b.written;
}

bool SameTypeAndShape(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.device() == b.device() && a.sizes() == b.sizes();
}

// A plain operand as it is before its call. `written`: the run has written its storage, so that a copy is kept.
RunReferences::Plain PlainSeen(const at::Tensor& tensor, bool written) {
  RunReferences::Plain plain;
  if (!tensor.defined() || !tensor.has_storage() || tensor.is_meta()) return plain;
  if (!written && !tensor.is_inference()) {
    plain.seen = tensor;
  } else if (tensor.numel() <= kLargestCopy) {
    const TracingPause pause;
    const c10::AutoGradMode no_grad(false);
    plain.seen = tensor.clone();
  } else {
    return plain;
  }
  // Inference tensors have no count; those that are kept are copies, which nobody writes.
  plain.version = WritesTo(plain.seen);
  return plain;
}

// Whether a plain operand is what it was, element by element.
bool SamePlain(const RunReferences::Plain& known, const RunReferences::Plain& now) {
  if (!known.seen.defined() || !now.seen.defined() || WritesTo(known.seen) != known.version ||
      !SameTypeAndShape(known.seen, now.seen)) {
    return false;
  }
  if (known.seen.storage().unsafeGetStorageImpl() == now.seen.storage().unsafeGetStorageImpl() &&
      known.seen.storage_offset() == now.seen.storage_offset() && known.seen.strides() == now.seen.strides() &&
      known.seen.is_conj() == now.seen.is_conj() && known.seen.is_neg() == now.seen.is_neg()) {
    return known.version == now.version;
  }
  const TracingPause pause;
  return ReadEqual(known.seen, now.seen);
}

// Whether two calls read the same places with the same arguments, so that equal elements give equal results.
bool SameCall(const RunReferences::Known& a, const RunReferences::Known& b) {
  return a.op == b.op && a.operands.size() == b.operands.size() && a.arguments.size() == b.arguments.size() &&
         std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), SameOperand) &&
         std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), SameArgument);
}

}  // namespace

void KeptReferences::Use(std::shared_ptr<ReferenceCache> cache) {
  cache_ = std::move(cache);
  last_run_ = cache_->Last();
  this_run_ = std::make_shared<RunReferences>();
}

void KeptReferences::AddInput(const Operand& operand) {
  if (this_run_ == nullptr) return;
  StorageState& state = states_->Of(operand.storage);
  const size_t k = this_run_->inputs.size();
  this_run_->inputs.push_back({operand, state.reference});
  state.reference_shared = true;
  if (last_run_ == nullptr || k >= last_run_->inputs.size()) return;
  const RunReferences::Input& last = last_run_->inputs[k];
  const bool same_place = last.operand.SamePlace(operand) && last.operand.version == operand.version;
  state.reference_known = same_place && last.reference.device() == state.reference.device() &&
                          last.reference.scalar_type() == state.reference.scalar_type() &&
                          ReadEqual(last.reference, state.reference);
}

RunReferences::Known KeptReferences::SeenBefore(const CallAtHand& own) const {
  RunReferences::Known seen;
  seen.op = own.role.full_name;
  if (own.call.op.computed_in() != at::ScalarType::Undefined) {
    absl::StrAppend(&seen.op, " in ", c10::toString(own.call.op.computed_in()));
  }
  seen.arguments = own.call.arguments;
  seen.operands.assign(own.call.operands.begin(), own.call.operands.end());
  own.ForEachOperand([&](const at::Tensor& tensor, const Operand& operand) {
    if (operand.storage < 0 || ids_->ReadsReference(own.role, own.call, operand)) return;
    const bool written = operand.written || states_->Info(operand.storage).versions > 1;
    seen.plain.push_back(PlainSeen(tensor, written));
  });
  return seen;
}

// Whether a call gives on the baseline what it gave in the last run.
bool KeptReferences::IsKnown(const CallAtHand& own, const RunReferences::Known& last) const {
  const RunReferences::Known& now = own.seen;
  if (own.role.traits.Draws(own.call.arguments) || !SameCall(last, now)) return false;
  for (const Operand& operand : own.call.operands) {
    if (!ids_->ReadsReference(own.role, own.call, operand)) continue;
    if (!states_->At(operand.storage).reference_known) return false;
  }
  return last.plain.size() == now.plain.size() &&
         std::equal(last.plain.begin(), last.plain.end(), now.plain.begin(), SamePlain);
}

void KeptReferences::LookUpIn(Calls RunReferences::*calls, CallAtHand& own) const {
  if (this_run_ == nullptr) return;
  own.seen = SeenBefore(own);
  if (last_run_ == nullptr) return;
  const Calls& known = (*last_run_).*calls;
  const auto last = known.find(own.call.index);
  if (last != known.end() && IsKnown(own, last->second)) own.known = &last->second;
}

void KeptReferences::LookUp(CallAtHand& own) const { LookUpIn(&RunReferences::calls, own); }

void KeptReferences::LookUpRewrite(CallAtHand& own) const { LookUpIn(&RunReferences::rewrites, own); }

void KeptReferences::Keep(CallAtHand& own) {
  if (this_run_ == nullptr) return;
  for (const Operand& output : own.call.outputs) {
    const bool moves = output.storage >= 0 && (output.decomposed || output.labelled);
    if (!moves) {
      own.seen.references.emplace_back();
      own.seen.finite.push_back(false);
      continue;
    }
    StorageState& state = states_->Of(output.storage);
    own.seen.references.push_back(state.unknown ? at::Tensor() : state.reference);
    own.seen.finite.push_back(state.kept.back().reference_is_finite);
    state.reference_shared = true;
    state.reference_known = own.known != nullptr;
  }
  this_run_->calls[own.call.index] = std::move(own.seen);
}

void KeptReferences::KeepRewrite(CallAtHand& own, const std::vector<at::Tensor>& references) {
  if (this_run_ == nullptr) return;
  own.seen.references = references;
  this_run_->rewrites[own.call.index] = std::move(own.seen);
}

void KeptReferences::Store() {
  if (cache_ != nullptr) cache_->Store(std::move(this_run_));
}

}  // namespace addend
