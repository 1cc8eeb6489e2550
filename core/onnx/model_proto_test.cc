#include "core/onnx/model_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/onnx/onnx_testing.h"

namespace addend::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

weights::Bytes View(const std::string& text) {
  weights::Bytes bytes;
  bytes.data = const_cast<char*>(text.data());
  bytes.size = text.size();
  return bytes;
}

// The error of reading a model.
std::string Refusal(const std::string& bytes) {
  return MessageOf([&] { ReadModelProto(View(bytes), "m.onnx"); });
}

// A model whose graph has these fields.
std::string WithGraph(const MessageWriter& graph) { return ModelMessage(graph).bytes(); }
std::string WithNode(const MessageWriter& node) { return WithGraph(MessageWriter().Message(1, node)); }
std::string WithAttribute(const MessageWriter& attribute) {
  return WithNode(NodeMessage("Op", {}, {"y"}, "n").Message(5, attribute));
}
std::string WithTensor(const MessageWriter& tensor) { return WithGraph(MessageWriter().Message(5, tensor)); }

MessageWriter Attribute(const std::string& name, int64_t type) {
  return MessageWriter().Bytes(1, name).Integer(20, type);
}

TEST(ReadModelProto, ReadsAModel) {
  const std::string bytes = SmallModel();
  const ModelProto model = ReadModelProto(View(bytes), "m.onnx");
  EXPECT_EQ(model.ir_version, 8);
  EXPECT_EQ(model.producer_name, "test");
  ASSERT_EQ(model.opset_imports.size(), 1U);
  EXPECT_EQ(model.opset_imports[0].version, 17);
  EXPECT_EQ(model.graph.name, "small");
  ASSERT_EQ(model.graph.nodes.size(), 3U);
  const NodeProto& node = model.graph.nodes[0];
  EXPECT_EQ(node.op_type, "MatMul");
  EXPECT_EQ(node.name, "/m/MatMul");
  EXPECT_THAT(node.inputs, ElementsAre("x", "w"));
  EXPECT_THAT(node.outputs, ElementsAre("/m/product"));
  ASSERT_EQ(model.graph.initializers.size(), 2U);
  const TensorProto& tensor = model.graph.initializers[0];
  EXPECT_EQ(tensor.name, "w");
  EXPECT_EQ(tensor.data_type, DataType::kFloat);
  EXPECT_THAT(tensor.dims, ElementsAre(3, 2));
  EXPECT_EQ(tensor.raw_data.size(), 24U);
  EXPECT_EQ(model.graph.initializers[1].values.size(), 2U);
  ASSERT_EQ(model.graph.inputs.size(), 1U);
  const TypeProto& type = model.graph.inputs[0].type;
  EXPECT_EQ(type.kind, TypeProto::Kind::kTensor);
  EXPECT_EQ(type.data_type, DataType::kFloat);
  ASSERT_EQ(type.dims.size(), 2U);
  EXPECT_EQ(type.dims[0].value, -1);
  EXPECT_EQ(type.dims[0].name, "n");
  EXPECT_EQ(type.dims[1].value, 3);
}

TEST(ReadModelProto, RefusesAModelThatIsCutOffAnywhere) {
  const std::string bytes = SmallModel();
  EXPECT_EQ(Refusal(bytes), "(no error)");
  for (size_t size = 0; size < bytes.size(); ++size) {
    // The list of operator sets is the last field: a model that ends before it is refused when it is checked.
    const std::string cut = bytes.substr(0, size);
    const std::string said = Refusal(cut);
    if (said == "(no error)") {
      EXPECT_EQ(ReadModelProto(View(cut), "m.onnx").opset_imports.size(), 0U) << size;
      EXPECT_FALSE(IsOnnx(cut));
    } else {
      EXPECT_THAT(said, HasSubstr("m.onnx (byte "));
    }
  }
}

TEST(ReadModelProto, ReadsWithoutACopyOfWeights) {
  const std::string bytes = WithTensor(TensorMessage("w", 1, {1 << 20}).Bytes(9, std::string(4 << 20, 'w')));
  const ModelProto model = ReadModelProto(View(bytes), "m.onnx");
  EXPECT_GE(model.graph.initializers[0].raw_data.data(), bytes.data());
  EXPECT_LT(model.graph.initializers[0].raw_data.data(), bytes.data() + bytes.size());
  EXPECT_GT(model.file->budget.left(), 4 * bytes.size() + (uint64_t{64} << 20) - 4096);
}

