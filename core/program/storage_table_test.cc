#include "core/program/storage_table.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <utility>

namespace addend {
namespace {

c10::StorageImpl* StorageOf(const at::Tensor& tensor) { return tensor.storage().unsafeGetStorageImpl(); }

TEST(StorageTable, NumbersStoragesNotTensors) {
  StorageTable table;
  const at::Tensor x = at::ones({2, 3});
  const at::Tensor y = at::ones({2, 3});
  EXPECT_EQ(table.Find(StorageOf(x)), -1);
  EXPECT_EQ(table.Add(StorageOf(x)), std::make_pair(0, true));
  EXPECT_EQ(table.Add(StorageOf(x.t())), std::make_pair(0, false));
  EXPECT_EQ(table.Add(StorageOf(y)), std::make_pair(1, true));
  EXPECT_EQ(table.Find(StorageOf(y.select(0, 1))), 1);
  EXPECT_EQ(table.size(), 2);
}

TEST(StorageTable, KnowsWhatWasFreed) {
  StorageTable table;
  at::Tensor x = at::ones({2});
  const int number = table.Add(StorageOf(x)).first;
  EXPECT_EQ(table.Alive(number).get(), StorageOf(x));
  x.reset();
  EXPECT_FALSE(table.Alive(number));
  // No later storage is taken for it, wherever it lies.
  for (int k = 0; k < 100; ++k) EXPECT_EQ(table.Find(StorageOf(at::ones({2}))), -1);
}

TEST(StorageTable, ANumberMayComeToMeanAnotherStorage) {
  StorageTable table;
  const at::Tensor before = at::ones({2});
  const at::Tensor after = at::ones({2});
  const int number = table.Add(StorageOf(before)).first;
  table.Replace(number, StorageOf(after));
  EXPECT_EQ(table.Find(StorageOf(after)), number);
  EXPECT_EQ(table.Find(StorageOf(before)), -1);
  EXPECT_TRUE(table.Is(number, StorageOf(after)));
  EXPECT_EQ(table.Alive(number).get(), StorageOf(after));
}

}  // namespace
}  // namespace addend
