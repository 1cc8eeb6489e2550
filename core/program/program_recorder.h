// Records a run completely, while the unmodified model computes on its own tensors; see recorded_program.h.
#ifndef ADDEND_CORE_PROGRAM_PROGRAM_RECORDER_H_
#define ADDEND_CORE_PROGRAM_PROGRAM_RECORDER_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/intercept/tracing_scope.h"
#include "core/program/recorded_program.h"

namespace addend {

// Declare parameters and inputs, run the model with a TracingScope on the recorder, and Finish() with its result.
// No tensor is copied but those from outside that the run overwrites, before it does; none is kept alive but those from
// outside that it reads.
class ProgramRecorder : public CallHandler {
 public:
  ProgramRecorder();
  ~ProgramRecorder() override;

  // A parameter (`learned`) or a buffer. Those that no operator reads do not become part of the program.
  void NameTensor(const std::string& name, const at::Tensor& tensor, bool learned);
  // The next argument of the model. Names are made unique. Throws Unimplemented for what cannot be recorded, and
  // FailedPrecondition where an operator has met the tensor already.
  void AddInput(const std::string& name, const c10::IValue& value);
  // What is declared here, and the output, may be other storage objects over the memory that the model computes with;
  // see core/program/memory.h.
  void MatchMemory();
  void SetModulePaths(std::vector<std::string> paths);
  // The module that runs now, where the caller knows it; empty: script frames and parameter names tell.
  void SetModule(const std::string& path);
  // Asked at every operator outside TorchScript for the caller's own source lines, outermost first.
  void SetFrameProvider(std::function<std::vector<SourceFrame>()> frames);

  // Throws Unimplemented, with the position, for tensors without storage (sparse, nested, opaque) and under autocast.
  void Handle(const Operator& op, Stack* stack) override;
  // The first error of Handle(): an interpreter around the run may have wrapped what it threw.
  std::exception_ptr error() const { return error_; }

  // Ends the recording. `output`: what the model gave. With MatchMemory() throws NotFound for tensors whose memory no
  // operator has met.
  RecordedProgram Finish(const c10::IValue& output);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  std::exception_ptr error_;
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_PROGRAM_RECORDER_H_
