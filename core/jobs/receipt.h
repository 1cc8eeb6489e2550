// Receipts of shards: what a shard says of itself beside its rows, and whether that can be.
#ifndef ADDEND_CORE_JOBS_RECEIPT_H_
#define ADDEND_CORE_JOBS_RECEIPT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/jobs/aggregates.h"
#include "core/jobs/commit.h"
#include "core/jobs/job_notes.h"
#include "core/jobs/job_plan.h"

namespace addend {

inline constexpr char kReceiptFormat[] = "addend.shard";
inline constexpr int64_t kReceiptVersion = 1;

struct ShardReceipt {
  Json json;  // all of it
  int64_t rows = 0;
  std::vector<Aggregates> aggregates;  // by target
  NoteCounts notes;
  std::string machine;
  double seconds = 0;
  int64_t peak_memory = 0;

  const Json& refused() const { return json.at("refused"); }  // [{"row", "reason"}]
};

// The receipt of a result. plan_sha256: of the plan. Throws what ReadReceipt() throws; FailedPrecondition for the
// receipt of another plan, with what to do; and InvalidArgument for one that no worker of this plan wrote for this
// shard. Messages begin with the receipt's path.
ShardReceipt ReadShardReceipt(const JobPlan& plan, const std::string& plan_sha256, int64_t shard,
                              const CommittedShard& own);

// Throws FailedPrecondition, which says what to do, where these results, of a plan's folder, are those of another plan:
// told by the first receipt that can be read, and by no more than that.
void RequireOwnResults(const std::string& plan_sha256, const std::string& plan_path, const CommittedShards& committed);

}  // namespace addend

#endif  // ADDEND_CORE_JOBS_RECEIPT_H_
