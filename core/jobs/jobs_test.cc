// Laws of jobs: the result of a data set does not depend on who computes what, when and how often; nothing is lost,
// doubled or changed unnoticed.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/audit/canonical_json.h"
#include "core/base/error_testing.h"
#include "core/jobs/commit.h"
#include "core/jobs/job_runner.h"
#include "core/jobs/make_plan.h"
#include "core/jobs/merge.h"
#include "core/load/load_model.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kModel[] = "docs/examples/models/breast_cancer/model.pt";
constexpr char kRows[] = "docs/examples/models/breast_cancer/heldout.safetensors";
constexpr char kBaseline[] = "docs/examples/models/breast_cancer/baseline.npy";

const Writer kWriter = {"0.0", "", "0.0"};

class JobsTest : public testing::Test {
 protected:
  JobsTest() {
    std::string folder = testing::TempDir() + "/jobXXXXXX";
    if (::mkdtemp(&folder[0]) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = folder;
    plan_path_ = folder_ + "/plan.json";
    rows_ = SelectTensor(ReadTensorFile(kRows), {kRows, ""}, {"input"}).second.narrow(0, 0, 90).clone();
    model_path_ = fs::absolute(kModel);
  }
  ~JobsTest() override { fs::remove_all(folder_); }

  std::string DataPath() const { return folder_ + "/rows.safetensors"; }
  void WriteRows() const {
    TensorFile file;
    file.tensors.emplace_back("input", rows_);
    WriteTensorFile(DataPath(), file);
  }

  JobDraft Draft(int64_t shards, int64_t batch = 8) const {
    JobDraft draft;
    draft.plan_path = plan_path_;
    draft.source = OpenTensorRows({{DataPath(), ""}});
    draft.model = model_path_;
    Input input;
    input.name = "x";
    input.split = Split::AlongDims({1});
    input.baseline = Baseline::Of(ReadTensorFile(kBaseline).tensors[0].second);
    draft.request.inputs = {input};
    draft.request.options.targets = {ParseTarget("top1")};
    draft.batch = batch;
    draft.shards = shards;
    return draft;
  }
  void WritePlan(JobDraft draft) const { Write(MakeJobPlan(std::move(draft), kWriter).plan); }
  void Write(const JobPlan& plan) const { WriteFileWhole(plan_path_, Dump(JobPlanJson(plan), 1)); }
  void Plan(int64_t shards, int64_t batch = 8) const {
    WriteRows();
    WritePlan(Draft(shards, batch));
  }
  JobPlan Read() const { return ReadJobPlan(ReadFileWhole(plan_path_), plan_path_); }
  JobRunner Worker() const { return JobRunner(plan_path_, nullptr, kWriter); }
  MergedJob RunAll() const {
    JobRunner worker = Worker();
    for (int64_t shard = 0; shard < worker.plan().shards(); ++shard) worker.Run(shard);
    return MergeJob(worker.plan(), plan_path_);
  }
  std::string Results() const { return ResultsFolder(plan_path_); }
  void ForgetResults() const { fs::remove_all(Results()); }

  // The attribution of one row alone, by the way that knows nothing of jobs.
  Contributions Alone(int64_t row) const {
    Input input = Draft(1).request.inputs[0];
    input.value = rows_.narrow(0, row, 1);
    input.baseline.tensor = input.baseline.tensor.reshape({1, -1});
    AttributeOptions options;
    return Attribute(TracedModel(LoadModel(kModel)), {input}, options).targets[0];
  }

  std::string folder_;
  std::string plan_path_;
  std::string model_path_;
  at::Tensor rows_;
};

TEST_F(JobsTest, EveryRowIsAttributedOnce) {
  Plan(3);
  const MergedJob merged = RunAll();
  EXPECT_EQ(merged.rows, 90);
  EXPECT_EQ(merged.refused.size(), 0);
  const TensorFile file = ReadTensorFile(merged.path);
  const at::Tensor& contributions = *file.Find("contributions");
  const at::Tensor& value = *file.Find("value");
  ASSERT_EQ(contributions.sizes(), at::IntArrayRef({90, 30}));
  for (const int64_t row : {0, 7, 8, 31, 32, 89}) {
    const Contributions alone = Alone(row);
    EXPECT_NEAR(value[row].item<double>(), alone.value, 1e-4 * std::abs(alone.value));
    EXPECT_EQ((*file.Find("target"))[row].item<int64_t>(), alone.target.index.back());
    for (int64_t c = 0; c < 30; ++c) {
      EXPECT_NEAR(contributions[row][c].item<double>(), alone.contributions[static_cast<size_t>(c)], 1e-4 * alone.mass);
    }
  }
  // The sum of each row.
  const at::Tensor sums = contributions.sum({1}) + *file.Find("reference") + *file.Find("leftover");
  EXPECT_TRUE(at::allclose(sums, value, 1e-6, 1e-6));
  EXPECT_EQ(merged.aggregates[0].rows(), 90);
  // Float32 rounds, and more would have been an error.
  EXPECT_GT(merged.aggregates[0].worst_recovery_error(), 1e-9);
  EXPECT_LT(merged.aggregates[0].worst_recovery_error(), 1e-4);
  EXPECT_NEAR(merged.aggregates[0].components()[3].sum, contributions.select(1, 3).sum().item<double>(), 1e-9);
}

TEST_F(JobsTest, ShardsAreBoundedByTimeAndByBytes) {
  // All rows take no ten seconds.
  Plan(0);
  EXPECT_EQ(Read().shards(), 1);
  // A row has 30 inputs of 4 bytes, 30 contributions and 4 numbers beside them of 8 bytes: 22 rows, of which the
  // multiple of 8 is 24.
  JobDraft draft = Draft(0);
  draft.shard_bytes = 22.5 * (8 * 34 + 4 * 30);
  WritePlan(std::move(draft));
  EXPECT_EQ(Read().shard_rows, 24);
  // Without contributions there are more.
  draft = Draft(0);
  draft.shard_bytes = 90 * (8 * 4 + 4 * 30);
  draft.contributions = false;
  draft.concepts = R"({"format": "addend.concepts", "version": 1})";
  WritePlan(std::move(draft));
  EXPECT_EQ(Read().shards(), 1);
}

TEST_F(JobsTest, ShardsAndOrderChangeNoBit) {
  Plan(1);
  const std::string single = RunAll().sha256;
  for (const int64_t shards : {2, 3, 12, 100}) {
    ForgetResults();
    Plan(shards);
    JobRunner worker = Worker();
    const int64_t count = worker.plan().shards();
    EXPECT_EQ(count, std::min<int64_t>(shards, 12));
    // From behind, some of them twice, each by a worker of its own.
    for (int64_t shard = count - 1; shard >= 0; --shard) {
      worker.Run(shard);
      if (shard % 2 == 0) Worker().Run(shard, /*again=*/true);
    }
    EXPECT_EQ(MergeJob(worker.plan(), plan_path_).sha256, single);
    EXPECT_EQ(FindCommitted(Results()).size(), static_cast<size_t>(count));
  }
}

TEST_F(JobsTest, AFinishedShardIsNotComputedAgain) {
  Plan(3);
  const Json first = Worker().Run(1);
  const Json second = Worker().Run(1);
  EXPECT_EQ(first, second);  // seconds and process too: it is the receipt that was there
  EXPECT_EQ(StatusOfJob(Read(), plan_path_).missing, (std::vector<int64_t>{0, 2}));
}

TEST_F(JobsTest, StatusTellsWhatIsDone) {
  Plan(3);
  JobStatus status = StatusOfJob(Read(), plan_path_);
  EXPECT_EQ(status.done, 0);
  EXPECT_LT(status.seconds_left(), 0);
  Worker().Run(0);
  status = StatusOfJob(Read(), plan_path_);
  EXPECT_EQ(status.done, 1);
  EXPECT_EQ(status.rows_done, 32);
  EXPECT_GT(status.seconds_left(), 0);
  EXPECT_FALSE(status.merged);
  RunAll();
  EXPECT_TRUE(StatusOfJob(Read(), plan_path_).merged);
}

TEST_F(JobsTest, BadRowsAreListedAndTheOthersStay) {
  WriteRows();
  const at::Tensor good = rows_.clone();
  rows_[5][3] = std::numeric_limits<float>::quiet_NaN();
  rows_[40][29] = std::numeric_limits<float>::infinity();
  Plan(3);
  const MergedJob merged = RunAll();
  ASSERT_EQ(merged.refused.size(), 2);
  EXPECT_EQ(merged.refused[0]["row"], 5);
  EXPECT_THAT(merged.refused[0]["reason"].get<std::string>(), HasSubstr("element [3] of x is no finite number"));
  EXPECT_EQ(merged.refused[1]["row"], 40);
  EXPECT_EQ(merged.rows, 90);
  EXPECT_EQ(merged.aggregates[0].rows(), 88);
  EXPECT_EQ(merged.aggregates[0].refused(), 2);
  const TensorFile file = ReadTensorFile(merged.path);
  EXPECT_EQ((*file.Find("refused"))[5].item<int64_t>(), 1);
  EXPECT_TRUE(std::isnan((*file.Find("value"))[5].item<double>()));
  EXPECT_TRUE((*file.Find("contributions"))[40].isnan().all().item<bool>());
  rows_ = good;
  for (const int64_t row : {4, 6, 41}) {
    const Contributions alone = Alone(row);
    EXPECT_NEAR((*file.Find("value"))[row].item<double>(), alone.value, 1e-4 * std::abs(alone.value));
  }
}

TEST_F(JobsTest, ABadRowEndsItsShardWhereThatIsAskedFor) {
  rows_[40][0] = std::numeric_limits<float>::quiet_NaN();
  WriteRows();
  JobDraft draft = Draft(3);
  draft.stop_at_refusal = true;
  WritePlan(std::move(draft));
  JobRunner worker = Worker();
  worker.Run(0);
  ExpectError(absl::StatusCode::kInvalidArgument, {"row 40 is refused", "element [0] of x"}, [&] { worker.Run(1); });
  EXPECT_EQ(StatusOfJob(Read(), plan_path_).done, 1);
}

TEST_F(JobsTest, ChangedRowsAreRefused) {
  Plan(3);
  rows_[50][2] += 1;
  WriteRows();
  JobRunner worker = Worker();
  worker.Run(0);
  worker.Run(2);
  ExpectError(absl::StatusCode::kFailedPrecondition, {"rows 32 to 63 are not those that the plan was made for"},
              [&] { worker.Run(1); });
}

TEST_F(JobsTest, AChangedFirstBatchEndsEveryShard) {
  Plan(3);
  rows_[1][2] += 1;
  WriteRows();
  JobRunner worker = Worker();
  ExpectError(absl::StatusCode::kFailedPrecondition, {"the first rows of the data set are not those"},
              [&] { worker.Run(2); });
}

TEST_F(JobsTest, AVanishedInputIsNamed) {
  Plan(3);
  JobRunner worker = Worker();
  fs::remove(DataPath());
  ExpectError(absl::StatusCode::kNotFound, {"rows.safetensors"}, [&] { worker.Run(0); });
}

TEST_F(JobsTest, OtherModelsAndEnvironmentsAreRefusedWithBoth) {
  Plan(3);
  JobPlan other = Read();
  other.model_sha256[0] = other.model_sha256[0] == 'a' ? 'b' : 'a';
  Write(other);
  ExpectError(absl::StatusCode::kFailedPrecondition, {"is not the model", Read().model_sha256}, [&] { Worker(); });
  Plan(3);
  other = Read();
  other.libtorch["threads"] = 77;
  other.libtorch["blas"] = "another one";
  Write(other);
  ExpectError(absl::StatusCode::kFailedPrecondition, {"threads: 77 then, ", "BLAS: another one then, "},
              [&] { Worker(); });
}

TEST_F(JobsTest, PathsOfAPlanFollowLinksUnderItsFolderByName) {
  const fs::path before = fs::current_path();
  fs::create_directories(folder_ + "/plans");
  fs::create_directories(folder_ + "/store/deep");
  fs::create_directory_symlink(folder_ + "/store/deep", folder_ + "/plans/data");
  fs::create_symlink(folder_ + "/store/deep/rows.npy", folder_ + "/plans/rows.npy");
  fs::current_path(folder_);
  EXPECT_EQ(ToPlan("plans/plan.json", "plans/rows.npy"), "rows.npy");
  EXPECT_EQ(ToPlan("plans/plan.json", "plans/data/rows.npy"), "data/rows.npy");
  EXPECT_EQ(ToPlan("plans/plan.json", "./plans/data/rows.npy"), "data/rows.npy");
  EXPECT_EQ(ToPlan(folder_ + "/plans/plan.json", "plans/rows.npy"), "rows.npy");
  EXPECT_EQ(ToPlan("plan.json", "store/rows.npy"), "store/rows.npy");
  EXPECT_EQ(ToPlan("plans/plan.json", "store/rows.npy"), "../store/rows.npy");
  // Beside the folder that a link leads to.
  EXPECT_EQ(ToPlan("plans/data/plan.json", "store/rows.npy"), "../rows.npy");
  EXPECT_EQ(ToPlan("plan.json", "plans/data/../rows.npy"), "store/rows.npy");
  EXPECT_EQ(ToPlan("plan.json", "/elsewhere/rows.npy"), "/elsewhere/rows.npy");
  ExpectError(absl::StatusCode::kInvalidArgument, {"not UTF-8"}, [] { ToPlan("plan.json", "r\xf6ws.npy"); });
  fs::current_path(before);
}

TEST(ShardRowsTest, AreMultiplesOfTheBatchForAnyNumbers) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(ShardRows(90, 8, 3), 32);
  EXPECT_EQ(ShardRows(90, 8, 100), 8);
  EXPECT_EQ(ShardRows(90, 8, int64_t{1} << 62), 8);
  EXPECT_EQ(ShardRows(90, 8, kMost), 8);
  EXPECT_EQ(ShardRows(kMost, kMostBatch, kMost), kMostBatch);
  EXPECT_EQ(ShardRows(1, kMostBatch, 1), kMostBatch);
}

