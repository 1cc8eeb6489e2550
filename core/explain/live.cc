#include "core/explain/live.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/explain/inside.h"
#include "core/explain/recorded_model.h"
#include "core/explain/same_run.h"
#include "core/explain/verify.h"
#include "core/intercept/thread_modes.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/live_memory.h"
#include "core/program/storage_table.h"
#include "core/run/trace.h"

namespace addend {

class LiveTrace::Recording : public CallHandler {
 public:
  // Purpose of the run; its policy is as asked for.
  struct Purpose {
    DecomposeOptions options;
    std::optional<AttributeOptions> attribution;
  };

  // `asked`: the inputs made ready. Before the run that finds what is inside the model: its arguments.
  Recording(const std::vector<Input>& inputs, PreparedInputs asked, const NamedTensors& named, Purpose purpose,
            bool finds_inside)
      : inputs_(inputs),
        named_(named),
        purpose_(std::move(purpose)),
        finds_inside_(finds_inside),
        asked_(std::move(asked)),
        prepared_(purpose_.attribution ? LabelEveryId(asked_) : asked_),
        policy_(purpose_.options.policy.Resolved(prepared_.baseline_given)),
        tracer_(&purpose_.options.Rules(), &policy_, prepared_.numc) {
    if (!finds_inside_) {
      purpose_.attribution ? PrepareTracer(*purpose_.attribution, PurposeOf(*purpose_.attribution), tracer_)
                           : PrepareTracer(purpose_.options, RunFor::kForward, tracer_);
    }
    for (size_t k = 0; k < inputs_.size(); ++k) {
      if (!inputs_[k].inside.empty()) {
        // Known by its place, not by its memory.
        if (!finds_inside_) Declare(k, prepared_.inputs[k].value);
        continue;
      }
      const at::Tensor& value = inputs_[k].value;
      if (!value.is_contiguous()) {
        throw InvalidArgument(absl::StrCat(InputName(inputs_[k], k), " is not contiguous; trace a copy of it"));
      }
      if (prepared_.inputs[k].kind == Split::Kind::kPlain) continue;
      if (memory_.OverlapsInput(value)) {
        throw InvalidArgument(absl::StrCat(InputName(inputs_[k], k), " shares the memory of another input"));
      }
      memory_.DeclareInput(static_cast<int>(k), value);
    }
    for (size_t k = 0; k < named_.size(); ++k) memory_.DeclareNamed(static_cast<int>(k), named_[k].second);
    if (purpose_.options.progress) purpose_.options.progress("trace", 0, 1);
    start_ = Clock::now();
  }

  // Starts what the caller asked for: its first run finds what is inside the model, if that is asked for.
  static std::shared_ptr<Recording> First(const std::vector<Input>& inputs, const NamedTensors& named,
                                          Purpose purpose) {
    const bool inside = HasInside(inputs);
    return std::make_shared<Recording>(inputs, inside ? ArgumentsOf(inputs) : Prepare(inputs, named), named,
                                       std::move(purpose), inside);
  }
  // Starts the run that follows the one which finds what is inside the model.
  std::shared_ptr<Recording> Second() {
    if (finished_) throw FailedPrecondition("the trace has ended");
    if (error_) std::rethrow_exception(error_);
    if (!finds_inside_) throw FailedPrecondition("the model has run already: no tensor inside it is left to be found");
    RequireOutputs();
    finished_ = true;
    std::shared_ptr<Recording> second;
    try {
      second = std::make_shared<Recording>(inputs_, PlaceInside(inputs_, tracer_.Finish(), outputs_, named_), named_,
                                           purpose_, /*finds_inside=*/false);
    } catch (...) {
      error_ = std::current_exception();
      throw;
    }
    for (RecordedOutput& output : outputs_) {
      second->first_outputs_.emplace_back(output.name, std::move(output.on_baseline));
    }
    second->notes_ = std::move(notes_);
    second->frames_ = std::move(frames_);
    return second;
  }

  at::ScalarType computed_in() const override { return tracer_.computed_in(); }
  void Handle(const Operator& op, Stack* stack) override {
    if (error_) return op.Run(stack);
    try {
      Record(op, stack);
    } catch (...) {
      if (!error_) error_ = tracer_.error() ? tracer_.error() : std::current_exception();
      throw;
    }
  }

  void SetFrames(std::function<std::vector<SourceFrame>()> frames) { frames_ = std::move(frames); }

