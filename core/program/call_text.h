// Calls of operators in words: their names, and a call in one line.
#ifndef ADDEND_CORE_PROGRAM_CALL_TEXT_H_
#define ADDEND_CORE_PROGRAM_CALL_TEXT_H_

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <string>
#include <vector>

namespace addend {

// "aten::add_" -> "aten::add": the name under which rules are registered.
std::string RuleName(const std::string& schema_name);
// "aten::add.Tensor"
std::string FullName(const c10::FunctionSchema& schema);

// Text that a recorder notes of a call.
struct CallText {
  struct Operand {
    int16_t argument = -1;  // position in the schema
    std::string text;
  };
  std::vector<Operand> operands;  // tensors, in schema order, lists flattened
  std::vector<std::string> results;
};
// One line: "add(f32[2, 3], f32[3], 1) -> f32[2, 3]". `arguments`: as called; what it has for tensors is not read.
std::string DescribeCall(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, const CallText& text);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_CALL_TEXT_H_
