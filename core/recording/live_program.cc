#include "core/recording/live_program.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/base/error.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/output_names.h"
#include "core/program/program_recorder.h"

namespace addend {

class LiveProgram::Run : public CallHandler {
 public:
  explicit Run(const RecordOptions& options) : names_(options.input_names) {
    recorder_.MatchMemory();
    recorder_.SetFrameProvider(options.frames);
  }

  // After an error the caller's program goes on as ever; Finish() tells.
  void Handle(const Operator& op, Stack* stack) override {
    if (recorder_.error()) return op.Run(stack);
    recorder_.Handle(op, stack);
  }

  void AddInput(const std::string& name, const c10::IValue& value) {
    const size_t k = inputs_++;
    recorder_.AddInput(name.empty() && k < names_.size() ? names_[k] : name, value);
  }

  void SetModule(const std::string& path) {
    recorder().SetModule(path);
    const bool known = std::find(module_paths_.begin(), module_paths_.end(), path) != module_paths_.end();
    if (!path.empty() && !known) module_paths_.push_back(path);
  }

  void AddOutput(const std::string& name, const at::Tensor& tensor) {
    recorder();
    output_names_.push_back(name);
    outputs_.push_back(tensor);
  }

  ProgramRecorder& recorder() {
    if (finished_) throw FailedPrecondition("the recording has ended");
    return recorder_;
  }

  // The outputs that were added; none: None.
  c10::IValue Outputs() const {
    if (outputs_.empty()) return {};
    return NamedResult(output_names_, outputs_);
  }

  Recording Finish(const c10::IValue& output) {
    const TracingPause pause;
    ProgramRecorder& own = recorder();
    finished_ = true;
    if (own.error()) std::rethrow_exception(own.error());
    own.SetModulePaths(module_paths_);
    auto program = std::make_shared<RecordedProgram>(own.Finish(output));
    KeepContents(*program);
    Recording recording;
    recording.program = std::move(program);
    recording.output = output;
    return recording;
  }

 private:
  // The model goes on, and may write what the run has read.
  static void KeepContents(RecordedProgram& program) {
    for (RecordedStorage& storage : program.storages) {
      if (!storage.initial.defined() || storage.copied) continue;
      storage.initial = storage.initial.clone();
      storage.copied = true;
    }
  }

  const std::vector<std::string> names_;
  size_t inputs_ = 0;
  std::vector<std::string> output_names_;
  std::vector<at::Tensor> outputs_;
  std::vector<std::string> module_paths_;
  bool finished_ = false;
  ProgramRecorder recorder_;
};

LiveProgram::LiveProgram(const RecordOptions& options)
    : run_(std::make_shared<Run>(options)), scope_(std::make_unique<LiveScope>(run_)) {}

LiveProgram::~LiveProgram() = default;

void LiveProgram::AddInput(const std::string& name, const c10::IValue& value) {
  scope_->RequireOwnThread();
  run_->recorder();
  run_->AddInput(name, value);
}

void LiveProgram::NameTensor(const std::string& name, const at::Tensor& tensor, bool learned) {
  scope_->RequireOwnThread();
  run_->recorder().NameTensor(name, tensor, learned);
}

void LiveProgram::SetModule(const std::string& module_path) {
  scope_->RequireOwnThread();
  run_->SetModule(module_path);
}

void LiveProgram::AddModuleOutput(const std::string& module_path, int64_t index, const at::Tensor& tensor) {
  scope_->RequireOwnThread();
  run_->recorder().AddModuleOutput(module_path, index, tensor);
}

void LiveProgram::ShowCode(const CodeTraceOptions& options, const std::function<void(const std::string& lines)>& show) {
  scope_->RequireOwnThread();
  if (options.names || !options.numbers.empty()) {
    throw InvalidArgument("names and numbers are not known while a model runs; print them of the program");
  }
  const auto writer = std::make_shared<CodeTraceWriter>(options, show);
  run_->recorder().SetListener([writer](const RecordedProgram& program, int call) { writer->Add(program, call); });
}

void LiveProgram::AddOutput(const std::string& name, const at::Tensor& tensor) {
  scope_->RequireOwnThread();
  run_->AddOutput(name, tensor);
}

void LiveProgram::Stop() { scope_->Close(); }

Recording LiveProgram::Finish(const c10::IValue& output) {
  Stop();
  return run_->Finish(output);
}

Recording LiveProgram::Finish() {
  const c10::IValue outputs = run_->Outputs();
  Recording recording = Finish(outputs);
  if (outputs.isNone()) throw InvalidArgument("no output of the trace was named");
  return recording;
}

}  // namespace addend
