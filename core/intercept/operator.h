// One operator of LibTorch's dispatcher: its schema and the two ways in which Addend runs it.
#ifndef ADDEND_CORE_INTERCEPT_OPERATOR_H_
#define ADDEND_CORE_INTERCEPT_OPERATOR_H_

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <vector>

namespace addend {

using Stack = std::vector<c10::IValue>;

// Note [In float32]
// A model in bfloat16 or float16 can be computed in float32 without a copy of its parameters: each operator converts
// the tensors of such types that it reads, when it runs, and an argument that asks for such a dtype asks for float32.
// So all that the model computes is float32. Operators that give views or write in place read those arguments as they
// are. An embedding converts the rows that it takes, not its table.

class Operator {
 public:
  explicit Operator(const c10::OperatorHandle& handle) : handle_(handle) {}

  // Finds an operator by name ("aten::add") and overload ("Tensor"); nullopt if this LibTorch has no such operator.
  static std::optional<Operator> Find(const std::string& name, const std::string& overload);
  // Returns every overload of a name ("aten::add") in this LibTorch, including those of libraries that the process has
  // loaded.
  static std::vector<Operator> Overloads(const std::string& name);

  // The same operator, run in float32; see Note [In float32].
  Operator InFloat32() const;
  bool in_float32() const { return in_float32_; }
  // What an operator that runs in float32 is asked for: float32 in place of a half type, in the arguments on the stack
  // that are dtypes.
  void AskForFloat32(Stack* stack) const;

  // For an out= form, the operator that returns its result instead: add.Tensor for add.out. Nullopt if there is none.
  std::optional<Operator> WithoutOut() const;

  const c10::FunctionSchema& schema() const { return handle_.schema(); }
  // True if LibTorch defines the operator by other operators, so that Expand() can take it apart.
  bool composite() const;
  // Calls the operator as any user of LibTorch would: replaces the arguments on the stack by the results.
  void Call(Stack* stack) const { handle_.callBoxed(*stack); }
  // Calls the operator without any tracing scope seeing the call, in float32 if it is to be.
  void Run(Stack* stack) const;
  // Runs the kernel of a composite operator with tracing on: the inner operators come back to the scope one by one.
  void Expand(Stack* stack) const;

 private:
  c10::OperatorHandle handle_;
  bool in_float32_ = false;
};

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_OPERATOR_H_
