#include "core/explain/recorded_model.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/explain/notes.h"
#include "core/explain/probe.h"
#include "core/explain/same_run.h"
#include "core/model/run_model.h"
#include "core/program/memory.h"
#include "core/program/output_names.h"
#include "core/program/random_state.h"
#include "core/program/recorder.h"
#include "core/program/traced_calls.h"

namespace addend {
namespace {

// Runs that follow a model's run and begin as it began. Remembers, before the model runs, what they need for that: the
// state of random numbers, and what the model holds.
class LaterRuns {
 public:
  // `model` lives as long as this does. `compute`: what the model's run is computed in.
  LaterRuns(Model& model, const PreparedInputs& inputs, ComputeDtype compute)
      : model_(model),
        inputs_(inputs),
        compute_(compute),
        before_(model.KeepState()),
        random_(ValuesOf(inputs)),
        held_(model.NamedTensors()) {
    for (const auto& [name, tensor] : held_) versions_.push_back(WritesTo(tensor));
  }

  // Whoever draws next draws what they would have drawn.
  ~LaterRuns() { random_.Leave(); }
  LaterRuns(const LaterRuns&) = delete;
  LaterRuns& operator=(const LaterRuns&) = delete;

  // The model's run is over, and gave these.
  void SetOutputs(const std::vector<RecordedOutput>& outputs) {
    for (const RecordedOutput& output : outputs) outputs_.emplace_back(output.name, output.value.detach().clone());
    for (size_t k = 0; k < held_.size(); ++k) {
      if (WritesTo(held_[k].second) != versions_[k]) written_.push_back(held_[k].second);
    }
  }

  // The outputs of the model on the baseline.
  std::vector<at::Tensor> OnBaseline() {
    std::vector<at::Tensor> references;
    for (const PreparedInput& input : inputs_.inputs) references.push_back(input.BaselineAsked());
    return FromBefore(references, ", the baseline");
  }

  void RequireSame() {
    if (same_) return;
    const std::string output = FirstApart(outputs_, FromBefore(ValuesOf(inputs_), ", once more"));
    same_ = output.empty();
    if (same_) return;
    std::vector<c10::IValue> arguments;
    for (const PreparedInput& input : inputs_.inputs) arguments.emplace_back(input.value.clone());
    throw RunsApart(output, WhereRunsPart(model_, arguments));
  }

 private:
  // Whoever draws and runs behind this finds what they would have found.
  std::vector<at::Tensor> FromBefore(const std::vector<at::Tensor>& values, const std::string& which) {
    const std::shared_ptr<ModelState> after = model_.KeepState();
    KeptTensors written;
    for (const at::Tensor& tensor : written_) written.Add("", tensor, /*elements=*/true);
    const auto put_back = [&] {
      after->Restore();
      written.Restore();
    };
    const RandomState drawn(ValuesOf(inputs_));
    before_->Restore();
    random_.Restore();
    try {
      std::vector<at::Tensor> found = RunPlain(model_, inputs_, values, compute_, which);
      put_back();
      return found;
    } catch (...) {
      put_back();
      throw;
    }
  }

