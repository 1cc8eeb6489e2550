// Splits that start inside a model, beside what plain PyTorch computes of its second half (the numbers of
// tests/conformance/models/heads.safetensors).
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "c_api/testing.h"

namespace addend::api {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kModels = "tests/conformance/models/";
const std::string kHeads = "aten::contiguous";

std::vector<double> Expected(const std::string& name) {
  return Numbers(TensorFile::Read(kModels + "heads.safetensors").tensor(name));
}

class InsideTest : public CApiTest {
 protected:
  Request Asked() const {
    Request request;
    request.Input(table_);
    return request;
  }
  Request Heads() const {
    Request request = Asked();
    request.Inside(kHeads).SplitAlong({1}).Baseline(baseline_);
    return request;
  }
  std::string Refused(const Request& request, int32_t code = ADDEND_INVALID_ARGUMENT) const {
    addend_results* results = nullptr;
    const Outcome forward(addend_model_decompose(nullptr, model_.get(), request.get(), &results));
    addend_attribution* attribution = nullptr;
    const Outcome back(addend_model_attribute(nullptr, model_.get(), request.get(), &attribution));
    EXPECT_EQ(forward.code, code) << forward.message;
    EXPECT_EQ(back.message, forward.message);
    EXPECT_EQ(results, nullptr);
    EXPECT_EQ(attribution, nullptr);
    return forward.message;
  }

  const Model model_ = Model::Load(kModels + "heads.pt", ADDEND_FLOAT64);
  const Tensor table_ = Tensor::Copy(Expected("table"), {4, 6});
  const Tensor baseline_ = Tensor::Copy(Expected("baseline"), {2, 3});
};

TEST_F(InsideTest, IsTheSecondHalfOfTheModel) {
  Request request = Heads();
  request.Name("left").Probe(kHeads);
  const Results results = model_.Decompose(request);
  const Composition output = results.composition();
  EXPECT_EQ(output.numc(), 2);
  ExpectNear(Numbers(output.value()), Expected("output"), 1e-6);
  ExpectNear(Numbers(output.reference()), Expected("reference"), 1e-6);
  ExpectNear(Numbers(output.components()), Expected("components"), 1e-6);
  ExpectNear(Numbers(output.leftover()), std::vector<double>(8), 1e-12);
  EXPECT_GT(std::abs(Expected("components")[0]), 0.01);
  // The tensor itself has its own elements as its parts.
  EXPECT_EQ(results.name(1), kHeads);
  ExpectNear(Numbers(results.tensor(1)), Expected("heads"), 1e-6);
  const Explanation explanation = results.Explain("0,1");
  EXPECT_STREQ(addend_explanation_name(explanation.get(), 0), "left");
  EXPECT_STREQ(addend_explanation_name(explanation.get(), 1), "position 1");
  const json inputs = json::parse(explanation.Json())["inputs"];
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_FALSE(inputs[0]["inside"]);
  EXPECT_EQ(inputs[0]["split"], "plain");
  EXPECT_TRUE(inputs[1]["inside"]);
  EXPECT_EQ(inputs[1]["name"], kHeads);
  EXPECT_EQ(inputs[1]["shape"], json({4, 2, 3}));
  EXPECT_EQ(inputs[1]["dtype"], "f64");
  EXPECT_EQ(inputs[1]["split"], "dim=1");
  EXPECT_EQ(inputs[1]["baseline"], "tensor");
  EXPECT_THAT(explanation.Html(), HasSubstr("</html>"));
}

TEST_F(InsideTest, IsAttributedElementByElement) {
  const std::vector<double> expected = Expected("elements");  // [2, 4, 2, 3]
  Request request = Heads();
  request.Target("2,0").Target("2,1");
  const Attribution found = model_.Attribute(request);
  const Results results = found.results();
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results.kind(1), ADDEND_RESULT_NONE);
  EXPECT_EQ(results.name(2), kHeads);
  const Tensor elements = found.input(1);
  EXPECT_EQ(elements.sizes(), (std::vector<int64_t>{2, 4, 2, 3}));
  // Rows do not look at each other any more: those of the others have nothing to do with it.
  std::vector<double> own(48);
  for (const size_t k : {12, 13, 14, 15, 16, 17, 36, 37, 38, 39, 40, 41}) own[k] = expected[k];
  ExpectNear(Numbers(elements), own, 1e-6);
  for (size_t target = 0; target < 2; ++target) {
    for (int64_t head = 0; head < 2; ++head) {
      EXPECT_NEAR(addend_explanation_contribution(found.Explain(target).get(), head),
                  Expected("components")[head * 8 + 4 + target], 1e-6);
    }
  }
  EXPECT_TRUE(json::parse(found.Json())["inputs"][1]["inside"]);
  // Each row has a target of its own.
  const Attribution rows = model_.Attribute(Heads().EachExample().Target("1"));
  EXPECT_EQ(rows.input(1).sizes(), (std::vector<int64_t>{4, 2, 3}));
  ExpectNear(Numbers(rows.input(1)), {expected.begin() + 24, expected.end()}, 1e-6);
}

