// States of the storages while the model runs: the versions of each, and its reference on the baseline.
//
// Note [Versions]
// A storage that a traced call reads or writes is kept, as it was at the call, under the storage's version number. The
// newest version is kept by reference; before a call writes the storage, that version is replaced by a copy.
#ifndef ADDEND_CORE_RUN_STORAGE_STATES_H_
#define ADDEND_CORE_RUN_STORAGE_STATES_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/program/recorder.h"
#include "core/program/traced_calls.h"
#include "core/run/traced_run.h"

namespace addend {

// Which element of an input each element of a float storage is made of, step by step: see Note [Steps] in
// tracked_ids.h. Worked out when somebody asks.
class Steps {
 public:
  // Takes the labels of an input as it was given.
  explicit Steps(at::Tensor labels) : labels_(std::move(labels)) {}
  // `length`: of the chain that leads to it.
  Steps(std::function<at::Tensor()> find, int length) : length_(length), find_(std::move(find)) {}

  // int64 over the whole storage: the component of each element, -1: none, or several.
  const at::Tensor& Labels() const;
  int length() const { return length_; }

 private:
  int length_ = 0;
  mutable at::Tensor labels_;
  mutable std::function<at::Tensor()> find_;
};

struct StorageState {
  // Before something writes the reference.
  void OwnReference();

  bool decomposed = false;
  // Integers or booleans that depend on split inputs; such operands are marked as labelled, also where no element has
  // a label.
  bool tracked = false;
  bool unknown = false;            // tracked, and the baseline gives another number of elements, or none
  bool condition = false;          // tracked, and a comparison or a float led to it: an id no more
  bool step = false;               // tracked booleans that compare elements that Steps are known of
  std::optional<Position> origin;  // tracked: the operator that derived it; none: ids as they were given
  at::Tensor reference;            // now; over the whole storage
  bool reference_shared = false;   // somebody else has that tensor too: who writes copies first
  bool reference_known = false;    // it is what the last run found; see Note [Kept references]
  at::Tensor labels;
  std::shared_ptr<const Steps> steps;  // decomposed; null: its elements are made of several
  std::vector<Version> kept;
  bool newest_is_live = false;  // the last entry of `kept` shares memory with the model
};

// The whole storage of a call's output on the baseline, laid out as the storage is in which the call gave `value`.
// `reference`: what the call gives there, of the same shape.
at::Tensor FlatReference(const Operand& output, const StorageInfo& storage, const at::Tensor& value,
                         const at::Tensor& reference, bool differentiable);

class StorageStates {
 public:
  // `recorder`: knows the storages; must outlive the states. `differentiable`: see TracedRun.
  StorageStates(Recorder* recorder, bool differentiable) : recorder_(recorder), differentiable_(differentiable) {}

  // The state of a storage id. Made when it is first asked for, which moves the other states in memory.
  StorageState& Of(int storage);
  // The state of a storage that an operand of a call lies in.
  const StorageState& At(int storage) const { return states_[storage]; }
  const StorageInfo& Info(int storage) const { return recorder_->traced().storages[storage]; }

  // The operand that a tensor is right now.
  Operand Describe(const at::Tensor& tensor);
  // Says of an operand whether it is decomposed, and whether it is labelled.
  void Mark(Operand& operand);
  // Keeps the storage as it is now, where this version was not kept before.
  void Keep(const Operand& operand, const at::Tensor& tensor);
  // Before a call writes `operand`, which `tensor` is. `traced`: whether the call is.
  void PrepareWrite(const Operand& operand, const at::Tensor& tensor, bool traced);
  // Sets the reference of the storage that a call gave `value` in. Throws FailedPrecondition where `reference` has
  // another shape.
  void SetReference(const Operand& output, const at::Tensor& value, const at::Tensor& reference);
  // A copy of the whole storage of `operand`, which `tensor` is, in one dimension.
  at::Tensor FlatCopy(const Operand& operand, const at::Tensor& tensor) const;

  // Returns the versions that were kept, by storage id, and ends the states.
  std::vector<std::vector<Version>> Take();

 private:
  Recorder* recorder_;
  bool differentiable_;
  std::vector<StorageState> states_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_STORAGE_STATES_H_
