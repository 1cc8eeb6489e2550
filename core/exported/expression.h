// Expressions of Python as exported programs hold them: sizes as sympy writes them ("Add(Symbol('s0', positive=True),
// Integer(1))") and guards ("L['x'].size()[0] >= 2").
#ifndef ADDEND_CORE_EXPORTED_EXPRESSION_H_
#define ADDEND_CORE_EXPORTED_EXPRESSION_H_

#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/exported/numbers.h"

namespace addend::exported {

// The subset that computes numbers: literals, names, calls, subscripts, attributes, arithmetic, comparisons, and, or,
// not.
class Expression {
 public:
  // Parses an expression; nullopt for what is no expression of the subset, or calls other functions than those of
  // numbers.
  static std::optional<Expression> Parse(const std::string& text);

  // Computes the value. `look_up` is asked for each name, attribute and subscript as they are written without spaces
  // ("s0", "L['x'].size()[0]"), and for symbols of sympy by their names. Nullopt where the expression needs what
  // `look_up` does not know. Throws as functions of numbers do.
  using LookUp = std::function<std::optional<c10::IValue>(const std::string& name)>;
  std::optional<c10::IValue> Evaluate(const LookUp& look_up) const;

  // The names that Evaluate() looks up, in order and with repetition.
  std::vector<std::string> Names() const;

 private:
  friend class ExpressionParser;
  enum class Kind { kLiteral, kName, kCall };
  Kind kind_ = Kind::kLiteral;
  c10::IValue literal_;
  std::string name_;                   // kName: as it is written; kCall: of the function
  NumberFunction function_ = nullptr;  // kCall: null for "and" and "or"
  std::vector<Expression> arguments_;
};

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_EXPRESSION_H_