TEST_F(InsideTest, SplitsAreThoseOfTheTensorInside) {
  const std::vector<double> elements = Expected("elements");
  // Added before the argument; dimensions count from the end; the same components as by label, one of them left out.
  Request neurons;
  neurons.Inside(kHeads).SplitAlong({-2, -1}).Baseline(baseline_).Input(table_, "table");
  const std::vector<double> six = Numbers(model_.Decompose(neurons).composition().components());
  Request labelled = Asked();
  labelled.Inside(kHeads).SplitByLabels(Tensor::Copy<int64_t>({0, 1, 2, 3, -1, 4}, {1, 2, 3})).Baseline(baseline_);
  const Composition five = model_.Decompose(labelled.FirstComponent(1)).composition();
  EXPECT_EQ(five.numc(), 6);
  ASSERT_EQ(six.size(), 6u * 8);
  for (size_t component = 0; component < 6; ++component) {
    for (size_t row = 0; row < 4; ++row) {
      for (size_t column = 0; column < 2; ++column) {
        EXPECT_NEAR(six[component * 8 + row * 2 + column], elements[column * 24 + row * 6 + component], 1e-6);
      }
    }
  }
  const std::vector<double> parts = Numbers(five.components());
  EXPECT_EQ(std::vector<double>(parts.begin(), parts.begin() + 8), std::vector<double>(8));
  // The element without label is the same in the reference, which changes the slopes of the others; they add up.
  ExpectNear(Numbers(five.recovery()), Expected("output"), 1e-6);
  ExpectNear(Numbers(five.leftover()), std::vector<double>(8), 1e-12);
}

TEST_F(InsideTest, ArgumentsMayBeNested) {
  const TensorFile file = TensorFile::Read(kModels + "structured.safetensors");
  Request request;
  for (const char* name : {"table", "memory", "keep", "drop", "step_0", "step_1"}) request.Input(file.tensor(name));
  request.Structure(R"([{"tuple": [{"tensor": 0}, {"tensor": 1}]}, {"dict": {"keep": {"tensor": 2}, "drop":
                       {"tensor": 3}}}, {"list": [{"tuple": [{"tensor": 4}, 2]}, {"tuple": [{"tensor": 5}, -1]}]},
                       0.5, null, "each"])");
  request.Inside("aten::softplus:0").SplitAlong({1}).Baseline(0.0);
  const Results results = Model::Load(kModels + "structured.pt").Decompose(request);
  ExpectNear(Numbers(results.tensor()), Numbers(file.tensor("output")), 1e-6);
  // output = (encoded * keep - ...) * 0.5
  const std::vector<double> encoded = Numbers(file.tensor("encoded"));
  const std::vector<double> keep = Numbers(file.tensor("keep"));
  const std::vector<double> parts = Numbers(results.composition().components());
  ASSERT_EQ(parts.size(), 3u * 6);
  for (size_t k = 0; k < parts.size(); ++k) {
    EXPECT_NEAR(parts[k], k / 6 == k % 3 ? encoded[k % 6] * keep[k % 6] / 2 : 0, 1e-6);
  }
}

