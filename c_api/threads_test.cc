// One model, many threads: the same bits as one thread. Under ThreadSanitizer this is also the gate for races, which
// the last test proves to see one: it races on purpose where ADDEND_RACE is set, inside a rule.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "c_api/testing.h"

namespace addend::api {
namespace {

constexpr int kThreads = 8;

class ThreadsTest : public CApiTest {};

Tensor Image(int which) {
  std::vector<float> numbers(64);
  for (int k = 0; k < 64; ++k) numbers[k] = static_cast<float>((k * (which + 3)) % 17) / 16;
  return Tensor::Copy(numbers, {1, 1, 8, 8});
}

std::vector<double> Explain(const Model& model, const Context& context, int which) {
  Request request;
  request.Input(Image(which)).SplitAlong({2, 3}).Baseline(0.0);
  const Composition output = model.Decompose(request, context).composition();
  std::vector<double> numbers = Numbers(output.components());
  for (const double number : Numbers(output.reference())) numbers.push_back(number);
  return numbers;
}

template <typename Function>
void InThreads(const Function& function) {
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&function, t] { function(t); });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ThreadsTest, SameBitsAsOneThread) {
  const Model model = Model::Load(kDigits);
  const Context context = Context::Of({{"preset", "faithful"}});
  std::vector<std::vector<double>> alone;
  for (int t = 0; t < kThreads; ++t) alone.push_back(Explain(model, context, t));
  std::vector<std::vector<double>> together(kThreads);
  InThreads([&](int t) {
    for (int round = 0; round < 3; ++round) together[t] = Explain(model, context, t);
  });
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(together[t], alone[t]) << "input " << t;
}

TEST_F(ThreadsTest, OneCompositionIsReadByAll) {
  const Composition x =
      Composition::FromTensors(Tensor::Copy<double>({1, -2, 3, 4}, {2, 2}), Tensor::Copy<double>({0.5, 1}, {2}));
  const auto expected = Numbers(Call("aten::tanh", Arguments().Add(x)).composition().components());
  InThreads([&](int) {
    for (int round = 0; round < 20; ++round) {
      EXPECT_EQ(Numbers(Call("aten::tanh", Arguments().Add(x)).composition().components()), expected);
    }
  });
}

TEST_F(ThreadsTest, EachThreadHasItsTrace) {
  InThreads([](int t) {
    Request request;
    request.Input(Image(t)).SplitAlong({2, 3});
    addend_trace* trace = nullptr;
    ExpectOk(addend_trace_begin(nullptr, request.get(), &trace));
    addend_trace* second = nullptr;
    EXPECT_EQ(Outcome(addend_trace_begin(nullptr, request.get(), &second)).code, ADDEND_FAILED_PRECONDITION);
    // It belongs to this thread alone.
    std::thread([&] {
      addend_results* none = nullptr;
      EXPECT_EQ(Outcome(addend_trace_end(trace, &none)).code, ADDEND_FAILED_PRECONDITION);
      EXPECT_EQ(Outcome(addend_trace_set_module(trace, "a")).code, ADDEND_FAILED_PRECONDITION);
    }).join();
    addend_trace_release(trace);
    ExpectOk(addend_trace_begin(nullptr, request.get(), &trace));
    // Released elsewhere, it does nothing any more, and this thread is free.
    std::thread([&] { addend_trace_release(trace); }).join();
    Call("aten::relu", Arguments().Add(Image(t)));
    ExpectOk(addend_trace_begin(nullptr, request.get(), &second));
    addend_trace_release(second);
  });
}

TEST_F(ThreadsTest, HandlesAreReleasedAnywhere) {
  std::vector<addend_tensor*> tensors(kThreads);
  InThreads([&](int t) {
    const int64_t dims[] = {4};
    const float numbers[] = {1, 2, 3, 4};
    ExpectOk(addend_tensor_copy(numbers, 16, ADDEND_FLOAT32, dims, 1, &tensors[t]));
  });
  InThreads([&](int t) { addend_tensor_release(tensors[(t + 1) % kThreads]); });
}

// The race that the gate has to see.
int64_t racy_calls = 0;
std::atomic<int64_t> calls{0};

TEST_F(ThreadsTest, RulesRunOnSeveralThreadsAtOnce) {
  static const bool race = std::getenv("ADDEND_RACE") != nullptr;
  addend_rules* rules = nullptr;
  ExpectOk(addend_rules_create(&rules));
  addend_rule_callbacks callbacks = {};
  callbacks.struct_size = sizeof(callbacks);
  callbacks.build = [](void*, const addend_rule_call* call, addend_rule_result* result) -> int32_t {
    if (race) {
      ++racy_calls;
      // Another thread comes here in the meantime: no lock that both take orders its access behind this one.
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++racy_calls;
    }
    ++calls;
    addend_tensor* slope = nullptr;
    ExpectOk(addend_rule_call_output(call, ADDEND_VALUE, &slope));
    ExpectOk(addend_rule_result_add_term(result, 0, slope));
    addend_tensor_release(slope);
    return ADDEND_CALLBACK_OK;
  };
  ExpectOk(addend_rules_add_callbacks(rules, "aten::relu", &callbacks));
  addend_context_options* options = nullptr;
  ExpectOk(addend_context_options_create(&options));
  ExpectOk(addend_context_options_set_rules(options, rules));
  addend_context* made = nullptr;
  ExpectOk(addend_context_create(options, &made));
  const Context context(made);
  addend_context_options_release(options);
  addend_rules_release(rules);
  const Composition x = Composition::FromTensors(Tensor::Copy<double>({1, 2}, {1, 2}));
  InThreads([&](int) {
    for (int round = 0; round < 20; ++round) {
      // The slope is the value itself: 1 and 2.
      EXPECT_EQ(Numbers(Call("aten::relu", Arguments().Add(x), context).composition().components()),
                (std::vector<double>{1, 4}));
    }
  });
  EXPECT_EQ(calls, kThreads * 20);
}

}  // namespace
}  // namespace addend::api
