#include "core/jobs/job_plan.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/audit/canonical_json.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/base/utf8.h"
#include "core/document/report_json.h"
#include "core/jobs/commit.h"
#include "core/jobs/receipt.h"
#include "core/program/sha256.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

Json Content(const JobPlan& plan) {
  Json inputs = Json::array();
  for (const JobInput& input : plan.inputs) {
    inputs.push_back({{"dtype", DtypeWord(input.dtype)}, {"name", input.name}, {"shape", input.shape}});
  }
  Json data = plan.data;
  data["first_batch"] = plan.first_batch;
  data["inputs"] = std::move(inputs);
  data["rows"] = plan.rows;
  return {{"addend", plan.addend},
          {"data", std::move(data)},
          {"format", kJobFormat},
          {"libtorch", plan.libtorch},
          {"model",
           {{"dtype", plan.dtype ? Json(DtypeWord(*plan.dtype)) : Json(nullptr)},
            {"path", plan.model},
            {"sha256", plan.model_sha256}}},
          {"names", {{"classes", plan.classes}, {"components", plan.components}}},
          {"ready", plan.ready},
          {"request", plan.request},
          {"results",
           {{"concepts", plan.concepts},
            {"contributions", plan.contributions},
            {"format", plan.format},
            {"groups", plan.groups},
            {"stop_at_refusal", plan.stop_at_refusal}}},
          {"shards", {{"batch", plan.batch}, {"rows", plan.shard_rows}, {"sha256", plan.digests}}},
          {"version", kJobVersion}};
}

// Takes a plan from a document that is whole.
JobPlan PlanOf(const Json& document) {
  JobPlan plan;
  plan.data = document.at("data");
  for (const Json& input : plan.data.at("inputs")) {
    plan.inputs.push_back({input.at("name").get<std::string>(), DtypeOfWord(input.at("dtype").get<std::string>()),
                           input.at("shape").get<std::vector<int64_t>>()});
  }
  plan.rows = plan.data.at("rows").get<int64_t>();
  plan.first_batch = plan.data.at("first_batch").get<std::string>();
  for (const char* key : {"inputs", "rows", "first_batch"}) plan.data.erase(key);
  const Json& shards = document.at("shards");
  plan.batch = shards.at("batch").get<int64_t>();
  plan.shard_rows = shards.at("rows").get<int64_t>();
  plan.digests = shards.at("sha256").get<std::vector<std::string>>();
  const Json& model = document.at("model");
  plan.model = model.at("path").get<std::string>();
  plan.model_sha256 = model.at("sha256").get<std::string>();
  if (!model.at("dtype").is_null()) plan.dtype = DtypeOfWord(model.at("dtype").get<std::string>());
  plan.request = document.at("request");
  plan.ready = document.at("ready").get<bool>();
  plan.components = document.at("names").at("components").get<std::vector<std::string>>();
  plan.classes = document.at("names").at("classes").get<std::vector<std::string>>();
  const Json& results = document.at("results");
  plan.contributions = results.at("contributions").get<bool>();
  plan.concepts = results.at("concepts");
  plan.groups = results.at("groups").get<std::vector<std::string>>();
  plan.format = results.at("format").get<std::string>();
  plan.stop_at_refusal = results.at("stop_at_refusal").get<bool>();
  plan.addend = document.at("addend");
  plan.libtorch = document.at("libtorch");
  // Workers need these.
  plan.device();
  plan.libtorch.at("threads").get<int>();
  return plan;
}

// Why a plan that was read cannot be; empty where it can.
std::string Contradiction(const JobPlan& plan) {
  if (plan.rows < 1 || plan.batch < 1 || plan.shard_rows < 1) return "it has no rows";
  if (plan.shard_rows % plan.batch != 0) return "its shards are no multiples of its batches";
  if (plan.shards() != CeilDivide(plan.rows, plan.shard_rows)) return "its shards are not those of its rows";
  if (plan.inputs.empty()) return "its model has no input";
  if (plan.request.at("targets").empty()) return "it asks for no target";
  return "";
}

}  // namespace

