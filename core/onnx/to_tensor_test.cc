#include "core/onnx/to_tensor.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/onnx/onnx_testing.h"

namespace addend::onnx {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kRawData = 9;

// A tensor of the first initializer of a model in a file.
class ToTensorTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "to_tensor";
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(root_ + "/" + name, std::ios::binary) << content;
  }

  at::Tensor Read(const MessageWriter& tensor, size_t padding = 0) {
    // Other fields in front of the tensor move its elements.
    const MessageWriter graph = MessageWriter().Bytes(2, std::string(padding, 'p')).Message(5, tensor);
    Write("m.onnx", ModelMessage(graph).bytes());
    const ModelProto model = ReadModelProto(weights::MapFile(root_ + "/m.onnx"), "m.onnx");
    ExternalFiles files(root_ + "/m.onnx");
    const TensorProto& read = model.graph.initializers[0];
    data_ = ReadTensorData(read, model, &files);
    return ToTensor(data_, PlaceText(read, model), &model.file->budget);
  }

  std::string root_;
  TensorData data_;
};

TEST_F(ToTensorTest, SharesTheFileWhereItIsAligned) {
  int shared = 0;
  for (size_t padding = 0; padding < 4; ++padding) {
    const at::Tensor tensor = Read(FloatTensor("w", {2, 3}, {1, 2, 3, 4, 5, 6}), padding);
    EXPECT_EQ(tensor.sizes(), (at::IntArrayRef{2, 3}));
    EXPECT_TRUE(tensor.is_contiguous());
    EXPECT_TRUE(tensor.equal(at::tensor({1.F, 2.F, 3.F, 4.F, 5.F, 6.F}).reshape({2, 3})));
    const bool in_place = tensor.data_ptr() == data_.bytes.data;
    EXPECT_EQ(in_place, reinterpret_cast<uintptr_t>(data_.bytes.data) % 4 == 0);
    shared += in_place ? 1 : 0;
  }
  EXPECT_EQ(shared, 1);
}

TEST_F(ToTensorTest, KeepsTheMappingThatItLiesIn) {
  Write("weights", std::string("\1\0\0\0\2\0\0\0", 8));
  const at::Tensor tensor = Read(ExternalTensor("w", 6, {2}, {"location", "weights"}));
  EXPECT_EQ(tensor.data_ptr(), data_.bytes.data);
  const std::weak_ptr<void> mapping = data_.bytes.owner;
  data_ = TensorData();
  EXPECT_FALSE(mapping.expired());
  EXPECT_TRUE(tensor.equal(at::tensor({1, 2}, at::kInt)));
  // Writes stay in this process.
  tensor.fill_(7);
  char first = 0;
  std::ifstream(root_ + "/weights", std::ios::binary).get(first);
  EXPECT_EQ(first, 1);
}

TEST_F(ToTensorTest, ReleasesTheMapping) {
  Write("weights", std::string(8, '\0'));
  std::weak_ptr<void> mapping;
  {
    const at::Tensor tensor = Read(ExternalTensor("w", 6, {2}, {"location", "weights"}));
    mapping = data_.bytes.owner;
    data_ = TensorData();
  }
  EXPECT_TRUE(mapping.expired());
}

TEST_F(ToTensorTest, ReadsEveryTypeThatLibTorchHas) {
  for (int32_t number = 1; number <= 28; ++number) {
    const auto type = static_cast<DataType>(number);
    if (type == DataType::kString) continue;
    const MessageWriter tensor = TensorMessage("w", number, {4}).Bytes(kRawData, std::string(BitsOf(type) / 2, '\1'));
    const bool small = BitsOf(type) < 6 && type != DataType::kFloat4E2M1;
    if (ScalarTypeOf(type) || small) {
      EXPECT_EQ(Read(tensor).numel(), 4) << NameOf(type);
    } else {
      EXPECT_EQ(MessageOf([&] { Read(tensor); }), "m.onnx: the tensor w: elements of type " + NameOf(type) +
                                                      " are not computed with; write the model with another type");
    }
  }
  EXPECT_THAT(MessageOf([&] { Read(TensorMessage("w", 8, {1}).Bytes(6, "text")); }), HasSubstr("of type string"));
}

TEST_F(ToTensorTest, UnpacksNumbersOfFourBits) {
  EXPECT_TRUE(Read(TensorMessage("w", 22, {3}).Bytes(kRawData, "\xf1\x08")).equal(at::tensor({1, -1, -8}, at::kChar)));
  EXPECT_TRUE(Read(TensorMessage("w", 21, {3}).Bytes(kRawData, "\xf1\x08")).equal(at::tensor({1, 15, 8}, at::kByte)));
}

TEST_F(ToTensorTest, ReadsScalarsAndEmptyTensors) {
  EXPECT_EQ(Read(FloatTensor("w", {}, {7})).item<float>(), 7);
  EXPECT_EQ(Read(TensorMessage("w", 1, {2, 0, 3})).sizes(), (at::IntArrayRef{2, 0, 3}));
}

TEST_F(ToTensorTest, RefusesTruthValuesThatAreNone) {
  const at::Tensor truths = Read(TensorMessage("w", 9, {2}).Bytes(kRawData, std::string("\1\0", 2)));
  EXPECT_EQ(truths.scalar_type(), at::kBool);
  EXPECT_TRUE(truths[0].item<bool>());
  EXPECT_FALSE(truths[1].item<bool>());
  EXPECT_EQ(MessageOf([&] { Read(TensorMessage("w", 9, {2}).Bytes(kRawData, "\x01\x02")); }),
            "m.onnx: the tensor w: holds a truth value 2, which is neither 0 nor 1");
}

TEST(ToTensor, CopiesWhatItMayNotKeep) {
  std::string bytes = ModelMessage(MessageWriter().Message(5, FloatTensor("w", {1}, {7}))).bytes();
  weights::Bytes view;
  view.data = bytes.data();
  view.size = bytes.size();
  const ModelProto model = ReadModelProto(view, "m.onnx");
  ExternalFiles none;
  const at::Tensor tensor =
      ToTensor(ReadTensorData(model.graph.initializers[0], model, &none), "w", &model.file->budget);
  bytes.assign(bytes.size(), '\0');
  EXPECT_EQ(tensor.item<float>(), 7);
}

}  // namespace
}  // namespace addend::onnx
