#include "core/onnx/tensor_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/onnx/onnx_testing.h"

namespace addend::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kAllTypes = 28;

// Fields of TensorProto.
constexpr uint32_t kFloatData = 4;
constexpr uint32_t kInt32Data = 5;
constexpr uint32_t kStringData = 6;
constexpr uint32_t kInt64Data = 7;
constexpr uint32_t kRawData = 9;
constexpr uint32_t kDoubleData = 10;
constexpr uint32_t kUint64Data = 11;

int32_t Number(DataType type) { return static_cast<int32_t>(type); }

// A model with one tensor, and what it is read from.
struct Loaded {
  explicit Loaded(const MessageWriter& tensor, ExternalFiles* files = nullptr)
      : content(std::make_shared<std::string>(ModelMessage(MessageWriter().Message(5, tensor)).bytes())) {
    weights::Bytes bytes;
    bytes.data = content->data();
    bytes.size = content->size();
    bytes.owner = content;
    model = ReadModelProto(std::move(bytes), "m.onnx");
    data = ReadTensorData(model.graph.initializers[0], model, files);
  }

  std::string bytes() const { return std::string(data.bytes.data, data.bytes.size); }
  template <typename T>
  std::vector<T> As() const {
    std::vector<T> values(data.bytes.size / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), data.bytes.data, data.bytes.size);
    return values;
  }
  bool InPlace() const {
    return data.bytes.data >= content->data() && data.bytes.data <= content->data() + content->size();
  }

  std::shared_ptr<std::string> content;
  ModelProto model;
  TensorData data;
};

std::string Refusal(const MessageWriter& tensor) {
  return MessageOf([&] { Loaded loaded(tensor); });
}

MessageWriter Tensor(DataType type, const std::vector<int64_t>& dims) { return TensorMessage("w", Number(type), dims); }

