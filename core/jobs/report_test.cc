// Reports of merged jobs against rows that are counted, sorted and summed up here.
#include "core/jobs/report.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/audit/canonical_json.h"
#include "core/base/error_testing.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

namespace fs = std::filesystem;

const Writer kWriter = {"0.0", "", "0.0"};

struct Row {
  double value;
  double leftover;
  std::vector<double> contributions;
  std::string group;
};

// The first month has the fewest rows.
int64_t MonthOf(int64_t at) { return at % 5 == 0 ? 1 : 2 + at % 2; }

// A row whose numbers follow from its place; `shift` moves those of component 1.
Row RowAt(int64_t at, double shift) {
  const auto x = static_cast<double>((at * 37) % 101) - 50;
  Row row;
  row.contributions = {x / 8, shift + x * x / 256, at % 5 == 0 ? -4.0 : 0.0};
  row.leftover = at == 17 ? 0.75 : x / 4096;
  row.value = 1 + row.leftover;
  for (const double contribution : row.contributions) row.value += contribution;
  row.group = absl::StrCat("2024-0", MonthOf(at), "-15");
  return row;
}

class ReportTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 400;

  ReportTest() {
    std::string folder = testing::TempDir() + "/reportXXXXXX";
    if (::mkdtemp(&folder[0]) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = folder;
  }
  ~ReportTest() override { fs::remove_all(folder_); }

  // A merged job of such rows, as merging leaves it on the disk.
  ReportedJob Make(const std::string& name, double shift, std::vector<std::string> names = {"a", "b", "c"}) const {
    ReportedJob job;
    job.plan_path = absl::StrCat(folder_, "/", name, ".json");
    JobPlan& plan = job.plan;
    plan.data = {{"kind", "tensors"}};
    plan.inputs = {{"x", c10::kFloat, {3}}};
    plan.rows = kRows;
    plan.batch = plan.shard_rows = kRows;
    plan.digests = {std::string(64, '0')};
    plan.model_sha256 = std::string(64, '1');
    plan.request = {{"at", nullptr},
                    {"inputs", Json::array({{{"baseline", {{"number", 0}}}}})},
                    {"policy", {{"preset", "auto"}}},
                    {"targets", {"1"}}};
    plan.components = std::move(names);
    plan.classes = {"no", "yes"};
    plan.groups = {"day"};
    plan.addend = {{"version", "0.0"}};
    plan.libtorch = {{"version", "0.0"}};
    Aggregates aggregates(3, 0.25, 1);
    at::Tensor contributions = at::zeros({kRows, 3}, at::kDouble);
    at::Tensor numbers = at::zeros({3, kRows}, at::kDouble);  // value, reference, leftover
    for (int64_t at = 0; at < kRows; ++at) {
      const Row row = RowAt(at, shift);
      RowNumbers own;
      own.row = at;
      own.value = row.value;
      own.reference = 1;
      own.leftover = row.leftover;
      aggregates.AddRecoveryError(at == 5 ? 1e-9 : 0);
      own.contributions = row.contributions.data();
      own.elements = row.contributions.data();
      own.groups = {row.group};
      aggregates.Add(own);
      for (int64_t c = 0; c < 3; ++c) contributions[at][c] = row.contributions[static_cast<size_t>(c)];
      numbers[0][at] = row.value;
      numbers[1][at] = 1;
      numbers[2][at] = row.leftover;
    }
    MergedJob& merged = job.merged;
    TensorFile file;
    file.tensors.emplace_back("contributions", contributions);
    file.tensors.emplace_back("value", numbers[0].contiguous());
    file.tensors.emplace_back("reference", numbers[1].contiguous());
    file.tensors.emplace_back("leftover", numbers[2].contiguous());
    file.tensors.emplace_back("target", at::ones({kRows}, at::kLong));
    fs::create_directories(ResultsFolder(job.plan_path));
    merged.path = ResultsFolder(job.plan_path) + "/merged.safetensors";
    WriteTensorFile(merged.path, file);
    merged.sha256 = Sha256OfFile(merged.path);
    merged.bytes = static_cast<int64_t>(fs::file_size(merged.path));
    merged.rows = kRows;
    merged.refused = Json::array();
    merged.aggregates = {aggregates};
    merged.machines = {"worker-1"};
    merged.seconds = 2;
    return job;
  }

  static Json Report(const ReportedJob& job, const ReportedJob* against = nullptr) {
    return JobReportJson(job, against, kWriter);
  }

  std::string folder_;
};