TEST_F(JobsTest, PlansThatLackSomethingAreNoPlans) {
  Plan(3);
  const auto refuses = [&](const std::string& part, const std::function<void(Json&)>& change) {
    Json json = JobPlanJson(Read());
    change(json);
    json["sha256"] = Sha256Without(json, "sha256");
    ExpectError(absl::StatusCode::kInvalidArgument, {"x.json", part}, [&] { ReadJobPlan(json.dump(), "x.json"); });
  };
  refuses("a newer version", [](Json& json) { json["version"] = 2; });
  refuses("no version", [](Json& json) { json["version"] = 0; });
  refuses("no version", [](Json& json) { json["version"] = -1; });
  refuses("lacks something", [](Json& json) { json["libtorch"].erase("device"); });
  refuses("lacks something", [](Json& json) { json["libtorch"].erase("threads"); });
}

TEST_F(JobsTest, APlanThatWasEditedIsRefused) {
  Plan(3);
  std::string text = ReadFileWhole(plan_path_);
  text.replace(text.find("\"rows\": 90"), 10, "\"rows\": 91");
  WriteFileWhole(plan_path_, text);
  ExpectError(absl::StatusCode::kInvalidArgument, {"was changed since it was written"}, [&] { Read(); });
  ExpectError(absl::StatusCode::kInvalidArgument, {"is no plan of a job"}, [&] { ReadJobPlan("{}", "x.json"); });
}

