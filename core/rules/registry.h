// The table of rules and rewrites, a plain value: copy the default one to add rules or to replace some.
#ifndef ADDEND_CORE_RULES_REGISTRY_H_
#define ADDEND_CORE_RULES_REGISTRY_H_

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/rules/rewrite.h"
#include "core/rules/rule.h"

namespace addend {

class Registry {
 public:
  // All of Addend's own rules and rewrites.
  static const Registry& Default();

  // Adds a rule or a rewrite, in place of one with the same name.
  void Register(Rule rule);
  void Register(Rewrite rewrite);
  // Finds the rule for "aten::max.dim", else for "aten::max"; null if there is none, or a rewrite. In-place and out=
  // forms find the rule of the functional form; `rule_name` is that form's name without overload.
  const Rule* Find(const std::string& rule_name, const std::string& full_name) const;
  // Finds the rewrite; null if there is none, or a rule. An operator has a rule or a rewrite, never both.
  const Rewrite* FindRewrite(const std::string& rule_name, const std::string& full_name) const;
  // All rules and all rewrites, in the order of their names.
  std::vector<const Rule*> All() const;
  std::vector<const Rewrite*> AllRewrites() const;

 private:
  using Entry = std::variant<Rule, Rewrite>;
  const Entry* Lookup(const std::string& rule_name, const std::string& full_name) const;

  std::map<std::string, Entry> entries_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RULES_REGISTRY_H_
