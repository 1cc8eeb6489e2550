// Jobs through the C interface: what threads compute is what one attribution of each row gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "c_api/testing.h"

namespace addend::api {
namespace {

using testing::HasSubstr;

constexpr char kModel[] = "docs/examples/models/breast_cancer/model.pt";
constexpr char kRows[] = "docs/examples/models/breast_cancer/heldout.safetensors";

using JobTest = CApiTest;

TEST_F(JobTest, ThreadsComputeShardsOfOneJob) {
  const std::string plan = testing::TempDir() + "/threads.json";
  const Tensor rows = TensorFile::Read(kRows).tensor("input");
  const int64_t columns = rows.sizes()[1];
  const std::vector<float> all = rows.To<float>();
  const auto asked = [&](int64_t number) {
    const auto begin = all.begin() + number * columns;
    Request request;
    request.Input(Tensor::Copy(std::vector<float>(begin, begin + columns), {1, columns}));
    request.SplitAlong({1}).Baseline(0.0).Target("0");
    return request;
  };
  const std::string made =
      Job::Plan(plan, kModel, asked(0), std::string("{\"inputs\": [\"") + kRows + "\"], \"shards\": 6, \"batch\": 16}");
  EXPECT_THAT(made, HasSubstr("addend.job_made"));
  const auto count = static_cast<int64_t>(Job(plan).NumShards());
  ASSERT_GT(count, 2);
  std::vector<std::thread> threads;
  for (int64_t own = 0; own < 2; ++own) {
    threads.emplace_back([&, own] {
      const Job job(plan);
      for (int64_t shard = own; shard < count; shard += 2) EXPECT_THAT(job.Run(shard), HasSubstr("addend.shard"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Job::Status(plan), HasSubstr("\"missing\":[]"));
  EXPECT_THAT(Job::Merge(plan), HasSubstr("addend.job_merged"));
  const TensorFile merged = TensorFile::Read(testing::TempDir() + "/threads.out/merged.safetensors");
  const std::vector<double> contributions = merged.tensor("contributions").To<double>();
  for (const int64_t number : {0, 17, 100}) {
    const Explanation alone = Model::Load(kModel).Attribute(asked(number)).Explain();
    std::vector<double> own(alone.numc());
    for (const auto& one : alone.Top(alone.numc())) own[one.component] = one.value;
    double mass = 0;
    for (const double part : own) mass += std::abs(part);
    for (size_t c = 0; c < own.size(); ++c) {
      EXPECT_NEAR(contributions[static_cast<size_t>(number) * own.size() + c], own[c], 1e-5 * mass);
    }
  }
}

// relu(relu(a) - 1 - relu(b)), whose arguments the request names in the other order.
TEST_F(JobTest, InputsAreFoundByName) {
  const std::string folder = testing::TempDir();
  const std::string model = "tests/conformance/models/oracle_difference.pt";
  const std::vector<float> a = {4, 5, 6, 7, 8, 9};
  const std::vector<float> b = {1, 2, 1.5, 1, 0.5, 0.25};
  TensorFile::Create().Add("x", Tensor::Copy(a, {3, 2})).Write(folder + "/named_a.safetensors");
  TensorFile::Create().Add("x", Tensor::Copy(b, {3, 2})).Write(folder + "/named_b.safetensors");
  const std::string options =
      "{\"inputs\": [\"" + folder + "/named_a.safetensors#x\", \"" + folder + "/named_b.safetensors#x\"]}";
  const auto row = [](const std::vector<float>& rows, size_t number) {
    return Tensor::Copy(std::vector<float>(rows.begin() + 2 * number, rows.begin() + 2 * number + 2), {1, 2});
  };
  const auto asked = [&](size_t number, const std::string& first, const std::string& second) {
    Request request;
    request.Input(row(b, number), first).SplitAlong({1}).Baseline(0.125);
    request.Input(row(a, number), second).SplitAlong({1}).Baseline(3.0).Target("0");
    return request;
  };
  const std::string plan = folder + "/named.json";
  Job::Plan(plan, model, asked(0, "b", "a"), options);
  EXPECT_THAT(Job(plan).Run(0), HasSubstr("addend.shard"));
  Job::Merge(plan);
  const TensorFile merged = TensorFile::Read(folder + "/named.out/merged.safetensors");
  const std::vector<double> found = merged.tensor("contributions").To<double>();
  for (size_t number = 0; number < 3; ++number) {
    // Expected by hand: element 0 of each moves, on the way from (3, 0.125) to (a, b), where every relu is open.
    const std::vector<double> expected = {a[2 * number] - 3.0, 0, 0.125 - b[2 * number], 0};
    for (size_t c = 0; c < 4; ++c) EXPECT_NEAR(found[4 * number + c], expected[c], 1e-6) << number << " " << c;
  }
  addend_string* made = nullptr;
  const Outcome outcome(
      addend_job_plan(nullptr, plan.c_str(), model.c_str(), asked(0, "b", "c").get(), options.c_str(), &made));
  EXPECT_EQ(outcome.code, ADDEND_INVALID_ARGUMENT);
  EXPECT_THAT(outcome.message, HasSubstr("the model has no input c; it has a, b"));
}

}  // namespace
}  // namespace addend::api
