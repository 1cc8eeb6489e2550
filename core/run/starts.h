// Places where rows begin in a run: the inputs that are split, and tensors inside the model.
#ifndef ADDEND_CORE_RUN_STARTS_H_
#define ADDEND_CORE_RUN_STARTS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/program/traced_calls.h"
#include "core/run/inside_place.h"
#include "core/run/kept_references.h"
#include "core/run/storage_states.h"
#include "core/run/traced_run.h"

namespace addend {

class Starts {
 public:
  // `states` and `kept` must outlive them.
  Starts(StorageStates* states, KeptReferences* kept) : states_(states), kept_(kept) {}

  // See the methods of Tracer that have these names.
  void AddFloatInput(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& labels,
                     const at::Tensor& read_labels);
  void AddParts(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& parts,
                const at::Tensor& leftover, uint32_t marks, int64_t depth, bool single);
  void AddIds(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& labels);
  void AddInside(const InsidePlace& place, const at::Tensor& reference, const at::Tensor& labels);

  // Whether the next output of a call may be a tensor that AddInside() declared.
  bool AnyInside() const { return !insides_.empty(); }
  // After a call, whose outputs are `tensors`: starts rows in those that AddInside() declared. Throws
  // FailedPrecondition where their storages carry rows already, or where none can begin.
  void BeginInside(const std::vector<at::Tensor>& tensors, Call& call);
  // The starts, in the order in which they were added. Throws FailedPrecondition where one of them did not begin.
  std::vector<Start> Take();

 private:
  struct Inside {
    InsidePlace place;
    at::Tensor reference;
    at::Tensor labels;
    size_t start = 0;  // in starts_
    bool begun = false;
  };

  void Begin(Inside& inside, const at::Tensor& tensor, Operand& output, const Position& position);

  StorageStates* states_;
  KeptReferences* kept_;
  std::vector<Start> starts_;
  std::vector<Inside> insides_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_STARTS_H_
