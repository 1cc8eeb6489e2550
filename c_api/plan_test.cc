// Plans through the C interface: what addend_model_attribute gives, or a refusal that says why.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "c_api/testing.h"

namespace addend::api {
namespace {

using testing::HasSubstr;

const std::string kModels = "tests/conformance/models/";

class PlanTest : public CApiTest {
 protected:
  Request Asked(const std::vector<double>& row) const {
    Request request;
    request.Input(Tensor::Copy(row, {2, 6})).SplitAlong({1}).Baseline(0.25).Target("0,1");
    return request;
  }
  std::vector<double> Row(const std::string& name) const {
    return Numbers(TensorFile::Read(kModels + "awkward.safetensors").tensor(name));
  }
  std::vector<double> Scaled(double factor) const {
    std::vector<double> row = Row("same_branch");
    for (double& number : row) number *= factor;
    return row;
  }
  std::string Refused(const Plan& plan, const Request& request, int32_t code) const {
    addend_attribution* attribution = nullptr;
    const Outcome outcome(addend_plan_attribute(plan.get(), request.get(), &attribution));
    EXPECT_EQ(attribution, nullptr);
    EXPECT_EQ(outcome.code, code) << outcome.message;
    return outcome.message;
  }

  const Model model_ = Model::Load(kModels + "awkward.pt", ADDEND_FLOAT64);
};

TEST_F(PlanTest, GivesTheSameBits) {
  const Plan plan = model_.MakePlan(Asked(Row("same_branch")));
  for (const double factor : {1.0, 0.5, 2.0}) {
    const Request request = Asked(Scaled(factor));
    const Attribution expected = model_.Attribute(request);
    const Attribution found = plan.Attribute(request);
    EXPECT_EQ(Numbers(found.input()), Numbers(expected.input()));
    EXPECT_EQ(Parts(found.Explain()), Parts(expected.Explain()));
    EXPECT_EQ(found.Explain().value(), expected.Explain().value());
    EXPECT_EQ(Parts(plan.Attribute(Tensor::Copy(Scaled(factor), {2, 6})).Explain()), Parts(expected.Explain()));
    EXPECT_EQ(found.Json().substr(0, 200), expected.Json().substr(0, 200));
  }
}

TEST_F(PlanTest, WritesIntoTheCallersMemory) {
  std::vector<double> row = Row("same_branch");
  std::vector<double> contributions(6);
  std::vector<double> sums(3);
  Request request;
  request.Input(Tensor::Wrap(row.data(), {2, 6})).SplitAlong({1}).Baseline(0.25).Target("0,1");
  const Plan plan = model_.MakePlan(request);
  const Tensor parts = Tensor::Wrap(contributions.data(), {1, 6});
  const Tensor more = Tensor::Wrap(sums.data(), {1, 3});
  for (const double factor : {1.0, 0.5}) {
    const std::vector<double> scaled = Scaled(factor);
    std::copy(scaled.begin(), scaled.end(), row.begin());  // the request sees it
    plan.AttributeInto(request, parts, more);
    const Explanation expected = model_.Attribute(Asked(Scaled(factor))).Explain();
    EXPECT_EQ(contributions, Parts(expected));
    EXPECT_EQ(sums, (std::vector<double>{expected.value(), expected.reference(), expected.leftover()}));
    std::fill(contributions.begin(), contributions.end(), 0);
    plan.AttributeInto(request, parts);
    EXPECT_EQ(contributions, Parts(expected));
  }
  const Tensor small = Tensor::Wrap(sums.data(), {1, 3});
  const Outcome outcome(addend_plan_attribute_into(plan.get(), request.get(), small.get(), nullptr));
  EXPECT_EQ(outcome.code, ADDEND_INVALID_ARGUMENT);
  EXPECT_THAT(outcome.message, HasSubstr("contributions is f64[1, 3]; it gets float64 numbers, 1 times 6"));
}

TEST_F(PlanTest, RefusesOtherSizesBranchesAndNumbers) {
  const Plan plan = model_.MakePlan(Asked(Row("same_branch")));
  Request other;
  other.Input(Tensor::Copy(std::vector<double>(18), {3, 6}));
  EXPECT_THAT(Refused(plan, other, ADDEND_INVALID_ARGUMENT), HasSubstr("f64[3, 6]; the plan is for f64[2, 6]"));
  EXPECT_THAT(Refused(plan, Asked(Row("other_branch")), ADDEND_FAILED_PRECONDITION),
              HasSubstr("the plan does not hold for this input"));
  EXPECT_THAT(Refused(plan, Asked(Scaled(NAN)), ADDEND_INVALID_ARGUMENT), HasSubstr("NaN or infinity"));
  Request none;
  EXPECT_THAT(Refused(plan, none, ADDEND_INVALID_ARGUMENT), HasSubstr("for 1 inputs, but 0 are given"));
}

// The weights of an exported program are read from its file while they are used.
TEST_F(PlanTest, AnExportedProgramWhoseFileIsWrittenIsRefused) {
  const std::string path = testing::TempDir() + "/written.pt2";
  const auto copy = [](const std::string& to) {
    std::ifstream from("docs/examples/models/breast_cancer/model.pt2", std::ios::binary);
    std::ofstream(to, std::ios::binary) << from.rdbuf();
  };
  copy(path);
  Request request;
  request.Input(Tensor::Copy(std::vector<float>(30, 0.5), {1, 30})).SplitAlong({1}).Baseline(0.0).Target("0");
  const Model model = Model::Load(path);
  const Plan plan = model.MakePlan(request);
  const std::vector<double> expected = Parts(model.Attribute(request).Explain());
  // Renamed into its place, another file does not matter.
  copy(path + ".new");
  ASSERT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
  EXPECT_EQ(Parts(model.Attribute(request).Explain()), expected);
  EXPECT_EQ(Parts(plan.Attribute(request).Explain()), expected);
  const Model other = Model::Load(path);
  const Plan planned = other.MakePlan(request);
  copy(path);
  constexpr char kWritten[] = "was written since the model was loaded";
  EXPECT_THAT(Refused(planned, request, ADDEND_FAILED_PRECONDITION), HasSubstr(kWritten));
  addend_attribution* attribution = nullptr;
  const Outcome outcome(addend_model_attribute(nullptr, other.get(), request.get(), &attribution));
  EXPECT_EQ(outcome.code, ADDEND_FAILED_PRECONDITION);
  EXPECT_THAT(outcome.message, HasSubstr(kWritten));
}

TEST_F(PlanTest, RefusesWhatCannotBePlanned) {
  Request limited = Asked(Row("same_branch"));
  limited.Memory(1000);
  addend_plan* plan = nullptr;
  const Outcome outcome(addend_model_plan(nullptr, model_.get(), limited.get(), &plan));
  EXPECT_EQ(outcome.code, ADDEND_INVALID_ARGUMENT);
  EXPECT_THAT(outcome.message, HasSubstr("memory limit"));
  EXPECT_EQ(plan, nullptr);
}

// A plan keeps what the model is given beside its inputs, and how these make up its arguments.
TEST_F(PlanTest, KeepsTheStructureOfItsArguments) {
  const Model model = Model::Load(kModels + "structured.pt");
  const TensorFile file = TensorFile::Read(kModels + "structured.safetensors");
  const auto asked = [&](const std::vector<std::string>& names, const std::string& structure) {
    Request request;
    for (const std::string& name : names) {
      request.Input(file.tensor(name));
      if (name == "table" || name == "step_0") request.SplitAlong({1}).Baseline(0.25);
    }
    if (!structure.empty()) request.Structure(structure);
    request.Target("1");
    return request;
  };
  const std::vector<std::string> names = {"table", "memory", "keep", "drop", "step_0", "step_1"};
  const std::string pair = R"({"tuple": [{"tensor": 0}, {"tensor": 1}]})";
  const std::string masks = R"({"dict": {"keep": {"tensor": 2}, "drop": {"tensor": 3}}})";
  const std::string steps = R"({"list": [{"tuple": [{"tensor": 4}, 2]}, {"tuple": [{"tensor": 5}, -1]}]})";
  const auto listed = [](const std::vector<std::string>& arguments) {
    std::string text;
    for (const std::string& argument : arguments) text += (text.empty() ? "[" : ", ") + argument;
    return text + "]";
  };
  const Request request = asked(names, listed({pair, masks, steps, "0.5"}));
  const Plan plan = model.MakePlan(request);
  const std::vector<double> expected = Parts(model.Attribute(request).Explain());
  EXPECT_EQ(Parts(plan.Attribute(request).Explain()), expected);
  // Arguments by name, and inputs in another order.
  const std::string turned =
      R"({"scale": 0.5, "steps": {"list": [{"tuple": [{"tensor": 1}, 2]}, {"tuple": [{"tensor": 0},
      -1]}]}, "masks": {"dict": {"keep": {"tensor": 2}, "drop": {"tensor": 3}}}, "pair": {"tuple": [{"tensor": 5},
      {"tensor": 4}]}})";
  const Request by_name = asked({"step_1", "step_0", "keep", "drop", "memory", "table"}, turned);
  EXPECT_EQ(Parts(plan.Attribute(by_name).Explain()), expected);
  // Components are numbered as the model's arguments hold them, whichever the caller names first.
  EXPECT_EQ(Parts(model.Attribute(by_name).Explain()), expected);
  EXPECT_EQ(Parts(model.MakePlan(by_name).Attribute(request).Explain()), expected);
  const auto refuses = [&](const Plan& by, const std::vector<std::string>& given, const std::string& structure,
                           const std::string& why) {
    EXPECT_THAT(Refused(by, asked(given, structure), ADDEND_INVALID_ARGUMENT), HasSubstr(why)) << structure;
  };
  refuses(plan, names, listed({pair, masks, steps, "0.25"}), "argument scale is 0.25; the plan was made with 0.5");
  refuses(plan, names, listed({pair, masks, steps}), "argument scale is missing, which the plan was made with");
  refuses(plan, names, listed({pair, masks, steps, "0.5", "null", "true"}),
          "argument bias is none that the plan was made with");
  refuses(plan, names,
          listed({pair, masks, R"({"list": [{"tuple": [{"tensor": 4}, 3]}, {"tuple": [{"tensor": 5}, -1]}]})", "0.5"}),
          "argument steps[0][1] is 3; the plan was made with 2");
  refuses(plan, names, listed({pair, R"({"dict": {"keep": {"tensor": 2}, "other": {"tensor": 3}}})", steps, "0.5"}),
          "argument masks is {\"keep\": Tensor, \"other\": Tensor}; the plan was made with");
  refuses(plan, names, listed({pair, R"({"dict": {"drop": {"tensor": 3}, "keep": {"tensor": 2}}})", steps, "0.5"}),
          "with the keys in this order");
  refuses(plan, names, listed({R"({"list": [{"tensor": 0}, {"tensor": 1}]})", masks, steps, "0.5"}),
          "argument pair is [Tensor, Tensor]; the plan was made with (Tensor, Tensor)");
  refuses(plan, names, R"({"pair": {"tensor": 0}, "nothing": {"tuple": [{"tensor": 1}, {"tensor": 2}, {"tensor": 3},
      {"tensor": 4}, {"tensor": 5}]}})",
          "the model has no argument nothing");
  refuses(plan, {"table"}, "", "argument pair is Tensor; the plan was made with (Tensor, Tensor)");
  const Plan flat = model_.MakePlan(Asked(Row("same_branch")));
  Request more = Asked(Row("same_branch"));
  more.Structure(R"([{"tensor": 0}, 3])");
  EXPECT_THAT(Refused(flat, more, ADDEND_INVALID_ARGUMENT), HasSubstr("is none that the plan was made with"));
  more.Structure(R"([{"tensor": 0}])");
  EXPECT_EQ(Parts(flat.Attribute(more).Explain()), Parts(flat.Attribute(Asked(Row("same_branch"))).Explain()));
}

