// The table of rules and rewrites. A value: copy the default one to add your own or to replace some.
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
  // Everything that Addend brings along.
  static const Registry& Default();

  // Adds a rule or a rewrite; what had the same name is replaced.
  void Register(Rule rule);
  void Register(Rewrite rewrite);
  // What is there for "aten::max.dim", else for "aten::max": null where that is nothing, or a rewrite. In-place and
  // out= forms find what is there for the functional form; `rule_name` is that without overload.
  const Rule* Find(const std::string& rule_name, const std::string& full_name) const;
  // The same for rewrites: an operator has a rule or a rewrite, never both.
  const Rewrite* FindRewrite(const std::string& rule_name, const std::string& full_name) const;
  // In the order of their names.
  std::vector<const Rule*> All() const;
  std::vector<const Rewrite*> AllRewrites() const;

 private:
  using Entry = std::variant<Rule, Rewrite>;
  const Entry* Lookup(const std::string& rule_name, const std::string& full_name) const;

  std::map<std::string, Entry> entries_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RULES_REGISTRY_H_