  void SetModule(const std::string& module_path) { tracer_.recorder().SetModule(module_path); }

  // Not that of CallHandler: a replay inside the model tells of modules of its own.
  void Returned(const std::string& module_path, int64_t index, const at::Tensor& tensor) {
    if (error_) return;
    const TracingPause pause;
    const bool dense = tensor.defined() && tensor.has_storage() && tensor.numel() > 0;
    tracer_.AddModuleOutput(module_path, index, dense ? Live(tensor) : tensor);
  }

  void AddOutput(const std::string& name, const at::Tensor& tensor) {
    if (finished_) throw FailedPrecondition("the trace has ended");
    if (error_) std::rethrow_exception(error_);
    if (!tensor.defined() || !Continuous(tensor.scalar_type())) {
      throw InvalidArgument(
          absl::StrCat(name, " is no floating-point or complex tensor; integers and bools have no parts"));
    }
    // A tensor is known by its memory.
    if (tensor.numel() > 0 && !tensor.has_storage()) {
      throw InvalidArgument(absl::StrCat(name,
                                         " is not dense: it is sparse, or belongs to a function that torch.func or "
                                         "functorch transforms; name what that function returns"));
    }
    const TracingPause pause;
    const int64_t last_call = static_cast<int64_t>(tracer_.recorder().traced().calls.size()) - 1;
    if (tensor.numel() == 0) {
      outputs_.push_back({name, tracer_.Seen(tensor), {last_call, tracer_.Output(tensor)}, {}});
      return;
    }
    const at::Tensor live = Live(tensor);
    if (!live.defined()) {
      throw NotFound(absl::StrCat("no operator of the trace has met the memory of ", name,
                                  ": only what LibTorch computes on the thread of the trace is seen, not what other "
                                  "threads or compiled code compute"));
    }
    outputs_.push_back({name, tracer_.Seen(live), {last_call, tracer_.Output(live)}, {}});
    // For the comparison with the second run: what lies in the model's memory is put back in between.
    if (finds_inside_) outputs_.back().on_baseline = outputs_.back().value.detach().clone();
  }

  void Stop() {
    if (stopped_) return;
    stopped_ = true;
    seconds_ = SecondsSince(start_);
  }

  void AddNote(const std::string& note) { notes_.push_back(note); }

  at::Tensor BaselineOf(size_t input) const {
    if (finished_) throw FailedPrecondition("the trace has ended");
    if (error_) std::rethrow_exception(error_);
    if (HasInside(inputs_)) RefuseInside();
    if (input >= inputs_.size()) {
      throw InvalidArgument(absl::StrCat("there is no input ", input, "; the trace has ", inputs_.size()));
    }
    return asked_.inputs[input].BaselineAsked().clone();
  }

  void AddOnBaseline(const std::string& name, const at::Tensor& tensor) {
    if (finished_) throw FailedPrecondition("the trace has ended");
    if (HasInside(inputs_)) RefuseInside();
    if (!stopped_) throw FailedPrecondition("the trace still records; ask for its baselines first, which ends that");
    const auto found = std::find_if(outputs_.begin(), outputs_.end(),
                                    [&](const RecordedOutput& output) { return output.name == name; });
    if (found == outputs_.end()) throw NotFound(absl::StrCat("no output of the trace is called ", name));
    if (!tensor.defined() || !Continuous(tensor.scalar_type())) {
      throw InvalidArgument(absl::StrCat(name, " on the baseline is no floating-point or complex tensor"));
    }
    found->on_baseline = tensor.detach().clone();
  }

  Decomposition Finish() {
    if (purpose_.attribution) throw FailedPrecondition("this trace attributes; end it as an attribution or a plan");
    Decomposition decomposition = DecomposeRun(End(), purpose_.options);
    AddNotes(decomposition.report);
    return decomposition;
  }

  Attribution FinishAttribution() {
    if (!purpose_.attribution) throw FailedPrecondition("this trace decomposes; end it as a decomposition");
    Attribution attribution = AttributeRun(End(), *purpose_.attribution);
    AddNotes(attribution.report);
    return attribution;
  }

  std::shared_ptr<const AttributionPlan> FinishPlan() {
    if (!purpose_.attribution) throw FailedPrecondition("this trace decomposes; end it as a decomposition");
    if (!notes_.empty()) throw FailedPrecondition(absl::StrCat("the model cannot be planned: ", notes_[0]));
    return AttributionPlan::Of(End(), inputs_, *purpose_.attribution, named_);
  }

