// Models that the caller runs itself, operator by operator, while a trace is open.
#include <gmock/gmock.h>

#include <cmath>

#include "c_api/testing.h"

namespace addend::api {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Tensor Plain(const char* op, const Arguments& arguments) { return Call(op, arguments).tensor(); }

int32_t CodeOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ADDEND_OK;
}

class TraceTest : public CApiTest {
 protected:
  Request Asked() const {
    Request request;
    request.Input(x_).SplitAlong({0}).Baseline(0.0);
    return request;
  }

  const Tensor x_ = Tensor::Copy<double>({1, -2, 3}, {3});
};

TEST_F(TraceTest, CallsOnPlainTensorsAreAModel) {
  TracingScope scope(Asked());
  const Tensor doubled = Plain("aten::mul", Arguments().Add(x_).Add(2.0));
  // A branch on what was computed.
  const bool first_is_positive = doubled.To<double>()[0] > 0;
  scope.SetModule("head");
  const Tensor y = first_is_positive ? Plain("aten::relu", Arguments().Add(doubled)) : doubled;
  const Tensor sum = Plain("aten::sum", Arguments().Add(y));
  scope.AddOutput("y", y);
  scope.AddOutput("sum", sum);
  const Results results = scope.End();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results.name(0), "y");
  ExpectNear(Numbers(results.composition(0).components()), {2, 0, 0, 0, 0, 0, 0, 0, 6}, 1e-12);
  ExpectNear(Numbers(results.composition(0).value()), {2, 0, 6}, 1e-12);
  ExpectNear(Numbers(results.composition(1).components()), {2, 0, 6}, 1e-12);
  EXPECT_THAT(results.ReportJson(), HasSubstr("\"head\""));
}

TEST_F(TraceTest, ModulesMeanWhatTheyReturned) {
  const auto run = [&](auto& scope) {
    const Tensor doubled = Plain("aten::mul", Arguments().Add(x_).Add(2.0));
    const Tensor tripled = Plain("aten::mul", Arguments().Add(x_).Add(3.0));
    const Tensor unused = Plain("aten::exp", Arguments().Add(x_));
    scope.AddModuleOutputs("pair", {tripled, doubled, unused});
    scope.AddModuleOutputs("none", {});
    const Tensor once = Plain("aten::relu", Arguments().Add(doubled));
    scope.AddModuleOutputs("again", {once});
    const Tensor twice = Plain("aten::relu", Arguments().Add(once));
    scope.AddModuleOutputs("again", {twice});
    return Plain("aten::add", Arguments().Add(twice).Add(tripled));
  };
  const auto expect = [](const Results& results) {
    ASSERT_EQ(results.size(), 5u);
    ExpectNear(Numbers(results.composition(1).value()), {3, -6, 9}, 1e-12);
    ExpectNear(Numbers(results.composition(2).value()), {2, -4, 6}, 1e-12);
    ExpectNear(Numbers(results.composition(3).value()), {2, 0, 6}, 1e-12);
    ExpectNear(Numbers(results.composition(4).components()), {2, 0, 0, 0, 0, 0, 0, 0, 6}, 1e-12);
  };
  const auto probed = [&] { return Asked().Probe("pair:0").Probe("pair:1").Probe("again@0").Probe("again@1"); };
  TracingScope scope(probed());
  scope.AddOutput("output", run(scope));
  expect(scope.End());
  RecordingScope recording(Asked());
  recording.AddOutput(run(recording));
  const Program program = recording.End();
  expect(program.AsModel().Decompose(probed()));
  for (const char* name : {"pair", "none", "again"}) {
    addend_results* results = nullptr;
    const Request request = Asked().Probe(name);
    EXPECT_EQ(Outcome(addend_model_decompose(nullptr, program.AsModel().get(), request.get(), &results)).code,
              ADDEND_INVALID_ARGUMENT)
        << name;
  }
  TracingScope other(Asked());
  const Tensor y = Plain("aten::mul", Arguments().Add(x_).Add(2.0));
  EXPECT_EQ(Outcome(addend_trace_add_module_output(other.get(), "pair", 1, y.get())).code, ADDEND_INVALID_ARGUMENT);
}

