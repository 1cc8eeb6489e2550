// Checks of inputs against the conditions from which the exporter has drawn conclusions.
#ifndef ADDEND_CORE_EXPORTED_INPUT_CHECKS_H_
#define ADDEND_CORE_EXPORTED_INPUT_CHECKS_H_

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/exported/expression.h"
#include "core/exported/nesting.h"
#include "core/exported/program.h"

namespace addend::exported {

class InputChecks {
 public:
  // `inputs`: what the program says of each leaf, in order. `dtype`: what the model computes with in place of a type of
  // the file; `device`: where.
  InputChecks(const Program& program, const std::vector<const InputSpec*>& inputs, std::vector<ProgramLeaf> leaves,
              const std::function<c10::ScalarType(c10::ScalarType)>& dtype, c10::Device device);

  // Lists what is wrong with these leaves; empty: nothing. Both numbers stand in each sentence.
  std::vector<std::string> Complaints(const std::vector<c10::IValue>& leaves) const;
  // The guards of the file that are not checked, as the file has them.
  const std::vector<std::string>& unchecked() const { return unchecked_; }

 private:
  struct Size {
    std::optional<int64_t> value;
    std::optional<Expression> expression;
    std::string text;
  };
  struct Check {
    bool is_tensor = false;
    bool is_number = false;  // of any value, to which `number` gives a name
    c10::ScalarType dtype = c10::ScalarType::Float;
    std::vector<Size> sizes;
    Size number;
    c10::IValue constant;  // neither of them: what it has to be
  };
  struct Guard {
    std::string text;
    Expression expression;
  };
  class Run;

  Size SizeOf(const SymbolicInt& size) const;
  std::optional<c10::IValue> Property(const std::string& name, const std::vector<c10::IValue>& leaves) const;

  std::vector<ProgramLeaf> leaves_;
  c10::Device device_;
  std::vector<Check> checks_;  // by leaf
  std::map<std::string, RangeConstraint> ranges_;
  std::vector<Guard> guards_;
  std::vector<std::string> unchecked_;
};

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_INPUT_CHECKS_H_
