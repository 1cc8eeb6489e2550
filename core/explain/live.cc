#include "core/explain/live.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/explain/finish.h"
#include "core/explain/verify.h"
#include "core/intercept/thread_modes.h"
#include "core/intercept/tracing_scope.h"
#include "core/linearize/trace.h"
#include "core/program/memory.h"

namespace addend {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

class LiveTrace::Recording : public CallHandler {
 public:
  // What the run is for; its policy is as asked for.
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
        tracer_(&RulesOf(purpose_.options), &policy_, prepared_.numc) {
    if (!finds_inside_) tracer_.UseReferences(purpose_.options.references);
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (!inputs[k].inside.empty()) {
        // Known by its place, not by its memory.
        if (!finds_inside_) Declare(k, prepared_.inputs[k].value);
        continue;
      }
      const at::Tensor& value = inputs[k].value;
      const std::string name = inputs[k].name.empty() ? absl::StrCat("input ", k) : inputs[k].name;
      if (!value.is_contiguous()) throw InvalidArgument(absl::StrCat(name, " is not contiguous; trace a copy of it"));
      // Of an empty tensor nobody can tell where it lies; it has no parts that could begin.
      if (prepared_.inputs[k].kind == Split::Kind::kPlain || value.numel() == 0) continue;
      Waiting& waiting = waiting_[value.data_ptr()];
      if (waiting.input >= 0) throw InvalidArgument(absl::StrCat(name, " shares the memory of another input"));
      waiting.input = static_cast<int64_t>(k);
      waiting.name = name;
    }
    for (const auto& [name, tensor] : named) {
      if (tensor.defined() && tensor.has_storage() && tensor.numel() > 0) {
        waiting_[tensor.data_ptr()].parameter = name;
      }
    }
    if (purpose_.options.progress) purpose_.options.progress("trace", 0, 1);
    start_ = Clock::now();
  }

  // Of what the caller asked for: its first run finds what is inside the model, where that is asked for.
  static std::shared_ptr<Recording> First(const std::vector<Input>& inputs, const NamedTensors& named,
                                          Purpose purpose) {
    const bool inside = HasInside(inputs);
    return std::make_shared<Recording>(inputs, inside ? ArgumentsOf(inputs) : Prepare(inputs, named), named,
                                       std::move(purpose), inside);
  }
  // What follows the run that finds what is inside the model.
  std::shared_ptr<Recording> Second() {
    if (finished_) throw FailedPrecondition("the trace has ended");
    if (error_) std::rethrow_exception(error_);
    if (!finds_inside_) throw FailedPrecondition("the model has run already: nothing else is to be found inside");
    RequireOutputs();
    finished_ = true;
    auto second =
        std::make_shared<Recording>(inputs_, PlaceInside(inputs_, tracer_.Finish(), outputs_[0].probe, named_), named_,
                                    purpose_, /*finds_inside=*/false);
    second->notes_ = std::move(notes_);
    second->frames_ = std::move(frames_);
    return second;
  }

  void Handle(const Operator& op, Stack* stack) override {
    if (error_) return op.Run(stack);
    const size_t first = stack->size() - op.schema().arguments().size();
    const size_t calls = tracer_.recorder().program().calls.size();
    bool counts = false;
    try {
      {
        const TracingPause pause;
        const NormalMode normal;
        for (size_t a = first; a < stack->size(); ++a) {
          ForEachTensor((*stack)[a], [&](const at::Tensor& tensor) {
            See(tensor);
            counts = counts || (tensor.defined() && !Continuous(tensor.scalar_type()));
          });
        }
      }
      recorder_.Handle(op, stack);
    } catch (...) {
      if (!error_) error_ = tracer_.error() ? tracer_.error() : std::current_exception();
      throw;
    }
    for (size_t r = first; r < stack->size(); ++r) {
      ForEachTensor((*stack)[r], [&](const at::Tensor& tensor) {
        Know(tensor);
        counts = counts || (tensor.defined() && !Continuous(tensor.scalar_type()));
      });
      counts = counts || (*stack)[r].isScalar() || (*stack)[r].isBool();
    }
    // Notes tell of conditions, indices and numbers: to ask for the lines of those alone costs next to nothing.
    if (!counts || !frames_) return;
    try {
      AddLines(calls);
    } catch (...) {
      if (!error_) error_ = std::current_exception();
      throw;
    }
  }

