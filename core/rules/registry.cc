#include "core/rules/registry.h"

#include <map>
#include <utility>

#include "core/base/error.h"
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
    RegisterSpecial(*all);
    RegisterSelection(*all);
    RegisterProduct(*all);
    RegisterNorm(*all);
    RegisterLoss(*all);
    RegisterGradient(*all);
    RegisterIndexing(*all);
    RegisterScatter(*all);
    RegisterRearrangement(*all);
    RegisterResample(*all);
    RegisterEmbedding(*all);
    RegisterRandom(*all);
    RegisterTrilinear(*all);
    RegisterShape(*all);
    RegisterAttention(*all);
    RegisterRecurrent(*all);
    RegisterStepwise(*all);
    RegisterTrees(*all);
    RegisterTransformer(*all);
    RegisterNormalizationRewrites(*all);
    RegisterLinalg(*all);
    RegisterFactorization(*all);
    RegisterEigen(*all);
    RegisterReflectors(*all);
    // Extends some of the rules above to complex numbers.
    RegisterSpectral(*all);
    return all;
  }();
  return registry;
}

void Registry::Register(Rule rule) {
  const std::string name = rule.name;
  entries_.insert_or_assign(name, std::move(rule));
}

void Registry::Register(Rewrite rewrite) {
  const std::string name = rewrite.name;
  entries_.insert_or_assign(name, std::move(rewrite));
}

namespace {

// Forms whose overloads are named otherwise than those of the function that they are forms of.
const std::string& NameOfForm(const std::string& full_name) {
  static const std::map<std::string, std::string>& forms = *new std::map<std::string, std::string>{
      {"aten::max.out", "aten::max.other"},
      {"aten::min.out", "aten::min.other"},
      {"aten::pow_.Scalar", "aten::pow.Tensor_Scalar"},
      {"aten::pow_.Tensor", "aten::pow.Tensor_Tensor"},
  };
  const auto it = forms.find(full_name);
  return it == forms.end() ? full_name : it->second;
}

}  // namespace

const Registry::Entry* Registry::Lookup(const std::string& rule_name, const std::string& full_name) const {
  auto it = entries_.find(full_name);
  if (it == entries_.end()) it = entries_.find(NameOfForm(full_name));
  const size_t dot = full_name.rfind('.');
  if (it == entries_.end() && dot != std::string::npos) {
    // "aten::foo_.bar" and "aten::foo.bar_out" are forms of "aten::foo.bar".
    std::string overload = full_name.substr(dot);
    if (overload.size() > 4 && overload.compare(overload.size() - 4, 4, "_out") == 0) {
      overload.resize(overload.size() - 4);
    }
    it = entries_.find(rule_name + overload);
  }
  if (it == entries_.end()) it = entries_.find(rule_name);
  return it == entries_.end() ? nullptr : &it->second;
}

const Rule* Registry::Find(const std::string& rule_name, const std::string& full_name) const {
  return std::get_if<Rule>(Lookup(rule_name, full_name));
}

const Rewrite* Registry::FindRewrite(const std::string& rule_name, const std::string& full_name) const {
  return std::get_if<Rewrite>(Lookup(rule_name, full_name));
}

std::vector<const Rule*> Registry::All() const {
  std::vector<const Rule*> all;
  for (const auto& [name, entry] : entries_) {
    if (const Rule* rule = std::get_if<Rule>(&entry)) all.push_back(rule);
  }
  return all;
}

std::vector<const Rewrite*> Registry::AllRewrites() const {
  std::vector<const Rewrite*> all;
  for (const auto& [name, entry] : entries_) {
    if (const Rewrite* rewrite = std::get_if<Rewrite>(&entry)) all.push_back(rewrite);
  }
  return all;
}

}  // namespace addend
