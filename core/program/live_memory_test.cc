#include "core/program/live_memory.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace addend {
namespace {

using at::Tensor;

// A tensor as another library would give it to us: its memory, in a storage object of its own.
Tensor Exchanged(const Tensor& tensor) {
  return at::from_blob(
      tensor.data_ptr(), tensor.sizes(), tensor.strides(), [](void*) {}, tensor.options());
}

class LiveMemoryTest : public testing::Test {
 protected:
  int Show(const Tensor& tensor) {
    const int storage = storages_.Add(tensor.storage().unsafeGetStorageImpl()).first;
    memory_.Know(storage);
    return storage;
  }

  StorageTable storages_;
  LiveMemory memory_{&storages_};
};

TEST_F(LiveMemoryTest, MeetsInputsOnceInTheOrderOfTheirNumbers) {
  const Tensor block = at::arange(24.0).view({4, 6});
  memory_.DeclareInput(3, Exchanged(block.slice(0, 2, 4)));
  memory_.DeclareInput(5, Exchanged(block.slice(0, 0, 1)));
  memory_.DeclareInput(4, at::ones({2}));
  EXPECT_TRUE(memory_.MeetInputs(at::ones({2}).storage()).empty());
  const auto met = memory_.MeetInputs(block.storage());
  ASSERT_EQ(met.size(), 2u);
  EXPECT_EQ(met[0].number, 3);
  EXPECT_TRUE(met[0].tensor.equal(block.slice(0, 2, 4)));
  EXPECT_EQ(met[0].tensor.storage().unsafeGetStorageImpl(), block.storage().unsafeGetStorageImpl());
  EXPECT_EQ(met[1].number, 5);
  EXPECT_TRUE(memory_.MeetInputs(block.storage()).empty());
}

TEST_F(LiveMemoryTest, AnInputBetweenElementsOfItsStorageHasNoPlaceInIt) {
  const Tensor bytes = at::zeros({16}, at::kByte);
  memory_.DeclareInput(0, at::from_blob(bytes.data_ptr<uint8_t>() + 2, {2}, at::kFloat));
  const auto met = memory_.MeetInputs(bytes.storage());
  ASSERT_EQ(met.size(), 1u);
  EXPECT_FALSE(met[0].tensor.defined());
}

TEST_F(LiveMemoryTest, InputsOverlapWhereTheyShareAnElement) {
  const Tensor block = at::ones({4, 6});
  memory_.DeclareInput(0, Exchanged(block.slice(0, 1, 3)));
  EXPECT_TRUE(memory_.OverlapsInput(block.slice(0, 2, 4)));
  EXPECT_TRUE(memory_.OverlapsInput(block));
  EXPECT_FALSE(memory_.OverlapsInput(block.slice(0, 3, 4)));
  EXPECT_FALSE(memory_.OverlapsInput(block.slice(0, 0, 1)));
}

TEST_F(LiveMemoryTest, ATensorIsTheNamedOneOrAPartOfTheFirstInItsStorage) {
  const Tensor flat = at::ones({10});
  memory_.DeclareNamed(0, Exchanged(flat.slice(0, 0, 4)));
  memory_.DeclareNamed(1, Exchanged(flat.slice(0, 4, 10)));
  memory_.DeclareNamed(2, Exchanged(flat.slice(0, 4, 10)));  // tied
  EXPECT_EQ(memory_.MeetNamed(flat.slice(0, 4, 10)).number, 1);
  EXPECT_EQ(memory_.MeetNamed(flat.slice(0, 0, 4)).number, 0);
  EXPECT_EQ(memory_.MeetNamed(flat.slice(0, 5, 6)).number, 0);
  EXPECT_EQ(memory_.MeetNamed(at::ones({10})).number, -1);
}

TEST_F(LiveMemoryTest, FindsTheStorageThatLivesAndWasShownLast) {
  const Tensor x = at::ones({2, 3});
  const Tensor alias = Exchanged(x);
  EXPECT_FALSE(memory_.Find(x).defined());
  const int of_x = Show(x);
  const int of_alias = Show(alias);
  EXPECT_EQ(memory_.Holder(Exchanged(x)), of_alias);
  Show(x);
  EXPECT_EQ(memory_.Holder(Exchanged(x)), of_x);
  const Tensor row = memory_.Find(Exchanged(x.select(0, 1)));
  EXPECT_EQ(row.storage().unsafeGetStorageImpl(), x.storage().unsafeGetStorageImpl());
  EXPECT_EQ(row.storage_offset(), 3);
  const Tensor other = at::ones({2, 3});
  EXPECT_EQ(memory_.Holder(other), -1);
}

// Sparse tensors have no memory of their own, nor have those of transformed functions.
TEST_F(LiveMemoryTest, ATensorWithoutMemoryIsNowhere) {
  const Tensor x = at::ones({2, 3});
  memory_.DeclareInput(0, Exchanged(x));
  Show(x);
  const Tensor without = x.to_sparse();
  ASSERT_FALSE(without.has_storage());
  EXPECT_FALSE(memory_.OverlapsInput(without));
  EXPECT_EQ(memory_.Holder(without), -1);
  EXPECT_FALSE(memory_.Find(without).defined());
}

TEST_F(LiveMemoryTest, WhatIsFreedHoldsNothing) {
  const Tensor x = at::ones({2, 3});
  Tensor alias = Exchanged(x);
  Show(alias);
  alias.reset();
  EXPECT_EQ(memory_.Holder(x), -1);
}

}  // namespace
}  // namespace addend
