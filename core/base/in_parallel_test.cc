#include "core/base/in_parallel.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace addend {
namespace {

class InParallelTest : public testing::TestWithParam<int> {
 protected:
  InParallelTest() : before_(at::get_num_threads()) { at::set_num_threads(GetParam()); }
  ~InParallelTest() override { at::set_num_threads(before_); }

 private:
  int before_;
};

TEST_P(InParallelTest, EachNumberComesOnce) {
  for (const int64_t count : {0, 1, 2, 3, 7, 64, 1000}) {
    for (const int64_t piece : {1, 2, 16, 2000}) {
      std::vector<std::atomic<int>> seen(count);
      InParallel(count, piece, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) ++seen[i];
      });
      for (int64_t i = 0; i < count; ++i) EXPECT_EQ(seen[i], 1) << i << " of " << count << " by " << piece;
    }
  }
}

// Waits until all of them have come, so that one thread cannot take what was meant for another.
TEST_P(InParallelTest, AsManyThreadsAsLibTorchMayUse) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> arrived{0};
  InParallelIf(true, 100, [&](int64_t, int64_t) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    ++arrived;
    while (arrived < GetParam()) std::this_thread::yield();
  });
  EXPECT_EQ(threads.size(), GetParam());
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 1);
}

TEST_P(InParallelTest, InsideAnotherLoopThereIsOneThread) {
  std::atomic<int> different{0};
  InParallelIf(true, 8, [&](int64_t, int64_t) {
    const std::thread::id own = std::this_thread::get_id();
    InParallel(8, 1, [&](int64_t, int64_t) { different += std::this_thread::get_id() == own ? 0 : 1; });
  });
  EXPECT_EQ(different, 0);
}

TEST_P(InParallelTest, WhatTheWorkThrowsIsThrown) {
  const auto run = [](int64_t bad) {
    InParallel(100, 1, [=](int64_t first, int64_t last) {
      if (first <= bad && bad < last) throw std::runtime_error("number " + std::to_string(bad));
    });
  };
  EXPECT_NO_THROW(run(-1));
  EXPECT_THROW(run(0), std::runtime_error);
  EXPECT_THROW(run(99), std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Threads, InParallelTest, testing::Values(1, 2, 4));

TEST(InParallelIfTest, WhatDoesNotPayRunsAtOnceOnTheCallingThread) {
  const int before = at::get_num_threads();
  at::set_num_threads(4);
  int calls = 0;
  InParallelIf(false, 100, [&](int64_t first, int64_t last) {
    EXPECT_EQ(first, 0);
    EXPECT_EQ(last, 100);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
  at::set_num_threads(before);
}

}  // namespace
}  // namespace addend
