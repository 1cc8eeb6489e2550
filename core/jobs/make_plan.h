// Makes the plan of a job: tries the request on the first rows, and takes the digests of all of them.
#ifndef ADDEND_CORE_JOBS_MAKE_PLAN_H_
#define ADDEND_CORE_JOBS_MAKE_PLAN_H_

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/audit/request.h"
#include "core/base/json.h"
#include "core/base/progress.h"
#include "core/document/report_json.h"
#include "core/jobs/job_plan.h"
#include "core/jobs/rows.h"
#include "core/model/model.h"

namespace addend {

// Draft of a job: all that its plan is made from.
struct JobDraft {
  std::string plan_path;  // where the plan will be: relative paths in it begin in its folder
  std::unique_ptr<RowSource> source;
  std::string model;                     // a path
  std::shared_ptr<Model> loaded;         // what is there, and
  std::string model_sha256;              // its digest, where the caller has both; null: it is loaded
  std::optional<c10::ScalarType> dtype;  // as JobPlan::dtype
  std::string device = "cpu";            // where workers compute: "cuda" is the one that each worker is given
  // Splits, baselines, targets and policy of one row; inputs have names but no values. Each row becomes an example of
  // its own. Labels and baselines that are tensors are of one row, [*row] or [1, *row].
  AskedRequest request;
  // Names of all components; empty: those of `input_names`, or by position.
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> input_names;  // by input of the request, of its first components; may be empty
  std::vector<std::string> classes;                   // may be empty
  std::vector<std::string> groups;                    // names of the columns by which the source puts rows together
  std::string concepts;                               // the text of a description of concepts; empty: no reasons
  bool contributions = true;
  std::string format = "safetensors";
  bool stop_at_refusal = false;
  int64_t batch = 256;
  // 0: as many as have about kShardSeconds of work, and `shard_bytes` of inputs and results at most.
  int64_t shards = 0;
  static constexpr double kShardSeconds = 10;
  double shard_bytes = 64 << 20;  // a worker holds about five times as many
};

struct MadePlan {
  JobPlan plan;
  double rows_per_second = 0;  // of one worker, measured on the first batch

  // That one worker takes for all rows, at that rate.
  double seconds() const { return static_cast<double>(plan.rows) / rows_per_second; }
};

// {"format": "addend.job_made", "version": 1, ...}
Json MadePlanJson(const MadePlan& made, const std::string& path);

// Loads the model and takes its digest, unless the draft has both.
void LoadModelOf(JobDraft& draft);

// Throws what reading rows, loading the model and attributing the first batch throw, each row of which may be refused
// as long as one is left; InvalidArgument for several baselines, names that are not as many as the components, and
// requests that hold neither contributions nor reasons, and components that are called as another column of the results
// is; FailedPrecondition where rows influence each other, and where
// the model draws random numbers. progress: shards whose digest is taken.
MadePlan MakeJobPlan(JobDraft draft, const Writer& writer, const Progress& progress = nullptr);

}  // namespace addend

#endif  // ADDEND_CORE_JOBS_MAKE_PLAN_H_