std::vector<double> Column(int64_t rows, size_t component, double shift = 0) {
  std::vector<double> numbers;
  for (int64_t at = 0; at < rows; ++at) numbers.push_back(RowAt(at, shift).contributions[component]);
  return numbers;
}

TEST_F(ReportTest, TellsWhatAPassOverTheRowsTells) {
  const Json report = Report(Make("plan", 0));
  const Json& target = report["targets"][0];
  EXPECT_EQ(report["rows"], kRows);
  EXPECT_EQ(target["rows"], kRows);
  EXPECT_EQ(target["name"], "yes");
  std::vector<std::pair<double, size_t>> order;
  for (size_t c = 0; c < 3; ++c) {
    std::vector<double> numbers = Column(kRows, c);
    double sum = 0;
    double magnitudes = 0;
    for (const double number : numbers) {
      sum += number;
      magnitudes += std::abs(number);
    }
    const Json& own = target["components"][c];
    EXPECT_NEAR(own["mean"].get<double>(), sum / kRows, 1e-12);
    EXPECT_NEAR(own["mean_magnitude"].get<double>(), magnitudes / kRows, 1e-12);
    EXPECT_EQ(own["positive"], std::count_if(numbers.begin(), numbers.end(), [](double x) { return x > 0; }));
    EXPECT_EQ(own["negative"], std::count_if(numbers.begin(), numbers.end(), [](double x) { return x < 0; }));
    std::sort(numbers.begin(), numbers.end());
    EXPECT_EQ(own["least"], numbers.front());
    EXPECT_EQ(own["largest"], numbers.back());
    ASSERT_EQ(own["quantiles"].size(), report["shares"].size());
    for (size_t k = 0; k < report["shares"].size(); ++k) {
      const auto rank = static_cast<size_t>(std::llround(report["shares"][k].get<double>() * (kRows - 1)));
      EXPECT_LE(std::abs(own["quantiles"][k].get<double>() - numbers[rank]), std::abs(numbers[rank]) / 128);
    }
    order.emplace_back(-magnitudes, c);
  }
  std::sort(order.begin(), order.end());
  for (size_t k = 0; k < 3; ++k) EXPECT_EQ(target["detailed"][k], order[k].second);
}

TEST_F(ReportTest, SamplesRowsThatAreThere) {
  const Json target = Report(Make("plan", 0))["targets"][0];
  const Json& sample = target["sample"];
  ASSERT_GT(sample["rows"].size(), kRows / 8);
  ASSERT_LT(sample["rows"].size(), kRows / 2);
  for (size_t k = 0; k < sample["rows"].size(); ++k) {
    const Row row = RowAt(sample["rows"][k].get<int64_t>(), 0);
    EXPECT_NEAR(sample["values"][k].get<double>(), row.value, 1e-5 * std::abs(row.value));
    for (size_t d = 0; d < 3; ++d) {
      const double exact = row.contributions[target["detailed"][d].get<size_t>()];
      EXPECT_NEAR(sample["contributions"][d][k].get<double>(), exact, 1e-5 * std::abs(exact));
      EXPECT_EQ(sample["elements"][d][k], sample["contributions"][d][k]);
    }
  }
}

TEST_F(ReportTest, GroupsAreInTheOrderOfTime) {
  const Json target = Report(Make("plan", 0))["targets"][0];
  const Json& column = target["columns"][0];
  EXPECT_EQ(column["column"], "day");
  EXPECT_EQ(column["order"], "dates");
  ASSERT_EQ(column["groups"].size(), 3);
  for (int64_t g = 0; g < 3; ++g) {
    const Json& group = column["groups"][static_cast<size_t>(g)];
    EXPECT_EQ(group["text"], absl::StrCat("2024-0", 1 + g, "-15"));
    std::vector<double> sums(3);
    double values = 0;
    int64_t count = 0;
    for (int64_t at = 0; at < kRows; ++at) {
      if (MonthOf(at) != 1 + g) continue;
      ++count;
      const Row row = RowAt(at, 0);
      values += row.value;
      for (size_t c = 0; c < 3; ++c) sums[c] += row.contributions[c];
    }
    EXPECT_EQ(group["rows"], count);
    EXPECT_NEAR(group["mean_value"].get<double>(), values / static_cast<double>(count), 1e-12);
    for (size_t d = 0; d < 3; ++d) {
      EXPECT_NEAR(group["means"][d].get<double>(),
                  sums[target["detailed"][d].get<size_t>()] / static_cast<double>(count), 1e-12);
    }
  }
  EXPECT_EQ(column["groups"][1]["at"].get<double>() - column["groups"][0]["at"].get<double>(), 31);
}

