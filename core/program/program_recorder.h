// Records a run completely, while the unmodified model computes on its own tensors; see recorded_program.h.
#ifndef ADDEND_CORE_PROGRAM_PROGRAM_RECORDER_H_
#define ADDEND_CORE_PROGRAM_PROGRAM_RECORDER_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/error.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/guard_table.h"
#include "core/program/name_table.h"
#include "core/program/operator_traits.h"
#include "core/program/outside_tensors.h"
#include "core/program/place_table.h"
#include "core/program/recorded_program.h"
#include "core/program/unwritten_memory.h"
#include "core/program/value_table.h"

namespace addend {

// A recorder of complete programs. Declare parameters and inputs, run the model with a TracingScope on the recorder,
// and call Finish() with its result. The recorder copies only tensors from outside that the run overwrites, before they
// are overwritten, and keeps alive only those from outside that the run reads.
class ProgramRecorder : public CallHandler {
 public:
  ProgramRecorder();
  ProgramRecorder(const ProgramRecorder&) = delete;
  ProgramRecorder& operator=(const ProgramRecorder&) = delete;

  // A parameter (`learned`) or a buffer. Those that no operator reads do not become part of the program.
  void NameTensor(const std::string& name, const at::Tensor& tensor, bool learned) {
    outside_.Declare(name, tensor, learned);
  }
  // The next argument of the model. Names are made unique. Throws Unimplemented for what cannot be recorded, and
  // FailedPrecondition where an operator has met the tensor already.
  void AddInput(const std::string& name, const c10::IValue& value);
  // Matches tensors by memory from here on: those that are declared, and the output, may be other storage objects over
  // the memory that the model computes with; see Note [Live tensors] in core/program/live_memory.h.
  void MatchMemory() { outside_.MatchMemory(); }
  void SetModulePaths(std::vector<std::string> paths) { places_.SetModulePaths(std::move(paths)); }
  // The module that runs now, where the caller knows it; empty: script frames and parameter names tell.
  void SetModule(const std::string& path) { places_.SetModule(path); }
  // See CallHandler. Tensors may be other objects over the memory that the model computes with, as of MatchMemory().
  void AddModuleOutput(const std::string& module_path, int64_t index, const at::Tensor& tensor) override;
  // Sets who gives the caller's own source lines, outermost first, at every operator outside TorchScript.
  void SetFrameProvider(std::function<std::vector<SourceFrame>()> frames) {
    places_.SetFrameProvider(std::move(frames));
  }

  // Sets who is told of every call once it is recorded, by its number in what is recorded so far.
  void SetListener(std::function<void(const RecordedProgram& program, int call)> listener) {
    listener_ = std::move(listener);
  }

  // Throws Unimplemented, with the position, for tensors without storage (sparse, nested, opaque) and under autocast.
  void Handle(const Operator& op, Stack* stack) override;
  // The first error of Handle(): an interpreter around the run may have wrapped what it threw.
  std::exception_ptr error() const { return error_; }

  // Ends the recording. `output`: what the model gave. With MatchMemory() throws NotFound for tensors whose memory no
  // operator has met.
  RecordedProgram Finish(const c10::IValue& output);

 private:
  // Facts about an operator that are worked out once.
  struct SchemaFacts {
    explicit SchemaFacts(const c10::FunctionSchema& schema) : traits(schema) {}
    OperatorTraits traits;
    int stem = -1;  // of its results' names
  };

  const SchemaFacts& FactsOf(const c10::FunctionSchema& schema);
  void Record(const Operator& op, Stack* stack);
  bool IsTakenApart(const Operator& op, const Stack& stack);
  Error Refusal(const RecordedCall& call, const std::string& why);

  // Before the call runs. Each returns or sets what is recorded of an argument beside its uses.
  void RecordArguments(RecordedCall* call, const OperatorTraits& traits, c10::ArrayRef<c10::IValue> arguments);
  void Use(RecordedCall* call, const OperatorTraits& traits, size_t argument, const at::Tensor& tensor);
  c10::IValue UseList(RecordedCall* call, const OperatorTraits& traits, size_t argument, const c10::IValue& value);
  void MarkStatistics(RecordedCall* call, const OperatorTraits& traits, c10::ArrayRef<c10::IValue> arguments);
  void BeforeWrite(const RecordedCall& call, const OperatorTraits& traits);
  int ValueOf(const at::Tensor& tensor);

  // After it ran.
  void AfterWrite(RecordedCall* call, const OperatorTraits& traits);
  void RecordResults(RecordedCall* call, const OperatorTraits& traits, c10::ArrayRef<c10::IValue> results);
  void AddResult(RecordedCall* call, const OperatorTraits& traits, const at::Tensor& tensor);
  bool MadeNow(int value) const;

  RecordedProgram program_;
  ValueTable values_{&program_};
  NameTable names_;
  OutsideTensors outside_{&program_, &values_, &names_};
  UnwrittenMemory unwritten_{&program_};
  GuardTable guards_{&program_};
  PlaceTable places_{&program_};
  absl::flat_hash_map<const c10::FunctionSchema*, std::unique_ptr<SchemaFacts>> facts_;
  bool leaves_first_ = false;        // of the call at hand: see OperatorTraits
  std::vector<at::Tensor> changed_;  // of the call at hand: the tensors of its written uses, in order
  bool differentiates_ = false;      // see Note [Differentiation] in differentiation.h
  bool finished_ = false;
  std::function<void(const RecordedProgram&, int)> listener_;
  std::exception_ptr error_;
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_PROGRAM_RECORDER_H_
