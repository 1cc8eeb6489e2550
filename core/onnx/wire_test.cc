#include "core/onnx/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/onnx/onnx_testing.h"

namespace addend::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The error of reading all fields of a message.
std::string Refusal(const std::string& bytes) {
  WireFile file("m.onnx", bytes);
  return MessageOf([&] {
    MessageReader message(&file, "ModelProto");
    while (message.Next()) {
    }
  });
}

// Calls `read` at the first field of a message.
template <typename Read>
auto First(const MessageWriter& writer, Read read) {
  WireFile file("m.onnx", writer.bytes());
  MessageReader message(&file, "ModelProto");
  EXPECT_TRUE(message.Next());
  return read(message);
}

constexpr auto kInteger = [](const MessageReader& message) { return message.Integer(); };

TEST(MessageReader, ReadsFieldsOfEveryType) {
  MessageWriter writer;
  writer.Integer(1, -1).Float(2, 1.5F).Double(3, 2.5).Bytes(4, "text").Message(5, MessageWriter().Integer(1, 7));
  WireFile file("m.onnx", writer.bytes());
  MessageReader message(&file, "ModelProto");
  ASSERT_TRUE(message.Next());
  EXPECT_EQ(message.field(), 1U);
  EXPECT_EQ(message.Integer(), -1);
  ASSERT_TRUE(message.Next());
  EXPECT_EQ(message.Float(), 1.5F);
  ASSERT_TRUE(message.Next());
  EXPECT_EQ(message.field(), 3U);
  ASSERT_TRUE(message.Next());
  EXPECT_EQ(message.Text(), "text");
  ASSERT_TRUE(message.Next());
  MessageReader nested = message.Message("GraphProto");
  ASSERT_TRUE(nested.Next());
  EXPECT_EQ(nested.Integer(), 7);
  EXPECT_FALSE(nested.Next());
  EXPECT_FALSE(message.Next());
  EXPECT_FALSE(message.Next());
}

TEST(MessageReader, CopiesNothing) {
  const std::string large(1 << 20, 'x');
  const std::string bytes = MessageWriter().Bytes(9, large).bytes();
  WireFile file("m.onnx", bytes);
  MessageReader message(&file, "TensorProto");
  ASSERT_TRUE(message.Next());
  EXPECT_EQ(message.Bytes().data(), bytes.data() + bytes.size() - large.size());
}

