#include "core/program/code_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/error.h"
#include "core/program/program_builder.h"

namespace addend {
namespace {

using testing::HasSubstr;
using testing::Not;
using Argument = BuiltArgument;

// '|' stands for the vertical line and 'v' at the end of a line of bars for the arrow: sources are ASCII.
std::string Drawn(const std::string& text) {
  return absl::StrReplaceAll(text, {{"| v\n", "\xe2\x94\x82 \xe2\xac\x87\xef\xb8\x8f\n"}, {"| ", "\xe2\x94\x82 "}});
}

SourceFrame Frame(const std::string& text, const std::string& file, int64_t line, const std::string& function,
                  int64_t column = -1, int64_t length = 0) {
  SourceFrame frame;
  frame.text = text;
  frame.file = file;
  frame.line = line;
  frame.function = function;
  frame.column = column;
  frame.length = length;
  return frame;
}

// The run that the page of torch-code-tracing shows.
std::shared_ptr<const RecordedProgram> Gemma() {
  ProgramBuilder builder;
  const std::string path = "site-packages/transformers/models/gemma3/modeling_gemma3.py";
  const int weight = builder.Add(ValueKind::kParameter, "embed.weight", {262208, 2560}, at::kBFloat16);
  const int ids = builder.Add(ValueKind::kInput, "input_ids", {2, 3}, at::kLong);
  const int scale = builder.Add(ValueKind::kConstant, "constant_0", {}, at::kBFloat16);
  const std::vector<SourceFrame> outer = {
      Frame("out = model(**example_kwargs)", "test.py", 41, "<module>"),
      Frame("output = func(self, *args, **kwargs)", "site-packages/transformers/utils/generic.py", 969, "wrapper")};
  const auto place = [&](const std::vector<SourceFrame>& frames) {
    CodePlace at{"", outer};
    at.frames.insert(at.frames.end(), frames.begin(), frames.end());
    return builder.Place(at);
  };
  const SourceFrame embed = Frame("inputs_embeds = self.get_input_embeddings()(llm_input_ids)", path, 1175, "forward");
  const std::string scaled = "return super().forward(input_ids) * self.embed_scale.to(self.weight.dtype)";
  const SourceFrame mask = Frame("causal_mask = self._update_causal_mask(", path, 1205, "forward");

  const int embedded =
      builder.Call("aten::embedding", "", {Argument::Tensor(weight), Argument::Tensor(ids), Argument::Plain(0)},
                   {{2, 3, 2560}}, place({embed, Frame(scaled, path, 144, "forward", 7, 26)}))[0];
  builder.Call("aten::mul", "Tensor", {Argument::Tensor(embedded), Argument::Tensor(scale)}, {{2, 3, 2560}},
               place({embed, Frame(scaled, path, 144, "forward", 7, 67)}));
  const Argument none = Argument::Plain(c10::IValue());
  const Argument meta = Argument::Plain(c10::Device("meta"));
  const int range = builder.Call("aten::arange", "start",
                                 {Argument::Plain(30), Argument::Plain(33), none, none, meta, Argument::Plain(false)},
                                 {{3}}, place({Frame("cache_position = torch.arange(", path, 1179, "forward")}))[0];
  builder.program().values[range].dtype = at::kLong;
  const int full =
      builder.Call("aten::full", "",
                   {Argument::Plain(std::vector<int64_t>{3, 33}), Argument::Plain(-3.3895313892515355e+38),
                    Argument::Plain(static_cast<int64_t>(at::kBFloat16)), none, meta, Argument::Plain(false)},
                   {{3, 33}}, place({mask, Frame("causal_mask = torch.full(", path, 1050, "_update_causal_mask")}))[0];
  builder.program().values[full].dtype = at::kBFloat16;
  const int triu = builder.Call(
      "aten::triu", "", {Argument::Tensor(full), Argument::Plain(1)}, {{3, 33}},
      place({mask, Frame("causal_mask = torch.triu(causal_mask, diagonal=1)", path, 1056, "_update_causal_mask")}))[0];
  return builder.Finish({triu});
}

constexpr char kGemma[] =
    R"(out = model(**example_kwargs)  # test.py:41 in <module>:
| v
| output = func(self, *args, **kwargs)  # site-packages/transformers/utils/generic.py:969 in wrapper:
| | v
| | inputs_embeds = self.get_input_embeddings()(llm_input_ids)  # site-packages/transformers/models/gemma3/modeling_gemma3.py:1175 in forward:
| | | v
| | | return super().forward(input_ids) * self.embed_scale.to(self.weight.dtype)  # site-packages/transformers/models/gemma3/modeling_gemma3.py:144 in forward:
| | | | # embedding(bf16[262208, 2560], i64[2, 3], 0) -> bf16[2, 3, 2560];
| | | return super().forward(input_ids) * self.embed_scale.to(self.weight.dtype)  # site-packages/transformers/models/gemma3/modeling_gemma3.py:144 in forward:
| | | | # mul.Tensor(bf16[2, 3, 2560], bf16[]) -> bf16[2, 3, 2560];
| | cache_position = torch.arange(  # site-packages/transformers/models/gemma3/modeling_gemma3.py:1179 in forward:
| | | # arange.start(30, 33, device=meta, pin_memory=False) -> i64[3];
| | causal_mask = self._update_causal_mask(  # site-packages/transformers/models/gemma3/modeling_gemma3.py:1205 in forward:
| | | v
| | | causal_mask = torch.full(  # site-packages/transformers/models/gemma3/modeling_gemma3.py:1050 in _update_causal_mask:
| | | | # full([3, 33], -3.3895313892515355e+38, dtype=torch.bfloat16, device=meta, pin_memory=False) -> bf16[3, 33];
| | | causal_mask = torch.triu(causal_mask, diagonal=1)  # site-packages/transformers/models/gemma3/modeling_gemma3.py:1056 in _update_causal_mask:
| | | | # triu(bf16[3, 33], 1) -> bf16[3, 33];
)";

TEST(CodeTrace, HasTheLayoutOfTorchCodeTracing) {
  CodeTraceOptions options;
  options.succinct = false;
  EXPECT_EQ(CodeTrace(*Gemma(), options), Drawn(kGemma));
}

TEST(CodeTrace, SuccinctWritesALineOnceForAllItsExpressions) {
  const std::string text = CodeTrace(*Gemma());
  const std::string repeated =
      "| | | return super().forward(input_ids) * self.embed_scale.to(self.weight.dtype)  # "
      "site-packages/transformers/models/gemma3/modeling_gemma3.py:144 in forward:\n";
  std::string expected = kGemma;
  expected.erase(expected.rfind(repeated), repeated.size());
  EXPECT_EQ(text, Drawn(expected));
}

TEST(CodeTrace, ColoursTheExpressionAndDimsTheRest) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {2});
  CodePlace place{
      "", {Frame("return net(x)", "main.py", 3, "run"), Frame("y = x.exp() + 1", "net.py", 7, "forward", 4, 7)}};
  builder.Call("aten::exp", "", {Argument::Tensor(x)}, {{2}}, builder.Place(place));
  CodeTraceOptions options;
  options.color = true;
  EXPECT_EQ(CodeTrace(builder.program(), options),
            Drawn(absl::StrReplaceAll("return net(x)  <# main.py:3 in run:>\n"
                                      "| <ARROW>\n"
                                      "| y = {x.exp()> + 1  <# net.py:7 in forward:>\n"
                                      "| | <# exp(f32[2]) -> f32[2];>\n",
                                      {{"<", "\033[2m"},
                                       {">", "\033[0m"},
                                       {"{", "\033[36m"},
                                       {"ARROW", "\xe2\xac\x87\xef\xb8\x8f"},
                                       {"->", "->"}})));
}

TEST(CodeTrace, ColumnsThatLieCutNoCharacter) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {2});
  const std::string line = "\xc3\xa9 = x.exp()";
  for (const auto& [column, length] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 3}, {0, 1}, {0, 99}, {-5, 2}, {40, 1}}) {
    builder.Call("aten::exp", "", {Argument::Tensor(x)}, {{2}},
                 builder.Place({"", {Frame(line, "net.py", builder.program().places.size(), "f", column, length)}}));
  }
  CodeTraceOptions options;
  options.color = true;
  const std::string text = CodeTrace(builder.program(), options);
  EXPECT_THAT(text, Not(HasSubstr("\033[36m")));
  EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("\\x")));
}

