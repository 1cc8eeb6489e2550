#include "core/program/outside_tensors.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/differentiation.h"
#include "core/program/memory.h"

namespace addend {
namespace {

bool SameTensor(const at::Tensor& a, const at::Tensor& b) {
  return a.unsafeGetTensorImpl() == b.unsafeGetTensorImpl() ||
         (a.sizes() == b.sizes() && a.strides() == b.strides() && a.storage_offset() == b.storage_offset() &&
          a.scalar_type() == b.scalar_type());
}

}  // namespace

void OutsideTensors::Declare(const std::string& name, const at::Tensor& tensor, bool learned) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  by_tensor_.try_emplace(tensor.unsafeGetTensorImpl(), declared_.size());
  // Keep the first of several names for one storage: it is the owner's.
  by_storage_.try_emplace(tensor.storage().unsafeGetStorageImpl(), declared_.size());
  if (memory_) memory_->DeclareNamed(static_cast<int>(declared_.size()), tensor);
  declared_.push_back({name, tensor, learned});
}

int OutsideTensors::AddInput(const at::Tensor& tensor, const std::string& name) {
  const int holder = memory_ ? memory_->Holder(tensor) : -1;
  if (holder >= 0) {
    throw FailedPrecondition(absl::StrCat(name, program_->storages[holder].kind == ValueKind::kInput
                                                    ? " shares the memory of another input; record a copy of it"
                                                    : " was used before it was declared as an input"));
  }
  if (values_->Find(tensor) >= 0) {
    throw InvalidArgument(absl::StrCat(name, " is the same tensor as another input; record with an alias of it"));
  }
  const int storage = values_->StorageOf(tensor, ValueKind::kInput);
  if (memory_) memory_->DeclareInput(storage, tensor);
  return values_->Add(tensor, storage, ValueKind::kInput, names_->Unique(name));
}

bool OutsideTensors::MeetInput(const at::Tensor& tensor) {
  if (!memory_) return false;
  const std::vector<LiveMemory::Met> met = memory_->MeetInputs(tensor.storage());
  if (met.empty()) return false;
  const auto value_of = [&](const LiveMemory::Met& input) -> RecordedValue& {
    return program_->values[program_->storages[input.number].value];
  };
  if (!met[0].tensor.defined()) {
    throw InvalidArgument(absl::StrCat(value_of(met[0]).name,
                                       " is no whole number of elements from the beginning of its "
                                       "storage; record a copy of it"));
  }
  if (met.size() > 1) {
    throw InvalidArgument(
        absl::StrCat(value_of(met[1]).name, " lies in one storage with another input; record a copy of it"));
  }
  value_of(met[0]).geometry.offset = met[0].tensor.storage_offset();
  values_->ReplaceStorage(met[0].number, tensor);
  return true;
}

int OutsideTensors::Add(const at::Tensor& tensor) {
  const TracingPause pause;
  const Declared* declared = nullptr;
  at::Tensor own;  // what is declared, in the storage that the model reads
  if (const auto exact = by_tensor_.find(tensor.unsafeGetTensorImpl()); exact != by_tensor_.end()) {
    declared = &declared_[exact->second];
  } else if (const auto owner = by_storage_.find(tensor.storage().unsafeGetStorageImpl()); owner != by_storage_.end()) {
    declared = &declared_[owner->second];
  }
  if (declared != nullptr) {
    own = declared->tensor;
  } else if (memory_) {
    LiveMemory::Met met = memory_->MeetNamed(tensor);
    if (met.number >= 0) declared = &declared_[met.number];
    own = std::move(met.tensor);
  }
  ValueKind kind = ValueKind::kConstant;
  if (declared != nullptr) kind = declared->learned ? ValueKind::kParameter : ValueKind::kBuffer;
  const std::string name = declared != nullptr ? declared->name
                           : IsSaved(tensor)   ? absl::StrCat(kSavedName, saved_++)
                                               : absl::StrCat("constant_", constants_++);
  const int storage = values_->StorageOf(tensor, kind);
  if (!tensor.is_meta()) program_->storages[storage].initial = WholeStorage(tensor);
  if (declared != nullptr && !SameTensor(own, tensor)) {
    // The model reads a part of the parameter: the parameter itself is a value as well.
    const int whole = values_->Add(own, storage, kind, names_->Unique(name));
    program_->values[whole].requires_grad = declared->tensor.requires_grad();
    return values_->Add(tensor, storage, ValueKind::kPart, "");
  }
  const int number = values_->Add(tensor, storage, kind, names_->Unique(name));
  program_->values[number].requires_grad = tensor.requires_grad();
  return number;
}

at::Tensor OutsideTensors::FindMet(const at::Tensor& tensor) const {
  if (!memory_ || tensor.is_meta() || values_->FindStorage(tensor) >= 0) return tensor;
  return memory_->Find(tensor);
}

at::Tensor OutsideTensors::AsMet(const at::Tensor& tensor) const {
  const at::Tensor live = FindMet(tensor);
  if (live.defined()) return live;
  // A parameter that is the output and that no call has read.
  if (memory_->MeetNamed(tensor).number >= 0) return tensor;
  throw NotFound("no operator of the recording has met the memory of the output");
}

}  // namespace addend
