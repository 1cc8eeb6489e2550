// A million random operations on handles that are live, that were released, and that never were any: each tensor holds
// a number of its own, so that a handle that reaches another owner's tensor is seen.
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

#include "c_api/testing.h"

namespace addend::api {
namespace {

constexpr int kThreads = 4;
constexpr size_t kMostLive = 1000;
constexpr size_t kMostStale = 20000;

int64_t Operations() {
  const char* asked = std::getenv("ADDEND_OPERATIONS");
  return asked == nullptr ? 1000000 : std::atoll(asked);
}

// Handles that some thread has released, for all threads to use in spite of that.
class Stale {
 public:
  void Add(addend_tensor* handle, uint64_t random) {
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    if (handles_.size() < kMostStale) {
      handles_.push_back(handle);
    } else {
      handles_[random % kMostStale] = handle;
    }
  }
  addend_tensor* Any(uint64_t random) {
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    return handles_.empty() ? nullptr : handles_[random % handles_.size()];
  }

 private:
  std::mutex mutex_;
  std::vector<addend_tensor*> handles_;
};

struct Owned {
  addend_tensor* handle;
  int64_t number;
};

class Owner {
 public:
  Owner(int thread, Stale* stale) : random_(20261123 + thread), next_(int64_t{thread} << 40), stale_(stale) {}
  ~Owner() {
    while (!live_.empty()) ReleaseOne();
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  void Step() {
    const uint64_t choice = random_() % 100;
    if (choice < 30 || live_.empty()) return Make();
    if (choice < 50) return ExpectOwn(live_[Pick()]);
    if (choice < 70) return ReleaseOne();
    if (choice < 80) return UseStale(stale_->Any(random_()));
    if (choice < 90) return addend_tensor_release(stale_->Any(random_()));
    if (choice < 96) return UseAsAnotherKind(live_[Pick()]);
    UseWhatNeverWasOne();
  }

 private:
  size_t Pick() { return random_() % live_.size(); }

  void Make() {
    if (live_.size() == kMostLive) ReleaseOne();
    Owned made = {nullptr, ++next_};
    ExpectOk(addend_tensor_copy(&made.number, sizeof(made.number), ADDEND_INT64, nullptr, 0, &made.handle));
    live_.push_back(made);
  }

  void ReleaseOne() {
    const size_t which = Pick();
    std::swap(live_[which], live_.back());
    ExpectOwn(live_.back());
    addend_tensor_release(live_.back().handle);
    stale_->Add(live_.back().handle, random_());
    live_.pop_back();
  }

  static void ExpectOwn(const Owned& owned) {
    const auto* number = static_cast<const int64_t*>(addend_tensor_data(owned.handle));
    ASSERT_NE(number, nullptr) << "the tensor of " << owned.number << " was released by another owner";
    EXPECT_EQ(*number, owned.number);
  }

  static void UseStale(addend_tensor* handle) {
    if (handle == nullptr) return;
    EXPECT_EQ(addend_tensor_data(handle), nullptr);
    EXPECT_EQ(addend_tensor_dtype(handle), 0);
    addend_tensor* none = nullptr;
    const Outcome outcome(addend_tensor_to(handle, 0, nullptr, &none));
    EXPECT_EQ(outcome.code, ADDEND_INVALID_ARGUMENT);
    EXPECT_EQ(none, nullptr);
  }

  static void UseAsAnotherKind(const Owned& owned) {
    addend_results_release(reinterpret_cast<addend_results*>(owned.handle));
    EXPECT_EQ(addend_composition_numc(reinterpret_cast<addend_composition*>(owned.handle)), 0);
    ExpectOwn(owned);
  }

  // Numbers of so many bits that no handle is among them.
  void UseWhatNeverWasOne() {
    const uint64_t value = random_() | uint64_t{1} << 63;
    auto* handle = reinterpret_cast<addend_tensor*>(static_cast<uintptr_t>(value));
    addend_tensor_release(handle);
    EXPECT_EQ(addend_tensor_data(handle), nullptr);
  }

  std::mt19937_64 random_;
  int64_t next_;
  std::vector<Owned> live_;
  Stale* stale_;
};

class HandlesTest : public CApiTest {};

TEST_F(HandlesTest, RandomOperationsReachNoOtherOwner) {
  Stale stale;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&stale, t] {
      Owner owner(t, &stale);
      for (int64_t k = 0; k < Operations() / kThreads && !testing::Test::HasFailure(); ++k) owner.Step();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace addend::api