TEST(CodeTrace, WithoutSourceLinesTheModuleIsTold) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {2, 3});
  const int w = builder.Add(ValueKind::kParameter, "fc.weight", {4, 3});
  const int fc = builder.Module("body.fc");
  const int y = builder.Call("aten::linear", "", {Argument::Tensor(x), Argument::Tensor(w)}, {{2, 4}}, fc)[0];
  const int z = builder.Call("aten::relu", "", {Argument::Tensor(y)}, {{2, 4}}, builder.Module("body.fc"))[0];
  builder.Call("aten::exp", "", {Argument::Tensor(z)}, {{2, 4}}, builder.Module(""));
  builder.Call("aten::sin", "", {Argument::Tensor(z)}, {{2, 4}}, builder.Module("body"));
  builder.Call("aten::cos", "", {Argument::Tensor(z)}, {{2, 4}});
  EXPECT_EQ(CodeTrace(builder.program()), Drawn("body.fc  # module:\n"
                                                "| # linear(f32[2, 3], f32[4, 3]) -> f32[2, 4];\n"
                                                "| # relu(f32[2, 4]) -> f32[2, 4];\n"
                                                "# exp(f32[2, 4]) -> f32[2, 4];\n"
                                                "body  # module:\n"
                                                "| # sin(f32[2, 4]) -> f32[2, 4];\n"
                                                "# cos(f32[2, 4]) -> f32[2, 4];\n"));
}

