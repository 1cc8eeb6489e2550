#include "core/onnx/node_place.h"

#include <gtest/gtest.h>

#include <string>

#include "core/onnx/node_name.h"

namespace addend::onnx {
namespace {

NodeProto Named(absl::string_view name) {
  NodeProto node;
  node.name = name;
  node.op_type = "MatMul";
  node.outputs = {"", "y"};
  return node;
}

NodeProto WithMetadata(absl::string_view key, absl::string_view value) {
  NodeProto node = Named("node_linear_1");
  node.metadata = {{key, value}};
  return node;
}

TEST(NameOf, TellsNameAndOperator) {
  EXPECT_EQ(NameOf(Named("/m/MatMul")), "node /m/MatMul (MatMul)");
  EXPECT_EQ(NameOf(Named("")), "the node that makes y (MatMul)");
  NodeProto node = Named("");
  node.outputs.clear();
  node.place = 77;
  node.domain = "com.microsoft";
  EXPECT_EQ(NameOf(node), "the node at byte 77 (com.microsoft.MatMul)");
}

TEST(PlaceOf, ReadsScopesOfTheNewerExporter) {
  const auto path = [](absl::string_view scopes) {
    return PlaceOf(WithMetadata("pkg.torch.onnx.name_scopes", scopes)).module_path;
  };
  EXPECT_EQ(path("['', 'encoder', 'encoder.layer.0', 'linear_1']"), "encoder.layer.0");
  EXPECT_EQ(path("['', 'linear_1']"), "");
  EXPECT_EQ(path(R"(['', "it's", 'n'])"), "it's");
  EXPECT_EQ(path(R"(['', 'a\'b', 'n'])"), "a'b");
  EXPECT_EQ(path("['', 'encoder"), "");
  EXPECT_EQ(path("nonsense"), "");
  EXPECT_EQ(path(""), "");
}

TEST(PlaceOf, ReadsNamesOfTheOlderExporter) {
  EXPECT_EQ(PlaceOf(Named("/encoder/layer.0/MatMul_1")).module_path, "encoder.layer.0");
  EXPECT_EQ(PlaceOf(Named("/MatMul")).module_path, "");
  EXPECT_EQ(PlaceOf(Named("MatMul_12")).module_path, "");
  // Names of TensorFlow are no modules.
  EXPECT_EQ(PlaceOf(Named("model/dense/MatMul")).module_path, "");
  EXPECT_EQ(PlaceOf(Named("")).module_path, "");
}

TEST(PlaceOf, ReadsSourceLines) {
  const CodePlace place = PlaceOf(WithMetadata("pkg.torch.onnx.stack_trace",
                                               "File \"model.py\", line 12, in forward\n    return self.linear(x)\n"));
  ASSERT_EQ(place.frames.size(), 1U);
  EXPECT_EQ(place.frames[0].file, "model.py");
  EXPECT_EQ(place.frames[0].line, 12);
  EXPECT_EQ(place.frames[0].function, "forward");
}

TEST(PlaceOf, IsTheNodeItselfWithoutSourceLines) {
  const auto function = [](absl::string_view name) { return PositionAt(PlaceOf(Named(name))).function; };
  EXPECT_EQ(function("n"), "n");
  EXPECT_EQ(function("/encoder/MatMul"), "/encoder/MatMul");
  EXPECT_EQ(function(""), "y");
  const CodePlace place = PlaceOf(Named("n"));
  ASSERT_EQ(place.frames.size(), 1U);
  EXPECT_EQ(place.frames[0].text, "MatMul");
  EXPECT_EQ(place.frames[0].line, -1);
  NodeProto bare = Named("");
  bare.outputs.clear();
  EXPECT_EQ(PositionAt(PlaceOf(bare)).function, "");
}

TEST(PositionOf, NamesTheOperatorAndTheNode) {
  const Position position = PositionOf(Named("/encoder/MatMul"));
  EXPECT_EQ(position.op, "onnx::MatMul");
  EXPECT_EQ(position.module_path, "encoder");
  EXPECT_EQ(position.function, "/encoder/MatMul");
}

}  // namespace
}  // namespace addend::onnx