TEST_F(JobsTest, EveryFlippedBitOfAResultIsFound) {
  Plan(3);
  RunAll();
  const CommittedShards committed = FindCommitted(Results());
  const std::string path = committed.at(1)[0].path;
  const std::string bytes = ReadFileWhole(path);
  for (size_t at = 0; at < bytes.size(); at += 997) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    WriteFileWhole(path, flipped);
    ExpectError(absl::StatusCode::kFailedPrecondition, {path, "damaged"}, [&] { MergeJob(Read(), plan_path_); });
  }
  WriteFileWhole(path, bytes.substr(0, bytes.size() / 2));  // a torn file
  ExpectError(absl::StatusCode::kFailedPrecondition, {path, "damaged"}, [&] { MergeJob(Read(), plan_path_); });
  WriteFileWhole(path, bytes);
  MergeJob(Read(), plan_path_);

  const std::string receipt = ReadFileWhole(committed.at(2)[0].receipt);
  for (size_t at = 0; at + 1 < receipt.size(); at += 499) {
    std::string flipped = receipt;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    WriteFileWhole(committed.at(2)[0].receipt, flipped);
    EXPECT_EQ(StatusOfJob(Read(), plan_path_).wrong.size(), 1) << at;
    EXPECT_THROW(MergeJob(Read(), plan_path_), Error) << at;
  }
}

