#include "bindings/csharp/native/calls.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "c_api/addend.h"
#include "c_api/addend_ext.h"

namespace addend_csharp {
namespace {

constexpr std::chrono::seconds kPatience{3};

// How many calls are running. Several counters, so that threads do not wait for one line of the cache.
struct alignas(64) Counter {
  std::atomic<int64_t> calls{0};
};
constexpr unsigned kCounters = 16;
Counter counters[kCounters];

std::atomic<bool> exiting{false};

// State of one thread.
struct Thread {
  Counter* counter = nullptr;
  int64_t calls = 0;     // one inside of the other: listeners may call too
  bool exiting = false;  // it runs exit()
};
thread_local Thread self;

Counter& CounterOfThisThread() {
  static std::atomic<unsigned> next{0};
  if (self.counter == nullptr) self.counter = &counters[next++ % kCounters];
  return *self.counter;
}

[[noreturn]] void StayForEver() {
  while (true) pause();
}

// Whether calls of this thread neither begin nor return any more. One inside of another does both: that one has to end.
bool Stays() { return exiting && self.calls == 0 && !self.exiting; }

bool OthersCall() {
  int64_t calls = -self.calls;
  for (const Counter& counter : counters) calls += counter.calls;
  return calls > 0;
}

// Flushes stdout, as destructors of the C library would have done.
void FlushOutput() {
  if (ftrylockfile(stdout) != 0) return;
  fflush_unlocked(stdout);
  funlockfile(stdout);
}

void EndCalls(int status, void* running) {
  self.exiting = true;
  exiting = true;
  for (void* handle : *static_cast<const std::vector<void*>*>(running)) {
    addend_cancellation_cancel(static_cast<addend_cancellation*>(handle));
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (OthersCall()) {
    if (std::chrono::steady_clock::now() > deadline) {
      FlushOutput();
      _exit(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

Call::Call() {
  // It counts before it looks, and exit() looks after it has said so: one of the two sees the other.
  std::atomic<int64_t>& calls = CounterOfThisThread().calls;
  ++calls;
  if (Stays()) {
    --calls;
    StayForEver();
  }
  ++self.calls;
}

Call::~Call() {
  --self.calls;
  --CounterOfThisThread().calls;
  if (Stays()) StayForEver();
}

}  // namespace addend_csharp

void csharp_at_exit(void* const* cancellations, size_t count) {
  // exit() calls the function first that was registered last, hence this one before those registered earlier.
  on_exit(addend_csharp::EndCalls, new std::vector<void*>(cancellations, cancellations + count));
}

// Releases are calls too: they free what LibTorch allocated. handles.inc names them all, for SafeHandles.
#define ADDEND_HANDLE(noun, KIND, Name)                             \
  ADDEND_CSHARP_EXPORT void csharp_##noun##_release(void* handle) { \
    const addend_csharp::Call call;                                 \
    addend_##noun##_release(static_cast<addend_##noun*>(handle));   \
  }
#include "c_api/handles.inc"
#undef ADDEND_HANDLE
