// References of a baseline that stays the same, kept from one run of a model to the next.
//
// Note [Kept references]
// The result of an operator on the baseline depends on its references, its plain operands and its plain arguments. If
// all of them are as in the last run, so is the reference, and the operator need not run on the baseline again. A run
// is compared with the last one call by call, by the calls' numbers. A call is known if its operator, its arguments and
// the places of its operands are the same, the references that it reads are known, and its plain operands have not
// changed. The first call that differs is computed as usual, and so is everything that depends on it. Plain operands
// are recognized by their memory and autograd's count of writes, which in-place operators raise whoever calls them;
// those that the run itself wrote are compared element by element. Writes that bypass LibTorch are not seen: through
// `.data` or a raw pointer. Operators that draw random numbers always run.
//
// Kept references are shared by runs and never written: a writer copies first.
#ifndef ADDEND_CORE_RUN_REFERENCE_CACHE_H_
#define ADDEND_CORE_RUN_REFERENCE_CACHE_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/program/traced_calls.h"

namespace addend {

// The references of one run.
struct RunReferences {
  // An input that rows or labels begin in.
  struct Input {
    Operand operand;
    at::Tensor reference;
  };
  // A plain operand as a call read it.
  struct Plain {
    at::Tensor seen;      // the tensor, or a copy where the run wrote it; undefined: it will not be known again
    int64_t version = 0;  // autograd's count of writes at that time
  };
  struct Known {
    std::string op;
    std::vector<c10::IValue> arguments;
    c10::SmallVector<Operand, 4> operands;
    std::vector<Plain> plain;            // of the operands that are not decomposed, in their order
    std::vector<at::Tensor> references;  // by output, over the whole storage; undefined: it has none
    std::vector<bool> finite;            // by output: seen to be
  };

  std::vector<Input> inputs;
  absl::flat_hash_map<int64_t, Known> calls;
  // Rewritten operators (see Note [Rewrites] in core/rules/rewrite.h), by the number of the first call of each;
  // references by result, as the operator itself gives them.
  absl::flat_hash_map<int64_t, Known> rewrites;
};

// The cache of one model. Several threads may use it at a time: each compares with the run that was the last when it
// began.
class ReferenceCache {
 public:
  std::shared_ptr<const RunReferences> Last() const;
  void Store(std::shared_ptr<const RunReferences> run);
  // Forgets: after writes that LibTorch does not see, or to free memory.
  void Clear();

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const RunReferences> last_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_REFERENCE_CACHE_H_
