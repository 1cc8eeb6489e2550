#include "core/exported/expression.h"

#include <cstdlib>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/exported/numbers.h"

namespace addend::exported {
namespace {

// Files come from anywhere: what nests deeper is refused rather than parsed.
constexpr int kDeepest = 200;

// The functions of sympy, and those of Python that guards call, by what computes them for two arguments; longer lists
// are folded.
NumberFunction FunctionOf(const std::string& name) {
  static const auto& functions = *new absl::flat_hash_map<std::string, std::string>{
      {"Add", "_operator.add"},
      {"Mul", "_operator.mul"},
      {"Pow", "_operator.pow"},
      {"PowByNatural", "_operator.pow"},
      {"FloorDiv", "_operator.floordiv"},
      {"CleanDiv", "_operator.floordiv"},
      {"IntTrueDiv", "_operator.truediv"},
      {"FloatTrueDiv", "_operator.truediv"},
      {"Mod", "_operator.mod"},
      {"PythonMod", "_operator.mod"},
      {"Max", "torch.sym_max"},
      {"Min", "torch.sym_min"},
      {"max", "torch.sym_max"},
      {"min", "torch.sym_min"},
      {"Equality", "_operator.eq"},
      {"Eq", "_operator.eq"},
      {"Unequality", "_operator.ne"},
      {"Ne", "_operator.ne"},
      {"StrictLessThan", "_operator.lt"},
      {"LessThan", "_operator.le"},
      {"StrictGreaterThan", "_operator.gt"},
      {"GreaterThan", "_operator.ge"},
      {"And", "_operator.and_"},
      {"Or", "_operator.or_"},
      {"Not", "_operator.not_"},
      {"TruncToInt", "math.trunc"},
      {"FloorToInt", "math.floor"},
      {"CeilToInt", "math.ceil"},
      {"floor", "math.floor"},
      {"ceiling", "math.ceil"},
      {"ToFloat", "torch.sym_float"},
      {"Abs", "_operator.abs"},
  };
  const auto found = functions.find(name);
  return FindNumberFunction(found == functions.end() ? name : found->second);
}

}  // namespace

class ExpressionParser {
 public:
  explicit ExpressionParser(const std::string& text) : text_(text) {}

  std::optional<Expression> Parse() {
    Expression expression = Either();
    Space();
    if (failed_ || at_ != text_.size()) return std::nullopt;
    return expression;
  }

 private:
  using Kind = Expression::Kind;

  static Expression Call(const std::string& function, std::vector<Expression> arguments) {
    Expression call;
    call.kind_ = Kind::kCall;
    call.name_ = function;
    call.function_ = FunctionOf(function);
    call.arguments_ = std::move(arguments);
    return call;
  }

  static Expression Literal(c10::IValue value) {
    Expression literal;
    literal.literal_ = std::move(value);
    return literal;
  }

  Expression Fail() {
    failed_ = true;
    at_ = text_.size();
    return {};
  }

  void Space() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }

  // Takes an operator or a word, if it comes next.
  bool Take(const std::string& token) {
    Space();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    const size_t behind = at_ + token.size();
    const bool word = absl::ascii_isalpha(token[0]);
    if (word && behind < text_.size() && (absl::ascii_isalnum(text_[behind]) || text_[behind] == '_')) return false;
    at_ = behind;
    return true;
  }

  bool Next(char c) {
    Space();
    return at_ < text_.size() && text_[at_] == c;
  }

  Expression Either() {
    if (++depth_ > kDeepest) return Fail();
    Expression left = Both();
    while (Take("or")) left = Call("or", {std::move(left), Both()});
    --depth_;
    return left;
  }

  Expression Both() {
    Expression left = Negated();
    while (Take("and")) left = Call("and", {std::move(left), Negated()});
    return left;
  }

  Expression Negated() {
    bool negated = false;
    while (Take("not")) negated = !negated;
    Expression inner = Comparison();
    return negated ? Call("_operator.not_", {std::move(inner)}) : inner;
  }

