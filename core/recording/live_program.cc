#include "core/recording/live_program.h"

#include <exception>
#include <utility>

#include "core/base/error.h"
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

  ProgramRecorder& recorder() {
    if (finished_) throw FailedPrecondition("the recording has ended");
    return recorder_;
  }

  Recording Finish(const c10::IValue& output) {
    ProgramRecorder& own = recorder();
    finished_ = true;
    if (own.error()) std::rethrow_exception(own.error());
    Recording recording;
    recording.program = std::make_shared<const RecordedProgram>(own.Finish(output));
    recording.output = output;
    return recording;
  }

 private:
  const std::vector<std::string> names_;
  size_t inputs_ = 0;
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

void LiveProgram::SetModulePaths(std::vector<std::string> paths) {
  scope_->RequireOwnThread();
  run_->recorder().SetModulePaths(std::move(paths));
}

void LiveProgram::SetModule(const std::string& module_path) {
  scope_->RequireOwnThread();
  run_->recorder().SetModule(module_path);
}

void LiveProgram::Stop() { scope_->Close(); }

Recording LiveProgram::Finish(const c10::IValue& output) {
  Stop();
  return run_->Finish(output);
}

}  // namespace addend