TEST(ReadModelProto, ReadsAttributesOfAllTypes) {
  const MessageWriter tensor = FloatTensor("t", {1}, {1});
  const MessageWriter type =
      MessageWriter().Message(4, MessageWriter().Message(1, MessageWriter().Message(1, MessageWriter().Integer(1, 7))));
  MessageWriter node = NodeMessage("Op", {}, {"y"});
  node.Message(5, Attribute("f", 1).Float(2, 1.5F));
  node.Message(5, Attribute("i", 2).Integer(3, -3));
  node.Message(5, Attribute("s", 3).Bytes(4, "\xff"));
  node.Message(5, Attribute("t", 4).Message(5, tensor));
  node.Message(5, Attribute("g", 5).Message(6, MessageWriter().Bytes(2, "inner")));
  node.Message(5, Attribute("floats", 6).Float(7, 1).Float(7, 2));
  node.Message(5, Attribute("ints", 7).PackedIntegers(8, {1, -1}));
  node.Message(5, Attribute("strings", 8).Bytes(9, "a").Bytes(9, ""));
  node.Message(5, Attribute("tensors", 9).Message(10, tensor).Message(10, tensor));
  node.Message(5, Attribute("graphs", 10).Message(11, MessageWriter()));
  node.Message(5, Attribute("type", 13).Message(14, type));
  node.Message(5, Attribute("types", 14).Message(15, type));
  const std::string bytes = WithNode(node);
  const ModelProto model = ReadModelProto(View(bytes), "m.onnx");
  const std::vector<AttributeProto>& read = model.graph.nodes[0].attributes;
  ASSERT_EQ(read.size(), 12U);
  EXPECT_EQ(read[0].f, 1.5F);
  EXPECT_EQ(read[1].i, -3);
  EXPECT_EQ(read[2].s, "\xff");
  EXPECT_EQ(read[3].tensors()[0].name, "t");
  EXPECT_EQ(read[4].graphs()[0].name, "inner");
  EXPECT_THAT(read[5].list.Floats(), ElementsAre(1, 2));
  EXPECT_THAT(read[6].list.Integers(), ElementsAre(1, -1));
  EXPECT_THAT(read[7].list.Texts(), ElementsAre("a", ""));
  EXPECT_EQ(read[8].tensors().size(), 2U);
  EXPECT_EQ(read[9].graphs().size(), 1U);
  EXPECT_EQ(read[10].types()[0].kind, TypeProto::Kind::kSequence);
  EXPECT_EQ(read[10].types()[0].element->data_type, DataType::kInt64);
  EXPECT_EQ(read[11].types().size(), 1U);
}

TEST(ReadModelProto, ReadsAttributesWhoseZeroIsLeftOut) {
  const auto read = [](const MessageWriter& attribute) { return Refusal(WithAttribute(attribute)); };
  EXPECT_EQ(read(Attribute("axis", 2)), "(no error)");
  EXPECT_EQ(read(Attribute("axes", 7)), "(no error)");
  EXPECT_THAT(read(Attribute("value", 4)), HasSubstr("the attribute value should hold a tensor and holds nothing"));
  EXPECT_THAT(read(Attribute("body", 5)), HasSubstr("should hold a graph and holds nothing"));
  // The oldest writers did not say the type.
  const std::string old = WithAttribute(MessageWriter().Bytes(1, "axis").Integer(3, 1));
  EXPECT_EQ(ReadModelProto(View(old), "m.onnx").graph.nodes[0].attributes[0].type, AttributeType::kInt);
  EXPECT_THAT(read(MessageWriter().Bytes(1, "axis")), HasSubstr("has neither a type nor a value"));
}

TEST(ReadModelProto, RefusesAttributesThatAreTwoThings) {
  const auto refuses = [](const MessageWriter& attribute, const std::string& part) {
    EXPECT_THAT(Refusal(WithAttribute(attribute)), HasSubstr(part));
  };
  refuses(Attribute("a", 1).Integer(3, 1), "the attribute a should hold a float and holds an integer");
  refuses(Attribute("a", 2).Integer(3, 1).Float(2, 1), "an attribute holds both an integer and a float");
  refuses(Attribute("a", 7).Integer(8, 1).Float(7, 1), "an attribute holds both integers and floats");
  refuses(Attribute("a", 4).Message(5, FloatTensor("", {}, {1})).Message(10, FloatTensor("", {}, {1})),
          "holds both a tensor and tensors");
  refuses(Attribute("a", 2).Integer(3, 1).Bytes(21, "r"), "has a value and refers to an attribute of its function");
  refuses(Attribute("a", 99), "has the unknown type 99");
  refuses(MessageWriter().Integer(3, 1).Integer(20, 2), "an attribute has no name");
}

