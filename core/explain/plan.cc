#include "core/explain/plan.h"

#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/explain/baselines.h"
#include "core/explain/inside.h"
#include "core/explain/report.h"
#include "core/explain/same_run.h"
#include "core/explain/verify.h"
#include "core/intercept/tracing_scope.h"
#include "core/linearize/segments.h"
#include "core/model/run_model.h"
#include "core/program/memory.h"
#include "core/program/random_state.h"
#include "core/program/recorder.h"
#include "core/rules/rows.h"
#include "core/run/repeated_run.h"

namespace addend {
namespace {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// How many sizes of batches a plan keeps what it has recorded of.
constexpr size_t kMostSizes = 8;

bool IsPlain(const PreparedInput& input) { return input.kind == Split::Kind::kPlain; }

// Whether the reference of an input depends on its value.
bool ReferenceVaries(const Input& input, const PreparedInput& prepared) {
  if (IsPlain(prepared)) return false;
  if (NeedsValue(input.baseline.word)) return true;
  return prepared.labels.defined() && prepared.labels.numel() > 0 && prepared.labels.min().item<int64_t>() < 0;
}

// A plan has one baseline, whatever becomes of a file that it was read from, and labels that mean the same of any
// number of examples.
std::vector<Input> Settled(std::vector<Input> inputs) {
  for (size_t k = 0; k < inputs.size(); ++k) {
    ReadBaselineFile(inputs[k], k);
    at::Tensor& labels = inputs[k].split.labels;
    const at::Tensor& value = inputs[k].value;
    if (labels.defined() && value.defined() && !AreUnclear(labels, value.sizes())) {
      labels = AlignLabels(labels, value.sizes());
    }
  }
  return inputs;
}

void RequirePlannable(const std::vector<Input>& inputs, const AttributeOptions& options) {
  if (options.memory_bytes != 0) throw InvalidArgument("a plan keeps what it needs; it has no memory limit");
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].inside.empty()) throw InvalidArgument("a split that starts inside the model cannot be planned");
    if (inputs[k].split.kind == Split::Kind::kParts) {
      throw InvalidArgument(absl::StrCat(
          InputName(inputs[k], k), " is given as explicit parts, which belong to one value; they cannot be planned"));
    }
  }
}

}  // namespace

// The recorded run for inputs of one size, and what was found of it.
class AttributionPlan::Sized {
 public:
  Sized(RecordedRun run, std::vector<Input> inputs, const AttributeOptions& options, const NamedTensors& held)
      : inputs_(std::move(inputs)),
        asked_(std::move(run.inputs)),
        declared_(std::move(run.declared)),
        policy_(run.policy),
        outputs_(std::move(run.outputs)),
        explained_(FindExplained(outputs_, *run.trace, options)),
        held_(held) {
    std::vector<RepeatedInput> repeated;
    for (size_t k = 0; k < asked_.inputs.size(); ++k) {
      const bool varies = ReferenceVaries(inputs_[k], asked_.inputs[k]);
      repeated.push_back({IsPlain(asked_.inputs[k]) ? -1 : run.storages[k], !varies});
      references_vary_ = references_vary_ || varies;
    }
    prepared_ = std::make_shared<Preparation>(*run.trace, options.Rules(), policy_,
                                              std::vector<Probe>{explained_.probe}, /*everything=*/false);
    run_ = std::make_unique<const RepeatedRun>(std::move(run.trace), options.Rules(), std::move(repeated),
                                               options.progress);
    // Pieces of the line have references of their own.
    if (policy_.segments <= 1) prepared_->KeepNodes(Linearize(run_->first(), *prepared_), run_->SteadyCalls());
    for (const auto& [name, tensor] : held_) versions_.push_back(WritesTo(tensor));
  }

  // Compares repetitions with what the plain model gives. `model`: null where its owner runs it; then only what the
  // recorded run tells of the baseline is compared. `before`: the state in which the recorded run began; null where
  // `model` is.
  void CompareWithModel(Model* model, ModelState* before, const StageProgress& progress) const {
    std::vector<at::Tensor> baseline;
    std::vector<at::Tensor> near;
    for (const PreparedInput& input : asked_.inputs) {
      baseline.push_back(input.reference);
      near.push_back(input.ids || IsPlain(input) ? input.value
                                                 : (input.value + (input.reference - input.value) * 0.01).contiguous());
    }
    // The model may go another way on the baseline, and what it multiplies by zero there is not seen.
    if (before != nullptr) before->Restore();
    CompareAt(baseline, model, /*on_baseline=*/true, progress);
    if (model == nullptr) return;
    before->Restore();
    CompareAt(near, model, /*on_baseline=*/false, progress);
  }

