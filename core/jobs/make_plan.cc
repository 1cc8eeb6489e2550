#include "core/jobs/make_plan.h"

#include <ATen/Functions.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/audit/environment.h"
#include "core/audit/model_source.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/document/components.h"
#include "core/explain/examples.h"
#include "core/explain/inside.h"
#include "core/explain/probe.h"
#include "core/jobs/job_runner.h"
#include "core/jobs/shard_table.h"
#include "core/program/random_state.h"

namespace addend {
namespace {

// A tensor of one row so that it broadcasts to any number of rows.
at::Tensor ForEveryRow(const at::Tensor& own, size_t row_dims, const std::string& what) {
  if (!own.defined()) return own;
  const auto dims = static_cast<size_t>(own.dim());
  if (dims == row_dims) return own.unsqueeze(0);
  if (dims == row_dims + 1 && own.size(0) == 1) return own;
  if (dims < row_dims) {
    // One with fewer dimensions would be taken for one of the rows where these are as many.
    at::Tensor whole = own;
    while (whole.dim() <= static_cast<int64_t>(row_dims)) whole = whole.unsqueeze(0);
    return whole;
  }
  throw InvalidArgument(absl::StrCat(what, " are ", ShapeText(own.sizes()),
                                     "; those of a job are of one row, whose number of "
                                     "dimensions is ",
                                     row_dims));
}

// The request as each batch is given it. rows: one row of each input.
AskedRequest ForRows(AskedRequest request, const std::vector<at::Tensor>& rows) {
  if (request.inputs.size() != rows.size()) {
    throw InvalidArgument(absl::StrCat("the request is for ", request.inputs.size(), " inputs, but there are ",
                                       rows.size(), " with rows"));
  }
  request.options.each_example = true;
  request.options.every_target = request.options.targets.size() > 1;
  for (size_t k = 0; k < rows.size(); ++k) {
    Input& input = request.inputs[k];
    if (!input.inside.empty()) throw InvalidArgument("a job splits rows, not tensors inside the model");
    const auto dims = static_cast<size_t>(rows[k].dim()) - 1;
    if (input.split.kind == Split::Kind::kLabels) {
      input.split.labels = ForEveryRow(input.split.labels, dims, "labels");
    }
    if (input.split.kind == Split::Kind::kParts) {
      throw InvalidArgument("a job splits rows along dimensions or by labels, not into explicit parts");
    }
    const auto& split_dims = input.split.dims;
    const bool along_rows = input.split.kind == Split::Kind::kDims &&
                            std::any_of(split_dims.begin(), split_dims.end(),
                                        [&](int64_t dim) { return dim == 0 || dim == -rows[k].dim(); });
    if (along_rows) throw InvalidArgument("dimension 0 counts the rows of a job; split along another one");
    input.baseline.tensor = ForEveryRow(input.baseline.tensor, dims, "baselines");
    input.value = rows[k];
  }
  return request;
}

// Plans know the explained tensor by one text, and nothing of outputs that the request leaves out. Where it names some,
// the text becomes one that means the same tensor among all of them.
void NameExplained(Model& model, AskedRequest& request) {
  AttributeOptions& options = request.options;
  if (options.outputs.empty()) return;
  const std::shared_ptr<ModelState> before = model.KeepState();
  std::vector<at::Tensor> values;
  for (const Input& input : request.inputs) values.push_back(input.value);
  const RandomState drawn(values);
  const RecordedRun run = RecordFor(model, request.inputs, options, PurposeOf(options));
  const RecordedOutput explained = FindExplained(run.outputs, *run.trace, options);
  before->Restore();
  options.outputs.clear();
  std::vector<std::string> texts = {options.at};
  for (const RecordedOutput& output : run.outputs) texts.push_back(output.name);
  for (int64_t call = explained.probe.after_call; call >= 0; --call) texts.push_back(absl::StrCat("#", call));
  for (const std::string& text : texts) {
    options.at = text;
    try {
      const Probe found = FindExplained(run.outputs, *run.trace, options).probe;
      if (SameTensor(found, explained.probe)) return;
    } catch (const Error&) {  // it means nothing here
    }
  }
  throw InvalidArgument(absl::StrCat("a plan of a job has no name for ", explained.name,
                                     " among all outputs of the model; explain another tensor"));
}

// `request`: of the draft, for rows.
std::vector<std::string> NamesOf(const AskedRequest& request, const JobDraft& draft, int64_t numc) {
  if (!draft.names.empty()) {
    if (static_cast<int64_t>(draft.names.size()) != numc) {
      throw InvalidArgument(
          absl::StrCat(draft.names.size(), " names are given, but a row is split into ", numc, " components"));
    }
    return draft.names;
  }
  std::vector<ExplainedInput> inputs;
  for (const Input& input : request.inputs) {
    inputs.push_back(DescribeInput(input));
    const size_t k = inputs.size() - 1;
    if (k < draft.input_names.size()) inputs[k].names = draft.input_names[k];
  }
  std::vector<std::string> found;
  for (const Component& component : NameComponents(inputs, numc).list) found.push_back(component.name);
  return found;
}

// About how many bytes a row and its result have.
double RowBytes(const JobPlan& plan) {
  const double numbers = (plan.contributions ? static_cast<double>(plan.components.size()) : 0) + 4;
  double bytes = 8 * numbers * static_cast<double>(plan.targets());
  for (const JobInput& input : plan.inputs) {
    bytes +=
        static_cast<double>(c10::elementSize(input.dtype)) * static_cast<double>(c10::multiply_integers(input.shape));
  }
  return bytes;
}

// Throws InvalidArgument where names do not tell the columns of the results apart.
void RequireColumns(const JobPlan& plan, int64_t reasons) {
  std::set<std::string> names;
  for (const std::string& name : ColumnsOf(plan, reasons)) {
    if (names.insert(name).second) continue;
    throw InvalidArgument(
        absl::StrCat("two columns of the results would be called \"", name,
                     "\"; give the components names of their own, as by --names, that no other column has"));
  }
}

// Whether all inputs are float64 or ids.
bool IsExact(const std::vector<at::Tensor>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const at::Tensor& row) {
    return row.scalar_type() == at::kDouble || !at::isFloatingType(row.scalar_type());
  });
}

}  // namespace