int64_t ShardRows(int64_t rows, int64_t batch, int64_t shards) {
  if (rows < 1) throw InvalidArgument("the data set has no rows");
  if (batch < 1 || batch > kMostBatch) throw InvalidArgument(absl::StrCat("a batch has 1 to ", kMostBatch, " rows"));
  if (shards < 1) throw InvalidArgument("there is at least one shard");
  return CeilDivide(CeilDivide(rows, batch), shards) * batch;
}

std::string Sha256OfPlan(const JobPlan& plan) { return Sha256(CanonicalJson(Content(plan))); }

Json JobPlanJson(const JobPlan& plan) {
  Json document = Content(plan);
  document["sha256"] = Sha256(CanonicalJson(document));
  return document;
}

JobPlan ReadJobPlan(const std::string& text, const std::string& name) {
  const Json document = ReadJson(text, name);
  if (!document.is_object() || document.value("format", Json()) != kJobFormat) {
    throw InvalidArgument(absl::StrCat(name, " is no plan of a job; addend job plan writes one"));
  }
  try {
    if (document.at("version") != kJobVersion) {
      const bool newer = document.at("version") > Json(kJobVersion);
      throw InvalidArgument(
          absl::StrCat(name, newer ? " is a plan of a newer version of Addend" : " is a plan of no version of Addend"));
    }
    if (Sha256Without(document, "sha256") != document.at("sha256").get<std::string>()) {
      throw InvalidArgument(absl::StrCat(name,
                                         " was changed since it was written: its digest is not that of its content; "
                                         "write it again with addend job plan"));
    }
    JobPlan plan = PlanOf(document);
    const std::string why = Contradiction(plan);
    if (!why.empty()) throw InvalidArgument(absl::StrCat(name, " is no plan of a job: ", why));
    return plan;
  } catch (const Json::exception&) {
    throw InvalidArgument(absl::StrCat(name, " is no plan of a job: it lacks something that plans hold"));
  }
}

JobPlan LoadJobPlan(const std::string& path) { return ReadJobPlan(ReadFileWhole(path), path); }

void SaveJobPlan(const JobPlan& plan, const std::string& path) {
  RequireOwnResults(Sha256OfPlan(plan), path, FindCommitted(ResultsFolder(path)));
  WriteFileWhole(path, Dump(JobPlanJson(plan), 1) + "\n");
}

std::string ResultsFolder(const std::string& plan_path) {
  constexpr char kEnding[] = ".json";
  const bool json = absl::EndsWith(plan_path, kEnding) && plan_path.size() > sizeof(kEnding) - 1;
  return (json ? plan_path.substr(0, plan_path.size() - (sizeof(kEnding) - 1)) : plan_path) + ".out";
}

std::string ToPlan(const std::string& plan_path, const std::string& path) {
  namespace fs = std::filesystem;
  if (!IsUtf8(path)) throw InvalidArgument(absl::StrCat("a plan cannot name ", ToUtf8(path), ": it is not UTF-8"));
  if (absl::StartsWith(path, "/")) return path;
  const fs::path whole = fs::absolute(path);
  const fs::path folder = fs::absolute(plan_path).parent_path();
  const auto goes_up = [](const fs::path& own) { return std::find(own.begin(), own.end(), "..") != own.end(); };
  if (!goes_up(whole) && !goes_up(folder)) {
    const fs::path below = whole.lexically_normal().lexically_relative(folder.lexically_normal());
    if (!goes_up(below)) return below.string();
  }
  // A ".." behind a link goes to the folder above its destination; resolve links first.
  const fs::path real = fs::weakly_canonical(whole.parent_path()) / whole.filename();
  return real.lexically_relative(fs::weakly_canonical(folder)).string();
}

std::string FromPlan(const std::string& plan_path, const std::string& path) {
  const size_t slash = plan_path.rfind('/');
  if (absl::StartsWith(path, "/") || slash == std::string::npos) return path;
  return plan_path.substr(0, slash + 1) + path;
}

}  // namespace addend
