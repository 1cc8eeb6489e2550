// Builds recorded programs by hand, for tests. Nothing runs, so a program can have any shape, name and size.
#ifndef ADDEND_CORE_PROGRAM_PROGRAM_BUILDER_H_
#define ADDEND_CORE_PROGRAM_PROGRAM_BUILDER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/program/recorded_program.h"

namespace addend {

// One argument of a call: tensors are values of the program.
struct BuiltArgument {
  static BuiltArgument Tensor(int value) { return {{value}, {}}; }
  static BuiltArgument Tensors(std::vector<int> values) { return {std::move(values), {}}; }
  static BuiltArgument Plain(c10::IValue value) { return {{}, std::move(value)}; }

  std::vector<int> values;
  c10::IValue plain;
};

class ProgramBuilder {
 public:
  using Sizes = std::vector<int64_t>;

  // Adds a value that no call makes. Inputs become arguments of the model too.
  int Add(ValueKind kind, const std::string& name, const Sizes& sizes, at::ScalarType dtype = at::kFloat);
  // Adds a call and returns its values: the results that the schema declares, in new memory or, where the schema says
  // so, in the memory of an argument. Arguments that are not given have their defaults. A written value has a new
  // version.
  std::vector<int> Call(const std::string& op, const std::string& overload, const std::vector<BuiltArgument>& arguments,
                        const std::vector<Sizes>& results, int place = -1);
  // A place without source lines.
  int Module(const std::string& path);
  int Place(CodePlace place);
  // Ends the program, which returns `outputs` as a tuple, or a single output by itself.
  std::shared_ptr<const RecordedProgram> Finish(const std::vector<int>& outputs);

  RecordedProgram& program() { return program_; }
  // The last call.
  RecordedCall& call() { return program_.calls.back(); }

 private:
  int NewValue(ValueKind kind, const std::string& name, const Sizes& sizes, at::ScalarType dtype, int storage);

  RecordedProgram program_;
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_PROGRAM_BUILDER_H_