Json MadePlanJson(const MadePlan& made, const std::string& path) {
  const JobPlan& plan = made.plan;
  return {{"format", "addend.job_made"},
          {"version", 1},
          {"path", path},
          {"sha256", Sha256OfPlan(plan)},
          {"rows", plan.rows},
          {"shards", plan.shards()},
          {"shard_rows", plan.shard_rows},
          {"batch", plan.batch},
          {"components", plan.components.size()},
          {"ready", plan.ready},
          {"rows_per_second", made.rows_per_second},
          {"seconds", made.seconds()}};
}

void LoadModelOf(JobDraft& draft) {
  if (draft.loaded != nullptr) return;
  draft.model_sha256 = Sha256OfModel(draft.model);
  ModelSource how;
  how.dtype = draft.dtype;
  how.device = draft.device;
  draft.loaded = LoadModelAs(draft.model, how);
}

MadePlan MakeJobPlan(JobDraft draft, const Writer& writer, const Progress& progress) {
  EndingOf(draft.format);
  if (!draft.contributions && draft.concepts.empty()) {
    throw InvalidArgument("results hold contributions, reasons or both; these would hold neither");
  }
  MadePlan made;
  JobPlan& plan = made.plan;
  plan.rows = draft.source->rows();
  plan.batch = draft.batch;
  ShardRows(plan.rows, plan.batch, 1);  // refuses what cannot be
  plan.model = ToPlan(draft.plan_path, draft.model);
  plan.dtype = draft.dtype;
  plan.classes = draft.classes;
  plan.contributions = draft.contributions;
  plan.groups = draft.groups;
  plan.format = draft.format;
  plan.stop_at_refusal = draft.stop_at_refusal;
  int64_t reasons = 0;
  if (!draft.concepts.empty()) {
    reasons = ReadConcepts(draft.concepts).at_most;
    plan.concepts = Json::parse(draft.concepts);
  }
  LoadModelOf(draft);
  const std::shared_ptr<Model> model = draft.loaded;
  plan.model_sha256 = draft.model_sha256;
  plan.addend = {{"version", writer.version}};
  plan.libtorch = LibTorchJson(writer, draft.device);

  const DataRows first = draft.source->Read(0, std::min(plan.batch, plan.rows));
  plan.first_batch = first.sha256;
  std::vector<at::Tensor> one;
  for (size_t k = 0; k < first.inputs.size(); ++k) {
    const at::Tensor& rows = first.inputs[k];
    const bool named = k < draft.request.inputs.size() && !draft.request.inputs[k].name.empty();
    plan.inputs.push_back({named ? draft.request.inputs[k].name : absl::StrCat("input ", k), rows.scalar_type(),
                           rows.sizes().slice(1).vec()});
    one.push_back(rows.narrow(0, 0, 1).to(DeviceOfWord(draft.device)));
  }
  AskedRequest request = ForRows(std::move(draft.request), one);
  NameExplained(*model, request);
  plan.request = RequestJson(request);
  plan.components = NamesOf(request, draft, Prepare(request.inputs, model->NamedTensors()).numc);
  RequireColumns(plan, reasons);

  // The first batch is attributed as each worker will do it: ready made where the model allows it.
  const std::shared_ptr<const RowSource> source = std::move(draft.source);
  std::optional<JobRunner> worker(std::in_place, plan, model, source, writer);
  try {
    worker->Prepare(first);
  } catch (const Error& error) {
    if (error.code() != absl::StatusCode::kFailedPrecondition && error.code() != absl::StatusCode::kUnimplemented)
      throw;
    plan.ready = false;
    worker.emplace(plan, model, source, writer);
    worker->Prepare(first);
  }
  worker->RequirePureRows(first, IsExact(one));
  const auto begin = std::chrono::steady_clock::now();
  worker->Compute(first);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  made.rows_per_second = static_cast<double>(first.count()) / std::max(seconds.count(), 1e-9);

  int64_t shards = draft.shards;
  if (shards == 0) {
    const double rows =
        std::max(1.0, std::min(made.rows_per_second * JobDraft::kShardSeconds, draft.shard_bytes / RowBytes(plan)));
    shards = static_cast<int64_t>(std::max(1.0, static_cast<double>(plan.rows) / rows));
  }
  plan.shard_rows = ShardRows(plan.rows, plan.batch, shards);
  plan.data = source->Describe(draft.plan_path, plan.shard_rows);
  const int64_t count = CeilDivide(plan.rows, plan.shard_rows);
  for (int64_t shard = 0; shard < count; ++shard) {
    const int64_t at = plan.first_row(shard);
    plan.digests.push_back(source->Digest(at, plan.end_row(shard) - at));
    if (progress) progress(shard + 1, count);
  }
  return made;
}

}  // namespace addend
