#include "core/program/live_memory.h"

#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/intercept/tracing_scope.h"
#include "core/program/memory.h"

namespace addend {
namespace {

// Calls `visit` with an iterator for each declared tensor that lies in the storage, by address, until it returns false.
template <typename Map, typename Visit>
void ForEachIn(Map& declared, const c10::Storage& storage, Visit visit) {
  const c10::StorageImpl& impl = *storage.unsafeGetStorageImpl();
  const auto* begin = static_cast<const char*>(impl.data());
  if (begin == nullptr) return;
  const char* end = begin + impl.nbytes();
  for (auto at = declared.lower_bound(begin); at != declared.end() && at->first < end;) {
    const auto here = at++;
    if (LiesIn(impl, here->second.tensor) && !visit(here)) return;
  }
}

bool SamePlace(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.storage_offset() == b.storage_offset() &&
         a.scalar_type() == b.scalar_type();
}

}  // namespace

void LiveMemory::Declare(int number, const at::Tensor& tensor, ByAddress* declared) {
  if (!tensor.defined() || !tensor.has_storage() || tensor.numel() == 0 || tensor.is_meta()) return;
  declared->emplace(static_cast<const char*>(tensor.data_ptr()), Declared{number, tensor});
}

void LiveMemory::DeclareInput(int number, const at::Tensor& tensor) { Declare(number, tensor, &inputs_); }

void LiveMemory::DeclareNamed(int number, const at::Tensor& tensor) { Declare(number, tensor, &named_); }

std::vector<LiveMemory::Met> LiveMemory::MeetInputs(const c10::Storage& storage) {
  std::vector<Met> met;
  if (inputs_.empty()) return met;
  ForEachIn(inputs_, storage, [&](ByAddress::iterator input) {
    const TracingPause pause;
    met.push_back({input->second.number, SeenIn(storage, input->second.tensor)});
    inputs_.erase(input);
    return true;
  });
  std::sort(met.begin(), met.end(), [](const Met& a, const Met& b) { return a.number < b.number; });
  return met;
}

bool LiveMemory::OverlapsInput(const at::Tensor& tensor) const {
  if (!tensor.has_storage() || tensor.numel() == 0 || tensor.is_meta()) return false;
  const auto* begin = static_cast<const char*>(tensor.data_ptr());
  const char* end = begin + Extent(tensor);
  return std::any_of(inputs_.begin(), inputs_.end(), [&](const auto& input) {
    return input.first < end && begin < input.first + Extent(input.second.tensor);
  });
}

LiveMemory::Met LiveMemory::MeetNamed(const at::Tensor& tensor) const {
  Met met;
  ForEachIn(named_, tensor.storage(), [&](ByAddress::const_iterator named) {
    const TracingPause pause;
    at::Tensor seen = SeenIn(tensor.storage(), named->second.tensor);
    if (!seen.defined()) return true;
    const bool same = SamePlace(seen, tensor);
    if (met.number < 0 || same) met = {named->second.number, std::move(seen)};
    return !same;
  });
  return met;
}

void LiveMemory::Know(int storage) {
  if (static_cast<size_t>(storage) >= shown_.size()) shown_.resize(storage + 1, 0);
  shown_[storage] = ++count_;
}

int LiveMemory::Holder(const at::Tensor& tensor) const {
  if (!tensor.has_storage() || tensor.is_meta()) return -1;
  int holder = -1;
  int64_t last = -1;
  for (int number = 0; number < storages_->size(); ++number) {
    const int64_t shown = static_cast<size_t>(number) < shown_.size() ? shown_[number] : 0;
    if (shown < last) continue;
    const c10::intrusive_ptr<c10::StorageImpl> alive = storages_->Alive(number);
    if (!alive || !LiesIn(*alive, tensor)) continue;
    holder = number;
    last = shown;
  }
  return holder;
}

at::Tensor LiveMemory::Find(const at::Tensor& tensor) const {
  const int holder = Holder(tensor);
  if (holder < 0) return {};
  const TracingPause pause;
  return SeenIn(c10::Storage(storages_->Alive(holder)), tensor);
}

}  // namespace addend