  void SetFrames(std::function<std::vector<SourceFrame>()> frames) { frames_ = std::move(frames); }

  void SetModule(const std::string& module_path) { tracer_.recorder().SetModule(module_path); }

  void AddOutput(const std::string& name, const at::Tensor& tensor) {
    if (finished_) throw FailedPrecondition("the trace has ended");
    if (error_) std::rethrow_exception(error_);
    if (!tensor.defined() || !Continuous(tensor.scalar_type())) {
      throw InvalidArgument(
          absl::StrCat(name, " is no floating-point or complex tensor; integers and bools have no parts"));
    }
    const TracingPause pause;
    const int64_t last_call = static_cast<int64_t>(tracer_.recorder().program().calls.size()) - 1;
    if (tensor.numel() == 0) {
      outputs_.push_back({name, tensor, {last_call, tracer_.Output(tensor)}, {}});
      return;
    }
    // An input that no operator was called with is an output as it is.
    if (waiting_.contains(tensor.storage().data())) See(tensor);
    const at::Tensor live = Find(tensor);
    if (!live.defined()) throw NotFound(absl::StrCat("no operator of the trace has met the memory of ", name));
    outputs_.push_back({name, live, {last_call, tracer_.Output(live)}, {}});
  }

  void Stop() {
    if (stopped_) return;
    stopped_ = true;
    seconds_ = std::chrono::duration<double>(Clock::now() - start_).count();
  }

  void AddNote(const std::string& note) { notes_.push_back(note); }

  at::Tensor BaselineOf(size_t input) const {
    if (finished_) throw FailedPrecondition("the trace has ended");
    if (error_) std::rethrow_exception(error_);
    if (HasInside(inputs_)) RefuseInside();
    if (input >= inputs_.size()) {
      throw InvalidArgument(absl::StrCat("there is no input ", input, "; the trace has ", inputs_.size()));
    }
    return asked_.inputs[input].reference.clone();
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
    if (purpose_.attribution) throw FailedPrecondition("this trace attributes; end it so");
    End();
    Decomposition decomposition =
        FinishDecomposition(tracer_, std::move(outputs_), prepared_, policy_, purpose_.options, seconds_, lines_);
    AddNotes(decomposition.report);
    return decomposition;
  }

  Attribution FinishAttribution() {
    if (!purpose_.attribution) throw FailedPrecondition("this trace decomposes; end it so");
    End();
    Attribution attribution = addend::FinishAttribution(tracer_, outputs_, asked_, declared_, policy_,
                                                        *purpose_.attribution, seconds_, lines_);
    AddNotes(attribution.report);
    return attribution;
  }

 private:
  void RequireOutputs() const {
    if (outputs_.empty()) throw InvalidArgument("no output of the trace was named");
  }

  void End() {
    if (finished_) throw FailedPrecondition("the trace has ended");
    finished_ = true;
    if (error_) std::rethrow_exception(error_);
    RequireOutputs();
    if (finds_inside_) throw FailedPrecondition("a split starts inside the model, which has to run again for that");
  }

  void AddNotes(Report& report) const { report.notes.insert(report.notes.end(), notes_.begin(), notes_.end()); }

  // Memory that was declared and that no operator has been called with so far.
  struct Waiting {
    int64_t input = -1;
    std::string name;
    std::string parameter;
  };

