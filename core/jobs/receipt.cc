#include "core/jobs/receipt.h"

#include <cmath>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/audit/canonical_json.h"
#include "core/base/error.h"

namespace addend {
namespace {

int64_t IntegerOf(const Json& json, const char* key) {
  if (!json.at(key).is_number_integer()) throw InvalidArgument(absl::StrCat("\"", key, "\" is no whole number"));
  return json.at(key).get<int64_t>();
}

// Throws InvalidArgument for aggregates that are not of such a shard.
void RequireOfShard(const Aggregates& own, const JobPlan& plan, int64_t first, int64_t end, size_t refused) {
  if (own.components().size() != plan.components.size() || own.groups().size() != plan.groups.size()) {
    throw InvalidArgument("its aggregates are of other components or other columns than those of the plan");
  }
  if (own.refused() != static_cast<int64_t>(refused) || own.rows() != end - first - own.refused()) {
    throw InvalidArgument(absl::StrCat("its aggregates are of ", own.rows(), " rows and of ", own.refused(),
                                       " that are refused, and the shard has ", end - first, " and ", refused));
  }
  const auto require = [&](int64_t row) {
    if (row < first || row >= end) throw InvalidArgument(absl::StrCat("it tells of row ", row));
  };
  for (const auto& [row, sampled] : own.sample()) require(row);
  for (const WorstRow& worst : own.worst_leftover().rows()) require(worst.row);
}

}  // namespace

ShardReceipt ReadShardReceipt(const JobPlan& plan, const std::string& plan_sha256, int64_t shard,
                              const CommittedShard& own) {
  ShardReceipt receipt;
  receipt.json = ReadReceipt(own.receipt);
  const Json& json = receipt.json;
  const int64_t first = plan.first_row(shard);
  const int64_t end = plan.end_row(shard);
  try {
    if (json.at("format") != kReceiptFormat) throw InvalidArgument("it is no receipt of a shard");
    if (json.at("version") != kReceiptVersion) throw InvalidArgument("it is of another version of Addend");
    if (json.at("plan") != plan_sha256) {
      throw FailedPrecondition(absl::StrCat(own.receipt,
                                            " belongs to another plan; remove the folder of results, or write the plan "
                                            "to another path"));
    }
    if (json.at("shard") != shard || json.at("result").at("sha256") != own.sha256) {
      throw InvalidArgument("it belongs to another shard");
    }
    receipt.rows = IntegerOf(json, "rows");
    if (IntegerOf(json, "first") != first || receipt.rows != end - first) {
      throw InvalidArgument(absl::StrCat("it has ", receipt.rows, " rows from ", json.at("first").dump(),
                                         " on, and the plan ", end - first, " from ", first, " on"));
    }
    for (const Json& refused : json.at("refused")) {
      const int64_t row = IntegerOf(refused, "row");
      if (row < first || row >= end || !refused.at("reason").is_string()) {
        throw InvalidArgument("it lists a refused row that is none of its own");
      }
    }
    if (json.at("aggregates").size() != plan.targets()) {
      throw InvalidArgument(absl::StrCat("it has aggregates for ", json.at("aggregates").size(),
                                         " targets, and the plan asks for ", plan.targets()));
    }
    for (const Json& aggregates : json.at("aggregates")) {
      receipt.aggregates.push_back(Aggregates::OfJson(aggregates));
      RequireOfShard(receipt.aggregates.back(), plan, first, end, json.at("refused").size());
    }
    receipt.notes = NoteCountsOfJson(json.at("notes"));
    const Json& run = json.at("run");
    receipt.machine = run.at("machine").get<std::string>();
    receipt.seconds = NumberOf(run.at("seconds"));
    receipt.peak_memory = IntegerOf(run, "peak_memory");
    if (!std::isfinite(receipt.seconds) || receipt.seconds < 0 || receipt.peak_memory < 0) {
      throw InvalidArgument("no run takes such a time or such a memory");
    }
  } catch (const Error& error) {
    if (error.code() == absl::StatusCode::kFailedPrecondition) throw;
    throw InvalidArgument(absl::StrCat(own.receipt, ": ", error.what()));
  } catch (const Json::exception&) {
    throw InvalidArgument(absl::StrCat(own.receipt, " lacks something that receipts hold"));
  }
  return receipt;
}

void RequireOwnResults(const std::string& plan_sha256, const std::string& plan_path, const CommittedShards& committed) {
  for (const auto& [shard, results] : committed) {
    for (const CommittedShard& own : results) {
      Json plan;
      try {
        plan = ReadReceipt(own.receipt).at("plan");
      } catch (const std::exception&) {
        continue;  // merging tells what is wrong with it
      }
      if (plan == plan_sha256) return;
      const std::string folder = std::filesystem::path(own.path).parent_path().parent_path().string();
      throw FailedPrecondition(absl::StrCat(folder, " holds the results of another plan than ", plan_path,
                                            "; remove that folder, or write the plan to another path"));
    }
  }
}

}  // namespace addend
