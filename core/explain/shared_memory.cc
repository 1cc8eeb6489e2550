#include "core/explain/shared_memory.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "core/explain/notes.h"
#include "core/program/memory.h"

namespace addend {
namespace {

bool Overlap(const at::Tensor& a, const at::Tensor& b) {
  for (const at::Tensor& tensor : {a, b}) {
    if (!tensor.defined() || !tensor.has_storage() || tensor.numel() == 0 || tensor.is_meta()) return false;
  }
  const auto* one = static_cast<const char*>(a.data_ptr());
  const auto* other = static_cast<const char*>(b.data_ptr());
  if (one >= other + Extent(b) || other >= one + Extent(a)) return false;
  const auto item = static_cast<int64_t>(a.itemsize());
  if (a.itemsize() != b.itemsize() || (one - other) % item != 0) return true;  // their bytes lie among each other
  // Elements that lie among each other, such as columns, may be none of both.
  const char* first = std::min(one, other);
  const char* end = std::max(one + Extent(a), other + Extent(b));
  const at::Tensor taken = at::zeros({(end - first) / item}, at::kBool);
  taken.as_strided(a.sizes(), a.strides(), (one - first) / item).fill_(true);
  return taken.as_strided(b.sizes(), b.strides(), (other - first) / item).any().item<bool>();
}

bool Writes(const TracedRun& trace, int storage) {
  if (storage < 0) return false;
  return std::any_of(trace.calls.begin(), trace.calls.end(), [&](const Call& call) {
    return std::any_of(call.operands.begin(), call.operands.end(),
                       [&](const Operand& operand) { return operand.written && operand.storage == storage; });
  });
}

}  // namespace

std::vector<std::string> NotesOnSharedMemory(const std::vector<Input>& inputs, const RecordedRun& run) {
  std::vector<std::string> notes;
  for (size_t k = 0; k < inputs.size(); ++k) {
    for (size_t other = 0; other < k; ++other) {
      if (!Overlap(inputs[k].value, inputs[other].value)) continue;
      const size_t written = Writes(*run.trace, run.storages[other]) ? other : k;
      if (!Writes(*run.trace, run.storages[written])) continue;
      notes.push_back(absl::StrCat(InputName(inputs[other], other), " and ", InputName(inputs[k], k),
                                   WordsOf(NoteKind::kSharedMemory).holds, InputName(inputs[written], written),
                                   ": it was given copies, so that it does not see in the one what it writes into the "
                                   "other"));
    }
  }
  return notes;
}

}  // namespace addend
