// Cotangents of every storage on the way back; see Note [Cotangents] in adjoint.h.
#ifndef ADDEND_CORE_LINEARIZE_COTANGENTS_H_
#define ADDEND_CORE_LINEARIZE_COTANGENTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/linearize/row_table.h"
#include "core/run/trace.h"

namespace addend {

// The cotangents of every storage: the backward sweep's counterpart to the reads and writes of a ForwardStep.
// Cotangents of what a call wrote are taken; those of what it read are added to.
class Cotangents {
 public:
  // `count`: cotangents of each storage, R. The trace must outlive this.
  Cotangents(const TracedRun& trace, int64_t count) : trace_(trace), rows_(trace, count) {}

  // [R, numel] of a storage; undefined: zero.
  const at::Tensor& Flat(int storage) const { return rows_.Flat(storage); }
  // Adds `given` [R, *S] to the cotangents of an operand. Elements that the operand sees several times get the sum.
  void Add(const Operand& operand, const at::Tensor& given);
  // Takes the cotangents of what a call wrote, [R, *S]. They are zero afterwards, because the elements that were
  // overwritten have no effect. Undefined if they are zero everywhere.
  at::Tensor Take(const Call& call, const Operand& output);

 private:
  const StorageInfo& StorageOf(const Operand& operand) const { return trace_.storages[operand.storage]; }
  at::Tensor ViewOfPlain(const Operand& operand);
  void AddInto(const Operand& operand, at::Tensor given);

  const TracedRun& trace_;
  RowTable rows_;
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_COTANGENTS_H_