TEST_F(TraceTest, OperatorsThatWriteGiveTheNewState) {
  TracingScope scope(Asked());
  const Tensor doubled = Plain("aten::mul", Arguments().Add(x_).Add(2.0));
  const Tensor next = Plain("aten::mul_", Arguments().Add(doubled).Add(5.0));
  EXPECT_THAT(Numbers(doubled), ElementsAre(2, -4, 6));
  scope.AddOutput("next", next);
  scope.AddOutput("doubled", doubled);
  const Results results = scope.End();
  ExpectNear(Numbers(results.composition(0).components()), {10, 0, 0, 0, -20, 0, 0, 0, 30}, 1e-12);
  ExpectNear(Numbers(results.composition(1).components()), {2, 0, 0, 0, -4, 0, 0, 0, 6}, 1e-12);
}

// Its conditions are others on the baseline, and what is computed of its outputs is not better known than these.
TEST_F(TraceTest, WhatIsComputedOfAResultKeepsTheWarningsOfItsRun) {
  const auto run = [](const std::vector<double>& values) {
    const Tensor x = Tensor::Copy<double>(values, {2});
    Request request;
    request.Input(x).SplitAlong({0}).Baseline(0.0);
    TracingScope scope(request);
    const Tensor large = Plain("aten::gt", Arguments().Add(x).Add(0.5));
    const Tensor tripled = Plain("aten::mul", Arguments().Add(x).Add(3.0));
    const Tensor less = Plain("aten::sub", Arguments().Add(x).Add(1.0));
    scope.AddOutput("y", Plain("aten::where", Arguments().Add(large).Add(tripled).Add(less)));
    return scope.End();
  };
  const Results first = run({0.25, 2});
  const Results second = run({0.25, 0.5});
  ASSERT_EQ(first.warnings().size(), 1u);
  const std::string warning = first.warnings()[0];
  EXPECT_THAT(warning, HasSubstr("on the baseline some are others"));
  EXPECT_THAT(second.warnings(), ElementsAre());
  const Composition warned = first.composition();
  const Composition silent = second.composition();
  const auto expect_kept = [&](const Results& results, const std::string& target = "0") {
    EXPECT_THAT(results.warnings(), ElementsAre(warning));
    EXPECT_THAT(results.composition().Explain(target).Json(), HasSubstr("on the baseline some are others"));
  };
  expect_kept(Call("aten::exp", Arguments().Add(warned)));
  expect_kept(Call("aten::mul", Arguments().Add(silent).Add(warned)));
  expect_kept(Call("aten::mul", Arguments().Add(warned).Add(warned)));
  expect_kept(Call("aten::stack", Arguments().BeginList().Add(silent).Add(warned).EndList()), "0,0");
  expect_kept(Call("aten::exp", Arguments().Add(Call("aten::neg", Arguments().Add(warned)).composition())));
  expect_kept(Call("aten::exp", Arguments().Add(warned.Select({1}))));
  expect_kept(Call("aten::exp", Arguments().Add(Shapley("aten::exp", Arguments().Add(warned)))));
  EXPECT_THAT(warned.Select({-1}).Explain("0").Json(), HasSubstr("on the baseline some are others"));
  EXPECT_THAT(Call("aten::mul", Arguments().Add(silent).Add(silent)).warnings(), ElementsAre());
  // The log was told when the model ran.
  std::vector<std::string> lines;
  const Context context =
      Context::Of(ContextOptions().Log([&](int32_t, const std::string& line) { lines.push_back(line); }));
  Call("aten::exp", Arguments().Add(warned), context);
  EXPECT_THAT(lines, Not(Contains(warning)));
}

TEST_F(TraceTest, CompositionsAndModelsAreForOtherThreads) {
  const Composition composed = Composition::Diagonal(x_, {0});
  TracingScope scope(Asked());
  addend_results* results = nullptr;
  const Arguments arguments = Arguments().Add(composed);
  const auto refused = Outcome(addend_call(nullptr, "aten::relu", arguments.get(), &results));
  EXPECT_EQ(refused.code, ADDEND_FAILED_PRECONDITION);
  EXPECT_THAT(refused.message, HasSubstr("this thread records a trace; end it first"));
  EXPECT_EQ(results, nullptr);
}

TEST_F(TraceTest, OutputsHaveToBeWhatOperatorsMet) {
  const Tensor other = Tensor::Copy<double>({4, 5}, {2});
  const Tensor integers = Tensor::Copy<int64_t>({4, 5}, {2});
  TracingScope scope(Asked());
  EXPECT_EQ(CodeOf([&] { scope.AddOutput("other", other); }), ADDEND_NOT_FOUND);
  EXPECT_EQ(CodeOf([&] { scope.AddOutput("integers", integers); }), ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { scope.End(); }), ADDEND_INVALID_ARGUMENT) << "no output was named";
}

