// Writes the program of a run while the unmodified model computes on its own tensors.
#ifndef ADDEND_CORE_PROGRAM_RECORDER_H_
#define ADDEND_CORE_PROGRAM_RECORDER_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/module_paths.h"
#include "core/program/program.h"
#include "core/program/storage_table.h"

namespace addend {

// What rides along with the recorder: it is asked about operators and sees every call before and after it runs.
class RecorderObserver {
 public:
  virtual ~RecorderObserver() = default;
  // True when the operator is to be recorded whole although LibTorch could expand it.
  virtual bool HasRule(const std::string& rule_name, const std::string& full_name) = 0;
  // True when the storage carries rows / is followed as ids or conditions at this moment.
  virtual bool IsDecomposed(int storage) = 0;
  virtual bool IsLabelled(int storage) = 0;
  // `arguments`: the values that the model passes, tensors included. Called for traced calls and for those that write.
  virtual void BeforeRun(const Call& call, const std::vector<c10::IValue>& arguments) = 0;
  virtual void AfterRun(Call& call, const std::vector<c10::IValue>& arguments,
                        const std::vector<c10::IValue>& results) = 0;
  // True when the operator has no rule but a rewrite into others.
  virtual bool HasRewrite(const std::string& /*rule_name*/, const std::string& /*full_name*/) { return false; }
  // Computes such an operator, with tracing on, by others. Returns its results; none: this call is to be recorded whole
  // after all. `call`: position and operands.
  virtual std::vector<c10::IValue> RunRewrite(const Call& /*call*/, const std::vector<c10::IValue>& /*arguments*/) {
    return {};
  }
  // A composite operator with rows among its operands was run as the operators that it consists of.
  virtual void AfterExpand(const Operator& op, const std::vector<c10::IValue>& results) = 0;
};

class Recorder : public CallHandler {
 public:
  // `observer` may be null; then every operator is recorded as it is called and composites are not expanded.
  explicit Recorder(RecorderObserver* observer) : observer_(observer) {}

  void Handle(const Operator& op, Stack* stack) override;

  // The id of a tensor's storage, made on first sight. Undefined tensors and tensors without storage give -1.
  int StorageId(const at::Tensor& tensor);
  // -1 where the storage was never seen.
  int FindStorage(const at::Tensor& tensor) const;
  void NameStorage(const at::Tensor& tensor, const std::string& name);
  // The operand that `tensor` is right now.
  Operand Describe(const at::Tensor& tensor);

  Program& program() { return program_; }
  const Program& program() const { return program_; }
  // Where the operator that runs now is called; `call` may lack its position still.
  Position PositionOf(const Call& call);
  // The module path for parameter names and ambiguous script frames; see SetModulePaths.
  void SetModulePaths(std::vector<std::string> paths) { module_.SetPaths(std::move(paths)); }
  // The module that runs now, where the caller knows it; empty: script frames and parameter names tell.
  void SetModule(std::string path) { module_.Set(std::move(path)); }

 private:
  struct OpFacts {
    std::string rule_name;
    bool has_rule = false;
    bool has_rewrite = false;
    bool composite = false;
    bool writes = false;
    c10::SmallVector<bool, 8> written;  // by argument
  };
  const OpFacts& FactsOf(const Operator& op);

  RecorderObserver* observer_;
  Program program_;
  int16_t depth_ = 0;
  int64_t program_call_ = -1;
  CurrentModule module_;
  absl::flat_hash_map<const c10::FunctionSchema*, std::unique_ptr<OpFacts>> facts_;
  StorageTable storages_;
};

// Calls `visit` for every tensor in a value: a tensor, or a list, tuple or dictionary of values.
void ForEachTensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_RECORDER_H_
