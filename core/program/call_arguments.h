// The arguments of a recorded call by name, as text and as JSON.
#ifndef ADDEND_CORE_PROGRAM_CALL_ARGUMENTS_H_
#define ADDEND_CORE_PROGRAM_CALL_ARGUMENTS_H_

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/program/recorded_program.h"

namespace addend {

struct CallArgument {
  // Meaning of an integer.
  enum class Meaning { kNumber, kDtype, kLayout, kMemoryFormat };

  std::string name;             // as the schema calls it: "weight", "stride"
  bool is_tensor = false;       // a tensor or a list of tensors
  bool is_list = false;         // a list, of tensors or of numbers
  bool is_default = false;      // no tensor is given, and what is given the schema has as its default
  bool keyword_only = false;    // can only be given by name
  std::vector<TensorUse> uses;  // is_tensor; in a list those that are not there have the value -1
  c10::IValue value;            // of everything else; None also for a tensor that is not there
  Meaning meaning = Meaning::kNumber;
};

// Returns the arguments of a call, in the order of the schema.
std::vector<CallArgument> ArgumentsOf(const RecordedCall& call);

// Writes a plain value as Python does, on one line: "[2, 2]", "1e-05", "True", "None", "(1+2j)", "cpu". Strings have no
// quotes.
std::string PlainText(const c10::IValue& value, CallArgument::Meaning meaning = CallArgument::Meaning::kNumber);
// Writes a plain value as JSON. Values that JSON has no form for are strings: numbers that are not finite ("inf",
// "-inf", "nan"), complex numbers, dtypes ("bfloat16"), devices.
Json PlainJson(const c10::IValue& value, CallArgument::Meaning meaning = CallArgument::Meaning::kNumber);

// Writes a value: {"name", "dtype", "shape", "strides", "offset", "device", "storage", "version"}. `version`: the
// version of the storage at a use.
Json ValueJson(const RecordedValue& value, int version);
// Writes an argument: {"name", "default", "value"}, or for tensors {"name", "tensors"} with {"value", "version",
// "written"} for each. A missing tensor is null in a list, and an empty list if it is the whole argument.
Json ArgumentJson(const RecordedProgram& program, const CallArgument& argument);
// Writes the guard that the call is: {"kind", "value"}; null if the call is no guard.
Json GuardJson(const RecordedProgram& program, const RecordedCall& call);
// Writes the frames of a place, outermost first: [{"file", "line", "column", "length", "function", "text"}]. What is
// not known is null.
Json FramesJson(const CodePlace& place);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_CALL_ARGUMENTS_H_
