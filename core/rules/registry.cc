#include "core/rules/registry.h"

#include <utility>

#include "core/rules/families.h"

namespace addend {

const Registry& Registry::Default() {
  static const Registry& registry = *[] {
    auto* all = new Registry;
    RegisterActivation(*all);
    RegisterArithmetic(*all);
    RegisterLinear(*all);
    RegisterConvolution(*all);
    RegisterPooling(*all);
    RegisterNormalization(*all);
    RegisterReduction(*all);
    RegisterIndexing(*all);
    RegisterShape(*all);
    RegisterAttention(*all);
    return all;
  }();
  return registry;
}

void Registry::Register(Rule rule) {
  const std::string name = rule.name;
  rules_.insert_or_assign(name, std::move(rule));
}

const Rule* Registry::Find(const std::string& rule_name, const std::string& full_name) const {
  auto it = rules_.find(full_name);
  if (it == rules_.end()) it = rules_.find(rule_name);
  return it == rules_.end() ? nullptr : &it->second;
}

std::vector<const Rule*> Registry::All() const {
  std::vector<const Rule*> all;
  for (const auto& entry : rules_) all.push_back(&entry.second);
  return all;
}

}  // namespace addend