  Attribution Attribute(const std::vector<at::Tensor>& values, const AttributeOptions& options) const {
    const auto start = Clock::now();
    RequireUnwritten();
    RecordedRun run;
    run.inputs = PrepareValues(values);
    std::vector<at::Tensor> own;
    std::vector<at::Tensor> references;
    for (const PreparedInput& input : run.inputs.inputs) {
      own.push_back(input.value);
      references.push_back(references_vary_ && !IsPlain(input) ? input.reference : at::Tensor());
    }
    const RepeatedRun::Repetition repetition = [&] {
      try {
        return run_->Run(own, references, options.progress);
      } catch (const Error&) {
        throw;
      } catch (const std::exception& e) {
        throw FailsOn(DescribeInputs(own), e);
      }
    }();
    run.trace = repetition.trace();
    const at::Tensor value = run.trace->Value(explained_.probe.operand);
    run.outputs.push_back(explained_);
    run.outputs.back().value = value;
    if (references_vary_) run.outputs.back().on_baseline = at::Tensor();
    run.declared = declared_;
    run.policy = policy_;
    run.prepared = prepared_;
    run.influence = influence_;
    run.seconds = SecondsSince(start);
    // It is the only output, by its own name.
    AttributeOptions own_options = options;
    own_options.at = explained_.name;
    own_options.outputs.clear();
    return AttributeRun(std::move(run), own_options);
  }

  // Whether inputs of these sizes are those of the plan.
  bool Fits(const std::vector<at::Tensor>& values) const {
    for (size_t k = 0; k < values.size(); ++k) {
      if (values[k].defined() && values[k].sizes() != asked_.inputs[k].value.sizes()) return false;
    }
    return true;
  }
  const PreparedInputs& asked() const { return asked_; }

 private:
  void RequireUnwritten() const {
    for (size_t k = 0; k < held_.size(); ++k) {
      if (WritesTo(held_[k].second) == versions_[k]) continue;
      throw FailedPrecondition(
          absl::StrCat(held_[k].first, " was written since the plan was made; make another plan of the model"));
    }
  }

  PreparedInputs PrepareValues(const std::vector<at::Tensor>& values) const {
    const c10::AutoGradMode no_grad(false);
    PreparedInputs prepared = asked_;
    for (size_t k = 0; k < values.size(); ++k) {
      PreparedInput& input = prepared.inputs[k];
      if (!values[k].defined()) {
        if (IsPlain(input)) continue;
        throw InvalidArgument(absl::StrCat(InputName(inputs_[k], k), " is no tensor"));
      }
      if (values[k].scalar_type() != input.value.scalar_type() || values[k].device() != input.value.device() ||
          values[k].layout() != at::kStrided) {
        throw InvalidArgument(absl::StrCat(InputName(inputs_[k], k), " is ", TensorText(values[k]), " on ",
                                           values[k].device().str(), "; the plan is for ", TensorText(input.value),
                                           " on ", input.value.device().str()));
      }
      if (IsPlain(input)) {
        if (values[k].equal(input.value)) continue;
        throw InvalidArgument(
            absl::StrCat(InputName(inputs_[k], k),
                         " is plain and differs from what the plan was made of, which keeps it; make a "
                         "plan for each of its values"));
      }
      input.value = values[k].detach().clone(at::MemoryFormat::Contiguous);
      if (!input.ids && !AllFinite(input.value)) {
        throw InvalidArgument(absl::StrCat(InputName(inputs_[k], k),
                                           " holds NaN or infinity, which no plan takes; attribute it without one"));
      }
    }
    if (!references_vary_) return prepared;
    std::vector<Input> others = inputs_;
    for (size_t k = 0; k < others.size(); ++k) others[k].value = prepared.inputs[k].value;
    return Prepare(others, held_);
  }

