// One operator of LibTorch's dispatcher: its schema and the two ways in which Addend runs it.
#ifndef ADDEND_CORE_INTERCEPT_OPERATOR_H_
#define ADDEND_CORE_INTERCEPT_OPERATOR_H_

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <vector>

namespace addend {

using Stack = std::vector<c10::IValue>;

class Operator {
 public:
  explicit Operator(const c10::OperatorHandle& handle) : handle_(handle) {}

  // Finds an operator by name ("aten::add") and overload ("Tensor"); nullopt if this LibTorch has no such operator.
  static std::optional<Operator> Find(const std::string& name, const std::string& overload);
  // Returns every overload of a name ("aten::add") in this LibTorch, including those of libraries that the process has
  // loaded.
  static std::vector<Operator> Overloads(const std::string& name);

  // For an out= form, the operator that returns its result instead: add.Tensor for add.out. Nullopt if there is none.
  std::optional<Operator> WithoutOut() const;

  const c10::FunctionSchema& schema() const { return handle_.schema(); }
  // True if LibTorch defines the operator by other operators, so that Expand() can take it apart.
  bool composite() const;
  // Calls the operator as any user of LibTorch would: replaces the arguments on the stack by the results.
  void Call(Stack* stack) const { handle_.callBoxed(*stack); }
  // Calls the operator without any tracing scope seeing the call.
  void Run(Stack* stack) const;
  // Runs the kernel of a composite operator with tracing on: the inner operators come back to the scope one by one.
  void Expand(Stack* stack) const;

 private:
  c10::OperatorHandle handle_;
};

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_OPERATOR_H_