TEST(CodeTrace, FiltersByPath) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {2});
  const CodePlace place{"act",
                        {Frame("net(x)", "app/main.py", 1, "run"),
                         Frame("return F.relu(x)", "/usr/lib/python3/dist-packages/torch/nn/functional.py", 9, "relu"),
                         Frame("transform(x)", "/opt/site-packages/torchvision/ops.py", 2, "call")}};
  builder.Call("aten::relu", "", {Argument::Tensor(x)}, {{2}}, builder.Place(place));
  // LibTorch's own lines by default, and only those.
  EXPECT_EQ(CodeTrace(builder.program()), Drawn("net(x)  # app/main.py:1 in run:\n"
                                                "| v\n"
                                                "| transform(x)  # site-packages/torchvision/ops.py:2 in call:\n"
                                                "| | # relu(f32[2]) -> f32[2];\n"));
  CodeTraceOptions options;
  options.include = {"app/*.py", "*/functional.p?"};
  options.exclude = {"*main*"};
  EXPECT_EQ(CodeTrace(builder.program(), options),
            Drawn("return F.relu(x)  # dist-packages/torch/nn/functional.py:9 in relu:\n"
                  "| # relu(f32[2]) -> f32[2];\n"));
  options.include = {"nothing"};
  EXPECT_EQ(CodeTrace(builder.program(), options), Drawn("act  # module:\n| # relu(f32[2]) -> f32[2];\n"));
  const Json record = CodeTraceRecord(builder.program(), options);
  EXPECT_EQ(record["places"][0]["frames"].size(), 0u);
  // A pattern that invites backtracking ends all the same.
  options.include = {std::string(60, '*') + "a*a*a*a*a*a*a*a*a*a*b"};
  EXPECT_THAT(CodeTrace(builder.program(), options), HasSubstr("act  # module:"));
}

