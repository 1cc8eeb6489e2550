// Live models as programs: operators of the caller's own program, recorded as they run on this thread.
//
// Note [Marked tensors]
// A live model has no arguments that we could see: its inputs are the tensors that the caller marks. They are known by
// their memory; see Note [Live tensors] in live.h. What the model reads besides is a parameter or a buffer where it has
// been named, and a constant otherwise.
#ifndef ADDEND_CORE_RECORDING_LIVE_PROGRAM_H_
#define ADDEND_CORE_RECORDING_LIVE_PROGRAM_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <vector>

#include "core/model/live_scope.h"
#include "core/recording/record_program.h"

namespace addend {

// Every call but the destructor belongs to the thread of the constructor and throws FailedPrecondition on another.
class LiveProgram {
 public:
  // Records this thread's operators until Stop(). Of the options the names of inputs are for those marked without one.
  explicit LiveProgram(const RecordOptions& options = {});
  ~LiveProgram();
  LiveProgram(const LiveProgram&) = delete;
  LiveProgram& operator=(const LiveProgram&) = delete;

  // Marks a tensor as the next input, before an operator is called with it; also tensors in nested tuples, lists and
  // dictionaries, and plain values. They are the live tensors or alias their memory; no two of them share it. Throws
  // Unimplemented for what is not dense, FailedPrecondition for what was used already or shares memory. Where a tensor
  // turns out to lie in one storage with another input, Finish() throws InvalidArgument.
  void AddInput(const std::string& name, const c10::IValue& value);
  // A parameter (`learned`) or a buffer. Those that no operator reads do not become part of the program.
  void NameTensor(const std::string& name, const at::Tensor& tensor, bool learned);
  // Of all modules of the model.
  void SetModulePaths(std::vector<std::string> paths);
  // The module that runs from now on; empty: none.
  void SetModule(const std::string& module_path);

  // Ends the recording of operators.
  void Stop();
  // Stops, and gives the program, once. `output`: live tensors, or aliases of their memory, as the model would return
  // them. Throws the first error of the recording, if there was one, and NotFound for a tensor whose memory no operator
  // has met.
  Recording Finish(const c10::IValue& output);

 private:
  class Run;
  std::shared_ptr<Run> run_;
  std::unique_ptr<LiveScope> scope_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RECORDING_LIVE_PROGRAM_H_