TEST_F(ReportTest, GroupsOfNumbersAndTextsHaveTheirOwnOrder) {
  ReportedJob job = Make("plan", 0);
  const auto order = [&](const std::vector<std::string>& texts) {
    Aggregates aggregates(3, 0, 1);
    const std::vector<double> contributions(3, 1.0);
    for (const std::string& text : texts) {
      RowNumbers row;
      row.contributions = contributions.data();
      row.groups = {text};
      aggregates.Add(row);
    }
    job.merged.aggregates = {aggregates};
    const Json column = Report(job)["targets"][0]["columns"][0];
    std::vector<std::string> told = {column["order"].get<std::string>()};
    for (const Json& group : column["groups"]) told.push_back(group["text"].get<std::string>());
    return told;
  };
  EXPECT_THAT(order({"10", "9", "-2.5", "10", "10"}), testing::ElementsAre("numbers", "-2.5", "9", "10"));
  EXPECT_THAT(order({"b", "10", "b", "a", "c", "c", "c"}), testing::ElementsAre("texts", "c", "b", "10", "a"));
  EXPECT_THAT(order({"2024-05", "2023-12-31T10:00"}), testing::ElementsAre("dates", "2023-12-31T10:00", "2024-05"));
  EXPECT_THAT(order({"2024-05", "later"}), testing::ElementsAre("texts", "2024-05", "later"));
}

TEST_F(ReportTest, WorstRowsAreReadFromTheRows) {
  const Json target = Report(Make("plan", 0))["targets"][0];
  EXPECT_EQ(target["worst_leftover"][0]["row"], 17);
  EXPECT_EQ(target["worst_recovery_error"], 1e-9);
  std::vector<int64_t> rows;
  for (const Json& own : target["worst_rows"]) {
    const auto at = own["row"].get<int64_t>();
    rows.push_back(at);
    const Row row = RowAt(at, 0);
    EXPECT_EQ(own["value"], row.value);
    EXPECT_EQ(own["reference"], 1.0);
    EXPECT_EQ(own["leftover"], row.leftover);
    EXPECT_EQ(own["element"], 1);
    double last = INFINITY;
    for (const Json& part : own["contributions"]) {
      const auto number = part["contribution"].get<double>();
      EXPECT_EQ(number, row.contributions[part["component"].get<size_t>()]);
      EXPECT_LE(std::abs(number), last);
      last = std::abs(number);
    }
    EXPECT_EQ(own["total"], row.contributions[0] + row.contributions[1] + row.contributions[2]);
  }
  EXPECT_EQ(rows.front(), 17);
  EXPECT_EQ(rows.size(), WorstRows::kMost);
}

TEST_F(ReportTest, RefusesRowsThatAreNotThoseOfTheDocument) {
  ReportedJob job = Make("plan", 0);
  const ReportedJob other = Make("other", 0);
  TensorFile file = ReadTensorFile(job.merged.path);
  for (auto& [name, tensor] : file.tensors) {
    if (name == "leftover") tensor[17] = 0.5;
  }
  WriteTensorFile(job.merged.path, file);
  ExpectError(absl::StatusCode::kFailedPrecondition, {"row 17", "0.5", "0.75", "addend job merge"},
              [&] { Report(job); });
  job.merged.rows = kRows - 1;
  ExpectError(absl::StatusCode::kFailedPrecondition, {"another shape"}, [&] { Report(job); });
}