TEST(ReadTensorData, SharesRawData) {
  const Loaded loaded(FloatTensor("w", {2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(loaded.data.type, DataType::kFloat);
  EXPECT_THAT(loaded.data.dims, ElementsAre(2, 2));
  EXPECT_EQ(loaded.data.num_elements, 4);
  EXPECT_THAT(loaded.As<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(loaded.InPlace());
  EXPECT_EQ(loaded.data.bytes.owner, loaded.content);
}

TEST(ReadTensorData, SharesFloatsThatStandInOnePiece) {
  EXPECT_TRUE(Loaded(Tensor(DataType::kFloat, {2}).PackedFloats(kFloatData, {1, 2})).InPlace());
  EXPECT_TRUE(Loaded(Tensor(DataType::kDouble, {2}).PackedDoubles(kDoubleData, {1, 2})).InPlace());
  const Loaded pieces(Tensor(DataType::kFloat, {2}).Float(kFloatData, 1).Float(kFloatData, 2));
  EXPECT_FALSE(pieces.InPlace());
  EXPECT_THAT(pieces.As<float>(), ElementsAre(1, 2));
}

TEST(ReadTensorData, ReadsScalarsAndEmptyTensors) {
  EXPECT_EQ(Loaded(FloatTensor("w", {}, {7})).data.num_elements, 1);
  EXPECT_EQ(Loaded(Tensor(DataType::kFloat, {0})).data.num_elements, 0);
  EXPECT_EQ(Loaded(Tensor(DataType::kFloat, {3, 0, 2}).Bytes(kRawData, "")).data.bytes.size, 0U);
  EXPECT_EQ(Loaded(Tensor(DataType::kString, {0})).data.num_elements, 0);
}

// A typed field with numbers, one by one and in one piece, and the bytes that it stands for.
void ExpectBytes(DataType type, int64_t count, uint32_t field, const std::vector<int64_t>& numbers,
                 const std::string& bytes) {
  MessageWriter apart = Tensor(type, {count});
  for (const int64_t number : numbers) apart.Integer(field, number);
  EXPECT_EQ(Loaded(apart).bytes(), bytes) << NameOf(type);
  EXPECT_EQ(Loaded(Tensor(type, {count}).PackedIntegers(field, numbers)).bytes(), bytes) << NameOf(type);
}

TEST(ReadTensorData, ReadsNumbersOfTypedFieldsInBothPackings) {
  ExpectBytes(DataType::kInt32, 2, kInt32Data, {1, -2}, std::string("\1\0\0\0\xfe\xff\xff\xff", 8));
  ExpectBytes(DataType::kInt16, 2, kInt32Data, {1, -2}, std::string("\1\0\xfe\xff", 4));
  ExpectBytes(DataType::kUint16, 2, kInt32Data, {1, 65535}, std::string("\1\0\xff\xff", 4));
  ExpectBytes(DataType::kInt8, 3, kInt32Data, {1, -1, -128}, "\x01\xff\x80");
  ExpectBytes(DataType::kUint8, 2, kInt32Data, {1, 255}, "\x01\xff");
  ExpectBytes(DataType::kBool, 2, kInt32Data, {1, 0}, std::string("\1\0", 2));
  ExpectBytes(DataType::kFloat16, 2, kInt32Data, {0x3c00, 0xbc00}, std::string("\0\x3c\0\xbc", 4));
  ExpectBytes(DataType::kBfloat16, 1, kInt32Data, {0x3f80}, "\x80\x3f");
  for (const DataType type : {DataType::kFloat8E4M3Fn, DataType::kFloat8E4M3Fnuz, DataType::kFloat8E5M2,
                              DataType::kFloat8E5M2Fnuz, DataType::kFloat8E8M0}) {
    ExpectBytes(type, 2, kInt32Data, {0x38, 0xff}, "\x38\xff");
  }
  ExpectBytes(DataType::kInt64, 2, kInt64Data, {1, -1}, std::string("\1\0\0\0\0\0\0\0", 8) + std::string(8, '\xff'));
  ExpectBytes(DataType::kUint64, 1, kUint64Data, {-1}, std::string(8, '\xff'));
  ExpectBytes(DataType::kUint32, 1, kUint64Data, {0xffffffff}, std::string(4, '\xff'));
  // Two elements of 4 bits, or four of 2, in a number.
  for (const DataType type : {DataType::kUint4, DataType::kInt4, DataType::kFloat4E2M1}) {
    ExpectBytes(type, 3, kInt32Data, {0x21, 0x03}, "\x21\x03");
  }
  for (const DataType type : {DataType::kUint2, DataType::kInt2})
    ExpectBytes(type, 5, kInt32Data, {0xe4, 1}, "\xe4\x01");
  // One element of 6 bits in a number; four of them in three bytes.
  for (const DataType type : {DataType::kFloat6E2M3, DataType::kFloat6E3M2}) {
    ExpectBytes(type, 5, kInt32Data, {0x3f, 0, 0x3f, 0, 1}, std::string("\x3f\xf0\x03\x01", 4));
  }
}

TEST(ReadTensorData, ReadsComplexNumbersAsPairs) {
  const Loaded single(Tensor(DataType::kComplex64, {1}).PackedFloats(kFloatData, {1, 2}));
  EXPECT_THAT(single.As<float>(), ElementsAre(1, 2));
  const Loaded both(Tensor(DataType::kComplex128, {1}).PackedDoubles(kDoubleData, {1, 2}));
  EXPECT_THAT(both.As<double>(), ElementsAre(1, 2));
  EXPECT_THAT(Refusal(Tensor(DataType::kComplex64, {1}).PackedFloats(kFloatData, {1})),
              HasSubstr("has 1 numbers in float_data, where its 1 elements of type complex64 take 2"));
}

TEST(ReadTensorData, ReadsStrings) {
  const Loaded loaded(Tensor(DataType::kString, {2}).Bytes(kStringData, "a").Bytes(kStringData, "\xff"));
  EXPECT_THAT(loaded.data.strings.Texts(), ElementsAre("a", "\xff"));
  EXPECT_EQ(loaded.data.bytes.size, 0U);
  EXPECT_THAT(Refusal(Tensor(DataType::kString, {1})), HasSubstr("has 0 numbers in string_data"));
  EXPECT_THAT(Refusal(Tensor(DataType::kString, {1}).Bytes(kRawData, "a")), HasSubstr("has strings in raw_data"));
}

TEST(ReadTensorData, RefusesNumbersThatTheirTypeCannotHold) {
  const auto refuses = [](DataType type, uint32_t field, int64_t number) {
    EXPECT_THAT(Refusal(Tensor(type, {1}).Integer(field, number)),
                HasSubstr("m.onnx: the tensor w has the number " + std::to_string(number)))
        << NameOf(type);
  };
  refuses(DataType::kInt8, kInt32Data, 128);
  refuses(DataType::kInt8, kInt32Data, -129);
  refuses(DataType::kUint8, kInt32Data, 256);
  refuses(DataType::kUint8, kInt32Data, -1);
  refuses(DataType::kBool, kInt32Data, 2);
  refuses(DataType::kInt16, kInt32Data, 32768);
  refuses(DataType::kFloat16, kInt32Data, 65536);
  refuses(DataType::kFloat16, kInt32Data, -1);
  refuses(DataType::kInt32, kInt32Data, int64_t{1} << 32);
  refuses(DataType::kUint32, kUint64Data, int64_t{1} << 32);
  refuses(DataType::kUint4, kInt32Data, 256);
  refuses(DataType::kFloat6E2M3, kInt32Data, 64);
  // Negative numbers of 32 bits, as some write them.
  EXPECT_THAT(Loaded(Tensor(DataType::kInt32, {1}).Integer(kInt32Data, 0xffffffff)).As<int32_t>(), ElementsAre(-1));
}

TEST(ReadTensorData, RefusesDataThatDoNotFit) {
  EXPECT_EQ(Refusal(FloatTensor("w", {3}, {1, 2})),
            "m.onnx: the tensor w has 8 bytes in raw_data, where its 3 elements of type float32 take 12; the file is "
            "damaged");
  EXPECT_THAT(Refusal(FloatTensor("w", {1}, {1, 2})), HasSubstr("has 8 bytes in raw_data"));
  EXPECT_THAT(Refusal(Tensor(DataType::kFloat, {2})), HasSubstr("has 0 numbers in float_data"));
  EXPECT_THAT(Refusal(Tensor(DataType::kUint4, {3}).Bytes(kRawData, "abc")), HasSubstr("has 3 bytes in raw_data"));
  EXPECT_THAT(Refusal(Tensor(DataType::kFloat, {1}).Integer(kInt64Data, 1)),
              HasSubstr("of type float32 has its elements in int64_data instead of float_data"));
  EXPECT_THAT(Refusal(Tensor(DataType::kFloat, {1}).Float(kFloatData, 1).Bytes(kRawData, "abcd")),
              HasSubstr("has elements both in raw_data and in float_data"));
  EXPECT_THAT(Refusal(Tensor(DataType::kFloat, {1}).Float(kFloatData, 1).Double(kDoubleData, 1)),
              HasSubstr("has elements in the fields 4 and 10 instead of in one"));
  EXPECT_THAT(Refusal(MessageWriter().Bytes(8, "w")), HasSubstr("the tensor w has no type"));
  EXPECT_THAT(Refusal(MessageWriter().Integer(2, 1)), HasSubstr("m.onnx: the tensor at byte "));
}

TEST(ReadTensorData, RefusesSizesThatOverflow) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const auto refused = HasSubstr("has sizes that are too large for any memory");
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{most, most}, {most, 2}, {most}, {1 << 30, 1 << 30, 16}, {0, most, most}, {most, 0, 3}}) {
    EXPECT_THAT(Refusal(Tensor(DataType::kFloat, dims)), refused);
    EXPECT_THAT(Refusal(Tensor(DataType::kInt2, dims)), refused);
  }
  EXPECT_THAT(Refusal(Tensor(DataType::kFloat, {int64_t{1} << 40})), HasSubstr("has 0 numbers in float_data"));
}

TEST(ReadTensorData, TakesCopiesFromTheBudget) {
  // Eight bytes for each in the file.
  const int64_t count = int64_t{20} << 20;
  EXPECT_THAT(Refusal(Tensor(DataType::kInt64, {count}).Bytes(kInt64Data, std::string(static_cast<size_t>(count), 1))),
              HasSubstr("m.onnx: reading it would take more than"));
}

TEST(Unpacked, GivesAByteToEachElement) {
  const auto unpacked = [](DataType type, int64_t count, const std::string& raw) {
    const Loaded loaded(Tensor(type, {count}).Bytes(kRawData, raw));
    const TensorData data = Unpacked(loaded.data, &loaded.model.file->budget);
    EXPECT_EQ(data.num_elements, count);
    EXPECT_EQ(BitsOf(data.type), 8);
    std::vector<int> numbers;
    for (size_t k = 0; k < data.bytes.size; ++k) {
      numbers.push_back(data.type == DataType::kInt8 ? static_cast<signed char>(data.bytes.data[k])
                                                     : static_cast<unsigned char>(data.bytes.data[k]));
    }
    return numbers;
  };
  EXPECT_THAT(unpacked(DataType::kUint4, 3, "\xf1\x0e"), ElementsAre(1, 15, 14));
  EXPECT_THAT(unpacked(DataType::kInt4, 3, "\xf1\x08"), ElementsAre(1, -1, -8));
  EXPECT_THAT(unpacked(DataType::kUint2, 5, "\xe4\x02"), ElementsAre(0, 1, 2, 3, 2));
  EXPECT_THAT(unpacked(DataType::kInt2, 5, "\xe4\x02"), ElementsAre(0, 1, -2, -1, -2));
  const Loaded plain(FloatTensor("w", {1}, {1}));
  EXPECT_EQ(Unpacked(plain.data, &plain.model.file->budget).bytes.data, plain.data.bytes.data);
}

TEST(Widened, NumbersWithoutSignFitIntoMoreBits) {
  const auto widened = [](DataType type, int64_t count, const std::string& raw) {
    const Loaded loaded(Tensor(type, {count}).Bytes(kRawData, raw));
    const TensorData data = Widened(loaded.data, "w", &loaded.model.file->budget);
    EXPECT_EQ(data.dims, loaded.data.dims);
    return std::make_pair(data.type, std::string(data.bytes.data, data.bytes.size));
  };
  EXPECT_EQ(widened(DataType::kUint16, 2, std::string("\1\0\xff\xff", 4)),
            std::make_pair(DataType::kInt32, std::string("\1\0\0\0\xff\xff\0\0", 8)));
  EXPECT_EQ(widened(DataType::kUint32, 1, std::string(4, '\xff')),
            std::make_pair(DataType::kInt64, std::string(4, '\xff') + std::string(4, '\0')));
  const std::string most = std::string(7, '\xff') + "\x7f";
  EXPECT_EQ(widened(DataType::kUint64, 1, most), std::make_pair(DataType::kInt64, most));
  EXPECT_EQ(MessageOf([&] { widened(DataType::kUint64, 2, most + std::string(7, '\0') + "\x80"); }),
            "w holds the number 9223372036854775808; of uint64 those up to 9223372036854775807 are supported");
  const Loaded plain(FloatTensor("w", {1}, {1}));
  EXPECT_EQ(Widened(plain.data, "w", &plain.model.file->budget).bytes.data, plain.data.bytes.data);
}

TEST(DataType, HasNamesAndSizes) {
  for (int32_t number = 1; number <= kAllTypes; ++number) {
    const auto type = static_cast<DataType>(number);
    EXPECT_TRUE(IsDataType(number));
    EXPECT_EQ(BitsOf(type) == 0, type == DataType::kString);
  }
  EXPECT_FALSE(IsDataType(0));
  EXPECT_FALSE(IsDataType(-1));
  EXPECT_FALSE(IsDataType(kAllTypes + 1));
  EXPECT_EQ(NameOf(DataType::kFloat6E3M2), "float6e3m2");
  EXPECT_EQ(NameOf(static_cast<DataType>(99)), "type 99");
}

// ---------------------------------------------------------------------------------------------------- external data

class ExternalData : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "tensor_data";
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    std::ofstream(root_ + "/weights") << "0123456789abcdef";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string Read(const MessageWriter& tensor) {
    ExternalFiles files(root_ + "/m.onnx");
    return Loaded(tensor, &files).bytes();
  }
  std::string Refusal(const MessageWriter& tensor) {
    return MessageOf([&] { Read(tensor); });
  }
  // Eight bytes, with these entries beside the location.
  static MessageWriter Eight(std::vector<std::string> entries) {
    entries.insert(entries.begin(), {"location", "weights"});
    return ExternalTensor("w", 2, {8}, entries);
  }

  std::string root_;
};