 private:
  // The tensor in the memory that operators have met; undefined where they have met none of it.
  at::Tensor Live(const at::Tensor& tensor) {
    at::Tensor live = memory_.Find(tensor);
    // An input that no operator was called with is known as it is.
    if (!live.defined() && Meet(tensor)) {
      Know(tensor);
      live = tensor;
    }
    return live;
  }

  void RequireOutputs() const {
    if (outputs_.empty()) throw InvalidArgument("no output of the trace was named");
  }

  RecordedRun End() {
    if (error_) std::rethrow_exception(error_);
    if (finished_) throw FailedPrecondition("the trace has ended");
    finished_ = true;
    RequireOutputs();
    if (finds_inside_) throw FailedPrecondition("a split starts inside the model, which has to run again for that");
    RequireFirstRun();
    const auto start = Clock::now();
    RecordedRun run;
    run.trace = std::make_shared<TracedRun>(FinishedRun(tracer_, lines_));
    run.outputs = std::move(outputs_);
    run.inputs = asked_;
    run.declared = declared_;
    run.storages = storages_of_;
    run.policy = AtPrecisionOf(*run.trace, policy_);
    run.seconds = seconds_ + SecondsSince(start);
    return run;
  }

  // Whether the run is that in which what is inside the model was found; see Note [Two runs] in same_run.h.
  void RequireFirstRun() const {
    for (const auto& [name, first] : first_outputs_) {
      for (const RecordedOutput& output : outputs_) {
        if (output.name != name || !first.defined()) continue;
        if (!FirstApart({{name, first}}, {output.value}).empty()) throw RunsApart(name, "");
      }
    }
  }

  void AddNotes(Report& report) const { report.notes.insert(report.notes.end(), notes_.begin(), notes_.end()); }

  void Record(const Operator& op, Stack* stack) {
    const size_t first = stack->size() - op.schema().arguments().size();
    const size_t calls = tracer_.recorder().traced().calls.size();
    bool counts = See(*stack, first);
    recorder_.Handle(op, stack);
    counts |= See(*stack, first);
    for (size_t r = first; r < stack->size(); ++r) counts |= (*stack)[r].isScalar() || (*stack)[r].isBool();
    // Notes tell of conditions, indices and numbers: to ask for the lines of those alone costs next to nothing.
    if (counts && frames_) AddLines(calls);
  }

  // Notes the line of the calls from number `first` on: the operator that just ran and what it calls.
  void AddLines(size_t first) {
    const TracingPause pause;
    const std::vector<SourceFrame> frames = frames_();
    if (frames.empty()) return;
    const size_t end = tracer_.recorder().traced().calls.size();
    for (size_t c = first; c < end; ++c) lines_.emplace(static_cast<int64_t>(c), frames.back());
  }

  // The tensors from `first` on, which an operator is called with or gives. Returns whether some have integers or
  // bools.
  bool See(const Stack& stack, size_t first) {
    bool counts = false;
    for (size_t a = first; a < stack.size(); ++a) {
      ForEachTensor(stack[a], [&](const at::Tensor& tensor) {
        if (!tensor.defined()) return;
        counts |= !Continuous(tensor.scalar_type());
        if (!tensor.has_storage()) return;
        if (Know(tensor)) Meet(tensor);
      });
    }
    return counts;
  }

  // Whether the tensor's storage is new.
  bool Know(const at::Tensor& tensor) {
    const auto [storage, is_new] = storages_.Add(tensor.storage().unsafeGetStorageImpl());
    memory_.Know(storage);
    return is_new;
  }

  // Tells the tracer of what is declared in the tensor's storage; see Note [Live tensors]. Returns whether anything is.
  bool Meet(const at::Tensor& tensor) {
    const NormalMode normal;
    const int named = memory_.MeetNamed(tensor).number;
    if (named >= 0) tracer_.recorder().NameStorage(tensor, named_[named].first);
    const std::vector<LiveMemory::Met> inputs = memory_.MeetInputs(tensor.storage());
    if (named < 0 && inputs.empty()) return false;
    const TracingPause pause;
    for (const LiveMemory::Met& input : inputs) {
      const at::Tensor& value = prepared_.inputs[input.number].value;
      if (tensor.storage().nbytes() != value.nbytes() || tensor.scalar_type() != value.scalar_type()) {
        throw InvalidArgument(absl::StrCat(InputName(inputs_[input.number], input.number), " has ", value.nbytes(),
                                           " bytes, but the storage that it lies in has ", tensor.storage().nbytes(),
                                           "; trace a contiguous copy of it"));
      }
      Declare(input.number, input.tensor);
    }
    return true;
  }

