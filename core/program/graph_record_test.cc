#include "core/program/graph_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/program/program_builder.h"

namespace addend {
namespace {

using testing::HasSubstr;
using testing::Not;
using Argument = BuiltArgument;

std::shared_ptr<const RecordedProgram> Small() {
  ProgramBuilder builder;
  builder.program().module_paths = {"", "body", "body.fc"};
  const int x = builder.Add(ValueKind::kInput, "x", {2, 3});
  const int w = builder.Add(ValueKind::kParameter, "body.fc.weight", {4, 3});
  CodePlace place{"body.fc", {{"model.py", 7, 4, 6, "forward", "y = F.linear(x, self.weight)"}}};
  const int y =
      builder.Call("aten::linear", "", {Argument::Tensor(x), Argument::Tensor(w)}, {{2, 4}}, builder.Place(place))[0];
  const int flat = builder.Call("aten::view", "", {Argument::Tensor(y), Argument::Plain(std::vector<int64_t>{8})},
                                {{8}}, builder.Module("body"))[0];
  builder.Call("aten::add_", "Scalar", {Argument::Tensor(flat), Argument::Plain(1)}, {{8}}, builder.Module("body"));
  return builder.Finish({y});
}

TEST(GraphRecord, HoldsNodesAndEdges) {
  const Json record =
      GraphRecord(Graph(Small()), {{"contribution", CallNumbers::Unit::kNone, {0.5, std::nan(""), -1}}});
  EXPECT_EQ(record["format"], "addend.graph");
  EXPECT_EQ(record["version"], 2);
  EXPECT_EQ(Dump(record["modules"]), R"(["","body","body.fc"])");
  EXPECT_EQ(Dump(record["numbers"]), R"([{"name":"contribution","unit":""}])");
  ASSERT_EQ(record["nodes"].size(), 6u);
  EXPECT_EQ(Dump(record["nodes"][1]),
            R"({"id":1,"kind":"parameter","name":"body.fc.weight","module_path":"body.fc","depth":0,"tensors":[)"
            R"({"name":"body.fc.weight","dtype":"f32","shape":[4,3],"strides":[3,1],"offset":0,"device":"cpu",)"
            R"("storage":1,"version":0}]})");
  const Json& linear = record["nodes"][2];
  EXPECT_EQ(linear["name"], "linear_0");
  EXPECT_EQ(linear["operator"], "aten::linear");
  EXPECT_EQ(Dump(linear["arguments"]), R"([{"name":"input","tensors":[{"value":"x","version":0,"written":false}]},)"
                                       R"({"name":"weight","tensors":[{"value":"body.fc.weight","version":0,)"
                                       R"("written":false}]},{"name":"bias","tensors":[]}])");
  EXPECT_EQ(Dump(linear["frames"]), R"([{"file":"model.py","line":7,"column":4,"length":6,"function":"forward",)"
                                    "\"text\":\"y = F.linear(x, self.weight)\"}]");
  EXPECT_EQ(Dump(linear["numbers"]), "[0.5]");
  EXPECT_EQ(Dump(record["nodes"][3]["numbers"]), "[null]");
  EXPECT_EQ(record["nodes"][3]["view"], true);
  EXPECT_EQ(record["nodes"][4]["in_place"], true);
  EXPECT_EQ(Dump(record["nodes"][4]["arguments"][1]), R"({"name":"other","default":false,"value":1})");

  ASSERT_EQ(record["edges"].size(), 6u);
  EXPECT_EQ(Dump(record["edges"][1]),
            R"({"from":1,"to":2,"kind":"elements","value":"body.fc.weight","version":0,"argument":"weight"})");
  // The output lies where linear put it and holds what add_ wrote.
  EXPECT_EQ(Dump(record["edges"][4]),
            R"({"from":4,"to":5,"kind":"elements","value":"linear_0","version":1,"argument":null})");
  EXPECT_EQ(Dump(record["edges"][5]),
            R"({"from":2,"to":5,"kind":"tensor","value":"linear_0","version":1,"argument":null})");
}

TEST(GraphRecord, RefusesNumbersThatDoNotFit) {
  const Graph graph(Small());
  EXPECT_THROW(GraphRecord(graph, {{"time", CallNumbers::Unit::kSeconds, {1}}}), Error);
}

TEST(GraphDot, IsWrittenWithModulesAsBoxes) {
  EXPECT_EQ(GraphDot(Graph(Small())),
            R"(digraph program {
  rankdir=TB;
  node [fontname="sans-serif", fontsize=10];
  n0 [shape=box, style=rounded, label="x\nf32[2, 3]"];
  n5 [shape=box, style=rounded, label="output\nf32[2, 4]"];
  subgraph cluster_1 {
    label="body";
    n3 [shape=box, label="view_1\naten::view\nf32[8]"];
    n4 [shape=box, label="add__2\naten::add_.Scalar\nf32[8]"];
    subgraph cluster_2 {
      label="body.fc";
      n2 [shape=box, label="linear_0\naten::linear\nf32[2, 4]"];
    }
  }
  n0 -> n2;
  n2 -> n3;
  n3 -> n4;
  n4 -> n5;
  n2 -> n5 [style=dashed];
}
)");
  DotOptions options;
  options.sources = true;
  options.modules = false;
  const std::string all = GraphDot(Graph(Small()), options);
  EXPECT_THAT(all, HasSubstr("  n1 [shape=note, label=\"body.fc.weight\\nf32[4, 3]\"];\n"));
  EXPECT_THAT(all, HasSubstr("  n1 -> n2;\n"));
  EXPECT_THAT(all, Not(HasSubstr("subgraph")));
}

std::shared_ptr<const RecordedProgram> Hostile() {
  ProgramBuilder builder;
  const std::string name = "\"];\nx [label=\"\\N&lt;</script><script>alert(1)</script>\xff\x1b[31m";
  const int x = builder.Add(ValueKind::kInput, name, {2});
  std::string deep = "</script>";
  for (int k = 0; k < 100000; ++k) deep += ".m\"";
  const CodePlace place{deep, {{name, 1, 0, 1, name, name}}};
  return builder.Finish(builder.Call("aten::neg", "", {Argument::Tensor(x)}, {{2}}, builder.Place(place)));
}

TEST(GraphDot, HostileNamesStayInTheirStrings) {
  const std::string text = GraphDot(Graph(Hostile()));
  EXPECT_THAT(text, HasSubstr("label=\"\\\"];\\\\nx [label=\\\"\\\\N&amp;lt;</script><script>alert(1)</script>"
                              "\\\\xff\\\\x1b[31m\\nf32[2]\"];\n"));
  // Outside of quoted strings there is nothing but this program's own words.
  std::string outside;
  bool quoted = false;
  for (size_t k = 0; k < text.size(); ++k) {
    if (quoted && text[k] == '\\') {
      ++k;
    } else if (text[k] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      outside += text[k];
    }
  }
  EXPECT_FALSE(quoted);
  EXPECT_THAT(outside, Not(HasSubstr("script")));
  EXPECT_THAT(outside, Not(HasSubstr("x [")));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(GraphPage, HoldsTheRecordAndNothingThatRuns) {
  const std::string page = GraphPage(Graph(Hostile()), "</title><script>alert(2)</script>");
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("__ADDEND_DATA__")));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  const Json record = Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_EQ(record["title"], "</title><script>alert(2)</script>");
  EXPECT_EQ(record["nodes"].size(), 3u);
  EXPECT_THAT(record["nodes"][0]["name"].get<std::string>(), HasSubstr("</script><script>alert(1)</script>"));
}

// Two thousand calls in modules take a moment, not minutes.
TEST(GraphPage, ManyNodes) {
  ProgramBuilder builder;
  int x = builder.Add(ValueKind::kInput, "x", {4});
  const int first = x;
  for (int k = 0; k < 2000; ++k) {
    const int place = builder.Module(absl::StrCat("layers.", k / 20, ".block"));
    x = builder.Call("aten::add", "Tensor", {Argument::Tensor(x), Argument::Tensor(first)}, {{4}}, place)[0];
  }
  const Graph graph(builder.Finish({x}));
  EXPECT_EQ(graph.nodes().size(), 2002u);
  EXPECT_EQ(graph.Depth(graph.Find("output")), 2001);
  EXPECT_EQ(graph.Descendants(0).size(), 2001u);
  EXPECT_GT(GraphPage(graph, "many").size(), 500000u);
}

}  // namespace
}  // namespace addend
