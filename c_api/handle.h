// Handles: what the opaque structs of addend.h are.
//
// Note [Slots]
// A handle points to a slot, and a slot's memory is never given back: it waits in its pool for the next handle of the
// same kind. So a handle that was released can still be looked at, and is told apart from a live one by its mark,
// whatever the caller does. Slots are reused in the order of their release, as late as possible. What a handle stands
// for is a body on the heap, which is freed at once.
#ifndef ADDEND_C_API_HANDLE_H_
#define ADDEND_C_API_HANDLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "c_api/addend.h"
#include "c_api/addend_ext.h"
#include "core/base/error.h"

namespace addend::c_api {

struct Slot {
  std::atomic<uint32_t> mark{0};  // of its kind while it is live, else 0
  void* body = nullptr;
  Slot* next = nullptr;  // in the pool
};

// Kinds of addend_handle_kind.
constexpr int32_t kNumKinds = ADDEND_HANDLE_PROGRAM + 1;
// Behind them those that live as long as a callback runs.
constexpr int32_t kNumPools = kNumKinds + 3;

// The slots of one kind.
class Pool {
 public:
  // Throws std::bad_alloc.
  Slot* Take();
  void Give(Slot* slot) noexcept;

 private:
  std::mutex mutex_;
  Slot* first_ = nullptr;
  Slot* last_ = nullptr;
};
Pool& PoolOf(int32_t kind) noexcept;
std::atomic<int64_t>& LiveCount(int32_t kind) noexcept;

constexpr uint32_t MarkOf(int32_t kind) { return 0xADDE0000u + static_cast<uint32_t>(kind); }

// What stands behind each handle; bodies are defined beside the functions that need them.
template <typename Handle>
struct Traits;

#define ADDEND_HANDLE(noun, KIND, Name)                    \
  struct Name##Body;                                       \
  template <>                                              \
  struct Traits<addend_##noun> {                           \
    using Body = Name##Body;                               \
    static constexpr int32_t kKind = ADDEND_HANDLE_##KIND; \
    static constexpr char kName[] = "addend_" #noun;       \
  };
#include "c_api/handles.inc"
#undef ADDEND_HANDLE

template <typename Handle>
using BodyOf = typename Traits<Handle>::Body;

// A new handle that owns `body`.
template <typename Handle>
Handle* Make(std::unique_ptr<BodyOf<Handle>> body) {
  constexpr int32_t kind = Traits<Handle>::kKind;
  Slot* slot = PoolOf(kind).Take();
  slot->body = body.release();
  slot->mark.store(MarkOf(kind), std::memory_order_release);
  LiveCount(kind).fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<Handle*>(slot);
}

// Null for NULL and for what was released.
template <typename Handle>
BodyOf<Handle>* Peek(const Handle* handle) noexcept {
  const auto* slot = reinterpret_cast<const Slot*>(handle);
  if (slot == nullptr || slot->mark.load(std::memory_order_acquire) != MarkOf(Traits<Handle>::kKind)) return nullptr;
  return static_cast<BodyOf<Handle>*>(slot->body);
}

// The body; throws InvalidArgument that calls the parameter by its name.
template <typename Handle>
BodyOf<Handle>& Get(const Handle* handle, const char* name) {
  if (handle == nullptr) throw InvalidArgument(std::string(name) + " is NULL");
  BodyOf<Handle>* body = Peek(handle);
  if (body == nullptr) {
    throw InvalidArgument(std::string(name) + " was released, or is no " + Traits<Handle>::kName);
  }
  return *body;
}

template <typename Handle>
void Release(Handle* handle) noexcept {
  constexpr int32_t kind = Traits<Handle>::kKind;
  auto* slot = reinterpret_cast<Slot*>(handle);
  uint32_t mark = MarkOf(kind);
  if (slot == nullptr || !slot->mark.compare_exchange_strong(mark, 0, std::memory_order_acq_rel)) return;
  delete static_cast<BodyOf<Handle>*>(slot->body);
  slot->body = nullptr;
  LiveCount(kind).fetch_sub(1, std::memory_order_relaxed);
  PoolOf(kind).Give(slot);
}

// Released at the end of its scope.
template <typename Handle>
class Scoped {
 public:
  explicit Scoped(BodyOf<Handle> body) : handle_(Make<Handle>(std::make_unique<BodyOf<Handle>>(std::move(body)))) {}
  ~Scoped() { Release(handle_); }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;
  Handle* get() const { return handle_; }
  BodyOf<Handle>& operator*() const { return *Peek(handle_); }

 private:
  Handle* handle_;
};

}  // namespace addend::c_api

#endif  // ADDEND_C_API_HANDLE_H_