  // a < b <= c means a < b and b <= c.
  Expression Comparison() {
    Expression left = Sum();
    std::optional<Expression> all;
    for (;;) {
      std::string function;
      if (Take("==")) {
        function = "_operator.eq";
      } else if (Take("!=")) {
        function = "_operator.ne";
      } else if (Take("<=")) {
        function = "_operator.le";
      } else if (Take(">=")) {
        function = "_operator.ge";
      } else if (Take("<")) {
        function = "_operator.lt";
      } else if (Take(">")) {
        function = "_operator.gt";
      } else {
        return all ? std::move(*all) : std::move(left);
      }
      Expression right = Sum();
      Expression one = Call(function, {left, right});
      all = all ? Call("and", {std::move(*all), std::move(one)}) : std::move(one);
      left = std::move(right);
    }
  }

  Expression Sum() {
    Expression left = Term();
    for (;;) {
      if (Take("+")) {
        left = Call("_operator.add", {std::move(left), Term()});
      } else if (Take("-")) {
        left = Call("_operator.sub", {std::move(left), Term()});
      } else {
        return left;
      }
    }
  }

  Expression Term() {
    Expression left = Sign();
    for (;;) {
      if (Take("//")) {
        left = Call("_operator.floordiv", {std::move(left), Sign()});
      } else if (Take("/")) {
        left = Call("_operator.truediv", {std::move(left), Sign()});
      } else if (Take("%")) {
        left = Call("_operator.mod", {std::move(left), Sign()});
      } else if (!AtPower() && Take("*")) {
        left = Call("_operator.mul", {std::move(left), Sign()});
      } else {
        return left;
      }
    }
  }

  bool AtPower() {
    Space();
    return text_.compare(at_, 2, "**") == 0;
  }

  Expression Sign() {
    if (++depth_ > kDeepest) return Fail();
    Expression result;
    if (Take("-")) {
      result = Call("_operator.neg", {Sign()});
    } else if (Take("+")) {
      result = Sign();
    } else {
      result = Operand();
      if (Take("**")) result = Call("_operator.pow", {std::move(result), Sign()});
    }
    --depth_;
    return result;
  }

  Expression Operand() {
    Space();
    if (at_ >= text_.size()) return Fail();
    if (Take("(")) {
      Expression inner = Either();
      return Take(")") ? inner : Fail();
    }
    const char c = text_[at_];
    if (absl::ascii_isdigit(c) || c == '.') return Number();
    if (c == '\'' || c == '"') return Literal(c10::IValue(String()));
    if (absl::ascii_isalpha(c) || c == '_') return Named();
    return Fail();
  }