TEST(CodeTrace, WritesArgumentsAsCodeWouldGiveThem) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {1, 3, 8, 8});
  const int w = builder.Add(ValueKind::kParameter, "w", {6, 3, 3, 3});
  const int i = builder.Add(ValueKind::kInput, "i", {2}, at::kLong);
  const Argument tx = Argument::Tensor(x);
  const Argument none = Argument::Plain(c10::IValue());
  const auto line = [&] {
    return CodeTraceLine(builder.program(), static_cast<int>(builder.program().calls.size()) - 1);
  };
  builder.Call("aten::conv2d", "", {tx, Argument::Tensor(w), none, Argument::Plain(std::vector<int64_t>{2, 2})},
               {{1, 6, 3, 3}});
  EXPECT_EQ(line(), "conv2d(f32[1, 3, 8, 8], f32[6, 3, 3, 3], None, [2, 2]) -> f32[1, 6, 3, 3]");
  builder.Call("aten::add", "Tensor", {tx, tx, Argument::Plain(2)}, {{1, 3, 8, 8}});
  EXPECT_EQ(line(), "add.Tensor(f32[1, 3, 8, 8], f32[1, 3, 8, 8], alpha=2) -> f32[1, 3, 8, 8]");
  builder.Call("aten::cat", "", {Argument::Tensors({x, x}), Argument::Plain(1)}, {{1, 6, 8, 8}});
  EXPECT_EQ(line(), "cat([f32[1, 3, 8, 8], f32[1, 3, 8, 8]], 1) -> f32[1, 6, 8, 8]");
  builder.Call("aten::max", "dim", {tx, Argument::Plain(1)}, {{1, 8, 8}, {1, 8, 8}});
  EXPECT_EQ(line(), "max.dim(f32[1, 3, 8, 8], 1) -> (f32[1, 8, 8], f32[1, 8, 8])");
  builder.Call("aten::split", "Tensor", {tx, Argument::Plain(8), Argument::Plain(3)}, {{1, 3, 8, 8}});
  EXPECT_EQ(line(), "split.Tensor(f32[1, 3, 8, 8], 8, 3) -> (f32[1, 3, 8, 8])");
  Argument indices = Argument::Tensor(i);
  indices.plain = std::vector<int64_t>{0, 1};
  builder.Call("aten::index", "Tensor", {tx, indices}, {{1, 2, 8, 8}});
  EXPECT_EQ(line(), "index.Tensor(f32[1, 3, 8, 8], [None, i64[2]]) -> f32[1, 2, 8, 8]");
  builder.Call("aten::item", "", {tx}, {});
  RecordedGuard guard;
  guard.call = static_cast<int>(builder.program().calls.size()) - 1;
  guard.value = 0.5;
  builder.call().guard = static_cast<int>(builder.program().guards.size());
  builder.program().guards.push_back(guard);
  EXPECT_EQ(line(), "item(f32[1, 3, 8, 8]) -> 0.5");
}

TEST(CodeTrace, NamesAndMarksMemory) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {2, 3});
  const int y = builder.Call("aten::neg", "", {Argument::Tensor(x)}, {{2, 3}})[0];
  const int flat =
      builder.Call("aten::view", "", {Argument::Tensor(y), Argument::Plain(std::vector<int64_t>{6})}, {{6}})[0];
  builder.Call("aten::mul_", "Scalar", {Argument::Tensor(flat), Argument::Plain(2.0)}, {{6}});
  const int z = builder.Call("aten::exp", "", {Argument::Tensor(y)}, {{2, 3}})[0];
  builder.Call("aten::add", "Tensor", {Argument::Tensor(z), Argument::Tensor(z)}, {{2, 3}});
  CodeTraceOptions options;
  options.marks = true;
  EXPECT_EQ(CodeTrace(builder.program(), options),
            "# neg(f32[2, 3]) -> f32[2, 3];\n"
            "# view(f32[2, 3]@1, [6]) -> f32[6]@1;\n"
            "# mul_.Scalar(f32[6]@1!, 2.0) -> f32[6]@1.1;\n"
            "# exp(f32[2, 3]@1.1) -> f32[2, 3];\n"
            "# add.Tensor(f32[2, 3], f32[2, 3]) -> f32[2, 3];\n");
  options.marks = false;
  options.names = true;
  EXPECT_EQ(CodeTraceLine(builder.program(), 1, options), "view(neg_0: f32[2, 3], [6]) -> view_1: f32[6]");
}

TEST(CodeTrace, PutsNumbersBehindTheOperators) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {2});
  for (int k = 0; k < 2; ++k) builder.Call("aten::neg", "", {Argument::Tensor(x)}, {{2}});
  CodeTraceOptions options;
  options.numbers = {{"recovery error", CallNumbers::Unit::kNone, {1.25e-7, std::nan("")}},
                     {"time", CallNumbers::Unit::kSeconds, {1.34e-5, 2.0}},
                     {"memory", CallNumbers::Unit::kBytes, {4096, 12}}};
  EXPECT_EQ(CodeTrace(builder.program(), options),
            "# neg(f32[2]) -> f32[2];  [recovery error 1.25e-07 | time 13.4 us | memory 4.0 KiB]\n"
            "# neg(f32[2]) -> f32[2];  [time 2.0 s | memory 12.0 B]\n");
  const Json record = CodeTraceRecord(builder.program(), options);
  EXPECT_EQ(Dump(record["numbers"][1]), R"({"name":"time","unit":"seconds"})");
  EXPECT_EQ(Dump(record["calls"][1]["numbers"]), "[null,2.0,12.0]");
  options.numbers[0].values.pop_back();
  EXPECT_THROW(CodeTrace(builder.program(), options), Error);
  EXPECT_THROW(CodeTraceRecord(builder.program(), options), Error);
}