TEST_F(PlanTest, WritesIntoNothingButTheCallersMemory) {
  const Request request = Asked(Row("same_branch"));
  const Plan plan = model_.MakePlan(request);
  const auto refuses = [&](const Tensor& contributions) {
    const std::vector<double> before = Numbers(contributions);
    const Outcome outcome(addend_plan_attribute_into(plan.get(), request.get(), contributions.get(), nullptr));
    EXPECT_EQ(outcome.code, ADDEND_INVALID_ARGUMENT);
    EXPECT_THAT(outcome.message, HasSubstr("contributions is no memory of the caller's that may be written"));
    EXPECT_EQ(Numbers(contributions), before);
  };
  refuses(Tensor::Copy(std::vector<double>(6), {1, 6}));
  const Attribution other = plan.Attribute(Asked(Scaled(0.5)));
  refuses(other.input());  // float64 [2, 6]
  for (const uint32_t version : {0u, 1u}) {
    void* managed = nullptr;
    int32_t is_versioned = 0;
    ExpectOk(addend_tensor_to_dlpack(other.input().get(), version, &managed, &is_versioned));
    addend_tensor* again = nullptr;
    ExpectOk(addend_tensor_from_dlpack(managed, is_versioned, &again));
    refuses(Tensor(again));
  }
}

TEST_F(PlanTest, OutlivesItsModelAndServesThreads) {
  Plan plan = [] {
    Request request;
    request.Input(TensorFile::Read(kDigitsSample).tensor("input")).SplitAlong({2, 3}).Baseline(0.0);
    return Model::Load("docs/examples/models/digits/model.pt2").MakePlan(request);
  }();
  const std::vector<double> expected = Parts(plan.Attribute(DigitRequest()).Explain());
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        EXPECT_EQ(Parts(plan.Attribute(DigitRequest()).Explain()), expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace addend::api
