// The table of rules. A value: copy the default one to add rules of your own or to replace some.
#ifndef ADDEND_CORE_RULES_REGISTRY_H_
#define ADDEND_CORE_RULES_REGISTRY_H_

#include <map>
#include <string>
#include <vector>

#include "core/rules/rule.h"

namespace addend {

class Registry {
 public:
  // Every rule that Addend brings along.
  static const Registry& Default();

  // Adds a rule; one of the same name is replaced.
  void Register(Rule rule);
  // The rule for "aten::max.dim" if there is one, else the one for "aten::max", else null.
  const Rule* Find(const std::string& rule_name, const std::string& full_name) const;
  // In the order of their names.
  std::vector<const Rule*> All() const;

 private:
  std::map<std::string, Rule> rules_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RULES_REGISTRY_H_
