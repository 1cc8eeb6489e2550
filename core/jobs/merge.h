// How far a job is, and its results in one file.
#ifndef ADDEND_CORE_JOBS_MERGE_H_
#define ADDEND_CORE_JOBS_MERGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/progress.h"
#include "core/document/report_json.h"
#include "core/jobs/aggregates.h"
#include "core/jobs/job_notes.h"
#include "core/jobs/job_plan.h"

namespace addend {

struct JobStatus {
  int64_t shards = 0;
  int64_t done = 0;  // shards that are committed
  int64_t rows = 0;
  int64_t rows_done = 0;
  int64_t refused = 0;
  int64_t not_finite = 0;           // rows with numbers that are not finite, each as often as it has such targets
  double seconds = 0;               // of computation, over all shards that are done
  double worst_leftover_share = 0;  // |leftover| over |value - reference|, of a row
  double worst_recovery_error = 0;  // Report::worst_recovery_error of a batch
  int64_t peak_memory = 0;          // bytes, of a worker's process
  NoteCounts notes;                 // of the shards that are done
  std::vector<int64_t> missing;     // shards
  std::vector<std::string> wrong;   // what merging would refuse, one line each
  int64_t attempts = 0;             // files of attempts that did not finish, or run now
  int64_t attempt_bytes = 0;
  bool merged = false;  // the success marker is there, and of this plan

  // Seconds that one worker needs for the rest, at the rate so far; negative: not known yet.
  double seconds_left() const;
};

// Reads the receipts of what is committed. Costs a listing and a small file for each shard.
JobStatus StatusOfJob(const JobPlan& plan, const std::string& plan_path);
Json JobStatusJson(const JobStatus& status);

// The rows of all shards in one file, and what they have in common.
struct MergedJob {
  std::string path;  // of the rows of all shards, in their order
  std::string sha256;
  int64_t bytes = 0;
  int64_t rows = 0;
  int64_t refused_rows = 0;
  Json refused;                        // [{"row", "reason"}], the first kMostRefused of them
  std::vector<Aggregates> aggregates;  // by target
  NoteCounts notes;
  std::vector<std::string> machines;  // that computed shards
  double seconds = 0;                 // of work, over all shards
  std::string hash;                   // of "merged.json"

  static constexpr size_t kMostRefused = 1000;
  // Rows with a number that is not finite; see JobStatus.
  int64_t not_finite() const;
};

// {"format": "addend.job_merged", "version": 1, ...}
Json MergedJobJson(const MergedJob& merged);

// Checks every shard by its digest, puts all of them into one file, "merged.safetensors" or "merged.csv" in the folder
// of results, and their aggregates into "merged.json" beside it; "_SUCCESS" is written last. Memory does not grow with
// the rows. What attempts left behind is removed then. Any number of processes may merge at once. Throws
// FailedPrecondition where shards are missing, are damaged, or have two results: how many, with the first of them.
// progress: shards that are done.
MergedJob MergeJob(const JobPlan& plan, const std::string& plan_path, const Progress& progress = nullptr);

// Reads the result of merging from "merged.json"; of the rows in their file only the length is looked at. Throws
// FailedPrecondition, which says what to do, for a job that is not merged, for a document whose hash is not that of its
// content, for that of another plan, and if the rows' file is gone or has another length.
MergedJob ReadMergedJob(const JobPlan& plan, const std::string& plan_path);

}  // namespace addend

#endif  // ADDEND_CORE_JOBS_MERGE_H_