TEST_F(ReportTest, DistancesAreThoseOfTheDistributions) {
  const ReportedJob job = Make("plan", 0);
  const ReportedJob moved = Make("moved", 2, {"c", "b", "a"});
  // Components match by name: "a" is component 2 there. All of them differ then.
  const Json drift = Report(job, &moved)["drift"]["targets"][0];
  for (size_t c = 0; c < 3; ++c) {
    const size_t match = 2 - c;
    const std::vector<double> own = Column(kRows, c);
    const std::vector<double> other = Column(kRows, match, 2);
    double exact = 0;     // of the numbers
    double bucketed = 0;  // of the sketches, number by number
    const QuantileSketch& a = job.merged.aggregates[0].components()[c].sketch;
    const QuantileSketch& b = moved.merged.aggregates[0].components()[match].sketch;
    std::vector<double> all = own;
    all.insert(all.end(), other.begin(), other.end());
    for (const double x : all) {
      const auto share = [&](const std::vector<double>& of) {
        return static_cast<double>(std::count_if(of.begin(), of.end(), [&](double y) { return y <= x; })) / kRows;
      };
      exact = std::max(exact, std::abs(share(own) - share(other)));
      bucketed = std::max(bucketed, std::abs(a.ShareUpTo(x) - b.ShareUpTo(x)));
    }
    const auto told = drift["components"][c]["distance"].get<double>();
    EXPECT_EQ(told, bucketed);
    EXPECT_LE(told, exact + 1e-12);
    EXPECT_GT(told, exact - 0.05);
    EXPECT_GT(exact, 0.2);
    double magnitudes = 0;
    for (const double number : other) magnitudes += std::abs(number);
    EXPECT_NEAR(drift["components"][c]["mean_magnitude_against"].get<double>(), magnitudes / kRows, 1e-12);
  }
  // 1.3581 sqrt((400 + 400) / (400 400)).
  EXPECT_NEAR(drift["by_chance"].get<double>(), 0.09603, 1e-4);
  const Json same = Report(job, &job)["drift"];
  for (const Json& own : same["targets"][0]["components"]) EXPECT_EQ(own["distance"], 0.0);
  EXPECT_EQ(same["same_model"], true);
}

TEST_F(ReportTest, ADriftIsOfTheSameComponentsAndTargets) {
  const ReportedJob job = Make("plan", 0);
  ReportedJob other = Make("other", 0, {"a", "b", "d"});
  ExpectError(absl::StatusCode::kInvalidArgument, {"other.json has not the components of", "no c"},
              [&] { Report(job, &other); });
  other = Make("other", 0, {"a", "a", "c"});
  ExpectError(absl::StatusCode::kInvalidArgument, {"two components of", "called a"}, [&] { Report(job, &other); });
  other = Make("other", 0);
  other.plan.request["targets"] = {"0"};
  ExpectError(absl::StatusCode::kInvalidArgument, {"targets are [\"1\"] and [\"0\"]"}, [&] { Report(job, &other); });
}

TEST_F(ReportTest, ResultsWithoutContributionsAndAsTextHaveAReport) {
  ReportedJob job = Make("plan", 0);
  job.plan.contributions = false;
  EXPECT_TRUE(Report(job)["targets"][0]["worst_rows"][0]["contributions"].is_null());
  job.plan.format = "csv";
  EXPECT_EQ(Report(job)["targets"][0]["worst_rows"].size(), 0);
  job.merged.aggregates = {Aggregates(3, 1, 1)};
  EXPECT_EQ(Report(job)["targets"][0]["components"][0]["mean"], 0.0);  // every row was refused
}

TEST_F(ReportTest, MakesAPageOfAReportAlone) {
  const std::string page = JobReportHtml(Report(Make("plan", 0, {"a", "</script>", "c"})));
  EXPECT_THAT(page, testing::HasSubstr("\"addend.job_report\""));
  EXPECT_THAT(page, testing::HasSubstr("\\u003c/script>"));
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("@include")));
  ExpectError(absl::StatusCode::kInvalidArgument, {"no report"}, [] { JobReportHtml({{"format", "addend.job"}}); });
}

TEST(DatesTest, AreDaysSince1970) {
  EXPECT_EQ(DaysOfDate("1970-01-01"), 0.0);
  EXPECT_EQ(DaysOfDate("2000-03"), 11017.0);
  EXPECT_EQ(DaysOfDate("2024-02-29"), 19782.0);
  EXPECT_EQ(DaysOfDate("1969-12-31"), -1.0);
  EXPECT_EQ(DaysOfDate("1970-01-02T06:00"), 1.25);
  EXPECT_EQ(DaysOfDate("1970-01-02 06:00:00.0Z"), 1.25);
  EXPECT_EQ(DaysOfDate("1970-01-02T06:00+06:00"), 1.0);
  EXPECT_EQ(DaysOfDate("1970-01-02T06:00-0600"), 1.5);
  for (const char* text : {"", "2024", "2024-13", "2023-02-29", "2024-1-1", "2024-01-01T", "2024-01-01T25:00",
                           "2024-01-01T10:00:", "2024-01-01x", "May", "2024-05T10:00", "2024-01-01T10:00+"}) {
    EXPECT_FALSE(DaysOfDate(text)) << text;
  }
}

}  // namespace
}  // namespace addend
