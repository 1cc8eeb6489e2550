#include "core/exported/aliases.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace addend::exported {
namespace {

// Sets of values that may share memory: slots, and behind them constant tensors by their storages.
class AliasSets {
 public:
  explicit AliasSets(const Steps& steps) : parent_(static_cast<size_t>(steps.num_slots)) {
    for (size_t k = 0; k < parent_.size(); ++k) parent_[k] = k;
  }

  size_t Find(size_t value) {
    while (parent_[value] != value) value = parent_[value] = parent_[parent_[value]];
    return value;
  }
  void Join(size_t a, size_t b) { parent_[Find(a)] = Find(b); }

  // The values that a source holds.
  void ForEach(const Source& source, const std::function<void(size_t)>& visit) {
    if (source.kind == Source::Kind::kSlot) visit(static_cast<size_t>(source.slot));
    for (const Source& element : source.elements) ForEach(element, visit);
    if (source.kind != Source::Kind::kConstant || !source.constant.isTensor()) return;
    const at::Tensor& tensor = source.constant.toTensor();
    if (tensor.defined() && tensor.has_storage()) visit(Constant(tensor));
  }

  const std::vector<std::pair<size_t, at::Tensor>>& constants() const { return constants_; }

 private:
  size_t Constant(const at::Tensor& tensor) {
    const auto [found, is_new] = by_storage_.try_emplace(tensor.storage().unsafeGetStorageImpl(), parent_.size());
    if (is_new) parent_.push_back(found->second);
    if (seen_.try_emplace(tensor.unsafeGetTensorImpl(), true).second) constants_.emplace_back(found->second, tensor);
    return found->second;
  }

  std::vector<size_t> parent_;
  absl::flat_hash_map<const void*, size_t> by_storage_;
  absl::flat_hash_map<const void*, bool> seen_;
  std::vector<std::pair<size_t, at::Tensor>> constants_;
};

// Whether results may share memory with arguments. What consists of other operators may do so without saying it.
bool MayAlias(const Step& step) {
  if (step.kind == Step::Kind::kNumbers || step.kind == Step::Kind::kFunctionalized) return false;
  if (step.kind != Step::Kind::kOperator) return true;
  const auto& returns = step.op->schema().returns();
  const bool said = std::any_of(returns.begin(), returns.end(),
                                [](const c10::Argument& result) { return result.alias_info() != nullptr; });
  return said || step.op->composite();
}

std::vector<int> SlotsOf(const Result& result) {
  std::vector<int> slots = result.elements;
  slots.push_back(result.slot);
  return slots;
}

// Inside the steps of a higher-order operator nobody knows what is written outside.
void ForbidCopies(Steps* steps) {
  for (Step& step : steps->all) {
    step.may_copy = false;
    for (const auto& inner : step.bodies) ForbidCopies(inner.get());
  }
}

}  // namespace

std::vector<at::Tensor> JudgeAliases(Steps* steps) {
  if (!steps->writes) return {};
  AliasSets sets(*steps);
  for (Step& step : steps->all) {
    for (const auto& inner : step.bodies) ForbidCopies(inner.get());
    if (!MayAlias(step)) {
      for (const Source& argument : step.arguments) sets.ForEach(argument, [](size_t) {});
      continue;
    }
    std::vector<size_t> values;
    for (const Source& argument : step.arguments) {
      sets.ForEach(argument, [&](size_t value) { values.push_back(value); });
    }
    for (const Result& result : step.results) {
      for (const int slot : SlotsOf(result)) {
        if (slot >= 0) values.push_back(static_cast<size_t>(slot));
      }
    }
    for (size_t k = 1; k < values.size(); ++k) sets.Join(values[0], values[k]);
  }
  // From the last step to the first: the sets that are written later.
  absl::flat_hash_set<size_t> written;
  for (auto step = steps->all.rbegin(); step != steps->all.rend(); ++step) {
    if (step->may_copy) {
      for (const Source& argument : step->arguments) {
        sets.ForEach(argument, [&](size_t value) { step->may_copy &= !written.contains(sets.Find(value)); });
      }
    }
    for (const size_t k : step->written) {
      sets.ForEach(step->arguments[k], [&](size_t value) { written.insert(sets.Find(value)); });
    }
  }
  std::vector<at::Tensor> tensors;
  for (const auto& [value, tensor] : sets.constants()) {
    if (written.contains(sets.Find(value))) tensors.push_back(tensor);
  }
  return tensors;
}

}  // namespace addend::exported