TEST(ReadModelProto, RefusesWhatStandsTwice) {
  const auto twice = [](const std::string& bytes) {
    EXPECT_THAT(Refusal(bytes), HasSubstr("2 times instead of once"));
  };
  const std::string graph = GraphMessage(SmallGraph()).bytes();
  twice(MessageWriter().Integer(1, 8).Bytes(7, graph).Bytes(7, graph).bytes());
  twice(MessageWriter().Integer(1, 8).Integer(1, 7).Bytes(7, graph).bytes());
  twice(WithNode(NodeMessage("Op", {}, {}).Bytes(4, "Other")));
  twice(WithNode(NodeMessage("Op", {}, {}, "", "d").Bytes(7, "e")));
  twice(WithAttribute(Attribute("a", 2).Integer(3, 1).Integer(3, 2)));
  twice(WithAttribute(Attribute("a", 4).Message(5, FloatTensor("", {}, {1})).Message(5, FloatTensor("", {}, {1}))));
  twice(WithTensor(FloatTensor("w", {1}, {1}).Bytes(9, "abcd")));
  twice(WithTensor(FloatTensor("w", {1}, {1}).Integer(2, 1)));
  twice(ModelMessage(graph.empty() ? MessageWriter() : MessageWriter().Raw(graph))
            .Message(8, OperatorSet("", 1).Integer(2, 2))
            .bytes());
}

TEST(ReadModelProto, RefusesWhatIsNotSupportedByName) {
  EXPECT_THAT(Refusal(WithTensor(FloatTensor("w", {1}, {1}).Message(3, MessageWriter().Integer(1, 0)))),
              HasSubstr("a tensor is one segment of a larger one, which is not supported"));
  const MessageWriter sparse = MessageWriter().Message(1, FloatTensor("w", {1}, {1})).Integer(3, 7);
  EXPECT_THAT(Refusal(WithGraph(MessageWriter().Message(15, sparse))),
              HasSubstr("the tensor w is sparse, which is not supported; write the model with dense tensors"));
  EXPECT_THAT(Refusal(WithAttribute(Attribute("sparse_value", 11).Message(22, sparse))), HasSubstr("is sparse"));
  EXPECT_THAT(Refusal(WithTensor(TensorMessage("w", 77, {}))),
              HasSubstr("elements of type 77 are not known to this version of Addend"));
  ExpectError(absl::StatusCode::kUnimplemented, {"is sparse"},
              [&] { ReadModelProto(View(WithGraph(MessageWriter().Message(15, sparse))), "m.onnx"); });
}

TEST(ReadModelProto, SkipsUnknownFieldsButNotOfNodesAndAttributes) {
  EXPECT_EQ(Refusal(ModelMessage(MessageWriter().Bytes(30, "x")).Bytes(31, "x").bytes()), "(no error)");
  EXPECT_EQ(Refusal(WithTensor(FloatTensor("w", {1}, {1}).Bytes(30, "x"))), "(no error)");
  EXPECT_THAT(Refusal(WithNode(NodeMessage("Op", {}, {}).Bytes(30, "x"))),
              HasSubstr("in NodeProto): field 30 is not known to this version of Addend, and says something"));
  EXPECT_THAT(Refusal(WithAttribute(Attribute("a", 2).Integer(30, 1))),
              HasSubstr("in AttributeProto): field 30 is not known"));
  EXPECT_EQ(Refusal(WithNode(NodeMessage("Op", {}, {}).Bytes(30, ""))), "(no error)");
}

