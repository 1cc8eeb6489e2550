#include "core/run/unseen_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/program/differentiation.h"

namespace addend {

bool UnseenMemory::Has(const std::vector<bool>& storages, int storage) {
  return storage >= 0 && storage < static_cast<int>(storages.size()) && storages[storage];
}

void UnseenMemory::Set(std::vector<bool>& storages, int storage, bool holds) {
  if (storage >= static_cast<int>(storages.size())) storages.resize(storage + 1);
  storages[storage] = holds;
}

void UnseenMemory::Meet(const Operator& op, const Stack& stack, size_t known) {
  const std::vector<StorageInfo>& storages = recorder_->traced().storages;
  if (storages.size() == known) return;
  ForEachArgument(op, stack, [&](const at::Tensor& tensor) {
    if (!tensor.defined() || !IsSaved(tensor)) return;
    const int storage = recorder_->FindStorage(tensor);
    if (storage >= static_cast<int>(known) && storages[storage].name.empty()) Set(saved_, storage, true);
  });
}

bool UnseenMemory::ReadsSaved(const Call& call) const {
  return std::any_of(call.operands.begin(), call.operands.end(),
                     [&](const Operand& operand) { return !operand.written && Has(saved_, operand.storage); });
}

void UnseenMemory::BeforeRun(const Role& role, const Call& call) {
  if (role.traits.resizes) return;  // more room is no content yet
  for (const Operand& operand : call.operands) {
    if (operand.written && operand.storage >= 0 && IsUnseen(operand.storage)) Set(unseen_, operand.storage, false);
  }
}

void UnseenMemory::AfterRun(const Role& role, const Call& call) {
  const bool unseen = role.traits.Uninitialized() || ReadsUnseen(call);
  const bool saved = !role.traits.metadata_only && ReadsSaved(call);
  for (const Operand& output : call.outputs) {
    if (output.storage < 0) continue;
    if (unseen) Set(unseen_, output.storage, true);
    if (saved) Set(saved_, output.storage, true);
  }
}

// Whether memory comes from the operators that the one being expanded consists of.
bool UnseenMemory::MadeInside(int storage) const {
  const std::vector<Call>& calls = recorder_->traced().calls;
  for (size_t c = calls.size(); c-- > 0 && calls[c].depth > 0;) {
    if (calls[c].is_view) continue;
    for (const Operand& output : calls[c].outputs) {
      if (output.storage == storage) return true;
    }
  }
  return false;
}

// Whether an operator inside a composite one computes from nothing but memory of the composite's own whose content
// nobody has seen written. It may be a constant of the composite as well, so it counts only where it ends up as a
// result; see RequireSeen.
bool UnseenMemory::ReadsUnseen(const Call& call) const {
  if (call.depth == 0) return false;
  bool unseen = false;
  for (const Operand& operand : call.operands) {
    if (operand.decomposed) return false;
    if (operand.written || operand.storage < 0) continue;
    unseen = unseen || (IsUnseen(operand.storage) && MadeInside(operand.storage));
  }
  return unseen;
}

// Throws if an operator gives memory whose content was not seen written. Memory that the model itself handed over
// (`given`) has its content, whoever wrote it: torch.tensor() writes by pointer, too.
void UnseenMemory::RequireSeen(const Operator& op, const std::vector<c10::IValue>& results,
                               const std::vector<at::Tensor>& given) const {
  const auto& returns = op.schema().returns();
  const bool writes = std::any_of(returns.begin(), returns.end(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && result.alias_info()->isWrite();
  });
  bool unseen = false;
  for (const c10::IValue& result : results) {
    ForEachTensor(result, [&](const at::Tensor& tensor) {
      if (!tensor.defined() || tensor.numel() == 0 || !Continuous(tensor.scalar_type())) return;
      const int storage = recorder_->FindStorage(tensor);
      if (std::any_of(given.begin(), given.end(), [&](const at::Tensor& own) { return tensor.is_alias_of(own); }))
        return;
      unseen = unseen || storage < 0 || (IsUnseen(storage) && (writes || MadeInside(storage)));
    });
  }
  if (!unseen) return;
  throw Error(
      absl::StatusCode::kUnimplemented,
      absl::StrCat("no composition rule for ", FullName(op.schema()), ", which computes outside LibTorch's dispatcher"),
      recorder_->PositionOf(Call(op)), "see docs/extending.md");
}

}  // namespace addend