  // Of the calls from number `first` on, the operator that just ran and what it calls.
  void AddLines(size_t first) {
    const TracingPause pause;
    const std::vector<SourceFrame> frames = frames_();
    if (frames.empty()) return;
    const size_t end = tracer_.recorder().program().calls.size();
    for (size_t c = first; c < end; ++c) lines_.emplace(static_cast<int64_t>(c), frames.back());
  }

  // See Note [Live tensors].
  void See(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage() || tensor.storage().unsafeGetStorageImpl() == nullptr) return;
    Know(tensor);
    if (waiting_.empty()) return;
    const auto found = waiting_.find(tensor.storage().data());
    if (found == waiting_.end()) return;
    const Waiting waiting = found->second;
    waiting_.erase(found);
    if (!waiting.parameter.empty()) tracer_.recorder().NameStorage(tensor, waiting.parameter);
    if (waiting.input < 0) return;
    const PreparedInput& input = prepared_.inputs[waiting.input];
    const size_t nbytes = input.value.nbytes();
    if (tensor.storage().nbytes() != nbytes || tensor.scalar_type() != input.value.scalar_type()) {
      throw InvalidArgument(absl::StrCat(waiting.name, " has ", nbytes, " bytes, but the storage that it lies in has ",
                                         tensor.storage().nbytes(), "; trace a contiguous copy of it"));
    }
    Declare(waiting.input, TensorIn(tensor.storage(), input.value, input.value.strides(), 0));
  }

  void Declare(size_t input, const at::Tensor& value) {
    AddInput(prepared_.inputs[input], value, tracer_);
    declared_.push_back(input);
  }

  void Know(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage()) return;
    c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    if (storage == nullptr) return;
    const auto entry = known_.try_emplace(storage, c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage)).first;
    entry->second.seen = ++sights_;
  }

  at::Tensor Find(const at::Tensor& tensor) const {
    c10::intrusive_ptr<c10::StorageImpl> best;
    int64_t seen = -1;
    for (const auto& [address, known] : known_) {
      const c10::intrusive_ptr<c10::StorageImpl> storage = known.storage.lock();
      if (!storage || known.seen < seen || !LiesIn(*storage, tensor)) continue;
      best = storage;
      seen = known.seen;
    }
    return best ? SeenIn(c10::Storage(best), tensor) : at::Tensor();
  }

  struct Known {
    explicit Known(const c10::intrusive_ptr<c10::StorageImpl>& seen_storage) : storage(seen_storage) {}
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    int64_t seen = 0;
  };

  const std::vector<Input> inputs_;
  const NamedTensors named_;
  const Purpose purpose_;
  const bool finds_inside_;
  const PreparedInputs asked_;
  const PreparedInputs prepared_;  // what is traced
  const Policy policy_;
  Tracer tracer_;
  ReportingRecorder recorder_{&tracer_, &purpose_.options};
  absl::flat_hash_map<const void*, Waiting> waiting_;
  absl::flat_hash_map<c10::StorageImpl*, Known> known_;
  int64_t sights_ = 0;
  std::vector<size_t> declared_;  // inputs, in the order in which the tracer was told of them
  std::vector<RecordedOutput> outputs_;
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

// What both kinds of runs have in common.
DecomposeOptions RunOptionsOf(const AttributeOptions& options) {
  DecomposeOptions run;
  run.policy = options.policy;
  run.references = options.references;
  run.registry = options.registry;
  run.progress = options.progress;
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

void LiveTrace::AddOutput(const std::string& name, const at::Tensor& tensor) {
  scope_->RequireOwnThread();
  recording_->AddOutput(name, tensor);
}

void LiveTrace::SetFrames(std::function<std::vector<SourceFrame>()> frames) {
  scope_->RequireOwnThread();
  recording_->SetFrames(std::move(frames));
}

void LiveTrace::AddNote(const std::string& note) { recording_->AddNote(note); }

void LiveTrace::RunAgain() {
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

}  // namespace addend
