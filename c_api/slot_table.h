// The numbers behind handles: who says whether a handle is live, and what it stands for.
//
// Note [Handles are numbers]
// A handle looks like a pointer to its holder, but it is a number: the position of a slot in a table, and above it a
// generation, which counts how often the slot has been used. A slot that is in use knows the number that it is used as.
// So any value at all can be looked at without reading memory that is not ours: one that was released (its slot has
// another generation since, or is free), one of another kind, and one that never was a handle. On 64 bits a slot whose
// generations are used up is given up, so that no number comes back. On 32 bits there are too few numbers for that: one
// comes back, at the earliest after kSlotsInReserve * kGenerations later handles, which are four million.
#ifndef ADDEND_C_API_SLOT_TABLE_H_
#define ADDEND_C_API_SLOT_TABLE_H_

#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

namespace addend::c_api {

// A table of at most 2^kPositionBits slots. `Number` is an unsigned type as wide as a handle. All functions may be
// called on any thread. An object with static storage is ready before any constructor runs, and is never destroyed.
template <typename Number, int kPositionBits, bool kNumbersComeBack = sizeof(Number) < 8>
class SlotTable {
 public:
  static constexpr Number kPositions = Number{1} << kPositionBits;
  static constexpr int kGenerationBits = static_cast<int>(sizeof(Number) * CHAR_BIT) - kPositionBits;
  // Generations count from 1, so that no number is small; the last one is left out, so that no number is -1.
  static constexpr Number kGenerations = (Number{1} << kGenerationBits) - 2;
  // At least so many slots are free before one is used again: the oldest of them.
  static constexpr size_t kSlotsInReserve = kNumbersComeBack ? 1024 : 1;

  // A new number that stands for `body`. Throws std::bad_alloc.
  Number Take(int32_t kind, void* body) {
    Slot* slot = nullptr;
    {
      const std::lock_guard<std::mutex> one_at_a_time(mutex_);
      if (num_free_ < kSlotsInReserve) Grow();
      slot = first_;
      first_ = slot->next;
      --num_free_;
    }
    slot->kind.store(kind, std::memory_order_relaxed);
    slot->body.store(body, std::memory_order_relaxed);
    slot->live.store(slot->number, std::memory_order_release);
    return slot->number;
  }

  // Body that the number stands for; null if it is none of this kind, or not any more.
  void* Find(Number number, int32_t kind) const noexcept {
    const Slot* slot = SlotOf(number);
    return slot != nullptr && IsLive(*slot, number, kind) ? slot->body.load(std::memory_order_relaxed) : nullptr;
  }

  // Ends the number and gives what it stood for, to one of several callers; null as above.
  void* End(Number number, int32_t kind) noexcept {
    Slot* slot = SlotOf(number);
    if (slot == nullptr || !IsLive(*slot, number, kind)) return nullptr;
    if (!slot->live.compare_exchange_strong(number, 0, std::memory_order_acq_rel)) return nullptr;
    void* body = slot->body.exchange(nullptr, std::memory_order_relaxed);
    Give(slot);
    return body;
  }

 private:
  static constexpr size_t kSlotsInBlock = 256;

  struct Slot {
    std::atomic<Number> live{0};  // the number while it stands for something, else 0
    std::atomic<int32_t> kind{0};
    std::atomic<void*> body{nullptr};
    Number number = 0;     // the present one, or the next
    Slot* next = nullptr;  // of those that are free
  };
  struct Block {
    std::array<Slot, kSlotsInBlock> slots;
  };

  static constexpr Number PositionOf(Number number) { return number & (kPositions - 1); }
  static constexpr Number GenerationOf(Number number) { return number >> kPositionBits; }
  static constexpr Number NumberOf(Number generation, Number position) {
    return (generation << kPositionBits) | position;
  }

  static bool IsLive(const Slot& slot, Number number, int32_t kind) noexcept {
    return slot.live.load(std::memory_order_acquire) == number && slot.kind.load(std::memory_order_relaxed) == kind;
  }

  // Null where no number is like this one.
  Slot* SlotOf(Number number) const noexcept {
    if (GenerationOf(number) == 0) return nullptr;
    const Number position = PositionOf(number);
    Block* block = blocks_[position / kSlotsInBlock].load(std::memory_order_acquire);
    return block == nullptr ? nullptr : &block->slots[position % kSlotsInBlock];
  }

  // Adds a block of free slots; where there can be no more of them, those that are free are used.
  void Grow() {
    if (num_blocks_ == blocks_.size()) {
      if (first_ == nullptr) throw std::bad_alloc();
      return;
    }
    auto* block = new Block();
    for (size_t k = 0; k < kSlotsInBlock; ++k) {
      block->slots[k].number = NumberOf(1, static_cast<Number>(num_blocks_ * kSlotsInBlock + k));
      Append(&block->slots[k]);
    }
    blocks_[num_blocks_++].store(block, std::memory_order_release);
  }

  void Append(Slot* slot) noexcept {
    slot->next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = slot;
    last_ = slot;
    ++num_free_;
  }

  // To be used again, under its next number.
  void Give(Slot* slot) noexcept {
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    const Number generation = GenerationOf(slot->number);
    if (generation == kGenerations && !kNumbersComeBack) return;
    slot->number = NumberOf(generation % kGenerations + 1, PositionOf(slot->number));
    Append(slot);
  }

  std::array<std::atomic<Block*>, kPositions / kSlotsInBlock> blocks_{};
  std::mutex mutex_;
  size_t num_blocks_ = 0;
  size_t num_free_ = 0;
  Slot* first_ = nullptr;
  Slot* last_ = nullptr;
};

}  // namespace addend::c_api

#endif  // ADDEND_C_API_SLOT_TABLE_H_
