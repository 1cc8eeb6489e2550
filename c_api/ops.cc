// The operators that have a rule.
#include <algorithm>
#include <sstream>

#include "absl/strings/ascii.h"
#include "c_api/guard.h"
#include "core/intercept/operator.h"
#include "core/rules/registry.h"

namespace addend::c_api {
namespace {

struct OpEntry {
  std::string name;
  std::string kind;
  std::string schema;
};

// The schemas that a rule serves, one a line: those of every overload where the name has none.
std::string SchemasOf(const std::string& name) {
  const size_t dot = name.find('.', name.find("::"));
  std::ostringstream text;
  std::vector<Operator> operators;
  if (dot == std::string::npos) {
    operators = Operator::Overloads(name);
  } else if (const auto op = Operator::Find(name.substr(0, dot), name.substr(dot + 1))) {
    operators.push_back(*op);
  }
  for (size_t k = 0; k < operators.size(); ++k) text << (k == 0 ? "" : "\n") << operators[k].schema();
  return text.str();
}

const std::vector<OpEntry>& Entries() {
  static const auto& entries = *[] {
    auto* list = new std::vector<OpEntry>();
    for (const Rule* rule : Registry::Default().All())
      list->push_back({rule->name, absl::AsciiStrToLower(KindName(rule->kind)), ""});
    for (const Rewrite* rewrite : Registry::Default().AllRewrites()) {
      list->push_back({rewrite->name, absl::AsciiStrToLower(KindName(Kind::kRewrite)), ""});
    }
    for (OpEntry& entry : *list) entry.schema = SchemasOf(entry.name);
    std::sort(list->begin(), list->end(), [](const OpEntry& a, const OpEntry& b) { return a.name < b.name; });
    return list;
  }();
  return entries;
}

const OpEntry* EntryAt(size_t index) noexcept {
  try {
    return index < Entries().size() ? &Entries()[index] : nullptr;
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

extern "C" {

ADDEND_API size_t addend_op_count(void) noexcept {
  try {
    return Entries().size();
  } catch (...) {
    return 0;
  }
}

ADDEND_API const char* addend_op_name(size_t index) noexcept {
  const OpEntry* entry = EntryAt(index);
  return entry == nullptr ? nullptr : entry->name.c_str();
}

ADDEND_API const char* addend_op_kind(size_t index) noexcept {
  const OpEntry* entry = EntryAt(index);
  return entry == nullptr ? nullptr : entry->kind.c_str();
}

ADDEND_API const char* addend_op_schema(size_t index) noexcept {
  const OpEntry* entry = EntryAt(index);
  return entry == nullptr ? nullptr : entry->schema.c_str();
}

}  // extern "C"

}  // namespace addend::c_api
