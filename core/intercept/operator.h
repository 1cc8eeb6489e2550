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

  // By name ("aten::add") and overload ("Tensor"); nullopt where this LibTorch has no such operator.
  static std::optional<Operator> Find(const std::string& name, const std::string& overload);
  // Every overload of a name ("aten::add") in this LibTorch; those of libraries loaded into the process included.
  static std::vector<Operator> Overloads(const std::string& name);

  // Of an out= form the operator that returns its result instead: add.Tensor for add.out. Nullopt where there is none.
  std::optional<Operator> WithoutOut() const;

  const c10::FunctionSchema& schema() const { return handle_.schema(); }
  // True where LibTorch defines the operator by other operators, so that it can be expanded.
  bool composite() const;
  // Replaces the arguments on the stack by the results, as whoever uses LibTorch would call it.
  void Call(Stack* stack) const { handle_.callBoxed(*stack); }
  // The same, but no tracing scope sees the call.
  void Run(Stack* stack) const;
  // Runs the composite kernel with tracing on: the inner operators come back to the scope one by one.
  void Expand(Stack* stack) const;

 private:
  c10::OperatorHandle handle_;
};

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_OPERATOR_H_
