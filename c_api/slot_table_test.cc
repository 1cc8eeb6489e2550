// The numbers behind handles, on tables that are small enough to use them all up.
#include "c_api/slot_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <new>
#include <set>
#include <thread>
#include <vector>

namespace addend::c_api {
namespace {

// 256 positions, 254 generations of each.
using ForEver = SlotTable<uint16_t, 8, false>;
// 512 positions, 126 generations of each.
using Wrapping = SlotTable<uint16_t, 9, true>;
using Of32Bits = SlotTable<uint32_t, 20>;

constexpr int32_t kKind = 1;

// Tables are never destroyed, so leak checkers have to find them at the end.
template <typename Table>
Table& NewTable() {
  static auto& kept = *new std::vector<Table*>();
  kept.push_back(new Table());
  return *kept.back();
}

TEST(SlotTableTest, NoNumberComesBack) {
  auto& table = NewTable<ForEver>();
  int body = 0;
  std::set<uint16_t> taken;
  for (int k = 0; k < 256 * 254; ++k) {
    const uint16_t number = table.Take(kKind, &body);
    ASSERT_TRUE(taken.insert(number).second) << number;
    ASSERT_EQ(table.End(number, kKind), &body);
  }
  EXPECT_THROW(table.Take(kKind, &body), std::bad_alloc);
  EXPECT_EQ(taken.count(0), 0u);
  EXPECT_EQ(taken.count(std::numeric_limits<uint16_t>::max()), 0u);
}

TEST(SlotTableTest, EveryOtherNumberIsRefused) {
  auto& table = NewTable<ForEver>();
  int body = 0;
  std::set<uint16_t> live;
  for (int k = 0; k < 100; ++k) live.insert(table.Take(kKind, &body));
  for (int k = 0; k < 50; ++k) {
    table.End(*live.begin(), kKind);
    live.erase(live.begin());
  }
  for (uint32_t number = 0; number <= std::numeric_limits<uint16_t>::max(); ++number) {
    const auto asked = static_cast<uint16_t>(number);
    EXPECT_EQ(table.Find(asked, kKind), live.count(asked) == 1 ? &body : nullptr) << number;
    EXPECT_EQ(table.Find(asked, kKind + 1), nullptr) << number;
    EXPECT_EQ(table.End(asked, kKind + 1), nullptr) << number;
    if (live.count(asked) == 0) {
      EXPECT_EQ(table.End(asked, kKind), nullptr) << number;
    }
  }
  for (const uint16_t number : live) EXPECT_EQ(table.End(number, kKind), &body) << number;
}

// Numbers that have to come back do so late, and a table in long use goes on working.
TEST(SlotTableTest, NumbersOf32BitsComeBackLate) {
  auto& small = NewTable<Wrapping>();
  int body = 0;
  for (int k = 0; k < 200000; ++k) {
    const uint16_t number = small.Take(kKind, &body);
    ASSERT_NE(number, 0);
    ASSERT_NE(number, std::numeric_limits<uint16_t>::max());
    ASSERT_EQ(small.End(number, kKind), &body);
  }
  auto& table = NewTable<Of32Bits>();
  const uint32_t released = table.Take(kKind, &body);
  table.End(released, kKind);
  for (size_t k = 0; k < Of32Bits::kSlotsInReserve * (Of32Bits::kGenerations - 1); ++k) {
    const uint32_t number = table.Take(kKind, &body);
    ASSERT_NE(number, released) << k;
    table.End(number, kKind);
  }
}

TEST(SlotTableTest, AsManyAsThereArePositions) {
  auto& table = NewTable<Wrapping>();
  int body = 0;
  std::vector<uint16_t> live;
  for (int k = 0; k < 512; ++k) live.push_back(table.Take(kKind, &body));
  EXPECT_THROW(table.Take(kKind, &body), std::bad_alloc);
  table.End(live[7], kKind);
  EXPECT_EQ(table.Find(live[7], kKind), nullptr);
  EXPECT_EQ(table.Find(table.Take(kKind, &body), kKind), &body);
}

// Each number ends once, whoever is the first.
TEST(SlotTableTest, ThreadsEndANumberOnce) {
  auto& table = NewTable<SlotTable<uint64_t, 24>>();
  constexpr int kThreads = 4;
  constexpr int kRounds = 2000;
  std::vector<int> bodies(kRounds);
  std::vector<uint64_t> numbers;
  for (int& body : bodies) numbers.push_back(table.Take(kKind, &body));
  std::vector<int> ended(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < kRounds; ++k) {
        void* body = table.End(numbers[k], kKind);
        if (body != nullptr) ++ended[t];
        EXPECT_TRUE(body == nullptr || body == &bodies[k]);
        int own = 0;
        const uint64_t number = table.Take(kKind, &own);
        EXPECT_EQ(table.Find(number, kKind), &own);
        EXPECT_EQ(table.End(number, kKind), &own);
      }
    });
  }
  int all = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads[t].join();
    all += ended[t];
  }
  EXPECT_EQ(all, kRounds);
}

}  // namespace
}  // namespace addend::c_api