TEST(MessageReader, ReadsNumbersOf64Bits) {
  for (const int64_t number : {int64_t{0}, int64_t{127}, int64_t{128}, std::numeric_limits<int64_t>::max(),
                               std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(First(MessageWriter().Integer(1, number), kInteger), number);
  }
  // Longer than need be, which no rule forbids.
  EXPECT_EQ(First(MessageWriter().Raw(std::string("\x08\x81\x80\x00", 4)), kInteger), 1);
}

TEST(MessageReader, RefusesNumbersOfMoreThan64Bits) {
  const std::string nine(9, '\xff');
  EXPECT_EQ(Refusal("\x08" + nine + "\x01"), "(no error)");
  EXPECT_EQ(Refusal("\x08" + nine + "\x02"), "m.onnx (byte 0, in ModelProto): a number does not fit 64 bits");
  EXPECT_THAT(Refusal("\x08" + nine + "\x81" + std::string(1, '\0')), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(Refusal("\x08" + std::string(1000, '\xff')), HasSubstr("does not fit 64 bits"));
  // The tag and the length of a field are numbers too.
  EXPECT_THAT(Refusal(std::string(11, '\xff')), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(Refusal("\x0a" + std::string(11, '\xff')), HasSubstr("does not fit 64 bits"));
}

TEST(MessageReader, RefusesLengthsBeyondTheMessage) {
  EXPECT_EQ(Refusal("\x08\x01\x12\x05text"),
            "m.onnx (byte 2, in ModelProto): field 2 has 5 bytes where 4 are left; the file is truncated or damaged");
  EXPECT_THAT(Refusal("\x12" + VarintBytes(std::numeric_limits<uint64_t>::max())),
              HasSubstr("field 2 has 18446744073709551615 bytes where 0 are left"));
  EXPECT_THAT(Refusal("\x12" + VarintBytes(uint64_t{1} << 63) + "x"), HasSubstr("where 1 are left"));
  // A nested message ends where the field ends, not where the file does.
  const std::string nested = MessageWriter().Bytes(7, "\x12\x03x").Bytes(2, "behind").bytes();
  WireFile file("m.onnx", nested);
  EXPECT_EQ(MessageOf([&] {
              MessageReader message(&file, "ModelProto");
              message.Next();
              MessageReader inner = message.Message("GraphProto");
              inner.Next();
            }),
            "m.onnx (byte 2, in GraphProto): field 2 has 3 bytes where 1 are left; the file is truncated or damaged");
}

TEST(MessageReader, RefusesTruncatedNumbers) {
  EXPECT_THAT(Refusal("\x08"), HasSubstr("a number is cut off"));
  EXPECT_THAT(Refusal("\x08\x80"), HasSubstr("a number is cut off"));
  EXPECT_THAT(Refusal("\x80"), HasSubstr("a number is cut off"));
  EXPECT_THAT(Refusal("\x0d"
                      "abc"),
              HasSubstr("a number is cut off"));
  EXPECT_THAT(Refusal("\x09"
                      "abcdefg"),
              HasSubstr("a number is cut off"));
}

TEST(MessageReader, RefusesWhatIsNoField) {
  EXPECT_THAT(Refusal(std::string(2, '\0')), HasSubstr("a field has no number"));
  EXPECT_THAT(Refusal(std::string("\x02\x00", 2)), HasSubstr("a field has no number"));
  EXPECT_THAT(Refusal(VarintBytes(uint64_t{1} << 32)), HasSubstr("a field has no number"));
  EXPECT_THAT(Refusal("\x0b\x0c"), HasSubstr("field 1 is a group"));
  EXPECT_THAT(Refusal("\x0c"), HasSubstr("field 1 is a group"));
  EXPECT_THAT(Refusal("\x0e"), HasSubstr("field 1 has no type that is known"));
  EXPECT_THAT(Refusal("\x0f"), HasSubstr("field 1 has no type that is known"));
}

TEST(MessageReader, RefusesFieldsOfAnotherType) {
  const auto refuses = [](const MessageWriter& writer, const auto& read, const std::string& part) {
    EXPECT_THAT(MessageOf([&] { First(writer, read); }), HasSubstr(part));
  };
  refuses(MessageWriter().Bytes(1, "x"), kInteger, "field 1 is bytes with a length instead of a whole number");
  refuses(
      MessageWriter().Integer(1, 1), [](const MessageReader& message) { return message.Float(); },
      "field 1 is a whole number instead of a number of 32 bits");
  refuses(
      MessageWriter().Double(1, 1), [](const MessageReader& message) { return message.Bytes().size(); },
      "field 1 is a number of 64 bits instead of bytes with a length");
  refuses(
      MessageWriter().Integer(1, int64_t{1} << 31), [](const MessageReader& message) { return message.Integer32(); },
      "field 1 is 2147483648, which does not fit 32 bits");
  refuses(
      MessageWriter().Bytes(1, "\xff"), [](const MessageReader& message) { return message.Text().size(); },
      "field 1 is a text with bytes that are not UTF-8");
}

TEST(MessageReader, RefusesMessagesNestedTooDeep) {
  MessageWriter writer;
  for (int k = 0; k < kDeepestMessage + 1; ++k) writer = MessageWriter().Message(1, writer);
  WireFile file("m.onnx", writer.bytes());
  int depth = 1;
  EXPECT_THAT(MessageOf([&] {
                MessageReader message(&file, "ModelProto");
                while (message.Next()) {
                  message = message.Message("GraphProto");
                  ++depth;
                }
              }),
              HasSubstr("messages are nested more than 256 levels deep"));
  EXPECT_EQ(depth, kDeepestMessage);
}

TEST(MessageReader, CountsFields) {
  MessageWriter writer;
  writer.Integer(1, 1).Integer(2, 1).Integer(1, 2).Integer(40, 1);
  WireFile file("m.onnx", writer.bytes());
  const MessageReader message(&file, "ModelProto");
  const FieldCounts counts = message.Count();
  EXPECT_EQ(counts[1], 2U);
  EXPECT_EQ(counts[2], 1U);
  EXPECT_EQ(counts[3], 0U);
  message.RequireOnce(counts, {2, 3});
  EXPECT_EQ(MessageOf([&] { message.RequireOnce(counts, {1}); }),
            "m.onnx (byte 0, in ModelProto): has field 1 2 times instead of once");
}

// Reads field 1 of a message into a list, then calls `then` with it.
template <typename Then>
auto Listed(const MessageWriter& writer, WireType type, Then then) {
  WireFile file("m.onnx", writer.bytes());
  MessageReader message(&file, "TensorProto");
  RepeatedField list;
  while (message.Next()) {
    if (message.field() == 1) message.AddTo(&list, type);
  }
  return then(list);
}

std::vector<int64_t> Integers(const MessageWriter& writer) {
  return Listed(writer, WireType::kVarint, [](const RepeatedField& list) { return list.Integers(); });
}

std::vector<float> Floats(const MessageWriter& writer) {
  return Listed(writer, WireType::kFixed32, [](const RepeatedField& list) { return list.Floats(); });
}

TEST(RepeatedField, ReadsNumbersPackedOrNot) {
  EXPECT_THAT(Integers(MessageWriter().PackedIntegers(1, {1, -2, 300})), ElementsAre(1, -2, 300));
  EXPECT_THAT(Integers(MessageWriter().Integer(1, 1).Integer(1, -2).Integer(1, 300)), ElementsAre(1, -2, 300));
  EXPECT_THAT(Floats(MessageWriter().PackedFloats(1, {1, 2.5})), ElementsAre(1, 2.5));
  EXPECT_THAT(Floats(MessageWriter().Float(1, 1).Float(1, 2.5)), ElementsAre(1, 2.5));
  // In pieces, with other fields between them, in both ways at once.
  EXPECT_THAT(Integers(MessageWriter().PackedIntegers(1, {1, 2}).Bytes(2, "x").Integer(1, 3).PackedIntegers(1, {4})),
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Integers(MessageWriter().PackedIntegers(1, {})), ElementsAre());
  EXPECT_THAT(Integers(MessageWriter().Integer(2, 1)), ElementsAre());
}

TEST(RepeatedField, ReadsBytes) {
  const MessageWriter writer = MessageWriter().Bytes(1, "a").Integer(2, 1).Bytes(1, "").Bytes(1, "b");
  EXPECT_EQ(Listed(writer, WireType::kBytes, [](const RepeatedField& list) { return list.size(); }), 3U);
  Listed(writer, WireType::kBytes, [](const RepeatedField& list) {
    EXPECT_THAT(list.Texts(), ElementsAre("a", "", "b"));
    return 0;
  });
}

TEST(RepeatedField, GivesPackedNumbersAsTheyStand) {
  const auto packed = [](const MessageWriter& writer, WireType type) {
    return Listed(writer, type, [](const RepeatedField& list) { return list.Packed().size(); });
  };
  EXPECT_EQ(packed(MessageWriter().PackedFloats(1, {1, 2}), WireType::kFixed32), 8U);
  EXPECT_EQ(packed(MessageWriter().PackedDoubles(1, {1, 2}), WireType::kFixed64), 16U);
  EXPECT_EQ(packed(MessageWriter().PackedFloats(1, {1}).PackedFloats(1, {2}), WireType::kFixed32), 0U);
  EXPECT_EQ(packed(MessageWriter().Float(1, 1), WireType::kFixed32), 0U);
  EXPECT_EQ(packed(MessageWriter().PackedIntegers(1, {1}), WireType::kVarint), 0U);
}

TEST(RepeatedField, RefusesPackedNumbersThatAreCutOff) {
  EXPECT_THAT(MessageOf([] { Floats(MessageWriter().Bytes(1, "abcde")); }),
              HasSubstr("field 1 has 5 bytes, which are no numbers of 4 bytes"));
  EXPECT_THAT(MessageOf([] { Integers(MessageWriter().Bytes(1, "\x01\x80")); }), HasSubstr("a number is cut off"));
  EXPECT_THAT(MessageOf([] { Integers(MessageWriter().Bytes(1, std::string(10, '\xff'))); }),
              HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(MessageOf([] { Integers(MessageWriter().Float(1, 1)); }), HasSubstr("instead of a whole number"));
}

TEST(RepeatedField, RefusesElementsInTwoFields) {
  WireFile file("m.onnx", "\x08\x01\x10\x01");
  MessageReader message(&file, "TensorProto");
  RepeatedField list;
  ASSERT_TRUE(message.Next());
  message.AddTo(&list, WireType::kVarint);
  ASSERT_TRUE(message.Next());
  EXPECT_THAT(MessageOf([&] { message.AddTo(&list, WireType::kVarint); }),
              HasSubstr("has elements in the fields 1 and 2"));
}

TEST(RepeatedField, ReadsNoMoreThanWasCountedOfAFileThatChanges) {
  std::string bytes = MessageWriter().PackedIntegers(1, {300, 300, 300}).bytes();
  WireFile file("m.onnx", bytes);
  MessageReader message(&file, "TensorProto");
  RepeatedField list;
  ASSERT_TRUE(message.Next());
  message.AddTo(&list, WireType::kVarint);
  EXPECT_EQ(list.size(), 3U);
  // Six numbers in place of three, then one.
  for (size_t k = 2; k < bytes.size(); ++k) bytes[k] = 1;
  EXPECT_THAT(list.Integers(), ElementsAre(1, 1, 1));
  for (size_t k = 2; k < bytes.size(); ++k) bytes[k] = k + 1 == bytes.size() ? '\x01' : '\x80';
  EXPECT_THAT(MessageOf([&] { list.Integers(); }), HasSubstr("the file was written to while it was read"));
}

TEST(RepeatedField, TakesItsCopiesFromTheBudget) {
  // Eight bytes of memory for each in the file.
  const std::string bytes = MessageWriter().Bytes(1, std::string(size_t{20} << 20, '\1')).bytes();
  WireFile file("m.onnx", bytes);
  MessageReader message(&file, "AttributeProto");
  RepeatedField list;
  ASSERT_TRUE(message.Next());
  message.AddTo(&list, WireType::kVarint);
  EXPECT_THAT(MessageOf([&] { list.Integers(); }), HasSubstr("m.onnx: reading it would take more than 150994"));
}

TEST(MessageReader, RefusesUnknownFieldsThatSaySomething) {
  const auto refused = [](const MessageWriter& writer) {
    return MessageOf([&] {
      First(writer, [](const MessageReader& message) {
        message.RefuseUnknown();
        return 0;
      });
    });
  };
  EXPECT_EQ(refused(MessageWriter().Integer(30, 0)), "(no error)");
  EXPECT_EQ(refused(MessageWriter().Bytes(30, "")), "(no error)");
  EXPECT_EQ(refused(MessageWriter().Float(30, 0)), "(no error)");
  EXPECT_THAT(refused(MessageWriter().Integer(30, 1)), HasSubstr("field 30 is not known to this version of Addend"));
  EXPECT_THAT(refused(MessageWriter().Bytes(30, "x")), HasSubstr("field 30 is not known"));
}

}  // namespace
}  // namespace addend::onnx