  void Declare(size_t input, const at::Tensor& value) {
    AddInput(prepared_.inputs[input], value, tracer_);
    declared_.push_back(input);
    storages_of_[input] = tracer_.StorageOf(value);
  }

  const std::vector<Input> inputs_;
  const NamedTensors named_;
  const Purpose purpose_;
  const bool finds_inside_;
  const PreparedInputs asked_;
  const PreparedInputs prepared_;  // what is traced
  const Policy policy_;
  Tracer tracer_;
  ReportingRecorder recorder_{&tracer_, &purpose_.options.progress};
  StorageTable storages_;
  LiveMemory memory_{&storages_};  // inputs and named tensors are declared by their positions in inputs_ and named_
  std::vector<size_t> declared_;   // inputs, in the order in which the tracer was told of them
  std::vector<int> storages_of_ = std::vector<int>(inputs_.size(), -1);  // by input, as of RecordedRun
  std::vector<RecordedOutput> outputs_;
  std::vector<std::pair<std::string, at::Tensor>> first_outputs_;  // of the run that found what is inside, by name
  std::vector<std::string> notes_;
  std::function<std::vector<SourceFrame>()> frames_;
  CallLines lines_;
  std::exception_ptr error_;
  Clock::time_point start_;
  double seconds_ = 0;
  bool stopped_ = false;
  bool finished_ = false;
};

namespace {

// The options that both kinds of runs have in common.
DecomposeOptions RunOptionsOf(const AttributeOptions& options) {
  DecomposeOptions run;
  static_cast<RunOptions&>(run) = options;
  return run;
}

}  // namespace

LiveTrace::LiveTrace(const std::vector<Input>& inputs, const NamedTensors& named, DecomposeOptions options)
    : recording_(Recording::First(inputs, named, {std::move(options), std::nullopt})),
      scope_(std::make_unique<LiveScope>(recording_)) {}

LiveTrace::LiveTrace(const std::vector<Input>& inputs, const NamedTensors& named, AttributeOptions options)
    : recording_(Recording::First(inputs, named, {RunOptionsOf(options), options})),
      scope_(std::make_unique<LiveScope>(recording_)) {}

LiveTrace::~LiveTrace() = default;

at::Tensor LiveTrace::BaselineOf(size_t input) {
  Stop();
  return recording_->BaselineOf(input);
}

void LiveTrace::AddOnBaseline(const std::string& name, const at::Tensor& tensor) {
  recording_->AddOnBaseline(name, tensor);
}

void LiveTrace::SetModule(const std::string& module_path) {
  scope_->RequireOwnThread();
  recording_->SetModule(module_path);
}

void LiveTrace::AddModuleOutput(const std::string& module_path, int64_t index, const at::Tensor& tensor) {
  scope_->RequireOwnThread();
  recording_->Returned(module_path, index, tensor);
}

void LiveTrace::AddOutput(const std::string& name, const at::Tensor& tensor) {
  scope_->RequireOwnThread();
  recording_->AddOutput(name, tensor);
}

void LiveTrace::SetFrames(std::function<std::vector<SourceFrame>()> frames) {
  scope_->RequireOwnThread();
  recording_->SetFrames(std::move(frames));
}

void LiveTrace::AddNote(const std::string& note) { recording_->AddNote(note); }

void LiveTrace::SecondRun() {
  scope_->Close();
  recording_ = recording_->Second();
  scope_ = std::make_unique<LiveScope>(recording_);
}

void LiveTrace::Stop() {
  scope_->Close();
  recording_->Stop();
}

Decomposition LiveTrace::Finish() {
  Stop();
  return recording_->Finish();
}

Attribution LiveTrace::FinishAttribution() {
  Stop();
  return recording_->FinishAttribution();
}

std::shared_ptr<const AttributionPlan> LiveTrace::FinishPlan() {
  Stop();
  return recording_->FinishPlan();
}

}  // namespace addend
