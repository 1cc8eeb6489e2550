#include "core/exported/input_checks.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/exported/numbers.h"
#include "core/program/structure.h"

namespace addend::exported {
namespace {

using c10::IValue;

std::string Text(const IValue& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string RangeText(const RangeConstraint& range) {
  if (range.min && range.max && *range.min == *range.max) return absl::StrCat(*range.min);
  if (!range.max) return absl::StrCat(range.min.value_or(0), " or more");
  return absl::StrCat(range.min.value_or(0), " to ", *range.max);
}

bool Within(int64_t size, const RangeConstraint& range) {
  return (!range.min || size >= *range.min) && (!range.max || size <= *range.max);
}

}  // namespace

// The symbols that the inputs at hand give values to.
class InputChecks::Run {
 public:
  Run(const InputChecks& checks, const std::vector<IValue>& leaves) : checks_(checks), leaves_(leaves) {}

  std::vector<std::string> Take() {
    for (size_t k = 0; k < leaves_.size(); ++k) CheckLeaf(k);
    // Sums and products of symbols, now that the symbols that stand alone are known.
    for (const Open& open : open_) CheckOpen(open);
    if (complaints_.empty()) CheckGuards();
    return std::move(complaints_);
  }

 private:
  struct Symbol {
    int64_t value = 0;
    std::string where;
  };
  struct Open {
    const Size* size;
    int64_t found;
    std::string where;
  };

  void CheckLeaf(size_t k) {
    const Check& check = checks_.checks_[k];
    const std::string name = absl::StrCat("input ", checks_.leaves_[k].name);
    const IValue& leaf = leaves_[k];
    if (check.is_number) {
      if (!leaf.isInt()) return complaints_.push_back(absl::StrCat(name, " is no integer"));
      return CheckSize(check.number, leaf.toInt(), name);
    }
    if (!check.is_tensor) {
      if (!SamePlain(check.constant, leaf)) {
        complaints_.push_back(
            absl::StrCat(name, " is ", Text(leaf), ", the model was exported for ", Text(check.constant), " only"));
      }
      return;
    }
    if (!leaf.isTensor() || !leaf.toTensor().defined())
      return complaints_.push_back(absl::StrCat(name, " is no tensor"));
    const at::Tensor& tensor = leaf.toTensor();
    if (tensor.scalar_type() != check.dtype) {
      complaints_.push_back(absl::StrCat(name, " is ", DtypeWord(tensor.scalar_type()), ", the model was exported for ",
                                         DtypeWord(check.dtype)));
    }
    if (tensor.device() != checks_.device_) {
      complaints_.push_back(
          absl::StrCat(name, " is on ", tensor.device().str(), ", the model on ", checks_.device_.str()));
    }
    if (tensor.dim() != static_cast<int64_t>(check.sizes.size())) {
      return complaints_.push_back(
          absl::StrCat(name, " has ", tensor.dim(), " dimensions, the model was exported for ", check.sizes.size()));
    }
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      CheckSize(check.sizes[static_cast<size_t>(d)], tensor.size(d), absl::StrCat(name, ", dimension ", d));
    }
  }

  void Complain(const std::string& where, int64_t found, const std::string& expected) {
    complaints_.push_back(absl::StrCat(where, ": ", found, ", the model was exported for ", expected));
  }

  void CheckSize(const Size& size, int64_t found, const std::string& where) {
    if (size.value && !size.expression) {
      if (*size.value != found) {
        Complain(where, found, absl::StrCat(*size.value, " only (export it with dynamic_shapes for other sizes)"));
      }
      return;
    }
    if (!size.expression) return;
    const std::vector<std::string> names = size.expression->Names();
    if (names.size() == 1 && names[0] == size.text) {
      Bind(names[0], found, where);
    } else {
      open_.push_back({&size, found, where});
    }
  }

  void Bind(const std::string& name, int64_t value, const std::string& where) {
    const auto [symbol, is_new] = symbols_.try_emplace(name, Symbol{value, where});
    if (!is_new) {
      if (symbol->second.value != value) {
        Complain(where, value, absl::StrCat("the same as ", symbol->second.where, ", which is ", symbol->second.value));
      }
      return;
    }
    const auto range = checks_.ranges_.find(name);
    if (range != checks_.ranges_.end() && !Within(value, range->second)) {
      Complain(where, value, RangeText(range->second));
    }
  }

  // With one more symbol of a value.
  std::optional<int64_t> Evaluate(const Expression& expression, const std::string& extra = "", int64_t value = 0) {
    const auto result = expression.Evaluate([&](const std::string& name) -> std::optional<IValue> {
      if (name == extra) return IValue(value);
      const auto found = symbols_.find(name);
      if (found == symbols_.end()) return std::nullopt;
      return IValue(found->second.value);
    });
    if (!result || !result->isInt()) return std::nullopt;
    return result->toInt();
  }