TEST_F(InsideTest, OtherRunsTakeTheArgumentsAlone) {
  const Request request = Heads();
  ExpectNear(Numbers(model_.Run(request).tensor()), Expected("output"), 1e-6);
  EXPECT_EQ(json::parse(model_.Requirements(request))["unmet"], json::array());
  EXPECT_TRUE(json::parse(model_.CheckTrace(request))["ok"]);
  const Program program = model_.Record(request);
  ExpectNear(Numbers(program.Replay(request).tensor()), Expected("output"), 1e-6);
  // A program stands for the model here too.
  ExpectNear(Numbers(program.AsModel().Decompose(request).composition().components()), Expected("components"), 1e-6);
  addend_composition* composition = nullptr;
  const Outcome shapley(addend_model_shapley(model_.get(), request.get(), &composition));
  EXPECT_EQ(shapley.code, ADDEND_INVALID_ARGUMENT);
  EXPECT_THAT(shapley.message, HasSubstr("aten::contiguous is inside the model"));
}

TEST_F(InsideTest, TellsWhatDoesNotFit) {
  const auto inside = [&](const std::string& selector) {
    Request request = Asked();
    request.Target("0,0").Inside(selector);
    return request;
  };
  EXPECT_THAT(Refused(inside("nowhere").SplitAlong({1})), HasSubstr("nothing inside the model is called nowhere"));
  EXPECT_THAT(Refused(inside("aten::conv2d").SplitAlong({1})), HasSubstr("does not call aten::conv2d"));
  EXPECT_THAT(Refused(inside("aten::linear").SplitAlong({1})), HasSubstr("calls aten::linear 3 times"));
  EXPECT_THAT(Refused(inside(kHeads)), HasSubstr("aten::contiguous is inside the model: it is split along dimensions"));
  EXPECT_THAT(Refused(inside(kHeads).SplitIntoParts(table_)), HasSubstr("along dimensions or by labels"));
  EXPECT_THAT(Refused(inside(kHeads).SplitAlong({3})), HasSubstr("of shape f64[4, 2, 3] has no dimension 3"));
  EXPECT_THAT(Refused(inside(kHeads).SplitAlong({1, -2})), HasSubstr("names a dimension twice"));
  EXPECT_THAT(Refused(inside(kHeads).SplitByLabels(Tensor::Copy<int64_t>({0, 1}, {2}))), HasSubstr("labels of shape"));
  EXPECT_THAT(Refused(inside(kHeads).SplitAlong({1}).Baseline(table_)), HasSubstr("a baseline of shape f64[4, 6]"));
  EXPECT_THAT(Refused(inside(kHeads).SplitAlong({1}).Name("a").Name("b").Name("c")), HasSubstr("has 2 components"));
  Request both;
  both.Input(table_).SplitAlong({1}).Inside(kHeads).SplitAlong({1});
  EXPECT_THAT(Refused(both), HasSubstr("where a split starts inside, the arguments are plain"));
  EXPECT_THAT(Refused(Heads().Inside("aten::softmax").SplitAlong({0}), ADDEND_FAILED_PRECONDITION),
              HasSubstr("depends on another split already"));
  Request request = Heads();
  EXPECT_THAT(Outcome(addend_request_add_inside(request.get(), kHeads.c_str())).message, HasSubstr("already"));
  EXPECT_THAT(Outcome(addend_request_add_inside(request.get(), "")).message, HasSubstr("selector is empty"));
  EXPECT_EQ(Outcome(addend_request_add_inside(request.get(), nullptr)).code, ADDEND_INVALID_ARGUMENT);
  // A further example has no input yet that more could be said about.
  request.NextExample();
  const int64_t dims[] = {0};
  EXPECT_EQ(Outcome(addend_request_split_dims(request.get(), dims, 1)).code, ADDEND_FAILED_PRECONDITION);
}

}  // namespace
}  // namespace addend::api
