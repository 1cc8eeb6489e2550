#include "core/program/value_table.h"

#include <c10/core/StorageImpl.h>

#include <cstdint>
#include <utility>

#include "core/program/compare.h"

namespace addend {
namespace {

// Whether the tensor has the value's elements, where both lie in one storage.
bool SameElementsAs(const RecordedValue& value, const at::Tensor& tensor) {
  return SameElements(value.geometry, tensor.sizes(), tensor.strides(), tensor.storage_offset()) &&
         value.dtype == tensor.scalar_type() && value.conjugated == tensor.is_conj() &&
         value.negated == tensor.is_neg();
}

bool SamePlaceAs(const RecordedValue& value, const at::Tensor& tensor) {
  return tensor.strides() == at::IntArrayRef(value.geometry.strides) && SameElementsAs(value, tensor);
}

}  // namespace

// A freed tensor's address may be used again. Who has it then is either known by it anew, or lies in the same storage
// in the same way, which makes it the same elements.
int ValueTable::Find(const at::Tensor& tensor) const {
  const auto found = objects_.find(tensor.unsafeGetTensorImpl());
  if (found == objects_.end()) return -1;
  const RecordedValue& value = program_->values[found->second];
  // The tensor may have been resized, or been given other memory, behind the dispatcher's back.
  if (!storages_.Is(value.storage, tensor.storage().unsafeGetStorageImpl())) return -1;
  return SamePlaceAs(value, tensor) ? found->second : -1;
}

int ValueTable::FindAlias(const at::Tensor& tensor, int storage) {
  int found = -1;
  for (int v = last_[storage]; v >= 0; v = before_[v]) {
    const RecordedValue& value = program_->values[v];
    if (!SameElementsAs(value, tensor)) continue;
    // Strides that step nowhere may have been lost on the way, as an exchange format loses them.
    if (found < 0) found = v;
    if (!SamePlaceAs(value, tensor)) continue;
    found = v;
    break;
  }
  if (found >= 0) objects_[tensor.unsafeGetTensorImpl()] = found;
  return found;
}

int ValueTable::Add(const at::Tensor& tensor, int storage, ValueKind kind, std::string name) {
  const int number = static_cast<int>(program_->values.size());
  RecordedValue& value = program_->values.emplace_back();
  value.name = std::move(name);
  value.kind = kind;
  value.storage = storage;
  value.version = Version(storage);
  value.dtype = tensor.scalar_type();
  const at::IntArrayRef sizes = tensor.sizes();
  const at::IntArrayRef strides = tensor.strides();
  value.geometry.sizes.append(sizes.begin(), sizes.end());
  value.geometry.strides.append(strides.begin(), strides.end());
  value.geometry.offset = tensor.storage_offset();
  value.device = tensor.device();
  value.conjugated = tensor.is_conj();
  value.negated = tensor.is_neg();
  value.wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  if (program_->storages[storage].value < 0) program_->storages[storage].value = number;
  before_.push_back(std::exchange(last_[storage], number));
  objects_[tensor.unsafeGetTensorImpl()] = number;
  return number;
}

int ValueTable::FindStorage(const at::Tensor& tensor) const {
  return storages_.Find(tensor.storage().unsafeGetStorageImpl());
}

int ValueTable::StorageOf(const at::Tensor& tensor, ValueKind kind) {
  c10::StorageImpl* impl = tensor.storage().unsafeGetStorageImpl();
  const auto [number, is_new] = storages_.Add(impl);
  if (is_new) {
    last_.push_back(-1);
    RecordedStorage storage;
    storage.kind = kind;
    storage.nbytes = static_cast<int64_t>(impl->nbytes());
    program_->storages.push_back(std::move(storage));
  }
  return number;
}

void ValueTable::ReplaceStorage(int storage, const at::Tensor& tensor) {
  c10::StorageImpl* impl = tensor.storage().unsafeGetStorageImpl();
  storages_.Replace(storage, impl);
  program_->storages[storage].nbytes = static_cast<int64_t>(impl->nbytes());
}

void ValueTable::Reserve(size_t values) {
  storages_.Reserve(values);
  last_.reserve(values);
  before_.reserve(values);
}

void ValueTable::Clear() {
  storages_.Clear();
  objects_.clear();
}

}  // namespace addend