TEST(CodeTrace, ShowsCallsAsTheyComeUnlessQuiet) {
  const auto program = Gemma();
  for (const bool quiet : {false, true}) {
    CodeTraceOptions options;
    options.quiet = quiet;
    std::vector<std::string> shown;
    CodeTraceWriter writer(options, [&](const std::string& lines) { shown.push_back(lines); });
    for (int c = 0; c < 3; ++c) writer.Add(*program, c);
    EXPECT_EQ(shown.size(), quiet ? 0u : 3u);
    if (!quiet) {
      EXPECT_EQ(shown[0] + shown[1] + shown[2], writer.text());
    }
    EXPECT_THAT(CodeTrace(*program), testing::StartsWith(writer.text()));
    EXPECT_THAT(writer.text(), testing::EndsWith("-> i64[3];\n"));
  }
}

// A front end that has no source gives a frame without a file: the node that makes the calls.
TEST(CodeTrace, NodesOfGraphsStandForSourceLines) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {2});
  const CodePlace place{"encoder", {Frame("Softplus", "", -1, "/encoder/Softplus", -1, 0)}};
  const int y = builder.Call("aten::neg", "", {Argument::Tensor(x)}, {{2}}, builder.Place(place))[0];
  builder.Call("aten::neg", "", {Argument::Tensor(y)}, {{2}}, builder.Place(place));
  EXPECT_EQ(CodeTrace(builder.program(), CodeTraceOptions()), Drawn("Softplus  # in /encoder/Softplus:\n"
                                                                    "| # neg(f32[2]) -> f32[2];\n"
                                                                    "| # neg(f32[2]) -> f32[2];\n"));
}

TEST(CodeTrace, HostileTextStaysOnItsLineAndColoursNothing) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x\n\x1b[31m\xff", {2});
  const CodePlace place{"m\n", {Frame("x = 1\r\n\x1b]0;owned\x07", "a\nb.py", 1, "f\xe2\x80\xae", 0, 3)}};
  builder.Call("aten::neg", "", {Argument::Tensor(x)}, {{2}}, builder.Place(place));
  CodeTraceOptions options;
  options.names = true;
  EXPECT_EQ(CodeTrace(builder.program(), options), Drawn("x = 1\\r\\n\\x1b]0;owned\\x07  # a\\nb.py:1 in f\\u202e:\n"
                                                         "| # neg(x\\n\\x1b[31m\\xff: f32[2]) -> neg_0: f32[2];\n"));
  EXPECT_NO_THROW(Json::parse(Dump(CodeTraceRecord(builder.program(), options))));
}

TEST(CodeTraceRecord, HoldsEverything) {
  const auto program = Gemma();
  const Json record = CodeTraceRecord(*program);
  EXPECT_EQ(record["format"], "addend.code_trace");
  EXPECT_EQ(record["version"], 2);
  ASSERT_EQ(record["calls"].size(), 5u);
  const Json& full = record["calls"][3];
  EXPECT_EQ(full["operator"], "aten::full");
  EXPECT_EQ(Dump(full["arguments"][2]), R"({"name":"dtype","default":false,"value":"bfloat16"})");
  EXPECT_EQ(full["results"][0]["dtype"], "bf16");
  EXPECT_EQ(Dump(full["results"][0]["shape"]), "[3,33]");
  const Json& frames = record["places"][full["place"].get<int>()]["frames"];
  ASSERT_EQ(frames.size(), 4u);
  EXPECT_EQ(Dump(frames[0]), R"({"file":"test.py","line":41,"column":null,"length":null,"function":"<module>",)"
                             "\"text\":\"out = model(**example_kwargs)\"}");
  const Json& embedding = record["calls"][0];
  EXPECT_EQ(Dump(embedding["arguments"][1]),
            R"({"name":"indices","tensors":[{"value":"input_ids","version":0,"written":false}]})");
  EXPECT_EQ(embedding["line"], "embedding(bf16[262208, 2560], i64[2, 3], 0) -> bf16[2, 3, 2560]");
}

}  // namespace
}  // namespace addend
