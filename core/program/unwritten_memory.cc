#include "core/program/unwritten_memory.h"

#include "core/intercept/tracing_scope.h"
#include "core/program/memory.h"

namespace addend {

void UnwrittenMemory::Fill(int storage, const at::Tensor& tensor) {
  Remove(storage);
  if (tensor.is_meta()) return;
  const TracingPause pause;
  RecordedStorage& filled = program_->storages[storage];
  filled.kind = ValueKind::kConstant;
  filled.initial = WholeStorage(tensor);
  filled.filled = static_cast<int>(program_->calls.size());
}

void UnwrittenMemory::FillRead() {
  const auto now = static_cast<int>(program_->calls.size());
  for (const ReadTensor& read : read_) {
    // Before the call wrote it, or by another tensor that the call reads.
    const bool filled = program_->storages[read.storage].filled == now;
    if (!filled) Fill(read.storage, read.tensor);
  }
  read_.clear();
}

}  // namespace addend