  Expression Number() {
    const size_t begin = at_;
    bool whole = true;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool sign = (c == '-' || c == '+') && absl::ascii_tolower(text_[at_ - 1]) == 'e';
      if (!absl::ascii_isdigit(c) && c != '.' && absl::ascii_tolower(c) != 'e' && !sign) break;
      whole &= absl::ascii_isdigit(c);
      ++at_;
    }
    const std::string digits = text_.substr(begin, at_ - begin);
    int64_t integer = 0;
    double number = 0;
    if (whole) return absl::SimpleAtoi(digits, &integer) ? Literal(integer) : Fail();
    return absl::SimpleAtod(digits, &number) ? Literal(number) : Fail();
  }

  std::string String() {
    const char quote = text_[at_++];
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\\') ++at_;
    if (at_ >= text_.size() || text_[at_] != quote) {
      Fail();
      return "";
    }
    return text_.substr(begin, at_++ - begin);
  }

  std::string Word() {
    const size_t begin = at_;
    while (at_ < text_.size() && (absl::ascii_isalnum(text_[at_]) || text_[at_] == '_')) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // A name with what follows it: attributes, subscripts of literals, calls.
  Expression Named() {
    std::string name = Word();
    if (name == "True") return Literal(true);
    if (name == "False") return Literal(false);
    if (name == "None") return Literal(c10::IValue());
    for (;;) {
      if (Next('.')) {
        ++at_;
        absl::StrAppend(&name, ".", Word());
      } else if (Next('[')) {
        ++at_;
        const Expression index = Either();
        if (!Take("]") || index.kind_ != Kind::kLiteral) return Fail();
        if (index.literal_.isString()) {
          absl::StrAppend(&name, "['", index.literal_.toStringRef(), "']");
        } else if (index.literal_.isInt()) {
          absl::StrAppend(&name, "[", index.literal_.toInt(), "]");
        } else {
          return Fail();
        }
      } else if (Next('(')) {
        ++at_;
        std::vector<Expression> arguments;
        if (!Arguments(&arguments)) return Fail();
        if (name == "Symbol" || name == "Integer" || name == "Float" || name == "Rational") {
          return SympyAtom(name, arguments);
        }
        // A method without arguments is read, as an attribute is: x.size(), x.numel().
        if (FunctionOf(name) != nullptr) return Call(name, std::move(arguments));
        if (!absl::StrContains(name, ".")) return Fail();
        std::vector<std::string> texts;
        for (const Expression& argument : arguments) {
          if (argument.kind_ != Kind::kLiteral || !argument.literal_.isInt()) return Fail();
          texts.push_back(absl::StrCat(argument.literal_.toInt()));
        }
        absl::StrAppend(&name, "(", absl::StrJoin(texts, ", "), ")");
      } else {
        break;
      }
    }
    Expression named;
    named.kind_ = Kind::kName;
    named.name_ = std::move(name);
    return named;
  }

  // Up to the closing parenthesis. Arguments by keyword, which say what sympy assumes of a symbol, are left out.
  bool Arguments(std::vector<Expression>* arguments) {
    while (!failed_ && !Take(")")) {
      Space();
      const size_t begin = at_;
      Word();
      const bool keyword = at_ > begin && Next('=') && text_.compare(at_, 2, "==") != 0;
      if (keyword) {
        ++at_;
        Either();
      } else {
        at_ = begin;
        arguments->push_back(Either());
      }
      if (!Take(",") && !Next(')')) return false;
    }
    return !failed_;
  }

  Expression SympyAtom(const std::string& name, std::vector<Expression>& arguments) {
    if (arguments.empty()) return Fail();
    if (name == "Rational" && arguments.size() == 2) return Call("_operator.truediv", std::move(arguments));
    Expression& first = arguments[0];
    if (name == "Symbol") {
      if (first.kind_ != Kind::kLiteral || !first.literal_.isString()) return Fail();
      Expression symbol;
      symbol.kind_ = Kind::kName;
      symbol.name_ = first.literal_.toStringRef();
      return symbol;
    }
    if (name == "Float" && first.kind_ == Kind::kLiteral && first.literal_.isString()) {
      double number = 0;
      return absl::SimpleAtod(first.literal_.toStringRef(), &number) ? Literal(number) : Fail();
    }
    return std::move(first);
  }

  const std::string& text_;
  size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

std::optional<Expression> Expression::Parse(const std::string& text) { return ExpressionParser(text).Parse(); }

std::optional<c10::IValue> Expression::Evaluate(const LookUp& look_up) const {
  if (kind_ == Kind::kLiteral) return literal_;
  if (kind_ == Kind::kName) return look_up(name_);
  if (function_ == nullptr) {
    const auto left = arguments_[0].Evaluate(look_up);
    if (!left || IsTrue(*left) == (name_ == "or")) return left;
    return arguments_[1].Evaluate(look_up);
  }
  std::vector<c10::IValue> values;
  for (const Expression& argument : arguments_) {
    auto value = argument.Evaluate(look_up);
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
  }
  while (values.size() > 2) {
    const c10::IValue folded = function_({values[0], values[1]});
    values.erase(values.begin());
    values[0] = folded;
  }
  return function_(values);
}

std::vector<std::string> Expression::Names() const {
  if (kind_ == Kind::kName) return {name_};
  std::vector<std::string> names;
  for (const Expression& argument : arguments_) {
    for (std::string& name : argument.Names()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace addend::exported