  // Compares a repetition with the model; compares nothing if the model goes another way.
  void CompareAt(const std::vector<at::Tensor>& values, Model* model, bool on_baseline,
                 const StageProgress& progress) const {
    std::vector<at::Tensor> own;
    std::vector<at::Tensor> references;
    for (size_t k = 0; k < values.size(); ++k) {
      own.push_back(values[k].clone(at::MemoryFormat::Contiguous));
      references.push_back(references_vary_ && !IsPlain(asked_.inputs[k]) ? asked_.inputs[k].reference : at::Tensor());
    }
    std::optional<RepeatedRun::Repetition> repetition;
    try {
      repetition.emplace(run_->Run(own, references, progress));
    } catch (const Error& error) {
      if (error.code() == absl::StatusCode::kFailedPrecondition) return;
      throw;
    } catch (const c10::Error&) {
      return;  // an operator fails there, as it does for the model
    }
    std::vector<at::Tensor> given;
    if (model != nullptr) {
      try {
        given = RunPlain(*model, asked_, values, policy_.compute_dtype, ", to be compared");
      } catch (const Error&) {
        return;  // it does not take such an input
      }
    }
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const RecordedOutput& output = outputs_[k];
      const at::Tensor expected = model == nullptr   ? output.on_baseline
                                  : k < given.size() ? given[k]
                                                     : output.value.new_empty({0});
      if (!expected.defined()) continue;
      Report report;
      CompareReference(output.name, repetition->trace()->Value(output.probe.operand), expected, nullptr, report);
      if (report.reference_is_model_on_baseline != "no") continue;
      throw FailedPrecondition(absl::StrCat(
          "the model cannot be planned: ", on_baseline ? "on the baseline" : "near its input", " it gives another ",
          output.name, " than the operators that it called: something is computed that LibTorch's dispatcher does not ",
          "see, such as numbers read through NumPy; attribute it without a plan"));
    }
  }

  std::vector<Input> inputs_;
  PreparedInputs asked_;
  std::vector<size_t> declared_;
  Policy policy_;
  std::vector<RecordedOutput> outputs_;
  RecordedOutput explained_;
  NamedTensors held_;
  std::vector<int64_t> versions_;
  bool references_vary_ = false;
  std::shared_ptr<Preparation> prepared_;
  const std::shared_ptr<KnownInfluence> influence_ = std::make_shared<KnownInfluence>();
  std::unique_ptr<const RepeatedRun> run_;
};

struct AttributionPlan::Parts {
  std::shared_ptr<Model> model;  // null: its owner ran it
  std::vector<Input> inputs;
  AttributeOptions options;
  std::shared_ptr<const Sized> first;

  // Runs for inputs of other sizes, the last used first.
  std::mutex mutex;
  std::vector<std::shared_ptr<const Sized>> others;

  std::shared_ptr<const Sized> Record(std::vector<Input> with, const StageProgress& progress) const {
    const TracingPause pause;
    AttributeOptions own = options;
    own.progress = progress;
    const std::shared_ptr<ModelState> before = model->KeepState();
    RecordedRun run = RecordFor(*model, with, own, PurposeOf(own));
    const std::shared_ptr<ModelState> after = model->KeepState();
    const std::string changed = before->Difference();
    if (!changed.empty()) RequireSteady(run, changed);
    try {
      auto sized = std::make_shared<const Sized>(std::move(run), std::move(with), own, model->NamedTensors());
      sized->CompareWithModel(model.get(), before.get(), progress);
      after->Restore();
      return sized;
    } catch (...) {
      after->Restore();
      throw;
    }
  }
  // Throws where a run changes what the next one gives. `changed`: what it left otherwise; the run is over.
  void RequireSteady(const RecordedRun& run, const std::string& changed) const {
    std::vector<at::Tensor> values;
    std::vector<std::pair<std::string, at::Tensor>> outputs;
    for (const PreparedInput& input : run.inputs.inputs) values.push_back(input.value);
    for (const RecordedOutput& output : run.outputs) outputs.emplace_back(output.name, output.value.detach().clone());
    const RandomState random(values);
    const std::shared_ptr<ModelState> after = model->KeepState();
    std::vector<at::Tensor> again;
    try {
      again = RunPlain(*model, run.inputs, values, run.policy.compute_dtype, ", once more");
    } catch (const Error&) {  // which is another answer, too
    }
    after->Restore();
    const std::string apart = FirstApart(outputs, again);
    if (apart.empty()) return;
    throw FailedPrecondition(absl::StrCat("the model cannot be planned: a run changes ", changed,
                                          ", and the next one gives another ", apart, "; attribute it without a plan"));
  }
  // Finds the run for inputs of these sizes; null if there is none yet. The mutex is held.
  std::shared_ptr<const Sized> Known(const std::vector<at::Tensor>& values) {
    const auto found =
        std::find_if(others.begin(), others.end(), [&](const auto& sized) { return sized->Fits(values); });
    if (found == others.end()) return nullptr;
    std::rotate(others.begin(), found, found + 1);
    return others.front();
  }
};