  // A size that an expression gives, or from which its only unknown symbol follows linearly.
  void CheckOpen(const Open& open) {
    const Expression& expression = *open.size->expression;
    std::string unknown;
    for (const std::string& name : expression.Names()) {
      if (symbols_.count(name) > 0 || name == unknown) continue;
      if (!unknown.empty()) return;
      unknown = name;
    }
    if (!unknown.empty()) {
      const auto at_zero = Evaluate(expression, unknown, 0);
      const auto at_one = Evaluate(expression, unknown, 1);
      if (!at_zero || !at_one || *at_one == *at_zero) return;
      const int64_t step = *at_one - *at_zero;
      if ((open.found - *at_zero) % step == 0) Bind(unknown, (open.found - *at_zero) / step, open.where + " (a part)");
    }
    const auto value = Evaluate(expression);
    if (!value) return Complain(open.where, open.found, absl::StrCat("sizes like ", open.size->text));
    if (*value != open.found) {
      Complain(open.where, open.found, absl::StrCat(*value, ", which follows from the other sizes"));
    }
  }

  void CheckGuards() {
    for (const Guard& guard : checks_.guards_) {
      const auto holds = guard.expression.Evaluate([&](const std::string& name) -> std::optional<IValue> {
        const auto symbol = symbols_.find(name);
        if (symbol != symbols_.end()) return IValue(symbol->second.value);
        return checks_.Property(name, leaves_);
      });
      if (!holds || holds->isNone() || holds->isString() || IsTrue(*holds)) continue;
      std::string numbers;
      for (const std::string& name : guard.expression.Names()) {
        const auto value = checks_.Property(name, leaves_);
        if (value) absl::StrAppend(&numbers, numbers.empty() ? "" : ", ", name, " is ", Text(*value));
      }
      complaints_.push_back(absl::StrCat("the model was exported for ", guard.text, " only: ", numbers));
    }
  }

  const InputChecks& checks_;
  const std::vector<IValue>& leaves_;
  std::map<std::string, Symbol> symbols_;
  std::vector<Open> open_;
  std::vector<std::string> complaints_;
};

InputChecks::InputChecks(const Program& program, const std::vector<const InputSpec*>& inputs,
                         std::vector<ProgramLeaf> leaves, const std::function<c10::ScalarType(c10::ScalarType)>& dtype,
                         c10::Device device)
    : leaves_(std::move(leaves)), device_(device), ranges_(program.ranges) {
  for (const InputSpec* input : inputs) {
    Check check;
    const Argument& argument = input->argument;
    const bool value = input->kind == InputSpec::Kind::kUserInput && argument.kind == Argument::Kind::kValue;
    const auto tensor = value ? program.graph.tensors.find(argument.name) : program.graph.tensors.end();
    if (tensor != program.graph.tensors.end()) {
      check.is_tensor = true;
      check.dtype = dtype ? dtype(tensor->second.dtype) : tensor->second.dtype;
      for (const SymbolicInt& size : tensor->second.sizes) check.sizes.push_back(SizeOf(size));
    } else if (value) {
      const auto number = program.graph.symbolic_ints.find(argument.name);
      check.is_number = true;
      if (number != program.graph.symbolic_ints.end()) check.number = SizeOf(number->second);
    } else {
      check.constant = input->kind == InputSpec::Kind::kConstantInput ? input->value : argument.constant;
    }
    checks_.push_back(std::move(check));
  }
  for (const std::string& text : program.guards) {
    auto expression = Expression::Parse(text);
    bool known = expression.has_value();
    if (known) {
      for (const std::string& name : expression->Names()) {
        const bool size = std::any_of(leaves_.begin(), leaves_.end(),
                                      [&](const ProgramLeaf& leaf) { return absl::StartsWith(name, leaf.path); });
        known &= size || ranges_.count(name) > 0;
      }
    }
    if (known) {
      guards_.push_back({text, std::move(*expression)});
    } else {
      unchecked_.push_back(text);
    }
  }
}

InputChecks::Size InputChecks::SizeOf(const SymbolicInt& size) const {
  Size result;
  if (size.expression.empty()) {
    result.value = size.value;
    return result;
  }
  result.expression = Expression::Parse(size.expression);
  result.text = size.expression;
  // A symbol by its own name, so that it is told from what is computed of it.
  if (result.expression && absl::StartsWith(size.expression, "Symbol(") && result.expression->Names().size() == 1) {
    result.text = result.expression->Names()[0];
  }
  return result;
}

// "L['x'].size()[1]", "L['x'].shape[1]", "L['n']".
std::optional<IValue> InputChecks::Property(const std::string& name, const std::vector<IValue>& leaves) const {
  for (size_t k = 0; k < leaves_.size() && k < leaves.size(); ++k) {
    const std::string& path = leaves_[k].path;
    if (!absl::StartsWith(name, path)) continue;
    std::string rest = name.substr(path.size());
    if (rest.empty()) {
      if (leaves[k].isTensor()) continue;
      return leaves[k];
    }
    if (!leaves[k].isTensor()) continue;
    const at::Tensor& tensor = leaves[k].toTensor();
    int64_t dim = 0;
    for (const char* what : {".size()[", ".shape[", ".size("}) {
      if (!absl::StartsWith(rest, what) ||
          !absl::SimpleAtoi(rest.substr(std::string(what).size(), rest.size() - std::string(what).size() - 1), &dim)) {
        continue;
      }
      if (dim < -tensor.dim() || dim >= tensor.dim()) return std::nullopt;
      return IValue(tensor.size(dim));
    }
    if (rest == ".numel()") return IValue(tensor.numel());
    if (rest == ".dim()" || rest == ".ndim") return IValue(tensor.dim());
  }
  return std::nullopt;
}

std::vector<std::string> InputChecks::Complaints(const std::vector<IValue>& leaves) const {
  return Run(*this, leaves).Take();
}

}  // namespace addend::exported
