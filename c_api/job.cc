// Jobs: data sets in shards.
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "c_api/attribution.h"
#include "c_api/bodies.h"
#include "c_api/explanation.h"
#include "c_api/options.h"
#include "c_api/run.h"
#include "c_api/structure.h"
#include "c_api/warnings.h"
#include "core/audit/tensors.h"
#include "core/intercept/tracing_scope.h"
#include "core/jobs/job_runner.h"
#include "core/jobs/make_plan.h"
#include "core/jobs/merge.h"
#include "core/program/tensor_io.h"

namespace addend::c_api {

// One worker, whose shards are computed one after the other.
struct JobBody {
  struct Worker {
    explicit Worker(const std::string& plan) : runner(plan, nullptr, ThisLibrary()) {}
    std::mutex mutex;
    JobRunner runner;
  };
  std::shared_ptr<Worker> worker;
};

namespace {

int64_t CountOf(JsonOptions& read, const std::string& key, int64_t usual) {
  const Json given = read.Read(key);
  if (given.is_null()) return usual;
  if (!given.is_number_integer() || given.get<int64_t>() < 1) {
    throw InvalidArgument("options: \"" + key + "\" is a whole number from 1 on");
  }
  return given.get<int64_t>();
}

JobDraft DraftOf(const std::string& plan, const std::string& model, const ContextBody& context,
                 const RequestBody& request, const char* options) {
  JobDraft draft;
  draft.plan_path = plan;
  draft.model = model;
  JsonOptions read(options);
  std::vector<std::string> inputs;
  read.Read("inputs", &inputs);
  read.Read("groups", &draft.groups);
  read.Read("names", &draft.names);
  read.Read("classes", &draft.classes);
  read.Read("contributions", &draft.contributions);
  read.Read("format", &draft.format);
  read.Read("stop_at_refusal", &draft.stop_at_refusal);
  std::string dtype;
  read.Read("dtype", &dtype);
  if (!dtype.empty()) draft.dtype = DtypeOfWord(dtype);
  read.Read("device", &draft.device);
  const Json concepts = read.Read("concepts");
  if (!concepts.is_null()) draft.concepts = Dump(concepts);
  draft.batch = CountOf(read, "batch", draft.batch);
  draft.shards = CountOf(read, "shards", draft.shards);
  read.RequireAllRead();
  if (inputs.empty()) {
    throw InvalidArgument("options: \"inputs\" names a file with the rows of each input of the model");
  }
  std::vector<TensorPlace> places;
  for (const std::string& input : inputs) places.push_back(ParseTensorPlace(input));
  std::vector<TensorPlace> groups;
  for (const std::string& group : draft.groups) groups.push_back({places.front().path, group});
  draft.source = OpenTensorRows(places, groups);
  if (!request.inside.empty()) throw InvalidArgument("a job splits rows, not tensors inside the model");
  RequireOneBaseline(request.inputs);
  LoadModelOf(draft);
  const std::vector<RequestInput> arranged = Arrange(draft.loaded->InputNames(), request.inputs);
  for (const RequestInput& input : arranged) draft.input_names.push_back(input.names);
  draft.request.inputs = InputsOf(arranged);
  draft.request.options = AttributeOptionsOf(context, request);
  draft.request.options.progress = nullptr;
  draft.request.own_rules = draft.request.options.registry != nullptr;
  draft.request.structured = StructureOfExample(request) != nullptr;
  return draft;
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_job_plan(const addend_context* context, const char* plan, const char* model,
                                          const addend_request* request, const char* options,
                                          addend_string** out_json) noexcept {
  return Guard(DetailOf(context), [&] {
    const std::string path = Text(plan, "plan");
    const std::string model_path = Text(model, "model");
    const ContextBody& asked = ContextOf(context);
    const RequestBody& body = Get(request, "request");
    RequireReadyForOne(body);
    RequireOut(out_json, "out_json");
    const WarningsToLog warnings(asked.log);
    const MadePlan made = MakeJobPlan(DraftOf(path, model_path, asked, body, options), ThisLibrary());
    SaveJobPlan(made.plan, path);
    Give(out_json, Dump(MadePlanJson(made, path)));
  });
}

ADDEND_API addend_status* addend_job_open(const char* plan, addend_job** out_job) noexcept {
  return Guard([&] {
    const std::string path = Text(plan, "plan");
    RequireOut(out_job, "out_job");
    const TracingPause pause;
    JobBody body;
    body.worker = std::make_shared<JobBody::Worker>(path);
    Give(out_job, std::move(body));
  });
}

ADDEND_API size_t addend_job_num_shards(const addend_job* job) noexcept {
  const JobBody* body = Peek(job);
  return body == nullptr ? 0 : static_cast<size_t>(body->worker->runner.plan().shards());
}

ADDEND_API addend_status* addend_job_run(addend_job* job, int64_t shard, const char* options,
                                         addend_string** out_receipt) noexcept {
  return Guard([&] {
    const std::shared_ptr<JobBody::Worker> worker = Get(job, "job").worker;
    bool again = false;
    JsonOptions read(options);
    read.Read("again", &again);
    read.RequireAllRead();
    RequireOut(out_receipt, "out_receipt");
    const TracingPause pause;
    const std::lock_guard<std::mutex> lock(worker->mutex);
    Give(out_receipt, Dump(worker->runner.Run(shard, again)));
  });
}

ADDEND_API addend_status* addend_job_status(const char* plan, addend_string** out_json) noexcept {
  return Guard([&] {
    const std::string path = Text(plan, "plan");
    RequireOut(out_json, "out_json");
    Give(out_json, Dump(JobStatusJson(StatusOfJob(LoadJobPlan(path), path))));
  });
}

ADDEND_API addend_status* addend_job_merge(const char* plan, addend_string** out_json) noexcept {
  return Guard([&] {
    const std::string path = Text(plan, "plan");
    RequireOut(out_json, "out_json");
    Give(out_json, Dump(MergedJobJson(MergeJob(LoadJobPlan(path), path))));
  });
}

ADDEND_API void addend_job_release(addend_job* job) noexcept { Release(job); }

}  // extern "C"

}  // namespace addend::c_api
