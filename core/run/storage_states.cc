#include "core/run/storage_states.h"

#include <ATen/ops/zeros.h>

#include <cstdint>
#include <utility>

#include "core/program/view.h"

namespace addend {

const at::Tensor& Steps::Labels() const {
  // Free the function once it was called: it keeps the steps of other storages.
  if (find_) labels_ = std::exchange(find_, nullptr)();
  return labels_;
}

void StorageState::OwnReference() {
  if (!reference_shared) return;
  reference = reference.clone();
  reference_shared = false;
}

at::Tensor FlatReference(const Operand& output, const StorageInfo& storage, const at::Tensor& value,
                         const at::Tensor& reference, bool differentiable) {
  const bool same_layout = reference.scalar_type() == value.scalar_type() && reference.is_conj() == value.is_conj() &&
                           reference.is_neg() == value.is_neg() && reference.strides() == value.strides() &&
                           reference.storage_offset() == value.storage_offset() &&
                           static_cast<int64_t>(reference.storage().nbytes()) >=
                               storage.numel * static_cast<int64_t>(c10::elementSize(storage.dtype));
  if (same_layout) return Flat(reference, storage, differentiable);
  at::Tensor flat = at::zeros({storage.numel}, value.options().dtype(storage.dtype));
  ViewOf(flat, output).copy_(reference);
  return flat;
}

StorageState& StorageStates::Of(int storage) {
  if (storage >= static_cast<int>(states_.size())) states_.resize(storage + 1);
  return states_[storage];
}

Operand StorageStates::Describe(const at::Tensor& tensor) {
  Operand operand = recorder_->Describe(tensor);
  Mark(operand);
  return operand;
}

void StorageStates::Mark(Operand& operand) {
  if (operand.storage < 0) return;
  const StorageState& state = Of(operand.storage);
  const bool continuous = Continuous(operand.dtype);
  operand.decomposed = continuous && state.decomposed;
  operand.labelled = !continuous && state.tracked;
}

void StorageStates::Keep(const Operand& operand, const at::Tensor& tensor) {
  if (operand.storage < 0) return;
  StorageState& state = Of(operand.storage);
  if (!state.kept.empty() && state.kept.back().version == operand.version) return;
  Version kept;
  kept.version = operand.version;
  kept.value = Flat(tensor, Info(operand.storage), differentiable_);
  if (state.decomposed || state.tracked) kept.reference = state.reference;
  if (state.tracked) kept.labels = state.labels;
  state.kept.push_back(std::move(kept));
  state.newest_is_live = true;
}

// See Note [Versions].
void StorageStates::PrepareWrite(const Operand& operand, const at::Tensor& tensor, bool traced) {
  StorageState& state = Of(operand.storage);
  if (state.newest_is_live && state.kept.back().version == operand.version) {
    Version& kept = state.kept.back();
    kept.value = kept.value.clone();
    // The reference is copied only when something is about to write to it. Under autograd it is copied now, because a
    // copy is itself a differentiated step.
    state.reference_shared = true;
    if (differentiable_ && kept.reference.defined()) {
      kept.reference = kept.reference.clone();
      state.reference_shared = false;
    }
    state.newest_is_live = false;
  }
  if (!traced || state.decomposed || state.tracked) return;
  // A plain storage becomes decomposed, or ids that are tracked, by this write: until now its reference is its value.
  state.reference = FlatCopy(operand, tensor);
  state.reference_shared = state.reference_known = false;
}

void StorageStates::SetReference(const Operand& output, const at::Tensor& value, const at::Tensor& reference) {
  if (!reference.defined() || reference.sizes() != value.sizes()) {
    throw FailedPrecondition("an operator gives another shape on the baseline");
  }
  StorageState& state = Of(output.storage);
  state.reference_shared = state.reference_known = false;
  state.reference = FlatReference(output, Info(output.storage), value, reference, differentiable_);
}

at::Tensor StorageStates::FlatCopy(const Operand& operand, const at::Tensor& tensor) const {
  return Flat(tensor, Info(operand.storage), differentiable_).clone();
}

std::vector<std::vector<Version>> StorageStates::Take() {
  std::vector<std::vector<Version>> kept(recorder_->traced().storages.size());
  for (size_t s = 0; s < states_.size(); ++s) kept[s] = std::move(states_[s].kept);
  states_.clear();
  return kept;
}

}  // namespace addend