TEST_F(JobsTest, TwoResultsOfOneShardNameBothMachines) {
  Plan(3);
  RunAll();
  const CommittedShard own = FindCommitted(Results()).at(1)[0];
  Json receipt = ReadReceipt(own.receipt);
  receipt["run"]["machine"] = "elsewhere";
  CommitShard(Results(), 1, ReadFileWhole(own.path) + "x", "safetensors", receipt);
  const std::string machine = ReadReceipt(own.receipt)["run"]["machine"];
  ExpectError(absl::StatusCode::kFailedPrecondition,
              {"shard 1 has different results", "elsewhere", machine, own.sha256},
              [&] { MergeJob(Read(), plan_path_); });
  EXPECT_EQ(StatusOfJob(Read(), plan_path_).wrong.size(), 1);
}

TEST_F(JobsTest, ResultsOfAnotherPlanAreNotTakenForOnesOwn) {
  Plan(3);
  RunAll();
  const JobPlan before = Read();
  SaveJobPlan(before, plan_path_);  // the same plan may be written again
  rows_[50][2] += 1;
  WriteRows();
  JobPlan other = MakeJobPlan(Draft(3), kWriter).plan;
  const std::vector<std::string> parts = {Results(), "another plan", "remove that folder", "another path"};
  ExpectError(absl::StatusCode::kFailedPrecondition, parts, [&] { SaveJobPlan(other, plan_path_); });
  EXPECT_EQ(Sha256OfPlan(Read()), Sha256OfPlan(before));
  // The plan is written all the same, as by hand.
  Write(other);
  JobStatus status = StatusOfJob(other, plan_path_);
  EXPECT_EQ(status.done, 0);
  EXPECT_EQ(status.wrong.size(), 3);
  EXPECT_FALSE(status.merged);
  for (const bool again : {false, true}) {
    ExpectError(absl::StatusCode::kFailedPrecondition, parts, [&] { Worker().Run(0, again); });
  }
  // A shard of this plan among the others.
  const CommittedShard own = FindCommitted(Results()).at(1)[0];
  Json receipt = ReadReceipt(own.receipt);
  ForgetResults();
  Worker().Run(0);
  CommitShard(Results(), 1, "x", "safetensors", receipt);
  ExpectError(absl::StatusCode::kFailedPrecondition, {"00001.", "another plan"}, [&] { Worker().Run(1); });
  ForgetResults();
  RunAll();
  EXPECT_TRUE(StatusOfJob(other, plan_path_).merged);
}

