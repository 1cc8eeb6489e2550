// The printed forms of programs that were really recorded.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "core/intercept/tracing_scope.h"
#include "core/program/code_trace.h"
#include "core/program/graph.h"
#include "core/program/graph_record.h"
#include "core/program/program_recorder.h"

namespace addend {
namespace {

using at::Tensor;
using testing::ElementsAre;

std::vector<std::string> Names(const Graph& graph, const std::vector<int>& nodes) {
  std::vector<std::string> names;
  for (const int node : nodes) names.push_back(graph.nodes()[node].name);
  return names;
}

// A model with parameters, a view, a write, a number that leaves the tensors, and lines of its own.
std::shared_ptr<const RecordedProgram> RecordModel(bool with_lines) {
  const Tensor x = at::ones({2, 3});
  const Tensor weight = at::ones({4, 3});
  const Tensor bias = at::ones({4});
  int64_t line = 0;
  ProgramRecorder recorder;
  recorder.NameTensor("body.fc.weight", weight, true);
  recorder.NameTensor("body.fc.bias", bias, true);
  recorder.AddInput("x", x);
  recorder.SetModulePaths({"", "body", "body.fc"});
  if (with_lines) {
    recorder.SetFrameProvider([&] {
      SourceFrame outer;
      outer.file = "main.py";
      outer.line = 3;
      outer.function = "<module>";
      outer.text = "y = net(x)";
      SourceFrame inner = outer;
      inner.file = "net.py";
      inner.line = line;
      inner.function = "forward";
      inner.text = "line " + std::to_string(line);
      return std::vector<SourceFrame>{outer, inner};
    });
  }
  Tensor y;
  {
    TracingScope scope(&recorder);
    line = 10;
    recorder.SetModule("body.fc");
    y = at::linear(x, weight, bias);
    recorder.SetModule("body");
    line = 11;
    Tensor flat = y.view({8});
    flat.add_(1);
    line = 12;
    const Tensor total = y.sum();
    if (total.item<float>() > 0) y = y.relu();
    recorder.SetModule("");
  }
  return std::make_shared<const RecordedProgram>(recorder.Finish(y));
}

TEST(RecordedForms, TheCodeTraceFollowsTheLinesOfTheCaller) {
  const std::string bar = "\xe2\x94\x82 ";
  EXPECT_EQ(CodeTrace(*RecordModel(/*with_lines=*/true)),
            "y = net(x)  # main.py:3 in <module>:\n" + bar + "\xe2\xac\x87\xef\xb8\x8f\n" + bar +
                "line 10  # net.py:10 in forward:\n" + bar + bar +
                "# linear(f32[2, 3], f32[4, 3], f32[4]) -> f32[2, 4];\n" + bar + "line 11  # net.py:11 in forward:\n" +
                bar + bar + "# view(f32[2, 4], [8]) -> f32[8];\n" + bar + bar +
                "# add_.Scalar(f32[8], 1) -> f32[8];\n" + bar + "line 12  # net.py:12 in forward:\n" + bar + bar +
                "# sum(f32[2, 4]) -> f32[];\n" + bar + bar + "# item(f32[]) -> 40.0;\n" + bar + bar +
                "# relu(f32[2, 4]) -> f32[2, 4];\n");
}

TEST(RecordedForms, TheGraphFollowsTheMemory) {
  const auto program = RecordModel(/*with_lines=*/false);
  const Graph graph(program);
  EXPECT_THAT(Names(graph, graph.ByModule("body.fc")), ElementsAre("body.fc.weight", "body.fc.bias", "linear"));
  EXPECT_THAT(Names(graph, graph.ByOperator("add_")), ElementsAre("add_"));
  // The summed tensor lies where linear put it and was written through the view.
  EXPECT_THAT(Names(graph, graph.Parents(graph.Find("sum"))), ElementsAre("linear", "add_"));
  EXPECT_THAT(Names(graph, graph.Parents(graph.Find("add_"))), testing::Contains("view"));
  EXPECT_THAT(Names(graph, graph.Parents(graph.Find("output"))), ElementsAre("relu"));
  const Json record = GraphRecord(graph);
  EXPECT_EQ(record["nodes"][graph.Find("item")]["guard"]["value"], 40.0);
  EXPECT_EQ(record["nodes"][graph.Find("add_")]["in_place"], true);
  EXPECT_EQ(record["nodes"][graph.Find("view")]["view"], true);
}

TEST(RecordedForms, ModulesStandInForLines) {
  const std::string text = CodeTrace(*RecordModel(/*with_lines=*/false));
  EXPECT_THAT(text, testing::StartsWith("body.fc  # module:\n\xe2\x94\x82 # linear("));
  EXPECT_THAT(text, testing::HasSubstr("\nbody  # module:\n\xe2\x94\x82 # view("));
}

}  // namespace
}  // namespace addend
