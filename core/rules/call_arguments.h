// The arguments of a call, read by their names in the operator's schema: rules and rewrites read them alike.
//
// Note [Arguments by name]
// The schema decides where an argument stands: the overloads of an operator, its in-place form and operators that share
// one rule may order their arguments differently, and versions of LibTorch add some. An argument that the schema does
// not have counts as None.
#ifndef ADDEND_CORE_RULES_CALL_ARGUMENTS_H_
#define ADDEND_CORE_RULES_CALL_ARGUMENTS_H_

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace addend {

struct CallArguments {
  std::string name;                             // "aten::add"
  std::string overload;                         // "Tensor"
  const c10::FunctionSchema* schema = nullptr;  // of the operator that was called, which outlives the call
  std::vector<c10::IValue> arguments;           // by schema position

  // The position of an argument in the schema; -1 where the schema has none of that name.
  int At(std::string_view argument) const;
  bool Has(std::string_view argument) const { return At(argument) >= 0; }
  // The name of the argument at a position. Operators that share a rule may call their first argument "self", "input"
  // or "A".
  const std::string& NameOf(int position) const;
  const std::string& First() const { return NameOf(0); }
  // The argument as the call gave it.
  const c10::IValue& Given(std::string_view argument) const;
  bool IsNone(std::string_view argument) const;
  // Numbers, words and lists of them; `otherwise` (an empty list) where the argument is nothing of the kind.
  int64_t Int(std::string_view argument, int64_t otherwise) const;
  // Throws Unimplemented for a number that is not real.
  double Double(std::string_view argument, double otherwise) const;
  bool Bool(std::string_view argument, bool otherwise) const;
  // A list of integers; one integer counts as a list of one.
  std::vector<int64_t> Ints(std::string_view argument) const;
  std::string String(std::string_view argument, const std::string& otherwise) const;
};

}  // namespace addend

#endif  // ADDEND_CORE_RULES_CALL_ARGUMENTS_H_