TEST_F(JobsTest, MergingTwiceAtOnceDamagesNothing) {
  Plan(3);
  const std::string single = RunAll().sha256;
  const JobPlan plan = Read();
  // One merges while another is between two shards, again and again.
  int depth = 0;
  const MergedJob merged = MergeJob(plan, plan_path_, [&](int64_t, int64_t) {
    if (depth++ == 0) MergeJob(plan, plan_path_);
  });
  EXPECT_EQ(merged.sha256, single);
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        try {
          if (MergeJob(plan, plan_path_).sha256 != single) ++failures;
        } catch (const Error&) {
          ++failures;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(Sha256OfFile(merged.path), single);
  EXPECT_EQ(ReadMergedJob(plan, plan_path_).sha256, single);
  EXPECT_EQ(StatusOfJob(plan, plan_path_).attempts, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(Results()), fs::directory_iterator()), 5);
}

TEST_F(JobsTest, AMergeThatFailsLeavesNothingBehind) {
  Plan(3);
  RunAll();
  // A shard that holds fewer rows than its receipt says.
  const CommittedShard own = FindCommitted(Results()).at(2)[0];
  TensorFile file = ReadTensorFile(own.path);
  for (auto& [name, tensor] : file.tensors) tensor = tensor.narrow(0, 0, 3).contiguous();
  const Json receipt = ReadReceipt(own.receipt);
  fs::remove(own.path);
  CommitShard(Results(), 2, EncodeSafetensors(file), "safetensors", receipt);
  ExpectError(absl::StatusCode::kFailedPrecondition, {"shards hold 67 rows", "the plan has 90"},
              [&] { MergeJob(Read(), plan_path_); });
  EXPECT_EQ(StatusOfJob(Read(), plan_path_).attempts, 0);
  EXPECT_FALSE(StatusOfJob(Read(), plan_path_).merged);
}

TEST_F(JobsTest, ReceiptsThatCannotBeAreWrongAndNoMore) {
  Plan(3);
  RunAll();
  const CommittedShard own = FindCommitted(Results()).at(1)[0];
  const std::string good = ReadFileWhole(own.receipt);
  const auto wrong = [&](const std::string& part, const std::function<void(Json&)>& change) {
    Json receipt = Json::parse(good);
    change(receipt);
    receipt["hash"] = Sha256Without(receipt, "hash");
    WriteFileWhole(own.receipt, CanonicalJson(receipt) + "\n");
    const JobStatus status = StatusOfJob(Read(), plan_path_);
    EXPECT_EQ(status.done, 2) << part;
    ASSERT_EQ(status.wrong.size(), 1) << part;
    EXPECT_THAT(status.wrong[0], testing::AllOf(testing::StartsWith(own.receipt), HasSubstr(part)));
    ExpectError(absl::StatusCode::kFailedPrecondition,
                {"1 of 3 shards are wrong", own.receipt, part, "remove what is wrong", "job status"},
                [&] { MergeJob(Read(), plan_path_); });
  };
  wrong("no receipt of a shard", [](Json& json) { json["format"] = "other"; });
  wrong("another version", [](Json& json) { json["version"] = 2; });
  wrong("another plan", [](Json& json) { json["plan"] = std::string(64, '0'); });
  wrong("another shard", [](Json& json) { json["shard"] = 2; });
  wrong("7 rows from 32 on, and the plan 32", [](Json& json) { json["rows"] = 7; });
  wrong("-1 rows", [](Json& json) { json["rows"] = -1; });
  wrong("from 31 on", [](Json& json) { json["first"] = 31; });
  wrong("none of its own", [](Json& json) { json["refused"] = {{{"row", 3}, {"reason", "x"}}}; });
  wrong("of 0 that are refused", [](Json& json) { json["refused"] = {{{"row", 40}, {"reason", "x"}}}; });
  for (const char* key : {"run", "aggregates", "refused", "first", "result", "version"}) {
    wrong("lacks something", [&](Json& json) { json.erase(key); });
  }
  wrong("recorded number", [](Json& json) { json["run"]["seconds"] = "fast"; });
  wrong("\"peak_memory\" is no whole number", [](Json& json) { json["run"]["peak_memory"] = 1e300; });
  wrong("aggregates for 0 targets", [](Json& json) { json["aggregates"] = Json::array(); });
  wrong("aggregates for 2 targets", [](Json& json) { json["aggregates"].push_back(json["aggregates"][0]); });
  wrong("other components", [](Json& json) {
    Json& aggregates = json["aggregates"][0];
    aggregates["components"].erase(0);
    for (Json& row : aggregates["sample"]) {
      row["contributions"].erase(0);
      row["elements"].erase(0);
    }
  });
  wrong("numbers for 30 components", [](Json& json) { json["aggregates"][0]["sample"][0]["contributions"].erase(0); });
  wrong("it tells of row 3", [](Json& json) { json["aggregates"][0]["sample"][0]["row"] = 3; });
}

