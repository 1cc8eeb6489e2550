// Plans of jobs: everything that the results of a data set depend on, in one JSON document, so that a shard is a pure
// function of the plan, whoever computes it, when, and how often.
//
// Note [Jobs]
// A job attributes every row of a data set. Its plan cuts the rows into shards, and shards into batches; batches are in
// the plan because bits depend on which rows are multiplied together. A shard's length is a multiple of the batch's, so
// that any number of shards gives the same bits. Engines (Dask, Slurm, xargs) only start shards; they may start one
// twice and lose any number of them. A worker refuses to start where the plan's digests or its environment (versions,
// BLAS, instructions of the CPU, threads) are not what it finds. core/jobs/commit.h says how results become visible.
#ifndef ADDEND_CORE_JOBS_JOB_PLAN_H_
#define ADDEND_CORE_JOBS_JOB_PLAN_H_

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace addend {

inline constexpr char kJobFormat[] = "addend.job";
inline constexpr int64_t kJobVersion = 1;

// An input of the model, of which workers are given batches of rows [count, *shape].
struct JobInput {
  std::string name;
  c10::ScalarType dtype = c10::kFloat;
  std::vector<int64_t> shape;  // of a row
};

struct JobPlan {
  // Origin of the rows, as RowSource::Describe() says it. "kind" is "tensors" if this library reads them.
  Json data;
  std::vector<JobInput> inputs;
  int64_t rows = 0;
  int64_t batch = 0;                 // rows that are attributed together
  int64_t shard_rows = 0;            // of each shard but the last: a multiple of the batch
  std::vector<std::string> digests;  // by shard: of its rows, as RowSource::Digest() gives it
  std::string first_batch;           // the digest of the rows that the attribution is planned with

  std::string model;  // a path
  std::string model_sha256;
  std::optional<c10::ScalarType> dtype;  // what the model's numbers are converted to

  Json request;       // as RequestJson() writes it, each row an example of its own
  bool ready = true;  // whether the attribution is made ready once (core/explain/plan.h), which not every model allows
  std::vector<std::string> components;  // their names
  std::vector<std::string> classes;     // along the last dimension of the output; may be empty

  bool contributions = true;           // whether results hold them
  Json concepts;                       // a description of concepts, whose reasons the results hold; null: none
  std::vector<std::string> groups;     // columns that rows are put together by
  std::string format = "safetensors";  // of results: or "csv"
  bool stop_at_refusal = false;        // whether a row that is refused ends its shard

  Json addend;    // {"version"}
  Json libtorch;  // as LibTorchJson() gives it
  // The device on which workers compute: "cpu", "cuda".
  std::string device() const { return libtorch.at("device").get<std::string>(); }

  int64_t shards() const { return static_cast<int64_t>(digests.size()); }
  int64_t first_row(int64_t shard) const { return shard * shard_rows; }
  int64_t end_row(int64_t shard) const { return std::min(rows, (shard + 1) * shard_rows); }
  // How many targets each row has.
  size_t targets() const { return request.at("targets").size(); }
  // How many rows pages show one by one, about, as a share of all.
  double sampled() const {
    return rows <= kSampledRows ? 1 : static_cast<double>(kSampledRows) / static_cast<double>(rows);
  }
  static constexpr int64_t kSampledRows = 1000;
};

// The least number that times `by` is `number` at least, of numbers from 1 on.
inline int64_t CeilDivide(int64_t number, int64_t by) { return (number - 1) / by + 1; }

inline constexpr int64_t kMostBatch = 2147483647;
// How many rows a shard has where `rows` are cut into about `shards`, but no more than there are batches: a multiple of
// the batch. Throws InvalidArgument for numbers below 1, for batches beyond kMostBatch, and where there are no rows.
int64_t ShardRows(int64_t rows, int64_t batch, int64_t shards);

// {"format": "addend.job", "version": 1, ..., "sha256": of the canonical JSON of everything else}
Json JobPlanJson(const JobPlan& plan);
// SHA-256 of a plan's content, by which its results name it.
std::string Sha256OfPlan(const JobPlan& plan);
// Reads a plan again. `name` stands for it in messages. Throws InvalidArgument for what is no plan, for one of a newer
// version, and for one whose digest is not that of its content.
JobPlan ReadJobPlan(const std::string& text, const std::string& name);

// Read and write plans as files; throw what reading and writing files throws, too. SaveJobPlan() writes nothing and
// throws FailedPrecondition if the plan's folder of results holds those of another plan.
JobPlan LoadJobPlan(const std::string& path);
void SaveJobPlan(const JobPlan& plan, const std::string& path);

// The folder of a plan's results: "rows.out" for "rows.json".
std::string ResultsFolder(const std::string& plan_path);
// A path that a plan holds, as this process can open it: relative ones begin in the folder of the plan.
std::string FromPlan(const std::string& plan_path, const std::string& path);
// The other way: a path as this process opens it, for a plan. Absolute ones stay as they are; so do links under the
// plan's folder, which move along with it. Throws InvalidArgument for a path that is not UTF-8.
std::string ToPlan(const std::string& plan_path, const std::string& path);

}  // namespace addend

#endif  // ADDEND_CORE_JOBS_JOB_PLAN_H_
