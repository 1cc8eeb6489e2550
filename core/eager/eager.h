// Eager calls: operators called one by one, by name, on compositions.
//
// Note [Eager calls]
// A call is a program of one operator: it is recorded, linearized and swept like any model. So every rule, policy and
// check holds, and composite operators expand. A composition carries what the next call needs: the value, the leftover,
// the marks that freezing looks at, and how many operators led to it. A chain of calls therefore gives the same as
// these operators inside a model.
#ifndef ADDEND_CORE_EAGER_EAGER_H_
#define ADDEND_CORE_EAGER_EAGER_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/composition/call_options.h"
#include "core/composition/composition.h"
#include "core/eager/argument.h"
#include "core/explain/report.h"

namespace addend {

// One result of a call.
class Result {
 public:
  explicit Result(Composition composition) : composition_(std::move(composition)) {}
  explicit Result(c10::IValue plain) : plain_(std::move(plain)) {}

  // Floating-point results are compositions; integers and bools are plain tensors or numbers.
  bool is_composition() const { return composition_.has_value(); }
  // The composition. Throws InvalidArgument if the result is none.
  const Composition& composition() const;
  // The plain tensor, or the value of the composition.
  at::Tensor tensor() const;
  // The value as LibTorch gave it; None for a composition.
  const c10::IValue& plain() const { return plain_; }

 private:
  std::optional<Composition> composition_;
  c10::IValue plain_;
};

// The results of a call in their order, lists taken apart. The only result stands for itself:
//   Composition y = Call("aten::relu", x);
class Results {
 public:
  Results(std::vector<Result> results, Report report) : results_(std::move(results)), report_(std::move(report)) {}

  size_t size() const { return results_.size(); }
  const Result& operator[](size_t index) const;
  std::vector<Result>::const_iterator begin() const { return results_.begin(); }
  std::vector<Result>::const_iterator end() const { return results_.end(); }
  const Composition& composition(size_t index = 0) const { return (*this)[index].composition(); }
  at::Tensor tensor(size_t index = 0) const { return (*this)[index].tensor(); }
  // All compositions. Throws InvalidArgument if a result is no composition.
  std::vector<Composition> compositions() const;
  // Throws InvalidArgument unless there is one result and it is a composition.
  operator Composition() const;  // NOLINT(google-explicit-constructor): see above

  // The report of the call, as for a whole model. Empty if no composition was among the arguments.
  const Report& report() const { return report_; }

 private:
  std::vector<Result> results_;
  Report report_;
};

// Calls an operator: "aten::add.Tensor", or "aten::add" where the arguments tell the overload. Any argument may be a
// composition where the schema wants a tensor; without any the operator just runs. An operator that writes an argument
// ("aten::add_") takes a pointer to the composition there, which then holds the new state. Throws NotFound and
// InvalidArgument where name, arguments, numbers of components or devices do not fit, Unimplemented where no rule
// covers the operator, Internal on a tracing failure.
Results CallOperator(const std::string& name, const std::vector<Argument>& arguments, const CallOptions& options = {});

// Calls the operator as Bind() bound it to these arguments.
Results CallBound(const BoundCall& bound, const std::vector<Argument>& arguments, const CallOptions& options = {});

// Call("aten::add", x, y, Named("alpha", 2))
template <typename... Arguments>
Results Call(const std::string& name, const Arguments&... arguments) {
  return CallOperator(name, std::vector<Argument>{Argument(arguments)...});
}
// Calls an operator under a policy or with other rules: CallWith(policy, "aten::softmax", x, -1).
template <typename... Arguments>
Results CallWith(const CallOptions& options, const std::string& name, const Arguments&... arguments) {
  return CallOperator(name, std::vector<Argument>{Argument(arguments)...}, options);
}

// Computes several operators at once: a function of tensors is run on the values of compositions and decomposed as a
// whole.
Results Compute(const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function,
                const std::vector<Composition>& inputs, const CallOptions& options = {});

}  // namespace addend

#endif  // ADDEND_CORE_EAGER_EAGER_H_