TEST_F(ExternalData, ReadsARangeOfAFile) {
  EXPECT_EQ(Read(Eight({})), "01234567");
  EXPECT_EQ(Read(Eight({"offset", "4"})), "456789ab");
  EXPECT_EQ(Read(Eight({"offset", "8", "length", "8", "checksum", "x"})), "89abcdef");
  EXPECT_EQ(Read(ExternalTensor("w", 2, {0}, {"location", "weights"})), "");
}

TEST_F(ExternalData, RefusesRangesBeyondTheFile) {
  const auto refused = HasSubstr("that file is truncated, or belongs to another model");
  EXPECT_THAT(Refusal(Eight({"offset", "9"})), refused);
  EXPECT_THAT(Refusal(Eight({"offset", "17"})), refused);
  EXPECT_THAT(Refusal(Eight({"offset", "18446744073709551615"})), refused);
  EXPECT_THAT(Refusal(ExternalTensor("w", 2, {17}, {"location", "weights"})), refused);
}

TEST_F(ExternalData, RefusesWhatIsMalformed) {
  EXPECT_THAT(Refusal(Eight({"length", "7"})), HasSubstr("has 7 bytes in its external data, where its 8 elements"));
  EXPECT_THAT(Refusal(Eight({"length", "18446744073709551615"})), HasSubstr("in its external data, where its 8"));
  EXPECT_THAT(Refusal(Eight({"offset", "-1"})), HasSubstr("with the offset -1, which is no number"));
  EXPECT_THAT(Refusal(Eight({"offset", "0x10"})), HasSubstr("which is no number"));
  EXPECT_THAT(Refusal(Eight({"offset", "99999999999999999999"})), HasSubstr("which is no number"));
  EXPECT_THAT(Refusal(Eight({"offset", ""})), HasSubstr("which is no number"));
  EXPECT_THAT(Refusal(Eight({"basepath", "/"})), HasSubstr("external data with the unknown entry basepath"));
  EXPECT_THAT(Refusal(Eight({"location", "other"})), HasSubstr("two entries location"));
  EXPECT_THAT(Refusal(ExternalTensor("w", 2, {8}, {})), HasSubstr("its external data have no location"));
  EXPECT_THAT(Refusal(ExternalTensor("w", 8, {1}, {"location", "weights"})), HasSubstr("has strings in another file"));
  EXPECT_THAT(Refusal(Eight({}).Bytes(kRawData, "01234567")), HasSubstr("has elements both in the file and beside it"));
  EXPECT_THAT(Refusal(Tensor(DataType::kFloat, {}).Integer(14, 2)), HasSubstr("has the unknown data_location 2"));
  EXPECT_THAT(Refusal(ExternalTensor("w", 2, {8}, {"location", "../weights"})),
              HasSubstr("m.onnx: the tensor w: its data are in ../weights, a path that leaves a folder"));
}

TEST_F(ExternalData, IsNotReadWhereTheTensorSaysItsDataAreInTheFile) {
  const MessageWriter tensor = FloatTensor("w", {1}, {1}).Message(13, EntryMessage("location", "../outside"));
  EXPECT_EQ(Read(tensor).size(), 4U);
}

TEST_F(ExternalData, IsRefusedInAModelOfBytes) {
  ExternalFiles none;
  EXPECT_THAT(MessageOf([&] { Loaded(Eight({}), &none); }), HasSubstr("a model that is given as bytes has no folder"));
}

}  // namespace
}  // namespace addend::onnx
