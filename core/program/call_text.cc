#include "core/program/call_text.h"

#include <cstddef>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace addend {

std::string RuleName(const std::string& schema_name) {
  // "__iand__" and its kind end in underscores without being in-place forms of a functional name.
  const bool in_place =
      schema_name.size() > 1 && schema_name.back() == '_' && schema_name[schema_name.size() - 2] != '_';
  return in_place ? schema_name.substr(0, schema_name.size() - 1) : schema_name;
}

std::string FullName(const c10::FunctionSchema& schema) {
  return schema.overload_name().empty() ? schema.name() : absl::StrCat(schema.name(), ".", schema.overload_name());
}

std::string DescribeCall(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments,
                         const CallText& text) {
  std::vector<std::string> parts;
  for (size_t a = 0; a < arguments.size(); ++a) {
    std::vector<std::string> tensors;
    for (const CallText::Operand& operand : text.operands) {
      if (operand.argument == static_cast<int16_t>(a)) tensors.push_back(operand.text);
    }
    const bool list = schema.arguments()[a].type()->kind() == c10::TypeKind::ListType;
    if (tensors.empty()) {
      std::ostringstream plain;
      plain << arguments[a];
      parts.push_back(list && arguments[a].isNone() ? "[]" : plain.str());
    } else {
      parts.push_back(list ? absl::StrCat("[", absl::StrJoin(tensors, ", "), "]") : tensors.front());
    }
  }
  std::string name = FullName(schema);
  if (absl::StartsWith(name, "aten::")) name = name.substr(6);
  return absl::StrCat(
      name, "(", absl::StrJoin(parts, ", "), ") -> ",
      text.results.size() == 1 ? text.results[0] : absl::StrCat("(", absl::StrJoin(text.results, ", "), ")"));
}

}  // namespace addend
