// Callbacks may call everything that addend.h does not exclude, while the library waits for them.
#include <gmock/gmock.h>

#include <functional>
#include <set>

#include "c_api/testing.h"

namespace addend::api {
namespace {

class CallbacksTest : public CApiTest {
 protected:
  // Runs of every sort, beside the one that called.
  void UseTheLibrary() const {
    const Tensor tensor = Tensor::Copy<double>({1, 2}, {1, 2});
    const Composition x = Composition::FromTensors(tensor);
    ExpectNear(Numbers(Call("aten::mul", Arguments().Add(x).Add(2.0)).composition().components()), {2, 4}, 1e-12);
    ExpectNear(Numbers(Call("aten::relu", Arguments().Add(tensor)).tensor()), {1, 2}, 0);
    EXPECT_EQ(Numbers(model_.Run(DigitRequest()).tensor()), expected_);
    EXPECT_EQ(model_.Decompose(DigitRequest()).size(), 1u);
    EXPECT_EQ(model_.Attribute(DigitRequest()).num_targets(), 1u);
    EXPECT_GT(model_.Record(DigitRequest()).num_operators(), 0u);
  }

  const Model model_ = Model::Load(kDigits);
  const std::vector<double> expected_ = Numbers(model_.Run(DigitRequest()).tensor());
};

TEST_F(CallbacksTest, ProgressMayUseTheLibraryAtEveryStage) {
  const Results plain = model_.Decompose(DigitRequest());
  std::set<std::string> stages;
  ContextOptions options;
  options.Progress([&](const std::string& stage, int64_t, int64_t) {
    // Once in each stage, at its first step and at a later one.
    if (stages.insert(stage).second || stages.insert(stage + ", later").second) UseTheLibrary();
    return true;
  });
  const Results results = model_.Decompose(DigitRequest(), Context::Of(options));
  EXPECT_THAT(stages, testing::IsSupersetOf({"trace, later", "linearize, later", "sweep, later"}));
  // Operators that the callback called are not part of the run.
  EXPECT_EQ(results.report("operators"), plain.report("operators"));
  EXPECT_EQ(Numbers(results.composition().components()), Numbers(plain.composition().components()));
}

TEST_F(CallbacksTest, LogsMayUseTheLibrary) {
  int lines = 0;
  ContextOptions options;
  options.Log([&](int32_t, const std::string&) {
    if (lines++ == 0) UseTheLibrary();
  });
  model_.Decompose(DigitRequest(), Context::Of(options));
  EXPECT_GT(lines, 0);
}

struct RulePayload {
  std::function<void()> use;
  int builds = 0;
};

TEST_F(CallbacksTest, RulesMayUseTheLibrary) {
  RulePayload payload;
  payload.use = [&] { UseTheLibrary(); };
  addend_rules* rules = nullptr;
  ExpectOk(addend_rules_create(&rules));
  addend_rule_callbacks callbacks = {};
  callbacks.struct_size = sizeof(callbacks);
  callbacks.payload = &payload;
  callbacks.build = [](void* own, const addend_rule_call* call, addend_rule_result* result) -> int32_t {
    auto* of_rule = static_cast<RulePayload*>(own);
    if (of_rule->builds++ == 0) of_rule->use();
    addend_tensor* slope = nullptr;
    ExpectOk(addend_rule_call_output(call, ADDEND_VALUE, &slope));
    ExpectOk(addend_rule_result_add_term(result, 0, slope));
    addend_tensor_release(slope);
    return ADDEND_CALLBACK_OK;
  };
  ExpectOk(addend_rules_add_callbacks(rules, "aten::relu", &callbacks));
  ContextOptions options;
  ExpectOk(addend_context_options_set_rules(options.get(), rules));
  addend_rules_release(rules);
  const Composition x = Composition::FromTensors(Tensor::Copy<double>({1, 2}, {1, 2}));
  // The slope is the value itself: 1 and 2.
  EXPECT_EQ(Numbers(Call("aten::relu", Arguments().Add(x), Context::Of(options)).composition().components()),
            (std::vector<double>{1, 4}));
  EXPECT_GT(payload.builds, 0);
}

// The last callback of a trace may do everything but run a model, which every open trace excludes.
TEST_F(CallbacksTest, SourceLinesMayUseTheLibraryButRunNothing) {
  Request request;
  const Tensor x = Tensor::Copy<double>({1, -2}, {2});
  request.Input(x).SplitAlong({0});
  struct Payload {
    const Model* model;
    int asked = 0;
  } payload{&model_};
  const addend_frames_fn frames = [](void* own, addend_frames* list) -> int32_t {
    auto* of_trace = static_cast<Payload*>(own);
    ++of_trace->asked;
    const Tensor made = Tensor::Copy<double>({3}, {1});
    EXPECT_EQ(Numbers(made), std::vector<double>{3});
    addend_results* none = nullptr;
    EXPECT_EQ(Outcome(addend_model_run(of_trace->model->get(), DigitRequest().get(), &none)).code,
              ADDEND_FAILED_PRECONDITION);
    ExpectOk(addend_frames_add(list, "model.py", 1, "forward", "y = relu(x)", 0, 11));
    return 0;
  };
  addend_trace* trace = nullptr;
  ExpectOk(addend_trace_record(request.get(), frames, &payload, nullptr, &trace));
  const Tensor y = Call("aten::relu", Arguments().Add(x)).tensor();
  ExpectOk(addend_trace_add_output(trace, "y", y.get()));
  addend_program* made = nullptr;
  ExpectOk(addend_trace_end_program(trace, &made));
  addend_trace_release(trace);
  EXPECT_EQ(Program(made).num_operators(), 1u);
  EXPECT_GT(payload.asked, 0);
}

}  // namespace
}  // namespace addend::api