TEST_F(TraceTest, TheThreadIsFreeAfterwards) {
  {
    const TracingScope scope(Asked());
    EXPECT_EQ(CodeOf([&] { const TracingScope second(Asked()); }), ADDEND_FAILED_PRECONDITION);
  }
  const Composition y = Call("aten::relu", Arguments().Add(Composition::Diagonal(x_, {0}))).composition();
  ExpectNear(Numbers(y.components()), {1, 0, 0, 0, 0, 0, 0, 0, 3}, 1e-12);
}

// ---- to be attributed

addend_trace* Begun(const Request& request) {
  addend_trace* trace = nullptr;
  ExpectOk(addend_trace_begin_attribution(nullptr, request.get(), &trace));
  return trace;
}

TEST_F(TraceTest, IsAttributedAsItRan) {
  const Tensor y = Tensor::Copy<double>({10, 20, 30}, {3});
  Request request;
  request.Input(x_, "x").SplitAlong({0}).Input(y, "y").SplitAlong({0});
  request.Target("-1").Target("0-2");
  addend_trace* trace = Begun(request);
  // The second input meets an operator first.
  const Tensor squared = Plain("aten::mul", Arguments().Add(y).Add(2.0));
  const Tensor sum = Plain("aten::add", Arguments().Add(squared).Add(x_));
  ExpectOk(addend_trace_add_output(trace, "sum", sum.get()));
  ExpectOk(addend_trace_add_note(trace, "the caller says this"));
  addend_attribution* made = nullptr;
  ExpectOk(addend_trace_end_attribution(trace, &made));
  addend_trace_release(trace);
  const Attribution found(made);
  EXPECT_EQ(found.Explain(0).value(), 63);
  EXPECT_EQ(found.Explain(0).target(), "[2]");
  const Results results = found.results();
  ExpectNear(Numbers(results.tensor(1)), {0, 0, 3, 1, 0, -3}, 1e-12);
  ExpectNear(Numbers(results.tensor(2)), {0, 0, 60, 20, 0, -60}, 1e-12);
  EXPECT_THAT(results.ReportJson(), HasSubstr("the caller says this"));

  // An explanation is a value: it can be read from its JSON.
  const Explanation first = found.Explain(0);
  addend_explanation* read = nullptr;
  ExpectOk(addend_explanation_read(first.Json().c_str(), &read));
  const Explanation same(read);
  EXPECT_EQ(same.Json(), first.Json());
  EXPECT_EQ(same.Html(), first.Html());
  EXPECT_EQ(same.Svg(), first.Svg());
  EXPECT_EQ(same.target(), first.target());
  EXPECT_EQ(Outcome(addend_explanation_read("{}", &read)).code, ADDEND_INVALID_ARGUMENT);
}

TEST_F(TraceTest, EndsAsItBegan) {
  const Request request = Asked();
  addend_trace* trace = Begun(request);
  ExpectOk(addend_trace_add_output(trace, "y", Plain("aten::mul", Arguments().Add(x_).Add(2.0)).get()));
  EXPECT_EQ(Outcome(addend_trace_again(trace)).code, ADDEND_FAILED_PRECONDITION);
  addend_trace_release(trace);
  trace = Begun(request);
  const Tensor doubled = Plain("aten::mul", Arguments().Add(x_).Add(2.0));
  ExpectOk(addend_trace_add_output(trace, "y", doubled.get()));
  addend_results* results = nullptr;
  EXPECT_THAT(Outcome(addend_trace_end(trace, &results)).message, HasSubstr("this trace attributes"));
  addend_trace_release(trace);
}