  Model& model_;
  const PreparedInputs inputs_;
  const ComputeDtype compute_;
  const std::shared_ptr<ModelState> before_;
  RandomState random_;
  const std::vector<std::pair<std::string, at::Tensor>> held_;
  std::vector<int64_t> versions_;
  std::vector<at::Tensor> written_;
  std::vector<std::pair<std::string, at::Tensor>> outputs_;
  bool same_ = false;  // a second run was the first
};

// Runs the model with tracing on, on copies of the inputs. `storages`: gets, by input, the storage of each.
c10::IValue RunTraced(Model& model, const PreparedInputs& inputs, const RunOptions& options, Tracer& tracer,
                      std::vector<int>& storages) {
  for (const auto& [name, tensor] : model.NamedTensors()) tracer.recorder().NameStorage(tensor, name);
  tracer.recorder().SetModulePaths(model.ModulePaths());
  std::vector<c10::IValue> arguments;
  for (const PreparedInput& input : inputs.inputs) {
    // The run may write its inputs; what was prepared stays as it is.
    const at::Tensor value = input.value.clone();
    if (input.inside.call < 0) arguments.emplace_back(value);
    AddInput(input, value, tracer);
    storages.push_back(tracer.StorageOf(value));
  }
  ReportingRecorder recorder(&tracer, &options.progress);
  try {
    const TracingScope scope(&recorder);
    return RunModel(model, arguments, DescribeInputs(ValuesOf(inputs)));
  } catch (...) {
    // The interpreter hands on our errors as its own; the first one is the cause.
    if (recorder.error()) std::rethrow_exception(recorder.error());
    if (tracer.error()) std::rethrow_exception(tracer.error());
    throw;
  }
}

// Sorts the model's tensors into outputs and plain ones.
void AddOutputs(const c10::IValue& result, Tracer& tracer, RecordedRun& run) {
  const int64_t last_call = static_cast<int64_t>(tracer.recorder().traced().calls.size()) - 1;
  const std::vector<std::string> names = OutputNames(result);
  ForEachTensor(result, [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    const size_t position = run.outputs.size() + run.plain.size();
    const std::string& name = names[position];
    if (Continuous(tensor.scalar_type())) {
      run.outputs.push_back({name, tracer.Seen(tensor), {last_call, tracer.Output(tensor)}, {}});
    } else {
      run.plain.push_back({position, name, tensor});
    }
  });
  if (run.outputs.empty()) {
    throw InvalidArgument("the model gives no floating-point or complex tensor to decompose");
  }
}

std::vector<Probe> ProbesOf(const std::vector<RecordedOutput>& outputs) {
  std::vector<Probe> probes;
  for (const RecordedOutput& output : outputs) probes.push_back(output.probe);
  return probes;
}

}  // namespace

void RequireOutput(const std::vector<RecordedOutput>& outputs, const std::string& name) {
  std::vector<std::string> names;
  for (const RecordedOutput& output : outputs) names.push_back(output.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw InvalidArgument(
      absl::StrCat("the model has no ", name, " that is floating-point; it has ", absl::StrJoin(names, ", ")));
}

void ChooseOutputs(const std::vector<std::string>& names, std::vector<RecordedOutput>& outputs) {
  if (names.empty()) return;
  for (const std::string& name : names) RequireOutput(outputs, name);
  const auto last = std::remove_if(outputs.begin(), outputs.end(), [&](const RecordedOutput& output) {
    return std::find(names.begin(), names.end(), output.name) == names.end();
  });
  outputs.erase(last, outputs.end());
}

// Throws InvalidArgument where a module called "logits" gave other numbers than those that "logits" means.
void RefuseAnotherLogits(const TracedRun& trace, const Probe& probe, const std::vector<RecordedOutput>& given) {
  if (!GivesAnother(trace, kLogits, probe, ProbesOf(given))) return;
  throw InvalidArgument(absl::StrCat(kLogits, " is what ", FirstPositions({PositionOf(trace, probe.after_call)}),
                                     " gives, and one of the model's modules, which returned another tensor: ",
                                     "logits@0; name that or the operator"));
}

RecordedOutput FindAsked(const std::vector<RecordedOutput>& chosen, const std::vector<RecordedOutput>& given,
                         const TracedRun& trace, const std::string& text) {
  const auto named = [](const std::vector<RecordedOutput>& outputs, const std::string& name) -> const RecordedOutput* {
    const auto found = std::find_if(outputs.begin(), outputs.end(), [&](const auto& own) { return own.name == name; });
    return found == outputs.end() ? nullptr : &*found;
  };
  const std::string bare = absl::StrCat("output.", text);
  if (const RecordedOutput* output = named(chosen, text)) return *output;
  const RecordedOutput* by_bare_name = named(chosen, bare);
  if (by_bare_name != nullptr && text == kLogits) return *by_bare_name;
  std::vector<std::string> names;
  for (const RecordedOutput& output : chosen) names.push_back(output.name);
  const bool left_out = named(given, text) != nullptr || named(given, bare) != nullptr;
  const auto refuse_left_out = [&] {
    throw InvalidArgument(
        absl::StrCat(text, " is none of the outputs that the request names (", absl::StrJoin(names, ", "), ")"));
  };
  const bool whole = text == "output" || absl::StartsWith(text, "output.");
  if (left_out && (whole || text == kLogits) && by_bare_name == nullptr) refuse_left_out();
  if (whole && by_bare_name == nullptr) RequireOutput(given, text);
  try {
    const Probe probe = FindProbe(trace, text, ProbesOf(chosen), ProbesOf(given));
    if (text == kLogits) RefuseAnotherLogits(trace, probe, given);
    const bool no_softmax = text == kLogits && SameTensor(probe, chosen[0].probe);
    if (!no_softmax) {
      const bool untold = IsUntold(trace, text);
      return {text, {}, probe, {}, untold ? TakenFor(text, PositionOf(trace, probe.after_call)) : ""};
    }
    // Results of files are counted, and the first is what they are for. What a live model returns has places of its
    // own.
    if (chosen.size() == 1 || chosen[0].name == OutputName(0)) {
      return {text, chosen[0].value, probe, chosen[0].on_baseline};
    }
  } catch (const Error& error) {
    if (error.code() != absl::StatusCode::kInvalidArgument) throw;
    if (by_bare_name != nullptr && !RunsModule(trace, text)) return *by_bare_name;
    if (left_out && by_bare_name == nullptr) refuse_left_out();
    throw InvalidArgument(absl::StrCat(error.what(), "; the model's ",
                                       names.size() == 1 ? "output is " : "outputs are ", absl::StrJoin(names, ", ")));
  }
  throw InvalidArgument(absl::StrCat("no softmax gives ", names[0], ", so that ", text,
                                     " may be any of the model's outputs; name one of ", absl::StrJoin(names, ", ")));
}

RecordedOutput FindInner(const std::vector<RecordedOutput>& chosen, const std::vector<RecordedOutput>& given,
                         const TracedRun& trace, const std::string& text) {
  RecordedOutput found = FindAsked(chosen, given, trace, text);
  const bool output = std::any_of(chosen.begin(), chosen.end(), [&](const auto& own) { return own.name == text; });
  if (output && GivesAnother(trace, text, found.probe, ProbesOf(given))) {
    throw InvalidArgument(absl::StrCat(text, " is a result of the model and one of its modules; ", text,
                                       "@0 is what the module returned"));
  }
  return found;
}

std::vector<std::string> EachAsked(const std::vector<RecordedOutput>& given, const TracedRun& trace,
                                   const std::string& text) {
  return EachOf(trace, text, ProbesOf(given));
}

std::vector<std::string> ModulesOfSeveral(Model& model, const std::vector<at::Tensor>& values) {
  PreparedInputs plain;
  for (const at::Tensor& value : values) {
    PreparedInput input;
    input.value = value;
    input.reference = value;
    plain.inputs.push_back(std::move(input));
  }
  const RecordedRun run = RecordModel(model, plain, RunOptions());
  return ModulesOfSeveral(*run.trace, ProbesOf(run.outputs));
}

void PrepareTracer(const RunOptions& options, RunFor purpose, Tracer& tracer) {
  if (purpose == RunFor::kForward) return tracer.UseReferences(options.references);
  if (purpose == RunFor::kBackward) tracer.TakeAttentionWhole();
  if (options.memory_bytes < 0) throw InvalidArgument("memory_bytes counts bytes; 0 leaves the choice open");
  if (options.memory_bytes == 0) return tracer.UseReferences(options.references);
  tracer.LimitMemory(options.memory_bytes);
}

RecordedRun RecordModel(Model& shared, const PreparedInputs& inputs, const RunOptions& options, RunFor purpose) {
  const std::shared_ptr<Model> own = shared.ForOneTrace();
  Model& model = own != nullptr ? *own : shared;
  const PreparedInputs traced = purpose == RunFor::kForward ? inputs : LabelEveryId(inputs);
  RecordedRun run;
  run.inputs = inputs;
  run.declared.resize(inputs.inputs.size());
  std::iota(run.declared.begin(), run.declared.end(), size_t{0});
  run.policy = options.policy.Resolved(inputs.baseline_given);
  Tracer tracer(&options.Rules(), &run.policy, traced.numc);
  PrepareTracer(options, purpose, tracer);
  if (options.progress) options.progress("trace", 0, 1);
  std::shared_ptr<LaterRuns> later;
  if (options.verify_reference) later = std::make_shared<LaterRuns>(model, traced, run.policy.compute_dtype);
  AddOutputs(RunTraced(model, traced, options, tracer, run.storages), tracer, run);
  if (later) {
    later->SetOutputs(run.outputs);
    const std::vector<at::Tensor> found = later->OnBaseline();
    run.require_repeatable = [own, later] { later->RequireSame(); };
    for (size_t k = 0; k < run.outputs.size(); ++k) {
      // Another number of outputs is another answer too.
      run.outputs[k].on_baseline = k < found.size() ? found[k] : run.outputs[k].value.new_empty({0});
    }
  }
  run.trace = std::make_shared<TracedRun>(tracer.Finish());
  run.policy = AtPrecisionOf(*run.trace, std::move(run.policy));
  return run;
}

void AddInput(const PreparedInput& input, const at::Tensor& value, Tracer& tracer) {
  if (input.inside.call < 0) tracer.Give(value);
  if (input.kind == Split::Kind::kPlain) return;
  const at::Tensor reference = input.reference.clone();
  if (input.inside.call >= 0) {
    tracer.AddInside(input.inside, reference, input.labels);
  } else if (input.ids) {
    tracer.AddIds(value, reference, input.labels);
  } else if (input.parts.defined()) {
    tracer.AddParts(value, reference, input.parts);
  } else {
    tracer.AddFloatInput(value, reference, input.labels,
                         input.read_labels.defined() ? input.read_labels : input.labels);
  }
}

TracedRun FinishedRun(Tracer& tracer, const CallLines& lines) {
  TracedRun trace = tracer.Finish();
  if (lines.empty()) return trace;
  const auto add = [&](Position& position) {
    const auto found = lines.find(position.op_index);
    if (found == lines.end() || !position.file.empty()) return;
    position.file = found->second.file;
    position.line = found->second.line;
    position.function = found->second.function;
  };
  for (Call& call : trace.calls) add(call.position);
  for (Condition& condition : trace.conditions) add(condition.origin);
  for (Condition& guard : trace.guards) add(guard.origin);
  for (MixedIds& mixed : trace.mixed_ids) add(mixed.use);
  for (Position& position : trace.saved) add(position);
  return trace;
}

void ReportingRecorder::Handle(const Operator& op, Stack* stack) {
  if (*progress_) first_error_.In([&] { (*progress_)("trace", calls_++, 0); });
  next_->Handle(op, stack);
}

}  // namespace addend
