// Handles: what the opaque structs of addend.h are. See Note [Handles are numbers] in slot_table.h: what a handle
// stands for, its body, is on the heap and freed at once; the handle is refused for ever.
#ifndef ADDEND_C_API_HANDLE_H_
#define ADDEND_C_API_HANDLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "c_api/addend.h"
#include "c_api/addend_ext.h"
#include "c_api/slot_table.h"
#include "core/base/error.h"

namespace addend::c_api {

// Kinds of addend_handle_kind.
constexpr int32_t kNumKinds = ADDEND_HANDLE_PLAN + 1;
// Behind them those that live as long as a callback runs.
constexpr int32_t kNumCounts = kNumKinds + 3;

using HandleTable = SlotTable<uintptr_t, sizeof(uintptr_t) < 8 ? 20 : 24>;
// Never destroyed: threads of a host language may release handles while the process ends.
union HandleTableForEver {
  constexpr HandleTableForEver() : table() {}
  ~HandleTableForEver() {}
  HandleTable table;
};
extern HandleTableForEver handles;

std::atomic<int64_t>& LiveCount(int32_t kind) noexcept;

// Body and kind of each handle; bodies are defined beside the functions that need them.
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
  const uintptr_t number = handles.table.Take(kind, body.get());
  body.release();
  LiveCount(kind).fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<Handle*>(number);
}

// Null for NULL, for what was released and for what is no such handle.
template <typename Handle>
BodyOf<Handle>* Peek(const Handle* handle) noexcept {
  return static_cast<BodyOf<Handle>*>(handles.table.Find(reinterpret_cast<uintptr_t>(handle), Traits<Handle>::kKind));
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

// Does nothing where Peek finds nothing.
template <typename Handle>
void Release(Handle* handle) noexcept {
  constexpr int32_t kind = Traits<Handle>::kKind;
  const std::unique_ptr<BodyOf<Handle>> body(
      static_cast<BodyOf<Handle>*>(handles.table.End(reinterpret_cast<uintptr_t>(handle), kind)));
  if (body != nullptr) LiveCount(kind).fetch_sub(1, std::memory_order_relaxed);
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