TEST_F(TraceTest, ItsOwnerVerifiesTheReference) {
  Request request = Asked();
  EXPECT_THAT(Outcome(addend_trace_begin(nullptr, Asked().VerifyReference().get(), nullptr)).message,
              HasSubstr("out_trace is NULL"));
  addend_trace* trace = nullptr;
  EXPECT_THAT(Outcome(addend_trace_begin(nullptr, Asked().VerifyReference().get(), &trace)).message,
              HasSubstr("addend_trace_baseline"));
  const auto run = [](const Tensor& x) { return Plain("aten::add", Arguments().Add(x).Add(2.0)); };
  for (const double apart : {0.0, 1.0}) {
    ExpectOk(addend_trace_begin(nullptr, request.get(), &trace));
    const Tensor y = run(x_);
    ExpectOk(addend_trace_add_output(trace, "y", y.get()));
    EXPECT_EQ(Outcome(addend_trace_add_on_baseline(trace, "y", y.get())).code, ADDEND_FAILED_PRECONDITION);
    addend_tensor* baseline = nullptr;
    EXPECT_EQ(Outcome(addend_trace_baseline(trace, 1, &baseline)).code, ADDEND_INVALID_ARGUMENT);
    ExpectOk(addend_trace_baseline(trace, 0, &baseline));
    const Tensor zeros(baseline);
    ExpectNear(Numbers(zeros), {0, 0, 0}, 0);
    const Tensor there = Plain("aten::add", Arguments().Add(run(zeros)).Add(apart));
    EXPECT_EQ(Outcome(addend_trace_add_on_baseline(trace, "z", there.get())).code, ADDEND_NOT_FOUND);
    ExpectOk(addend_trace_add_on_baseline(trace, "y", there.get()));
    addend_results* made = nullptr;
    ExpectOk(addend_trace_end(trace, &made));
    addend_trace_release(trace);
    const Results results(made);
    EXPECT_DOUBLE_EQ(results.report("reference_error"), apart / (2 + apart));
    EXPECT_EQ(results.report_text("reference_is_model_on_baseline"), apart == 0 ? "yes" : "no");
    EXPECT_EQ(results.report_text("reference_reason").empty(), apart == 0);
    EXPECT_EQ(results.report_text("nothing"), "");
  }
}

TEST_F(TraceTest, RunsAgainForWhatIsInside) {
  Request request;
  request.Input(x_, "x").Inside("aten::mul").SplitAlong({0});
  const auto run = [&] {
    const Tensor doubled = Plain("aten::mul", Arguments().Add(x_).Add(2.0));
    return Plain("aten::relu", Arguments().Add(doubled));
  };
  addend_trace* trace = nullptr;
  ExpectOk(addend_trace_begin(nullptr, request.get(), &trace));
  const Tensor first = run();
  ExpectOk(addend_trace_add_output(trace, "y", first.get()));
  ExpectOk(addend_trace_again(trace));
  const Tensor second = run();
  ExpectOk(addend_trace_add_output(trace, "y", second.get()));
  addend_results* made = nullptr;
  ExpectOk(addend_trace_end(trace, &made));
  addend_trace_release(trace);
  const Results results(made);
  ExpectNear(Numbers(results.composition(0).components()), {2, 0, 0, 0, 0, 0, 0, 0, 6}, 1e-12);
}

// ---- to become programs

Tensor Tanh(const Tensor& x) { return Call("aten::tanh", Arguments().Add(x)).tensor(); }

TEST_F(TraceTest, BecomesAProgram) {
  const Tensor x = Tensor::Copy<double>({0.5, -1, 2}, {3});
  const Tensor weight = Tensor::Copy<double>({2, 3, 4}, {3});
  const Tensor shift = Tensor::Copy<double>({1, 0, -1}, {3});
  Request request;
  request.Input(x, "x");
  ExpectOk(addend_request_add_parameter(request.get(), "layer.weight", weight.get()));
  ExpectOk(addend_request_add_buffer(request.get(), "layer.shift", shift.get()));
  RecordingScope scope(request);
  scope.SetModule("layer");
  const Tensor product = Call("aten::mul", Arguments().Add(x).Add(weight)).tensor();
  const Tensor sum = Call("aten::add", Arguments().Add(product).Add(shift)).tensor();
  scope.SetModule("");
  const Tensor result = Tanh(sum);
  scope.AddOutput(result);
  scope.AddOutput(sum);
  const Program program = scope.End();
  EXPECT_EQ(program.num_operators(), 3u);
  EXPECT_EQ(program.Names("input"), std::vector<std::string>{"x"});
  EXPECT_EQ(program.Names("parameter"), std::vector<std::string>{"layer.weight"});
  EXPECT_EQ(program.Names("buffer"), std::vector<std::string>{"layer.shift"});
  EXPECT_THAT(program.CodeText(), HasSubstr("layer  # module:"));
  Request other;
  other.Input(Tensor::Copy<double>({0.25, 0.5, -0.125}, {3}));
  const Results replayed = program.Replay(other);
  ASSERT_EQ(replayed.size(), 2u);
  ExpectNear(Numbers(replayed.tensor(1)), {1.5, 1.5, -1.5}, 0);
  ExpectNear(Numbers(replayed.tensor(0)), {std::tanh(1.5), std::tanh(1.5), std::tanh(-1.5)}, 1e-15);
  // The live model is attributed by its program.
  Request split;
  split.Input(x).SplitAlong({0}).Explained("output.1").Target("2");
  ExpectNear(Numbers(program.AsModel().Attribute(split).input()), {0, 0, 8}, 1e-15);
}

