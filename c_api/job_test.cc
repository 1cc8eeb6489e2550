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

}  // namespace
}  // namespace addend::api