TEST(ReadModelProto, RefusesGraphsAndTypesNestedTooDeep) {
  const auto nested = [](int depth) {
    MessageWriter graph;
    for (int k = 1; k < depth; ++k) {
      graph = MessageWriter().Message(1, NodeMessage("If", {}, {}).Message(5, GraphAttribute("then_branch", graph)));
    }
    return WithGraph(graph);
  };
  EXPECT_EQ(Refusal(nested(kDeepestGraph)), "(no error)");
  EXPECT_THAT(Refusal(nested(kDeepestGraph + 1)), HasSubstr("graphs are nested more than 64 levels deep"));
  EXPECT_THAT(Refusal(nested(1000)), HasSubstr("graphs are nested more than 64 levels deep"));
  const auto sequence = [](int depth) {
    MessageWriter type = MessageWriter().Message(1, MessageWriter().Integer(1, 1));
    for (int k = 1; k < depth; ++k) type = MessageWriter().Message(4, MessageWriter().Message(1, type));
    return WithGraph(MessageWriter().Message(11, MessageWriter().Bytes(1, "x").Message(2, type)));
  };
  EXPECT_EQ(Refusal(sequence(kDeepestType)), "(no error)");
  EXPECT_THAT(Refusal(sequence(kDeepestType + 1)), HasSubstr("types are nested more than 32 levels deep"));
}

TEST(ReadModelProto, RefusesMillionsOfTinyParts) {
  const auto many = [](uint32_t field, const MessageWriter& part) {
    const std::string one = MessageWriter().Message(field, part).bytes();
    std::string all;
    for (int k = 0; k < 3000000; ++k) all += one;
    return WithGraph(MessageWriter().Raw(all));
  };
  const auto refused = HasSubstr("it is damaged, or made to fill memory");
  EXPECT_THAT(Refusal(many(1, MessageWriter().Bytes(4, "A"))), refused);
  EXPECT_THAT(Refusal(many(5, MessageWriter())), refused);
  EXPECT_THAT(Refusal(many(11, MessageWriter())), refused);
  std::string names;
  for (int k = 0; k < 10000000; ++k) names += "\x0a" + std::string(1, '\0');
  EXPECT_THAT(Refusal(WithNode(NodeMessage("Op", {}, {}).Raw(names))), refused);
}

TEST(ReadModelProto, RefusesDimensionsThatAreNone) {
  EXPECT_THAT(Refusal(WithTensor(TensorMessage("w", 1, {2, -1}))), HasSubstr("the tensor w has a negative size"));
  EXPECT_THAT(Refusal(WithTensor(TensorMessage("w", 1, std::vector<int64_t>(65, 1)))),
              HasSubstr("the tensor w has 65 dimensions; at most 64 are supported"));
  EXPECT_THAT(Refusal(WithGraph(MessageWriter().Message(11, ValueInfo("x", std::vector<int64_t>(65, 1))))),
              HasSubstr("has 65 dimensions; at most 64 are supported"));
  const auto dimension = [](const MessageWriter& dim) {
    const MessageWriter type =
        MessageWriter().Message(1, MessageWriter().Integer(1, 1).Message(2, MessageWriter().Message(1, dim)));
    return WithGraph(MessageWriter().Message(11, MessageWriter().Bytes(1, "x").Message(2, type)));
  };
  EXPECT_THAT(Refusal(dimension(MessageWriter().Integer(1, 1).Bytes(2, "n"))),
              HasSubstr("a dimension has both a number and a name"));
  // Exporters write it for a size that is not known.
  const std::string unknown = dimension(MessageWriter().Integer(1, -5));
  EXPECT_EQ(ReadModelProto(View(unknown), "m.onnx").graph.inputs[0].type.dims[0].value, -1);
}

TEST(ReadModelProto, RefusesTypesThatAreTwoTypes) {
  const MessageWriter tensor = MessageWriter().Integer(1, 1);
  const MessageWriter both = MessageWriter().Message(1, tensor).Message(4, MessageWriter());
  EXPECT_THAT(Refusal(WithGraph(MessageWriter().Message(11, MessageWriter().Bytes(1, "x").Message(2, both)))),
              HasSubstr("a type is two types at once"));
}

TEST(ReadModelProto, ShowsNamesOnOneLineOfText) {
  EXPECT_THAT(Refusal(WithTensor(TensorMessage("a\nb\x1b[31m", 1, {-1}))),
              HasSubstr("the tensor a\\nb\\x1b[31m has a negative size"));
  EXPECT_THAT(Refusal(WithTensor(TensorMessage("\xff", 1, {}))), HasSubstr("a text with bytes that are not UTF-8"));
  EXPECT_THAT(Refusal(WithNode(NodeMessage("Op", {"\xc0\x80"}, {}))), HasSubstr("not UTF-8"));
  const std::string said = Refusal(WithTensor(TensorMessage(std::string(100000, 'n'), 1, {-1})));
  EXPECT_LT(said.size(), 1000U);
}