TEST_F(TraceTest, RecordsTheCallersSourceLines) {
  const Tensor x = Tensor::Copy<double>({0.5, -1, 2}, {3});
  Request request;
  request.Input(x);
  int line = 10;
  addend_trace* made = nullptr;
  ExpectOk(addend_trace_record(
      request.get(),
      [](void* payload, addend_frames* frames) -> int32_t {
        ExpectOk(addend_frames_add(frames, "main.py", 3, "main", "run(x)", -1, 0));
        ExpectOk(addend_frames_add(frames, "main.py", *static_cast<int*>(payload), "run", "y = tanh(x)", 4, 7));
        EXPECT_EQ(Outcome(addend_frames_add(frames, "main.py", 1, "run", "short", 4, 7)).code, ADDEND_INVALID_ARGUMENT);
        EXPECT_EQ(Outcome(addend_frames_add(frames, nullptr, 1, "run", "short", 0, 1)).code, ADDEND_INVALID_ARGUMENT);
        return 0;
      },
      &line, [](void* payload) { *static_cast<int*>(payload) = -1; }, &made));
  Program program;
  {
    const Handle<addend_trace, addend_trace_release> trace(made);
    const Tensor once = Tanh(x);
    line = 11;
    const Tensor twice = Tanh(once);
    ExpectOk(addend_trace_add_output(trace.get(), "output", twice.get()));
    addend_program* ended = nullptr;
    ExpectOk(addend_trace_end_program(trace.get(), &ended));
    program = Program(ended);
    EXPECT_EQ(Outcome(addend_trace_end_program(trace.get(), &ended)).code, ADDEND_FAILED_PRECONDITION);
  }
  EXPECT_EQ(line, -1);
  const std::string text = program.CodeText();
  EXPECT_THAT(text, HasSubstr("run(x)  # main.py:3 in main:"));
  EXPECT_THAT(text, HasSubstr("y = tanh(x)  # main.py:10 in run:"));
  EXPECT_THAT(text, HasSubstr("y = tanh(x)  # main.py:11 in run:"));
}

TEST_F(TraceTest, AFrameProviderEndsTheRecording) {
  const Tensor x = Tensor::Copy<double>({0.5, -1, 2}, {3});
  Request request;
  request.Input(x);
  addend_trace* made = nullptr;
  ExpectOk(addend_trace_record(
      request.get(), [](void*, addend_frames*) -> int32_t { return 9; }, nullptr, nullptr, &made));
  const Handle<addend_trace, addend_trace_release> trace(made);
  EXPECT_THROW(Tanh(x), Error);
  ExpectOk(addend_trace_add_output(made, "output", x.get()));
  addend_program* none = nullptr;
  addend_status* status = addend_trace_end_program(made, &none);
  EXPECT_EQ(addend_status_code(status), ADDEND_UNKNOWN) << addend_status_message(status);
  EXPECT_STREQ(addend_status_payload(status, "callback"), "9");
  addend_status_release(status);
  EXPECT_EQ(none, nullptr);
}

TEST_F(TraceTest, TheTwoKindsOfTracesEndDifferently) {
  const Tensor x = Tensor::Copy<double>({0.5, -1, 2}, {3});
  Request request;
  request.Input(x).SplitAlong({0});
  addend_results* results = nullptr;
  addend_program* program = nullptr;
  {
    const RecordingScope scope(request);
    EXPECT_EQ(Outcome(addend_trace_end(scope.get(), &results)).code, ADDEND_FAILED_PRECONDITION);
    addend_trace* second = nullptr;
    EXPECT_EQ(Outcome(addend_trace_record(request.get(), nullptr, nullptr, nullptr, &second)).code,
              ADDEND_FAILED_PRECONDITION);
    EXPECT_THAT(Outcome(addend_trace_end_program(scope.get(), &program)).message, HasSubstr("no output"));
  }
  const TracingScope scope(request);
  EXPECT_EQ(Outcome(addend_trace_end_program(scope.get(), &program)).code, ADDEND_FAILED_PRECONDITION);
}

}  // namespace
}  // namespace addend::api