AttributionPlan::AttributionPlan(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
AttributionPlan::~AttributionPlan() = default;

std::shared_ptr<const AttributionPlan> AttributionPlan::Make(std::shared_ptr<Model> model,
                                                             const std::vector<Input>& example,
                                                             const AttributeOptions& options) {
  if (model == nullptr) throw InvalidArgument("there is no model");
  RequirePlannable(example, options);
  auto parts = std::make_unique<Parts>();
  parts->model = std::move(model);
  parts->inputs = Settled(example);
  parts->options = options;
  parts->options.references = nullptr;
  parts->first = parts->Record(parts->inputs, options.progress);
  // Targets and outputs that do not fit are told now.
  std::vector<at::Tensor> values;
  for (const Input& input : example) values.push_back(input.value);
  parts->first->Attribute(values, parts->options);
  parts->options.progress = nullptr;
  return std::shared_ptr<const AttributionPlan>(new AttributionPlan(std::move(parts)));
}

std::shared_ptr<const AttributionPlan> AttributionPlan::Of(
    RecordedRun run, const std::vector<Input>& inputs, const AttributeOptions& options,
    const std::vector<std::pair<std::string, at::Tensor>>& held) {
  RequirePlannable(inputs, options);
  auto parts = std::make_unique<Parts>();
  parts->inputs = Settled(inputs);
  parts->options = options;
  parts->options.references = nullptr;
  // The run may have written the inputs themselves.
  std::vector<at::Tensor> values;
  for (const PreparedInput& input : run.inputs.inputs) values.push_back(input.value);
  auto sized = std::make_shared<const Sized>(std::move(run), parts->inputs, parts->options, held);
  sized->CompareWithModel(nullptr, nullptr, options.progress);
  sized->Attribute(values, parts->options);
  parts->first = std::move(sized);
  parts->options.progress = nullptr;
  return std::shared_ptr<const AttributionPlan>(new AttributionPlan(std::move(parts)));
}

const AttributeOptions& AttributionPlan::options() const { return parts_->options; }
const std::vector<Input>& AttributionPlan::inputs() const { return parts_->inputs; }

std::shared_ptr<const AttributionPlan::Sized> AttributionPlan::For(const std::vector<at::Tensor>& values,
                                                                   const StageProgress& progress) const {
  const PreparedInputs& asked = parts_->first->asked();
  if (values.size() != asked.inputs.size()) {
    throw InvalidArgument(
        absl::StrCat("the plan is for ", asked.inputs.size(), " inputs, but ", values.size(), " are given"));
  }
  if (parts_->first->Fits(values)) return parts_->first;
  // A plan accepts other numbers of examples, but no other shapes.
  std::vector<Input> with = parts_->inputs;
  int64_t examples = -1;
  for (size_t k = 0; k < values.size(); ++k) {
    const at::Tensor& planned = asked.inputs[k].value;
    if (IsPlain(asked.inputs[k])) {
      with[k].value = planned;
      if (!values[k].defined() || values[k].sizes() == planned.sizes()) continue;
    } else if (values[k].defined() && parts_->options.each_example && values[k].dim() == planned.dim() &&
               values[k].dim() > 0 && values[k].sizes().slice(1) == planned.sizes().slice(1) && values[k].size(0) > 0 &&
               (examples < 0 || values[k].size(0) == examples)) {
      examples = values[k].size(0);
      with[k].value = values[k];
      continue;
    }
    throw InvalidArgument(absl::StrCat(InputName(parts_->inputs[k], k), " is ",
                                       values[k].defined() ? TensorText(values[k]) : "no tensor", "; the plan is for ",
                                       TensorText(planned),
                                       parts_->options.each_example ? ", or another number of examples of it" : ""));
  }
  if (parts_->model == nullptr) {
    throw InvalidArgument("a plan of a live model is for one number of examples; make another plan for this one");
  }
  {
    const std::lock_guard<std::mutex> lock(parts_->mutex);
    if (std::shared_ptr<const Sized> known = parts_->Known(values)) return known;
  }
  // Record outside the lock, so that rows of known sizes are not blocked.
  std::shared_ptr<const Sized> recorded = parts_->Record(std::move(with), progress);
  const std::lock_guard<std::mutex> lock(parts_->mutex);
  if (std::shared_ptr<const Sized> known = parts_->Known(values)) return known;
  parts_->others.insert(parts_->others.begin(), recorded);
  if (parts_->others.size() > kMostSizes) parts_->others.pop_back();
  return recorded;
}

Attribution AttributionPlan::Attribute(const std::vector<at::Tensor>& values, const StageProgress& progress) const {
  if (parts_->model != nullptr) parts_->model->RequireUnchanged();
  const std::shared_ptr<const Sized> sized = For(values, progress);
  Attribution attribution = [&] {
    if (!progress) return sized->Attribute(values, parts_->options);
    AttributeOptions options = parts_->options;
    options.progress = progress;
    return sized->Attribute(values, options);
  }();
  if (parts_->model == nullptr) return attribution;
  AddModelNotes(parts_->model->Notes(), attribution.report);
  return attribution;
}

}  // namespace addend
