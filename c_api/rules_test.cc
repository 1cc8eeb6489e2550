// Rules of the caller's own, through callbacks in C.
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>

#include "c_api/testing.h"

namespace {

at::Tensor SmoothAbs(const at::Tensor& x, double width) { return (x * x + width * width).sqrt() - width; }

at::Tensor Mix(const at::Tensor& x, const at::Tensor& y) { return x * 2 + y.sum(); }

TORCH_LIBRARY(capi_ops, m) {
  m.def("smooth_abs(Tensor x, float width) -> Tensor");
  m.def("mix(Tensor x, Tensor y) -> Tensor");
}
TORCH_LIBRARY_IMPL(capi_ops, CPU, m) {
  m.impl("smooth_abs", SmoothAbs);
  m.impl("mix", Mix);
}
TORCH_LIBRARY_IMPL(capi_ops, Autograd, m) {
  m.impl("smooth_abs", SmoothAbs);
  m.impl("mix", Mix);
}

}  // namespace

namespace addend::api {
namespace {

using testing::HasSubstr;

constexpr char kOp[] = "capi_ops::smooth_abs";
constexpr double kWidth = 0.5;
const std::vector<double> kParts = {1, -2, 0.5, 3, 1, 0.25};
const std::vector<double> kReference = {0.5, 1, -1};

double Function(double x) { return std::sqrt(x * x + kWidth * kWidth) - kWidth; }

// Contributions by the secant slope.
std::vector<double> Expected() {
  std::vector<double> expected;
  for (size_t k = 0; k < kParts.size(); ++k) {
    const size_t e = k % 3;
    const double move = kParts[e] + kParts[e + 3];
    expected.push_back(kParts[k] * (Function(kReference[e] + move) - Function(kReference[e])) / move);
  }
  return expected;
}

Arguments OpArguments() {
  Arguments arguments;
  arguments.Add(Composition::FromTensors(Tensor::Copy(kParts, {2, 3}), Tensor::Copy(kReference, {3}))).Add(kWidth);
  return arguments;
}

struct Payload {
  int builds = 0;
  int released = 0;
  int32_t answer = ADDEND_CALLBACK_OK;
  bool by_map = false;
  bool wrong_shape = false;
  double factor = 1;
  addend_rule_call* kept = nullptr;
};

std::vector<double> Part(const addend_rule_call* call, bool output, int32_t part) {
  addend_tensor* tensor = nullptr;
  ExpectOk(output ? addend_rule_call_output(call, part, &tensor) : addend_rule_call_operand(call, 0, part, &tensor));
  return Numbers(Tensor(tensor));
}

struct Slope {
  std::vector<double> numbers;
  bool wrong_shape;
};

int32_t Forward(void* payload, const addend_tensor* const* rows, size_t num_rows, addend_tensor** out_rows) {
  const auto* slope = static_cast<Slope*>(payload);
  EXPECT_EQ(num_rows, 1u);
  addend_tensor* whole = nullptr;
  ExpectOk(addend_tensor_to(rows[0], ADDEND_FLOAT64, "cpu", &whole));
  const Tensor owner(whole);
  std::vector<double> numbers = Numbers(owner);
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] *= slope->numbers[k % 3];
  std::vector<int64_t> sizes = owner.sizes();
  if (slope->wrong_shape) sizes.push_back(1);
  addend_status* status = addend_tensor_copy(numbers.data(), numbers.size() * sizeof(double), ADDEND_FLOAT64,
                                             sizes.data(), sizes.size(), out_rows);
  addend_status_release(status);
  return status == nullptr ? ADDEND_CALLBACK_OK : ADDEND_CALLBACK_USER_ERROR;
}

int32_t Build(void* payload, const addend_rule_call* call, addend_rule_result* result) {
  auto* own = static_cast<Payload*>(payload);
  ++own->builds;
  own->kept = const_cast<addend_rule_call*>(call);
  if (own->answer != ADDEND_CALLBACK_OK) return own->answer;
  EXPECT_EQ(addend_rule_call_num_operands(call), 1u);
  EXPECT_EQ(addend_rule_call_decomposed(call, 0), 1);
  EXPECT_EQ(addend_rule_call_decomposed(call, 1), 0);
  double width = 0;
  ExpectOk(addend_rule_call_number(call, 1, &width));
  EXPECT_EQ(width, kWidth);
  EXPECT_EQ(Outcome(addend_rule_call_number(call, 2, &width)).code, ADDEND_OUT_OF_RANGE);
  addend_tensor* none = nullptr;
  EXPECT_EQ(Outcome(addend_rule_call_operand(call, 1, ADDEND_VALUE, &none)).code, ADDEND_OUT_OF_RANGE);
  EXPECT_EQ(Outcome(addend_rule_call_operand(call, 0, ADDEND_LEFTOVER, &none)).code, ADDEND_INVALID_ARGUMENT);
  const auto x = Part(call, false, ADDEND_VALUE);
  const auto b = Part(call, false, ADDEND_REFERENCE);
  const auto y = Part(call, true, ADDEND_VALUE);
  const auto f = Part(call, true, ADDEND_REFERENCE);
  std::vector<double> slope(3);
  for (size_t k = 0; k < 3; ++k) slope[k] = own->factor * (y[k] - f[k]) / (x[k] - b[k]);
  if (own->by_map) {
    addend_map_callbacks map = {};
    map.struct_size = sizeof(map);
    map.payload = new Slope{slope, own->wrong_shape};
    map.release = [](void* p) { delete static_cast<Slope*>(p); };
    map.forward = Forward;
    const int64_t operands[] = {0};
    ExpectOk(addend_rule_result_set_map(result, operands, 1, &map));
  } else {
    ExpectOk(addend_rule_result_add_term(result, 0, Tensor::Copy(slope, {3}).get()));
  }
  ExpectOk(addend_rule_result_set_exact(result, 1));
  return ADDEND_CALLBACK_OK;
}

Context ContextWith(Payload* payload) {
  addend_rules* rules = nullptr;
  ExpectOk(addend_rules_create(&rules));
  addend_rule_callbacks callbacks = {};
  EXPECT_EQ(Outcome(addend_rules_add_callbacks(rules, kOp, &callbacks)).message,
            "callbacks has struct_size 0; set it to 32, its size");
  callbacks.struct_size = sizeof(callbacks);
  EXPECT_EQ(Outcome(addend_rules_add_callbacks(rules, kOp, &callbacks)).message, "callbacks has no build");
  callbacks.payload = payload;
  callbacks.release = [](void* p) { ++static_cast<Payload*>(p)->released; };
  callbacks.build = Build;
  EXPECT_EQ(Outcome(addend_rules_add_callbacks(rules, "smooth_abs", &callbacks)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(payload->released, 0);
  ExpectOk(addend_rules_add_callbacks(rules, kOp, &callbacks));
  addend_context_options* options = nullptr;
  ExpectOk(addend_context_options_create(&options));
  ExpectOk(addend_context_options_set_rules(options, rules));
  addend_context* context = nullptr;
  ExpectOk(addend_context_create(options, &context));
  addend_context_options_release(options);
  addend_rules_release(rules);
  return Context(context);
}

class RulesTest : public CApiTest {};

TEST_F(RulesTest, WithoutOneItIsAnError) {
  addend_results* none = nullptr;
  EXPECT_THAT(Outcome(addend_call(nullptr, kOp, OpArguments().get(), &none)).message,
              HasSubstr("no composition rule for capi_ops::smooth_abs"));
}

TEST_F(RulesTest, APrincipleNeedsNoCode) {
  for (const char* principle : {"pointwise", "path", "path_elementwise"}) {
    SCOPED_TRACE(principle);
    addend_rules* rules = nullptr;
    ExpectOk(addend_rules_create(&rules));
    ExpectOk(addend_rules_add(rules, kOp, principle));
    EXPECT_THAT(Outcome(addend_rules_add(rules, kOp, "magic")).message, HasSubstr("path_elementwise or opaque"));
    addend_context_options* options = nullptr;
    ExpectOk(addend_context_options_create(&options));
    ExpectOk(addend_context_options_set_rules(options, rules));
    addend_context* context = nullptr;
    ExpectOk(addend_context_create(options, &context));
    addend_context_options_release(options);
    addend_rules_release(rules);
    const Composition y = Call(kOp, OpArguments(), Context(context)).composition();
    ExpectNear(Numbers(y.components()), Expected(), 1e-9);
    ExpectNear(Numbers(y.leftover()), {0, 0, 0}, 1e-9);
  }
}

TEST_F(RulesTest, ByCoefficientsAndByMap) {
  for (const bool by_map : {false, true}) {
    Payload payload;
    payload.by_map = by_map;
    {
      const Context context = ContextWith(&payload);
      const Composition y = Call(kOp, OpArguments(), context).composition();
      ExpectNear(Numbers(y.components()), Expected(), 1e-12);
      ExpectNear(Numbers(y.leftover()), {0, 0, 0}, 1e-12);
      EXPECT_GT(payload.builds, 0);
      // The handle that a callback has kept is known to be gone.
      EXPECT_EQ(addend_rule_call_num_operands(payload.kept), 0u);
      EXPECT_EQ(payload.released, 0);
    }
    EXPECT_EQ(payload.released, 1);
  }
}

TEST_F(RulesTest, AClaimThatIsWrongIsFound) {
  Payload payload;
  payload.factor = 1.5;
  const Context context = ContextWith(&payload);
  addend_results* none = nullptr;
  const Outcome outcome(addend_call(context.get(), kOp, OpArguments().get(), &none));
  EXPECT_EQ(outcome.code, ADDEND_INTERNAL);
  EXPECT_THAT(outcome.message, HasSubstr(kOp));
}

TEST_F(RulesTest, WhatCallbacksAnswer) {
  Payload payload;
  const Context context = ContextWith(&payload);
  addend_results* none = nullptr;
  payload.answer = ADDEND_CALLBACK_USER_ERROR;
  addend_status* status = addend_call(context.get(), kOp, OpArguments().get(), &none);
  EXPECT_EQ(addend_status_code(status), ADDEND_UNKNOWN);
  EXPECT_STREQ(addend_status_payload(status, "callback"), "-7");
  EXPECT_STREQ(addend_status_payload(status, "op"), kOp);
  // All keys that have something, and nothing else.
  std::vector<std::string> keys;
  while (const char* key = addend_status_payload_key(status, keys.size())) keys.emplace_back(key);
  EXPECT_THAT(keys, testing::IsSupersetOf({"callback", "op"}));
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  for (const std::string& key : keys) EXPECT_NE(addend_status_payload(status, key.c_str()), nullptr) << key;
  addend_status_release(status);
  payload.answer = ADDEND_CALLBACK_DECLINE;
  EXPECT_EQ(Outcome(addend_call(context.get(), kOp, OpArguments().get(), &none)).code, ADDEND_UNIMPLEMENTED);
  payload.answer = ADDEND_CALLBACK_OK;
  payload.by_map = true;
  payload.wrong_shape = true;
  EXPECT_THAT(Outcome(addend_call(context.get(), kOp, OpArguments().get(), &none)).message,
              HasSubstr("gives rows of shape"));
}

// ---- maps that go backward: mix(x, y) = 2 x + sum(y), with y of 2 elements

addend_tensor* Copied(const std::vector<double>& numbers, const std::vector<int64_t>& dims) {
  addend_tensor* made = nullptr;
  ExpectOk(addend_tensor_copy(numbers.data(), numbers.size() * sizeof(double), ADDEND_FLOAT64, dims.data(), dims.size(),
                              &made));
  return made;
}

std::vector<double> NumbersOf(const addend_tensor* rows) {
  addend_tensor* same = nullptr;
  ExpectOk(addend_tensor_to(rows, ADDEND_FLOAT64, "cpu", &same));
  return Numbers(Tensor(same));
}

int32_t MixForward(void*, const addend_tensor* const* rows, size_t num_rows, addend_tensor** out_rows) {
  EXPECT_EQ(num_rows, 2u);
  const std::vector<double> x = NumbersOf(rows[0]);
  const std::vector<double> y = NumbersOf(rows[1]);
  const size_t size = x.size() / (y.size() / 2);
  std::vector<double> out(x.size());
  for (size_t k = 0; k < out.size(); ++k) out[k] = 2 * x[k] + y[k / size * 2] + y[k / size * 2 + 1];
  *out_rows = Copied(out, {addend_tensor_size(rows[0], 0), addend_tensor_size(rows[0], 1)});
  return ADDEND_CALLBACK_OK;
}

// Fault of a test's transpose.
enum class Fault { kNone, kShape, kMissing, kAnswer };

int32_t MixTranspose(void* payload, const addend_tensor* rows, addend_tensor** out_rows, size_t num_rows) {
  const Fault fault = *static_cast<const Fault*>(payload);
  if (fault == Fault::kAnswer) return 5;
  EXPECT_EQ(num_rows, 2u);
  const std::vector<double> g = NumbersOf(rows);
  const int64_t count = addend_tensor_size(rows, 0);
  const int64_t size = addend_tensor_size(rows, 1);
  std::vector<double> x(g.size());
  std::vector<double> y(count * 2);
  for (size_t k = 0; k < g.size(); ++k) {
    x[k] = 2 * g[k];
    y[k / size * 2] += g[k];
    y[k / size * 2 + 1] += g[k];
  }
  out_rows[0] = Copied(x, {count, size});
  if (fault == Fault::kMissing) return ADDEND_CALLBACK_OK;
  out_rows[1] = fault == Fault::kShape ? Copied(x, {count, size}) : Copied(y, {count, 2});
  return ADDEND_CALLBACK_OK;
}

struct MixPayload {
  Fault fault = Fault::kNone;
  size_t struct_size = sizeof(addend_map_callbacks);
};

Context ContextWithMix(MixPayload* payload) {
  addend_rules* rules = nullptr;
  ExpectOk(addend_rules_create(&rules));
  addend_rule_callbacks callbacks = {};
  callbacks.struct_size = sizeof(callbacks);
  callbacks.payload = payload;
  callbacks.build = [](void* of_rule, const addend_rule_call*, addend_rule_result* result) -> int32_t {
    auto* own = static_cast<MixPayload*>(of_rule);
    addend_map_callbacks map = {};
    map.struct_size = own->struct_size;
    map.payload = &own->fault;
    map.forward = MixForward;
    map.transpose = MixTranspose;
    const int64_t operands[] = {0, 1};
    ExpectOk(addend_rule_result_set_map(result, operands, 2, &map));
    ExpectOk(addend_rule_result_set_exact(result, 1));
    return ADDEND_CALLBACK_OK;
  };
  ExpectOk(addend_rules_add_callbacks(rules, "capi_ops::mix", &callbacks));
  ContextOptions options;
  ExpectOk(addend_context_options_set_rules(options.get(), rules));
  addend_rules_release(rules);
  addend_context* context = nullptr;
  ExpectOk(addend_context_create(options.get(), &context));
  return Context(context);
}

// tanh(mix(x, y)), recorded while it runs.
class MixTest : public CApiTest {
 protected:
  Request Asked() const {
    Request request;
    request.Input(x_, "x").SplitAlong({0}).Baseline(0.0).Input(y_, "y").SplitAlong({0}).Baseline(0.0);
    request.Target("0").Target("2-1");
    return request;
  }
  Tensor Run() const {
    const Tensor mixed = Call("capi_ops::mix", Arguments().Add(x_).Add(y_)).tensor();
    return Call("aten::tanh", Arguments().Add(mixed)).tensor();
  }
  Composition Decomposed(const Context& context) const {
    TracingScope scope(Asked(), context);
    scope.AddOutput("y", Run());
    return scope.End().composition();
  }
  addend_status* Attribute(const Context& context, addend_attribution** out) const {
    addend_trace* trace = nullptr;
    ExpectOk(addend_trace_begin_attribution(context.get(), Asked().get(), &trace));
    ExpectOk(addend_trace_add_output(trace, "y", Run().get()));
    addend_status* status = addend_trace_end_attribution(trace, out);
    addend_trace_release(trace);
    return status;
  }

  const Tensor x_ = Tensor::Copy<double>({0.1, -0.2, 0.3}, {3});
  const Tensor y_ = Tensor::Copy<double>({0.25, -0.5}, {2});
};

TEST_F(MixTest, ATransposeAttributesWhatTheMapDecomposes) {
  MixPayload payload;
  const Context context = ContextWithMix(&payload);
  // [5 components, 3 elements]
  const std::vector<double> forward = Numbers(Decomposed(context).components());
  addend_attribution* made = nullptr;
  ExpectOk(Attribute(context, &made));
  const Attribution backward(made);
  // [2 targets, elements of the input]
  const std::vector<double> of_x = Numbers(backward.input(0));
  const std::vector<double> of_y = Numbers(backward.input(1));
  ASSERT_EQ(of_x.size(), 6u);
  ASSERT_EQ(of_y.size(), 4u);
  for (size_t component = 0; component < 5; ++component) {
    const double* row = &forward[component * 3];
    const double first = component < 3 ? of_x[component] : of_y[component - 3];
    const double second = component < 3 ? of_x[3 + component] : of_y[2 + component - 3];
    EXPECT_NEAR(first, row[0], 1e-12) << component;
    EXPECT_NEAR(second, row[2] - row[1], 1e-12) << component;
  }
  // All of the moves is there: tanh(0.2 - 0.25) and a difference.
  EXPECT_NEAR(of_x[0] + of_x[1] + of_x[2] + of_y[0] + of_y[1], std::tanh(-0.05), 1e-9);
}

TEST_F(MixTest, ATableWithoutATransposeGoesForwardOnly) {
  MixPayload payload;
  payload.struct_size = offsetof(addend_map_callbacks, transpose);
  const Context context = ContextWithMix(&payload);
  Decomposed(context);
  addend_attribution* none = nullptr;
  const Outcome outcome(Attribute(context, &none));
  EXPECT_EQ(outcome.code, ADDEND_UNIMPLEMENTED);
  EXPECT_THAT(outcome.message, HasSubstr("set `transpose` of addend_map_callbacks"));
  EXPECT_EQ(none, nullptr);
}

// A map without a transpose goes forward by itself, also where going backward would pay off.
TEST_F(MixTest, WithoutATransposeTheDirectionIsForward) {
  constexpr int64_t kMany = 1000;
  const Tensor x = Tensor::Copy(std::vector<double>(kMany, 0.25), {kMany});
  for (const bool transposed : {true, false}) {
    MixPayload payload;
    payload.struct_size = transposed ? sizeof(addend_map_callbacks) : offsetof(addend_map_callbacks, transpose);
    const auto decompose = [&](const char* direction) {
      Request request;
      request.Input(x).SplitAlong({0}).Input(y_).SplitAlong({0});
      ExpectOk(addend_request_set_option(request.get(), "direction", direction));
      TracingScope scope(request, ContextWithMix(&payload));
      const Tensor mixed = Call("capi_ops::mix", Arguments().Add(x).Add(y_)).tensor();
      scope.AddOutput("sum", Call("aten::sum", Arguments().Add(mixed)).tensor());
      return scope.End();
    };
    const Results results = decompose("auto");
    EXPECT_EQ(results.report("backward"), transposed ? 1 : 0);
    const std::vector<double> components = Numbers(results.composition().components());
    EXPECT_NEAR(components[0], 0.5, 1e-12);
    EXPECT_NEAR(components[kMany], 0.25 * kMany, 1e-9);
    if (!transposed) {
      EXPECT_THROW(decompose("backward"), Error);
    }
  }
}

TEST_F(MixTest, WrongTransposesAreTold) {
  MixPayload payload;
  const Context context = ContextWithMix(&payload);
  addend_attribution* none = nullptr;
  payload.fault = Fault::kShape;
  EXPECT_THAT(Outcome(Attribute(context, &none)).message, HasSubstr("gives rows of shape [2, 3], not [2, 2]"));
  payload.fault = Fault::kMissing;
  EXPECT_EQ(Outcome(Attribute(context, &none)).code, ADDEND_INVALID_ARGUMENT);
  payload.fault = Fault::kAnswer;
  addend_status* status = Attribute(context, &none);
  EXPECT_EQ(addend_status_code(status), ADDEND_UNKNOWN);
  EXPECT_STREQ(addend_status_payload(status, "callback"), "5");
  addend_status_release(status);
  EXPECT_EQ(none, nullptr);
}

}  // namespace
}  // namespace addend::api