TEST_F(JobsTest, OnlyWholeNamesAreResults) {
  Plan(3);
  RunAll();
  const CommittedShard own = FindCommitted(Results()).at(1)[0];
  const std::string shards = Results() + "/shards/";
  fs::copy(own.path, own.path + ".bak");
  fs::copy(own.path, absl::StrCat(shards, "1.", own.sha256, ".safetensors"));
  fs::copy(own.path, absl::StrCat(shards, "+0001.", own.sha256, ".safetensors"));
  fs::copy(own.path, absl::StrCat(shards, "00001.", own.sha256, ".txt"));
  fs::copy(own.path, absl::StrCat(shards, "00001.", own.sha256, ".csv"));  // the same bytes
  const CommittedShards found = FindCommitted(Results());
  EXPECT_EQ(found.size(), 3);
  EXPECT_EQ(found.at(1).size(), 1);
  EXPECT_EQ(MergeJob(Read(), plan_path_).rows, 90);
}

TEST_F(JobsTest, ManyRefusedRowsAreCountedAndTheFirstListed) {
  rows_ = at::full({3000, 30}, std::numeric_limits<double>::quiet_NaN(), at::kFloat);
  rows_[0].zero_();
  Plan(3, 100);
  const MergedJob merged = RunAll();
  EXPECT_EQ(merged.refused_rows, 2999);
  EXPECT_EQ(merged.refused.size(), MergedJob::kMostRefused);
  EXPECT_EQ(merged.refused[0]["row"], 1);
  EXPECT_EQ(MergedJobJson(merged)["refused_rows"], 2999);
  const MergedJob read = ReadMergedJob(Read(), plan_path_);
  EXPECT_EQ(read.refused_rows, 2999);
  EXPECT_EQ(read.refused, merged.refused);
  EXPECT_EQ(ReadTensorFile(merged.path).Find("refused")->sum().item<int64_t>(), 2999);
  EXPECT_EQ(StatusOfJob(Read(), plan_path_).refused, 2999);
}

TEST_F(JobsTest, RowsWithoutFiniteNumbersAreTold) {
  rows_[40].fill_(3e38);  // finite, and the model is not
  rows_[41].fill_(-3e38);
  Plan(3);
  const MergedJob merged = RunAll();
  const TensorFile file = ReadTensorFile(merged.path);
  at::Tensor finite = file.Find("value")->isfinite() & file.Find("leftover")->isfinite() &
                      file.Find("contributions")->isfinite().all(1);
  const int64_t count = 90 - finite.sum().item<int64_t>();
  ASSERT_GT(count, 0);
  EXPECT_EQ(merged.not_finite() + merged.refused_rows, count);
  EXPECT_GT(merged.not_finite(), 0);
  EXPECT_EQ(MergedJobJson(merged)["not_finite"], merged.not_finite());
  EXPECT_EQ(JobStatusJson(StatusOfJob(Read(), plan_path_))["not_finite"], merged.not_finite());
}

TEST_F(JobsTest, MissingShardsAreListed) {
  Plan(12);
  Worker().Run(3);
  ExpectError(absl::StatusCode::kFailedPrecondition, {"11 of 12 shards are missing: 0, 1, 2, 4"},
              [&] { MergeJob(Read(), plan_path_); });
  ExpectError(absl::StatusCode::kInvalidArgument, {"no shard 12", "the plan has 12"}, [&] { Worker().Run(12); });
  EXPECT_FALSE(StatusOfJob(Read(), plan_path_).merged);
}

TEST_F(JobsTest, AttemptsThatWereKilledLeaveNothingBehind) {
  Plan(3);
  fs::create_directories(Results() + "/attempts");
  WriteFileWhole(Results() + "/attempts/00001.0123456789abcdef", "half of a res");
  EXPECT_EQ(StatusOfJob(Read(), plan_path_).attempts, 1);
  RunAll();
  EXPECT_EQ(StatusOfJob(Read(), plan_path_).attempts, 0);
}

