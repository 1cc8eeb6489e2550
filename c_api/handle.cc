#include "c_api/handle.h"

#include <array>
#include <vector>

namespace addend::c_api {
namespace {

constexpr size_t kSlotsAtOnce = 64;

// Constant for ever: threads of a host language may release handles while the process ends.
std::array<Pool, kNumPools>& Pools() noexcept {
  static auto& pools = *new std::array<Pool, kNumPools>();
  return pools;
}

}  // namespace

Slot* Pool::Take() {
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  if (first_ == nullptr) {
    // See Note [Slots]: never freed.
    Slot* slots = new Slot[kSlotsAtOnce];
    for (size_t k = 0; k + 1 < kSlotsAtOnce; ++k) slots[k].next = &slots[k + 1];
    first_ = slots;
    last_ = &slots[kSlotsAtOnce - 1];
  }
  Slot* slot = first_;
  first_ = slot->next;
  if (first_ == nullptr) last_ = nullptr;
  slot->next = nullptr;
  return slot;
}

void Pool::Give(Slot* slot) noexcept {
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  slot->next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = slot;
  last_ = slot;
}

Pool& PoolOf(int32_t kind) noexcept { return Pools()[kind]; }

std::atomic<int64_t>& LiveCount(int32_t kind) noexcept {
  static std::array<std::atomic<int64_t>, kNumPools> counts{};
  return counts[kind];
}

extern "C" ADDEND_API int64_t addend_debug_live(int32_t kind) noexcept {
  if (kind < 0 || kind >= kNumKinds) return -1;
  if (kind != ADDEND_HANDLE_ANY) return LiveCount(kind).load();
  int64_t all = 0;
  for (int32_t k = ADDEND_HANDLE_ANY + 1; k < kNumKinds; ++k) all += LiveCount(k).load();
  return all;
}

}  // namespace addend::c_api
