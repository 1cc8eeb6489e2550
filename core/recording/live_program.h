// Live models as programs: operators of the caller's own program, recorded as they run on this thread.
//
// Note [Marked tensors]
// A live model has no arguments that could be seen: its inputs are the tensors that the caller marks, recognized by
// their memory; see Note [Live tensors] in
// core/program/live_memory.h. Whatever else the model reads is a parameter or a buffer if it has
// been named, and a constant otherwise.
#ifndef ADDEND_CORE_RECORDING_LIVE_PROGRAM_H_
#define ADDEND_CORE_RECORDING_LIVE_PROGRAM_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/model/live_run.h"
#include "core/model/live_scope.h"
#include "core/program/code_trace.h"
#include "core/recording/record_program.h"

namespace addend {

// Records a live model as a program. Every method but the destructor belongs to the thread of the constructor, and
// throws FailedPrecondition on another.
class LiveProgram : public LiveRun {
 public:
  // Records this thread's operators until Stop(). Of the options the names of inputs are for those marked without one.
  explicit LiveProgram(const RecordOptions& options = {});
  ~LiveProgram() override;
  LiveProgram(const LiveProgram&) = delete;
  LiveProgram& operator=(const LiveProgram&) = delete;

  // Marks a tensor as the next input, before an operator is called with it; also tensors in nested tuples, lists and
  // dictionaries, and plain values. They are the live tensors or alias their memory; no two of them share it. Throws
  // Unimplemented for what is not dense, FailedPrecondition for what was used already or shares memory. Where a tensor
  // turns out to lie in one storage with another input, Finish() throws InvalidArgument.
  void AddInput(const std::string& name, const c10::IValue& value);
  // A parameter (`learned`) or a buffer. Those that no operator reads do not become part of the program.
  void NameTensor(const std::string& name, const at::Tensor& tensor, bool learned);
  // The program has the modules that it was told.
  void SetModule(const std::string& module_path) override;
  void AddModuleOutput(const std::string& module_path, int64_t index, const at::Tensor& tensor) override;
  // Shows every call from now on once it has finished: its lines as CodeTrace() prints them. Throws InvalidArgument for
  // names and numbers, which nobody knows before the end.
  void ShowCode(const CodeTraceOptions& options, const std::function<void(const std::string& lines)>& show);
  // The next output of the program. A name by its place in a dictionary ("output.logits") stays; see NamedResult in
  // core/program/output_names.h.
  void AddOutput(const std::string& name, const at::Tensor& tensor) override;

  void Stop() override;
  // Stops, and gives the program, once. It has copies of the parameters, buffers and constants that the run read, so
  // that the model may change afterwards. `output`: live tensors, or aliases of their memory, as the model would return
  // them. Throws the first error of the recording, if there was one, and NotFound for a tensor whose memory no operator
  // has met.
  Recording Finish(const c10::IValue& output);
  // Finishes with the outputs that were added, as NamedResult puts them together. Throws InvalidArgument where there
  // are none.
  Recording Finish();

 private:
  class Run;
  std::shared_ptr<Run> run_;
  std::unique_ptr<LiveScope> scope_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RECORDING_LIVE_PROGRAM_H_