TEST_F(JobsTest, TablesHaveALineForEachRow) {
  WriteRows();
  JobDraft draft = Draft(3);
  draft.format = "csv";
  draft.names.push_back("a \"quoted\", name\nof two lines");
  for (int k = 1; k < 30; ++k) draft.names.push_back(absl::StrCat("column ", k));
  draft.concepts = R"({"format": "addend.concepts", "version": 1, "at_most": 2, "concepts": [
      {"name": "First", "components": ["column 1", "column 2"], "text": "{concept}, told"}]})";
  WritePlan(std::move(draft));
  const MergedJob merged = RunAll();
  const std::string text = ReadFileWhole(merged.path);
  EXPECT_THAT(text,
              testing::StartsWith("row,target,value,reference,leftover,\"a \"\"quoted\"\", name\nof two lines\","));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_EQ(lines.size(), 2 + 90 + 1);  // the names take two
  EXPECT_THAT(lines[2], testing::StartsWith("0,"));
  EXPECT_THAT(lines[91], testing::StartsWith("89,"));
}

TEST_F(JobsTest, TargetsOfATableDoNotTellOfBatches) {
  WriteRows();
  for (const int64_t batch : {8, 45}) {
    ForgetResults();
    JobDraft draft = Draft(2, batch);
    draft.format = "csv";
    draft.request.options.targets = {ParseTarget("1"), ParseTarget("0-1"), ParseTarget("sum:0+1"),
                                     ParseTarget("entropy")};
    WritePlan(std::move(draft));
    std::vector<std::string> lines = absl::StrSplit(ReadFileWhole(RunAll().path), '\n');
    ASSERT_EQ(lines.size(), 1 + 4 * 90 + 1);
    for (size_t row = 0; row < 90; ++row) {
      const std::string first = absl::StrCat(row, ",");
      EXPECT_THAT(lines[1 + 4 * row], testing::StartsWith(first + "output [1],"));
      EXPECT_THAT(lines[2 + 4 * row], testing::StartsWith(first + "output [0] minus [1],"));
      EXPECT_THAT(lines[3 + 4 * row], testing::StartsWith(first + "output [0] + output [1],"));
      EXPECT_THAT(lines[4 + 4 * row], testing::StartsWith(first + "entropy,"));
    }
  }
}

TEST_F(JobsTest, ReasonsAreThoseOfEachRowAlone) {
  WriteRows();
  JobDraft draft = Draft(2);
  draft.contributions = false;
  draft.concepts = R"({"format": "addend.concepts", "version": 1, "at_most": 3, "concepts": []})";
  WritePlan(std::move(draft));
  const MergedJob merged = RunAll();
  const TensorFile file = ReadTensorFile(merged.path);
  EXPECT_EQ(file.Find("contributions"), nullptr);
  const at::Tensor& reasons = *file.Find("reasons");
  ASSERT_EQ(reasons.sizes(), at::IntArrayRef({90, 3}));
  for (const int64_t row : {0, 44, 89}) {
    // Each component is a concept of its own: the most negative ones, in their order.
    std::vector<std::pair<double, int64_t>> negative;
    const Contributions alone = Alone(row);
    for (size_t c = 0; c < 30; ++c) {
      if (alone.contributions[c] < 0) negative.emplace_back(alone.contributions[c], c);
    }
    std::sort(negative.begin(), negative.end());
    for (size_t r = 0; r < 3; ++r) {
      const int64_t given = reasons[row][static_cast<int64_t>(r)].item<int64_t>();
      EXPECT_EQ(given, r < negative.size() ? negative[r].second : -1) << row << " " << r;
    }
  }
}

TEST_F(JobsTest, SeveralTargetsStandSideBySide) {
  WriteRows();
  JobDraft draft = Draft(2);
  draft.request.options.targets = {ParseTarget("0"), ParseTarget("1")};
  WritePlan(std::move(draft));
  const MergedJob merged = RunAll();
  const TensorFile file = ReadTensorFile(merged.path);
  EXPECT_EQ(file.Find("contributions")->sizes(), at::IntArrayRef({90, 2, 30}));
  EXPECT_EQ((*file.Find("target"))[17][1].item<int64_t>(), 1);
  ASSERT_EQ(merged.aggregates.size(), 2);
  const at::Tensor sums = file.Find("contributions")->sum({2}) + *file.Find("reference") + *file.Find("leftover");
  EXPECT_TRUE(at::allclose(sums, *file.Find("value"), 1e-6, 1e-6));
}

