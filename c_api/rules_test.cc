// Rules of the caller's own, through callbacks in C.
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <torch/library.h>

#include <cmath>

#include "c_api/testing.h"

namespace {

at::Tensor SmoothAbs(const at::Tensor& x, double width) { return (x * x + width * width).sqrt() - width; }

TORCH_LIBRARY(capi_ops, m) { m.def("smooth_abs(Tensor x, float width) -> Tensor"); }
TORCH_LIBRARY_IMPL(capi_ops, CPU, m) { m.impl("smooth_abs", SmoothAbs); }
TORCH_LIBRARY_IMPL(capi_ops, Autograd, m) { m.impl("smooth_abs", SmoothAbs); }

}  // namespace

namespace addend::api {
namespace {

using testing::HasSubstr;

constexpr char kOp[] = "capi_ops::smooth_abs";
constexpr double kWidth = 0.5;
const std::vector<double> kParts = {1, -2, 0.5, 3, 1, 0.25};
const std::vector<double> kReference = {0.5, 1, -1};

double Function(double x) { return std::sqrt(x * x + kWidth * kWidth) - kWidth; }

// What the secant slope pays.
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
      // What a callback has kept is known to be gone.
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
  addend_status_release(status);
  payload.answer = ADDEND_CALLBACK_DECLINE;
  EXPECT_EQ(Outcome(addend_call(context.get(), kOp, OpArguments().get(), &none)).code, ADDEND_UNIMPLEMENTED);
  payload.answer = ADDEND_CALLBACK_OK;
  payload.by_map = true;
  payload.wrong_shape = true;
  EXPECT_THAT(Outcome(addend_call(context.get(), kOp, OpArguments().get(), &none)).message,
              HasSubstr("gives rows of shape"));
}

}  // namespace
}  // namespace addend::api