TEST(ReadModelProto, RefusesWhatIsNoModel) {
  EXPECT_THAT(Refusal(""), HasSubstr("has no ir_version"));
  EXPECT_THAT(Refusal(MessageWriter().Integer(1, 8).bytes()), HasSubstr("has no graph"));
  EXPECT_THAT(Refusal("PK\x03\x04 an archive"), HasSubstr("(byte 2, in ModelProto): a field has no number"));
  EXPECT_THAT(Refusal(WithNode(NodeMessage("", {}, {}, "n"))), HasSubstr("the node n has no op_type"));
  EXPECT_THAT(Refusal(ModelMessage(MessageWriter(), {MessageWriter().Bytes(10, "d")}).bytes()),
              HasSubstr("a function has no name"));
}

TEST(ReadModelProto, ReadsFunctionsMetadataAndAnnotations) {
  const MessageWriter function = MessageWriter()
                                     .Bytes(1, "F")
                                     .Bytes(10, "mine")
                                     .Bytes(13, "v2")
                                     .Bytes(4, "a")
                                     .Bytes(5, "b")
                                     .Bytes(6, "alpha")
                                     .Message(11, IntAttribute("beta", 3))
                                     .Message(7, NodeMessage("Relu", {"a"}, {"b"}))
                                     .Message(9, OperatorSet("", 18));
  GraphParts parts = SmallGraph();
  parts.nodes[0].Message(9, EntryMessage("namespace", "m"));
  const MessageWriter annotation = MessageWriter().Bytes(1, "x").Message(2, EntryMessage("SCALE_TENSOR", "x_scale"));
  MessageWriter model = ModelMessage(GraphMessage(parts).Message(14, annotation), {function});
  model.Message(14, EntryMessage("author", "me"))
      .Message(14, EntryMessage("latin", "\xe9"))
      .Message(20, MessageWriter().Bytes(1, "training"));
  const std::string bytes = model.bytes();
  const ModelProto read = ReadModelProto(View(bytes), "m.onnx");
  EXPECT_EQ(Find(read.metadata, "author"), "me");
  EXPECT_EQ(Find(read.metadata, "latin"), "\xe9");
  EXPECT_EQ(Find(read.metadata, "nobody"), "");
  EXPECT_EQ(read.num_training_infos, 1U);
  EXPECT_EQ(Find(read.graph.nodes[0].metadata, "namespace"), "m");
  ASSERT_EQ(read.graph.annotations.size(), 1U);
  EXPECT_EQ(Find(read.graph.annotations[0].parameters, "SCALE_TENSOR"), "x_scale");
  ASSERT_EQ(read.functions.size(), 1U);
  const FunctionProto& f = read.functions[0];
  EXPECT_EQ(f.name, "F");
  EXPECT_EQ(f.domain, "mine");
  EXPECT_EQ(f.overload, "v2");
  EXPECT_THAT(f.inputs, ElementsAre("a"));
  EXPECT_THAT(f.outputs, ElementsAre("b"));
  EXPECT_THAT(f.attributes, ElementsAre("alpha"));
  EXPECT_EQ(f.attribute_defaults[0].i, 3);
  EXPECT_EQ(f.nodes.size(), 1U);
  EXPECT_EQ(f.opset_imports[0].version, 18);
}

TEST(ReadModelProto, SurvivesEveryValueOfEveryByte) {
  const std::string bytes = SmallModel();
  for (size_t k = 0; k < bytes.size(); ++k) {
    for (int value = 0; value < 256; ++value) {
      std::string damaged = bytes;
      damaged[k] = static_cast<char>(value);
      EXPECT_THAT(Refusal(damaged), Not(HasSubstr("\n")));
    }
  }
}

TEST(IsOnnx, LooksAtTheOutermostFields) {
  EXPECT_TRUE(IsOnnx(SmallModel()));
  EXPECT_FALSE(IsOnnx(""));
  EXPECT_FALSE(IsOnnx("PK\x03\x04"));
  EXPECT_FALSE(IsOnnx(SmallModel() + "\x01"));
  EXPECT_FALSE(IsOnnx(MessageWriter().Integer(1, 8).Message(7, MessageWriter()).bytes()));
  EXPECT_FALSE(IsOnnx(MessageWriter().Integer(1, 0).Message(7, MessageWriter()).Bytes(8, "").bytes()));
  EXPECT_FALSE(IsOnnx(MessageWriter().Integer(1, 65).Message(7, MessageWriter()).Bytes(8, "").bytes()));
}

}  // namespace
}  // namespace addend::onnx
