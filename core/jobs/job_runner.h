// A worker of a job: holds the model and what is made ready of the request, and computes shards.
//
// Note [Rows that are refused]
// A row is refused, with a reason, where its elements are not finite, where its source could not read it, and where the
// model or the attribution fails on it. Where a batch fails, its rows are attributed one by one, and those that fail
// alone are refused. That again is a pure function of the plan. Failures of the machine (no memory) end the shard.
#ifndef ADDEND_CORE_JOBS_JOB_RUNNER_H_
#define ADDEND_CORE_JOBS_JOB_RUNNER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/audit/request.h"
#include "core/base/json.h"
#include "core/base/progress.h"
#include "core/document/concepts.h"
#include "core/document/report_json.h"
#include "core/explain/influence.h"
#include "core/explain/plan.h"
#include "core/jobs/aggregates.h"
#include "core/jobs/commit.h"
#include "core/jobs/job_notes.h"
#include "core/jobs/job_plan.h"
#include "core/jobs/rows.h"
#include "core/jobs/shard_table.h"
#include "core/model/model.h"

namespace addend {

// Rows of a shard, attributed.
struct ComputedShard {
  std::string bytes;                   // of the result's file
  std::vector<Aggregates> aggregates;  // by target
  std::vector<RefusedRow> refused;
  NoteCounts notes;   // of the runs that rows were attributed by
  int64_t alone = 0;  // rows that were attributed one by one, because their batch failed
};

class JobRunner {
 public:
  // Reads the plan and loads its model. `source`: where rows come from; null: as the plan says, which is possible for
  // rows in tensors. Throws what reading throws; FailedPrecondition where the model's digest is not the plan's, and
  // where this process differs from the one that made the plan in a way that changes bits, with both.
  JobRunner(const std::string& plan_path, std::shared_ptr<const RowSource> source, const Writer& writer);
  // Runs a plan that was not written yet, to try it: no digests or environments are compared.
  JobRunner(JobPlan plan, std::shared_ptr<Model> model, std::shared_ptr<const RowSource> source, const Writer& writer);

  const JobPlan& plan() const { return plan_; }
  const RowSource& source() const { return *source_; }

  // Attributes rows of one shard, or some that begin with a batch. Throws InvalidArgument where the plan has
  // `stop_at_refusal` and a row is refused. progress: rows that are done.
  ComputedShard Compute(const DataRows& rows, const Progress& progress = nullptr);

  // Reads a shard, computes it and commits it to the folder of results; one that is there already is left as it is,
  // unless `again`. Gives its receipt. Throws InvalidArgument for a shard that the plan does not have, and
  // FailedPrecondition where the rows have another digest than the plan says, and where the folder holds results of
  // another plan.
  Json Run(int64_t shard, bool again = false, const Progress& progress = nullptr);

  // Makes the attribution ready with the rows of the first batch, as every worker does before its first shard. Throws
  // FailedPrecondition where they are not those of the plan, where all of them are refused, and where the plan says
  // that the attribution can be made ready and it cannot.
  void Prepare(const DataRows& first);
  // Attributes these rows twice, and the first and the last of them alone. Throws FailedPrecondition where the second
  // time has other bits than the first, as of a model that draws random numbers, and where a row alone has something
  // else than among the others. exact: as of RequireNoInfluence().
  void RequirePureRows(const DataRows& rows, bool exact);

 private:
  void ReadRequest();
  Attribution Attribute(const std::vector<at::Tensor>& rows);
  std::vector<Input> InputsOf(const std::vector<at::Tensor>& rows) const;
  // Rows where the model is.
  std::vector<at::Tensor> OnDevice(const std::vector<at::Tensor>& rows) const;
  DataRows ReadShard(int64_t shard) const;
  // The result of a shard that is there. Lists the folder of results only so often that this takes about a hundredth
  // of the time: with many shards a listing before each of them costs more than their work. What others did since then
  // is computed once more, with the same bytes.
  std::optional<CommittedShard> FindDone(int64_t shard);
  // Numbers, by component, that a row of these inputs has for it; NaN for a component that is no single element.
  std::vector<double> ElementsOf(const std::vector<at::Tensor>& values, int64_t row) const;
  void Take(const DataRows& rows, const std::vector<int64_t>& places, const std::vector<at::Tensor>& values,
            const Attribution& attribution, ShardTable& table, ComputedShard& computed) const;

  std::string plan_path_;
  JobPlan plan_;
  std::string plan_sha256_;  // empty: it was not written yet
  std::shared_ptr<const RowSource> source_;
  Writer writer_;
  std::shared_ptr<Model> model_;
  c10::Device device_ = c10::Device(c10::kCPU);  // of the model, where rows are sent to
  AskedRequest request_;
  std::optional<Concepts> concepts_;
  std::vector<int64_t> single_;  // by component: which element of a row it is, input after input; -1: no single one
  bool prepared_ = false;
  CommittedShards listed_;
  std::chrono::steady_clock::time_point list_again_;  // when it is due
  std::shared_ptr<const AttributionPlan> ready_;      // null: the model runs for each batch
  std::shared_ptr<KnownInfluence> influence_ = std::make_shared<KnownInfluence>();
};

// The rows of a plan, where they are tensors. Throws what opening them throws, and Unimplemented for rows that only the
// program addend reads.
std::unique_ptr<RowSource> OpenRows(const JobPlan& plan, const std::string& plan_path);

// Throws FailedPrecondition that lists the differences, where this process is not what the plan was made for.
void RequireSameEnvironment(const JobPlan& plan, const Writer& writer);

}  // namespace addend

#endif  // ADDEND_CORE_JOBS_JOB_RUNNER_H_
