#include "core/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace addend {
namespace {

Position Everything() {
  Position position;
  position.op_index = 28;
  position.op = "aten::linear";
  position.module_path = "encoder.layers.3";
  position.function = "forward";
  position.file = "/project/model.py";
  position.line = 24;
  position.parameters = {"encoder.weight", "encoder.bias"};
  return position;
}

TEST(PositionTest, NothingKnownIsEmpty) { EXPECT_EQ(Position().Describe(), ""); }

TEST(PositionTest, EverythingKnown) { EXPECT_EQ(Everything().Describe(), "op #28, encoder.layers.3, model.py:24"); }

TEST(PositionTest, EachPartAlone) {
  Position index;
  index.op_index = 0;
  EXPECT_EQ(index.Describe(), "op #0");

  Position module;
  module.module_path = "head";
  EXPECT_EQ(module.Describe(), "head");

  Position file;
  file.file = "model.py";
  file.line = 1;
  EXPECT_EQ(file.Describe(), "model.py:1");

  Position parameters;
  parameters.parameters = {"a.weight"};
  EXPECT_EQ(parameters.Describe(), "uses a.weight");
}

TEST(PositionTest, FoldersAndUnknownLinesAreLeftOut) {
  Position position;
  position.file = "/a/b/c.py";
  EXPECT_EQ(position.Describe(), "c.py");
  position.line = 0;
  EXPECT_EQ(position.Describe(), "c.py");
  position.line = 7;
  EXPECT_EQ(position.Describe(), "c.py:7");
}

// A node of a graph has no source.
TEST(PositionTest, NodesAreTheirNames) {
  Position position;
  position.op_index = 3;
  position.function = "/encoder/MatMul";
  position.parameters = {"w"};
  EXPECT_EQ(position.Describe(), "op #3, /encoder/MatMul");
  position.op_index = -1;
  EXPECT_EQ(position.Describe(), "uses w");
}

// Parameters stand in for the source line: a model without debug information still tells which weights are meant.
TEST(PositionTest, ParametersOnlyWithoutFile) {
  Position position = Everything();
  position.file.clear();
  EXPECT_EQ(position.Describe(), "op #28, encoder.layers.3, uses encoder.weight, encoder.bias");
}

// The operator's and the function's name belong to the message, not to the position.
TEST(PositionTest, NamesAloneAreNoPosition) {
  Position position;
  position.op = "aten::linear";
  position.function = "forward";
  EXPECT_EQ(position.Describe(), "");
}

TEST(ErrorTest, WithoutPosition) {
  const Error error(absl::StatusCode::kInternal, "broken");
  EXPECT_STREQ(error.what(), "broken");
  EXPECT_EQ(error.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(error.position().op_index, -1);
}

TEST(ErrorTest, EndsWithThePosition) {
  const Error error(absl::StatusCode::kUnimplemented, "no composition rule for aten::foo.bar", Everything());
  EXPECT_STREQ(error.what(), "no composition rule for aten::foo.bar (op #28, encoder.layers.3, model.py:24)");
  EXPECT_EQ(error.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(error.position().op, "aten::linear");
  EXPECT_EQ(error.position().line, 24);
}

TEST(ErrorTest, UnknownPositionAddsNothing) {
  EXPECT_STREQ(Error(absl::StatusCode::kInternal, "broken", Position()).what(), "broken");
}

TEST(ErrorTest, EachHelperHasItsCode) {
  const struct {
    Error error;
    absl::StatusCode code;
  } cases[] = {
      {InvalidArgument("a"), absl::StatusCode::kInvalidArgument},
      {NotFound("b"), absl::StatusCode::kNotFound},
      {Unimplemented("c"), absl::StatusCode::kUnimplemented},
      {FailedPrecondition("d"), absl::StatusCode::kFailedPrecondition},
      {Internal("e"), absl::StatusCode::kInternal},
  };
  char message = 'a';
  for (const auto& c : cases) {
    EXPECT_EQ(c.error.code(), c.code);
    EXPECT_EQ(c.error.what(), std::string(1, message++));
  }
}

TEST(ErrorTest, IsARuntimeError) {
  try {
    throw NotFound("x");
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "x");
    return;
  }
}

// A message is read by C, terminals and people.
TEST(ErrorTest, HoldsNothingThatEndsOrTurnsIt) {
  const Error error = InvalidArgument(std::string("field \"2\0\x1b[31m\xe2\x80\xae\xff\" is wrong", 28));
  EXPECT_STREQ(error.what(), "field \"2\\x00\\x1b[31m\\u202e\\xff\" is wrong");
  // Said again by whoever catches it.
  EXPECT_STREQ(InvalidArgument(error.what()).what(), error.what());
}

TEST(ErrorTest, IsNoLongerThanAPage) {
  const Error error = InvalidArgument("begin " + std::string(50000000, '9') + " end");
  const std::string what = error.what();
  EXPECT_LE(what.size(), 4096u);
  EXPECT_EQ(what.substr(0, 7), "begin 9");
  EXPECT_EQ(what.substr(what.size() - 5), "9 end");
  // Neither are those of which every byte is escaped.
  const std::string escaped = InvalidArgument("begin " + std::string(50000000, '\x1b') + " end").what();
  EXPECT_LE(escaped.size(), 4096u);
  EXPECT_EQ(escaped.substr(0, 10), "begin \\x1b");
  EXPECT_EQ(escaped.substr(escaped.size() - 8), "\\x1b end");
}

}  // namespace
}  // namespace addend