TEST_F(JobsTest, GroupsPutRowsTogether) {
  at::Tensor group = at::arange(90, at::kLong).remainder(4);
  TensorFile file;
  file.tensors.emplace_back("input", rows_);
  file.tensors.emplace_back("quarter", group);
  WriteTensorFile(DataPath(), file);
  JobDraft draft = Draft(3);
  draft.source = OpenTensorRows({{DataPath(), "input"}}, {{DataPath(), "quarter"}});
  draft.groups = {"quarter"};
  WritePlan(std::move(draft));
  const MergedJob merged = RunAll();
  const auto& quarters = merged.aggregates[0].groups().at(0).groups;
  ASSERT_EQ(quarters.size(), 4);
  EXPECT_EQ(quarters.at("0").rows, 23);
  EXPECT_EQ(quarters.at("3").rows, 22);
  const TensorFile result = ReadTensorFile(merged.path);
  const at::Tensor of_two = result.Find("contributions")->index_select(0, (group == 2).nonzero().flatten());
  EXPECT_NEAR(quarters.at("2").sums.at(7), of_two.select(1, 7).sum().item<double>(), 1e-9);
}

TEST_F(JobsTest, MoreGroupsThanThereMayBeAreOneWhereverShardsEnd) {
  const int64_t count = 2400;
  rows_ = at::rand({count, 30}, at::kFloat);
  TensorFile file;
  file.tensors.emplace_back("input", rows_);
  file.tensors.emplace_back("id", at::arange(count, at::kLong) * 7 % 1200 + 10000);
  WriteTensorFile(DataPath(), file);
  for (const int64_t shards : {1, 6}) {
    ForgetResults();
    JobDraft draft = Draft(shards, 100);
    draft.source = OpenTensorRows({{DataPath(), "input"}}, {{DataPath(), "id"}});
    draft.groups = {"id"};
    WritePlan(std::move(draft));
    const MergedJob merged = RunAll();
    EXPECT_EQ(merged.refused_rows, 0);
    EXPECT_EQ(merged.aggregates[0].rows(), count);
    const ColumnGroups& ids = merged.aggregates[0].groups().at(0);
    EXPECT_EQ(ids.groups.size(), ColumnGroups::kMost);
    EXPECT_EQ(ids.groups.begin()->first, "10000");
    EXPECT_EQ(ids.groups.rbegin()->first, "10999");
    for (const auto& [text, own] : ids.groups) EXPECT_EQ(own.rows, 2) << text;
    EXPECT_EQ(ids.others.rows, 400);
  }
}

TEST_F(JobsTest, PlansRefuseWhatNoJobCanDo) {
  WriteRows();
  const auto refuses = [&](absl::StatusCode code, const std::string& part,
                           const std::function<void(JobDraft&)>& change) {
    JobDraft draft = Draft(3);
    change(draft);
    ExpectError(code, {part}, [&] { MakeJobPlan(std::move(draft), kWriter); });
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  refuses(kInvalid, "contributions, reasons or both", [](JobDraft& draft) { draft.contributions = false; });
  refuses(kInvalid, "safetensors or csv, not as parquet", [](JobDraft& draft) { draft.format = "parquet"; });
  refuses(kInvalid, "a batch has 1 to 2147483647 rows", [](JobDraft& draft) { draft.batch = 0; });
  refuses(kInvalid, "dimension 0 counts the rows",
          [](JobDraft& draft) { draft.request.inputs[0].split = Split::AlongDims({0}); });
  refuses(kInvalid, "2 names are given, but a row is split into 30", [](JobDraft& draft) { draft.names = {"a", "b"}; });
  refuses(kInvalid, "labels are [90, 30]", [](JobDraft& draft) {
    draft.request.inputs[0].split = Split::ByLabels(at::zeros({90, 30}, at::kLong));
  });
  refuses(kInvalid, "1 with rows", [](JobDraft& draft) { draft.request.inputs.push_back(Input::Plain(at::Tensor())); });
  refuses(kInvalid, "a batch has 1 to 2147483647 rows", [](JobDraft& draft) { draft.batch = int64_t{1} << 40; });
  const auto named = [](const std::string& a, const std::string& b) {
    return [a, b](JobDraft& draft) {
      draft.names = {a, b};
      for (int k = 2; k < 30; ++k) draft.names.push_back(absl::StrCat("column ", k));
    };
  };
  for (const char* name : {"row", "target", "value", "reference", "leftover", "refused"}) {
    refuses(kInvalid, absl::StrCat("two columns of the results would be called \"", name, "\"; give the components"),
            named("a", name));
  }
  refuses(kInvalid, "called \"a\"", named("a", "a"));
  refuses(kInvalid, "called \"reason 2 text\"", [&](JobDraft& draft) {
    named("reason 2 text", "b")(draft);
    draft.concepts = R"({"format": "addend.concepts", "version": 1, "at_most": 2})";
  });
  refuses(absl::StatusCode::kNotFound, "nowhere.pt", [](JobDraft& draft) { draft.model = "/nowhere.pt"; });
}

}  // namespace
}  // namespace addend
