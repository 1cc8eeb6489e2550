// One operator of LibTorch's dispatcher: its schema and the two ways in which Addend runs it.
#ifndef ADDEND_CORE_INTERCEPT_OPERATOR_H_
#define ADDEND_CORE_INTERCEPT_OPERATOR_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <vector>

namespace addend {

using Stack = std::vector<c10::IValue>;

// Note [Computed in]
// A model can be computed in a wider dtype than its own (bfloat16 or float16 in float32, all three in float64) without
// a copy of its parameters: each operator converts the tensors of narrower types that it reads, when it runs, and an
// argument that asks for such a dtype asks for the wider one, but for views of bytes. So all that the model computes is
// in that dtype. Operators that give views read those arguments as they are. A tensor of a narrower dtype that is
// written stays one: where other numbers are read, a wide copy is written, and rounded into the tensor. An embedding
// converts the rows that it takes, not its table.

class Operator {
 public:
  explicit Operator(const c10::OperatorHandle& handle) : handle_(handle) {}

  // Finds an operator by name ("aten::add") and overload ("Tensor"); nullopt if this LibTorch has no such operator.
  static std::optional<Operator> Find(const std::string& name, const std::string& overload);
  // Returns every overload of a name ("aten::add") in this LibTorch, including those of libraries that the process has
  // loaded.
  static std::vector<Operator> Overloads(const std::string& name);

  // This operator, run in a wider dtype, float32 or float64; see Note [Computed in].
  Operator ComputedIn(at::ScalarType dtype) const;
  // That dtype; Undefined: the operator runs in that of its arguments.
  at::ScalarType computed_in() const { return computed_in_; }
  // Asks for the wider dtype in place of a narrower one, in the arguments on the stack that are dtypes.
  void AskForItsDtype(Stack* stack) const;

  // For an out= form, the operator that returns its result instead: add.Tensor for add.out. Nullopt if there is none.
  std::optional<Operator> WithoutOut() const;

  const c10::FunctionSchema& schema() const { return handle_.schema(); }
  // True if LibTorch defines the operator by other operators, so that Expand() can take it apart.
  bool composite() const;
  // Calls the operator as any user of LibTorch would: replaces the arguments on the stack by the results.
  void Call(Stack* stack) const { handle_.callBoxed(*stack); }
  // Calls the operator without any tracing scope seeing the call, in a wider dtype if it is to be.
  void Run(Stack* stack) const;
  // Runs the kernel of a composite operator with tracing on: the inner operators come back to the scope one by one.
  void Expand(Stack* stack) const;

 private:
  c10::OperatorHandle handle_;
  at::ScalarType computed_in_ = at::ScalarType::Undefined;
};

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_OPERATOR_H_
