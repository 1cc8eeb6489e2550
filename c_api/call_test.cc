// Operators by name, compositions and gradients through the C interface.
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "c_api/testing.h"

namespace addend::api {
namespace {

using testing::HasSubstr;

class CallTest : public CApiTest {};

// Two components of shape [2, 3] and a reference.
const std::vector<double> kComponents = {1, -2, 3, 0.5, 0, -1, 0.25, 1, -4, 2, 2, 0.5};
const std::vector<double> kReference = {-1, 0.5, 2, 0, 1, -0.5};

Composition Parts(bool in_graph = false) {
  return Composition::FromTensors(Tensor::Copy(kComponents, {2, 2, 3}), Tensor::Copy(kReference, {2, 3}), {}, in_graph);
}

TEST_F(CallTest, ReluPaysByTheSecantSlope) {
  const Composition y = Call("aten::relu", Arguments().Add(Parts())).composition();
  std::vector<double> expected;
  for (size_t k = 0; k < kComponents.size(); ++k) {
    const size_t e = k % 6;
    const double move = kComponents[e] + kComponents[e + 6];
    const double to = std::max(kReference[e] + move, 0.0);
    const double from = std::max(kReference[e], 0.0);
    // If nothing moves, the slope is that at the point.
    const double slope = move != 0 ? (to - from) / move : kReference[e] > 0 ? 1 : 0;
    expected.push_back(kComponents[k] * slope);
  }
  ExpectNear(Numbers(y.components()), expected, 1e-12);
  ExpectNear(Numbers(y.leftover()), std::vector<double>(6), 1e-12);
}

TEST_F(CallTest, ArgumentsByPlaceNameAndList) {
  const Composition x = Parts();
  const Composition y =
      Call("aten::add", Arguments().Add(x).Add(Tensor::Copy(kReference, {2, 3})).Add(2.0, "alpha")).composition();
  std::vector<double> reference = kReference;
  for (double& number : reference) number *= 3;
  ExpectNear(Numbers(y.reference()), reference, 1e-12);
  EXPECT_EQ(Numbers(y.components()), kComponents);

  addend_arguments* made = nullptr;
  ExpectOk(addend_arguments_create(&made));
  const Handle<addend_arguments, addend_arguments_release> cat(made);
  ExpectOk(addend_arguments_begin_list(made, nullptr));
  ExpectOk(addend_arguments_add_composition(made, nullptr, x.get()));
  ExpectOk(addend_arguments_add_composition(made, nullptr, x.get()));
  EXPECT_EQ(Outcome(addend_arguments_add_i64(made, "dim", 1)).message, "name is dim; elements of a list have no names");
  addend_results* results = nullptr;
  EXPECT_EQ(Outcome(addend_call(nullptr, "aten::cat", made, &results)).code, ADDEND_FAILED_PRECONDITION);
  ExpectOk(addend_arguments_end_list(made));
  ExpectOk(addend_arguments_add_i64(made, "dim", 1));
  ExpectOk(addend_call(nullptr, "aten::cat", made, &results));
  EXPECT_EQ(Results(results).composition().sizes(), (std::vector<int64_t>{2, 6}));

  const Composition sum =
      Call("aten::sum.dim_IntList", Arguments().Add(x).Add(std::vector<int64_t>{1}).Add(true)).composition();
  EXPECT_EQ(sum.sizes(), (std::vector<int64_t>{2, 1}));
  ExpectNear(Numbers(sum.reference()), {1.5, 0.5}, 1e-12);
}

TEST_F(CallTest, ListsOfNumbersAndDtypes) {
  addend_arguments* made = nullptr;
  ExpectOk(addend_arguments_create(&made));
  const Handle<addend_arguments, addend_arguments_release> arguments(made);
  ExpectOk(addend_arguments_begin_list(made, "size"));
  ExpectOk(addend_arguments_add_i64(made, nullptr, 2));
  ExpectOk(addend_arguments_add_i64(made, nullptr, 3));
  ExpectOk(addend_arguments_end_list(made));
  ExpectOk(addend_arguments_add_dtype(made, "dtype", ADDEND_FLOAT64));
  ExpectOk(addend_arguments_add_str(made, "device", "cpu"));
  addend_results* results = nullptr;
  ExpectOk(addend_call(nullptr, "aten::ones", made, &results));
  const Tensor ones = Results(results).tensor();
  EXPECT_EQ(ones.dtype(), ADDEND_FLOAT64);
  EXPECT_EQ(ones.sizes(), (std::vector<int64_t>{2, 3}));
}

// A language that has lists of anything cannot tell what an empty one is a list of.
TEST_F(CallTest, EmptyListsFitEveryList) {
  const Composition all = Call("aten::sum.dim_IntList", Arguments().Add(Parts()).BeginList().EndList()).composition();
  EXPECT_EQ(all.sizes(), std::vector<int64_t>());
  EXPECT_EQ(Numbers(all.components()), (std::vector<double>{1.5, 1.75}));
  EXPECT_EQ(Numbers(all.reference()), std::vector<double>{2});
  const Composition same = Call("aten::permute", Arguments().Add(all).BeginList().EndList()).composition();
  EXPECT_EQ(Numbers(same.components()), Numbers(all.components()));
}

TEST_F(CallTest, ResultsThatAreNoCompositions) {
  const Composition x = Parts();
  const Results sorted = Call("aten::sort", Arguments().Add(x).Add(int64_t{1}));
  ASSERT_EQ(sorted.size(), 2u);
  EXPECT_TRUE(sorted.is_composition(0));
  EXPECT_EQ(addend_results_kind(sorted.get(), 1), ADDEND_RESULT_TENSOR);
  EXPECT_EQ(sorted.tensor(1).dtype(), ADDEND_INT64);
  addend_composition* none = nullptr;
  EXPECT_EQ(Outcome(addend_results_composition(sorted.get(), 1, &none)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(Outcome(addend_results_composition(sorted.get(), 2, &none)).code, ADDEND_OUT_OF_RANGE);
  const Results number = Call("aten::item", Arguments().Add(Tensor::Copy<double>({2.5}, {1})));
  double out = 0;
  ExpectOk(addend_results_number(number.get(), 0, &out));
  EXPECT_EQ(out, 2.5);
  EXPECT_EQ(number.dtype(), ADDEND_FLOAT64);
  EXPECT_EQ(sorted.dtype(0), ADDEND_FLOAT64);
  EXPECT_EQ(sorted.dtype(1), ADDEND_INT64);
  EXPECT_EQ(sorted.sizes(0), x.sizes());
  EXPECT_EQ(sorted.sizes(1), x.sizes());
  EXPECT_EQ(addend_results_dtype(sorted.get(), 2), 0);
  // An integer that no double holds keeps its bits as a tensor.
  constexpr int64_t kLarge = (int64_t{1} << 53) + 1;
  const Results integer = Call("aten::item", Arguments().Add(Tensor::Copy<int64_t>({kLarge}, {1})));
  EXPECT_EQ(integer.kind(0), ADDEND_RESULT_NUMBER);
  EXPECT_EQ(integer.dtype(), ADDEND_INT64);
  EXPECT_TRUE(integer.sizes().empty());
  EXPECT_EQ(integer.tensor().To<int64_t>(), std::vector<int64_t>{kLarge});
  const unsigned char yes = 1;
  addend_tensor* flag = nullptr;
  ExpectOk(addend_tensor_copy(&yes, 1, ADDEND_BOOL, nullptr, 0, &flag));
  EXPECT_EQ(Call("aten::item", Arguments().Add(Tensor(flag))).dtype(), ADDEND_BOOL);
  addend_string* text = nullptr;
  EXPECT_EQ(Outcome(addend_results_report(number.get(), &text)).code, ADDEND_FAILED_PRECONDITION);
}

TEST_F(CallTest, WritingOperatorsLeaveHandlesAsTheyAre) {
  const Composition x = Parts();
  const Composition y = Call("aten::mul_", Arguments().Add(x).Add(2.0)).composition();
  EXPECT_EQ(Numbers(x.components()), kComponents);
  EXPECT_EQ(Numbers(y.components())[0], 2 * kComponents[0]);
  const Tensor t = Tensor::Copy<double>({1, 2}, {2});
  EXPECT_EQ(Numbers(Call("aten::mul_", Arguments().Add(t).Add(2.0)).tensor()), (std::vector<double>{2, 4}));
  EXPECT_EQ(Numbers(t), (std::vector<double>{1, 2}));
  // A result that is handed in cannot be told from one that is given back.
  addend_results* none = nullptr;
  const Outcome outcome(addend_call(nullptr, "aten::neg.out", Arguments().Add(x).Add(x, "out").get(), &none));
  EXPECT_EQ(outcome.code, ADDEND_INVALID_ARGUMENT);
  EXPECT_THAT(outcome.message, HasSubstr("use the form of the operator that returns its result"));
}

TEST_F(CallTest, ErrorsSayWhatIsWrong) {
  const Composition x = Parts();
  const auto fails = [](const char* op, const Arguments& arguments) {
    addend_results* none = nullptr;
    const Outcome outcome(addend_call(nullptr, op, arguments.get(), &none));
    EXPECT_EQ(none, nullptr);
    return outcome;
  };
  EXPECT_EQ(fails("aten::no_such_thing", Arguments().Add(x)).code, ADDEND_NOT_FOUND);
  EXPECT_EQ(fails("nonsense", Arguments().Add(x)).code, ADDEND_NOT_FOUND);
  EXPECT_EQ(fails("aten::relu", Arguments().Add(x).Add(x)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(fails("aten::relu", Arguments()).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(fails("aten::matmul", Arguments().Add(x).Add(x)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(fails("aten::zeros", Arguments().Add(std::vector<int64_t>{int64_t{1} << 40})).code,
            ADDEND_RESOURCE_EXHAUSTED);
  addend_results* none = nullptr;
  addend_status* status = addend_call(nullptr, "aten::geqrf", Arguments().Add(x).get(), &none);
  EXPECT_EQ(addend_status_code(status), ADDEND_UNIMPLEMENTED);
  EXPECT_THAT(addend_status_message(status), HasSubstr("no composition rule for aten::geqrf"));
  EXPECT_STREQ(addend_status_payload(status, "op"), "aten::geqrf");
  EXPECT_STREQ(addend_status_payload(status, "op_index"), "0");
  EXPECT_EQ(addend_status_payload(status, "file"), nullptr);
  EXPECT_STREQ(addend_status_detail(status), "");
  addend_status_release(status);
  // The detail of an error names its class in C++.
  addend_context_options* options = nullptr;
  ExpectOk(addend_context_options_create(&options));
  ExpectOk(addend_context_options_set_detail(options, 1));
  addend_context* context = nullptr;
  ExpectOk(addend_context_create(options, &context));
  status = addend_call(context, "aten::geqrf", Arguments().Add(x).get(), &none);
  EXPECT_THAT(addend_status_detail(status), HasSubstr("addend::Error"));
  addend_status_release(status);
  addend_context_options_release(options);
  addend_context_release(context);
}

// LibTorch would print it: "torch.cholesky is deprecated".
TEST_F(CallTest, WarningsOfLibTorchGoToTheLog) {
  std::vector<std::string> lines;
  addend_context_options* options = nullptr;
  ExpectOk(addend_context_options_create(&options));
  ExpectOk(addend_context_options_set_log(
      options,
      [](void* payload, int32_t level, const char* message) {
        EXPECT_EQ(level, ADDEND_LOG_WARNING);
        static_cast<std::vector<std::string>*>(payload)->emplace_back(message);
      },
      &lines, nullptr));
  addend_context* context = nullptr;
  ExpectOk(addend_context_create(options, &context));
  addend_context_options_release(options);
  testing::internal::CaptureStderr();
  // LibTorch 1.13 and 2.14 have it, and warn once.
  const Tensor four = Tensor::Copy<double>({4}, {1, 1});
  Call("aten::triangular_solve", Arguments().Add(four).Add(four), Context(context));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("torch.triangular_solve is deprecated"));
}

// For a product of two numbers that both move from zero, the fair share is half of it each.
TEST_F(CallTest, ShapleyOfAProduct) {
  const Composition a = Composition::FromTensors(Tensor::Copy<double>({3, 0}, {2, 1}));
  const Composition b = Composition::FromTensors(Tensor::Copy<double>({0, 5}, {2, 1}));
  addend_composition* made = nullptr;
  ExpectOk(addend_call_shapley("aten::mul", Arguments().Add(a).Add(b).get(), &made));
  EXPECT_EQ(Numbers(Composition(made).components()), (std::vector<double>{7.5, 7.5}));
  ExpectNear(Numbers(Call("aten::mul", Arguments().Add(a).Add(b)).composition().components()), {7.5, 7.5}, 1e-12);
}

// ---- gradients

// sum(w * parts of tanh(x) * t), as a function of the parts of x.
double Weighted(const std::vector<double>& components, const std::vector<double>& reference,
                const std::vector<double>& weights) {
  const Composition x = Composition::FromTensors(Tensor::Copy(components, {2, 2, 3}), Tensor::Copy(reference, {2, 3}));
  const Composition y = Call("aten::mul", Arguments().Add(x).Add(x)).composition();
  const auto parts = Numbers(y.components());
  const auto rest = Numbers(y.reference());
  double sum = 0;
  for (size_t k = 0; k < parts.size(); ++k) sum += weights[k] * parts[k];
  for (size_t k = 0; k < rest.size(); ++k) sum += weights[parts.size() + k] * rest[k];
  return sum;
}

TEST_F(CallTest, GradientsThroughPartsAreThoseOfDifferences) {
  std::vector<double> weights(18);
  for (size_t k = 0; k < weights.size(); ++k) weights[k] = std::sin(static_cast<double>(k));
  const Composition x = Parts(/*in_graph=*/true);
  const Composition y = Call("aten::mul", Arguments().Add(x).Add(x)).composition();
  const Composition cotangent =
      Composition::FromTensors(Tensor::Copy(std::vector<double>(weights.begin(), weights.begin() + 12), {2, 2, 3}),
                               Tensor::Copy(std::vector<double>(weights.begin() + 12, weights.end()), {2, 3}));
  addend_composition* made = nullptr;
  ExpectOk(addend_composition_grad(y.get(), cotangent.get(), x.get(), &made));
  const Composition gradient(made);
  constexpr double kStep = 1e-6;
  std::vector<double> expected;
  for (size_t k = 0; k < 12; ++k) {
    std::vector<double> up = kComponents;
    std::vector<double> down = kComponents;
    up[k] += kStep;
    down[k] -= kStep;
    expected.push_back((Weighted(up, kReference, weights) - Weighted(down, kReference, weights)) / (2 * kStep));
  }
  ExpectNear(Numbers(gradient.components()), expected, 1e-7);
  expected.clear();
  for (size_t k = 0; k < 6; ++k) {
    std::vector<double> up = kReference;
    std::vector<double> down = kReference;
    up[k] += kStep;
    down[k] -= kStep;
    expected.push_back((Weighted(kComponents, up, weights) - Weighted(kComponents, down, weights)) / (2 * kStep));
  }
  ExpectNear(Numbers(gradient.reference()), expected, 1e-7);
  // Without a graph, or one that leads elsewhere, there is none.
  addend_composition* none = nullptr;
  EXPECT_EQ(Outcome(addend_composition_grad(y.get(), cotangent.get(), Parts().get(), &none)).code,
            ADDEND_FAILED_PRECONDITION);
  EXPECT_EQ(Outcome(addend_composition_grad(y.get(), cotangent.get(), Parts(true).get(), &none)).code,
            ADDEND_FAILED_PRECONDITION);
  EXPECT_EQ(Outcome(addend_composition_grad(Parts().get(), cotangent.get(), x.get(), &none)).code,
            ADDEND_FAILED_PRECONDITION);
}

// ---- compositions

TEST_F(CallTest, CompositionsAreMadeAndTakenApart) {
  const Tensor value = Tensor::Copy<double>({1, 2, 3, 4}, {2, 2});
  const Composition rows = Composition::Diagonal(value, {0}, Tensor::Copy<double>({0.5}, {1}));
  EXPECT_EQ(Numbers(rows.components()), (std::vector<double>{0.5, 1.5, 0, 0, 0, 0, 2.5, 3.5}));
  EXPECT_EQ(Numbers(rows.reference()), std::vector<double>(4, 0.5));
  addend_composition* made = nullptr;
  ExpectOk(addend_composition_from_labels(value.get(), Tensor::Copy<int64_t>({1, -1, 0, 1}, {2, 2}).get(), nullptr, -1,
                                          &made));
  const Composition labelled(made);
  EXPECT_EQ(Numbers(labelled.components()), (std::vector<double>{0, 0, 3, 0, 1, 0, 0, 4}));
  EXPECT_EQ(Numbers(labelled.reference()), (std::vector<double>{0, 2, 0, 0}));
  EXPECT_EQ(Numbers(labelled.recovery()), (std::vector<double>{1, 2, 3, 4}));
  const int64_t last[] = {-1};
  ExpectOk(addend_composition_select(labelled.get(), last, 1, 0, &made));
  const Composition one(made);
  EXPECT_EQ(Numbers(one.recovery()), (std::vector<double>{1, 0, 0, 4}));
  EXPECT_EQ(Numbers(labelled.component(0)), (std::vector<double>{0, 0, 3, 0}));
  addend_tensor* none = nullptr;
  EXPECT_EQ(Outcome(addend_composition_component(labelled.get(), 2, &none)).message,
            "index is 2, but there are 2 components");
  EXPECT_EQ(Outcome(addend_composition_part(labelled.get(), 6, &none)).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(one.ToString(),
            "composition 0:\ntensor([[1., 0.],\n        [0., 4.]], dtype=torch.float64)\n"
            "residual:\ntensor([[0., 0.],\n        [0., 0.]], dtype=torch.float64)");
  EXPECT_EQ(addend_composition_dtype(one.get()), ADDEND_FLOAT64);
  EXPECT_STREQ(addend_composition_device(one.get()), "cpu");
  const Explanation explanation = rows.Explain("1,1");
  EXPECT_EQ(explanation.value(), 4);
  EXPECT_EQ(explanation.reference(), 0.5);
  EXPECT_EQ(explanation.Top(1)[0].component, 1);
  EXPECT_EQ(explanation.Top(1)[0].name, "component 1");
  EXPECT_THAT(explanation.Html(), HasSubstr("</html>"));
  EXPECT_THAT(explanation.Svg(), HasSubstr("</svg>"));
}

TEST_F(CallTest, EveryRuleIsListedWithItsSchemas) {
  std::set<std::string> names;
  size_t with_schema = 0;
  for (size_t k = 0; k < addend_op_count(); ++k) {
    names.insert(addend_op_name(k));
    EXPECT_STRNE(addend_op_kind(k), "");
    with_schema += *addend_op_schema(k) != 0;
  }
  EXPECT_EQ(names.size(), addend_op_count());
  EXPECT_GT(names.size(), 300u);
  EXPECT_TRUE(names.count("aten::softmax"));
  // Some rules are for newer versions of LibTorch.
  EXPECT_GT(with_schema, names.size() * 9 / 10);
  EXPECT_EQ(addend_op_name(addend_op_count()), nullptr);
}

}  // namespace
}  // namespace addend::api
