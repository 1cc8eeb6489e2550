// Writes down the calls of a run while the unmodified model computes on its own tensors, for a tracer.
#ifndef ADDEND_CORE_PROGRAM_RECORDER_H_
#define ADDEND_CORE_PROGRAM_RECORDER_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/intercept/operator.h"
#include "core/program/module_paths.h"
#include "core/program/storage_table.h"
#include "core/program/traced_calls.h"

namespace addend {

// Knows the storages of a run and writes its calls. Whoever handles the operators of a tracing scope takes each of them
// through these steps, and does in between what else is to be done:
//   Call call = recorder.Begin(op, *stack);
//   const std::vector<c10::IValue> arguments = recorder.Place(*stack, call);
//   op.Run(stack);
//   recorder.AddOutputs(arguments, ResultsOf(op, *stack), call);
//   recorder.End(std::move(call));
class Recorder {
 public:
  // The call of the operator whose arguments lie on the stack: its operands, and to which of the model's calls it
  // belongs.
  Call Begin(const Operator& op, const Stack& stack);
  // Gives the call its number, its plain arguments and its position. Returns its arguments with tensors, which the
  // operator takes off the stack; none where the call neither is traced nor writes.
  std::vector<c10::IValue> Place(const Stack& stack, Call& call);
  // After the operator ran: what it wrote, or else what it returned. Counts the versions of storages.
  void AddOutputs(const std::vector<c10::IValue>& arguments, const std::vector<c10::IValue>& results, Call& call);
  // Puts the call behind those that were recorded before.
  void End(Call&& call);

  // RAII: what is recorded while it lives is part of an operator that is not recorded itself. `counts`: a recording of
  // the same run as a program has the parts, not the operator, and so they count as the model's calls where the
  // operator would.
  class Deeper {
   public:
    explicit Deeper(Recorder* recorder, bool counts = false)
        : recorder_(recorder), counts_(counts && recorder->depth_ == recorder->own_depth_) {
      ++recorder_->depth_;
      recorder_->own_depth_ += counts_ ? 1 : 0;
    }
    ~Deeper() {
      --recorder_->depth_;
      recorder_->own_depth_ -= counts_ ? 1 : 0;
    }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Recorder* recorder_;
    bool counts_;
  };

  // Whether what is recorded now counts as a call of the model; see Deeper.
  bool AtModel() const { return depth_ == own_depth_; }

  // The id of a tensor's storage, made on first sight. Undefined tensors and tensors without storage give -1.
  int StorageId(const at::Tensor& tensor);
  // -1 where the storage was never seen.
  int FindStorage(const at::Tensor& tensor) const;
  void NameStorage(const at::Tensor& tensor, const std::string& name);
  // A tensor that the model is given.
  void Give(const at::Tensor& tensor);
  // How many hold a storage, whoever they are; 0: it has been freed.
  int64_t UseCount(int storage) const { return storages_.UseCount(storage); }
  // The operand that `tensor` is right now.
  Operand Describe(const at::Tensor& tensor);

  TracedCalls& traced() { return traced_; }
  const TracedCalls& traced() const { return traced_; }
  // Position of the operator that runs now; `call` may lack its position still.
  Position PositionOf(const Call& call);
  // The module path for parameter names and ambiguous script frames; see SetModulePaths.
  void SetModulePaths(std::vector<std::string> paths) { module_.SetPaths(std::move(paths)); }
  // The module that runs now, where the caller knows it; empty: the model itself, or a TorchScript module inside it.
  void SetModule(std::string path) { module_.Set(std::move(path)); }
  // Tensor number `index` of those that a module has returned; 0 begins another call of it. An operand without storage
  // stands for what is no tensor, or for one that no operator has met. Throws InvalidArgument where the numbers do not
  // count up.
  void AddModuleOutput(const std::string& path, int64_t index, Operand tensor);

 private:
  // Arguments that an operator writes as its result.
  struct Written {
    bool any = false;
    c10::SmallVector<bool, 8> by_argument;
  };
  const Written& WrittenBy(const Operator& op);
  void AddWritten(const std::vector<c10::IValue>& arguments, Call& call);
  void AddReturned(const std::vector<c10::IValue>& results, Call& call);

  TracedCalls traced_;
  int16_t depth_ = 0;
  int16_t own_depth_ = 0;  // of the calls that count as the model's own
  int64_t program_call_ = -1;
  CurrentModule module_;
  absl::flat_hash_map<const c10::FunctionSchema*, Written> written_;
  StorageTable storages_;
};

// The results of an operator, which are the last values on the stack.
std::vector<c10::IValue> ResultsOf(const Operator& op, const Stack& stack);

// Calls `visit` for every tensor in a value: a tensor, or a list, tuple or dictionary of values.
void ForEachTensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit);
// The tensors of a call's arguments or results, lists flattened, in their order.
std::vector<at::Tensor> TensorsIn(const std::vector<c10::IValue>& values);
// Calls `visit` for every tensor in the arguments of an operator, which are the last values on the stack.
void ForEachArgument(const Operator& op, const Stack& stack, const std::function<void(const at::Tensor&)>& visit);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_RECORDER_H_
