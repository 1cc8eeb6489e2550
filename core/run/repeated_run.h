// A traced run, repeated on other inputs: the same operators on the same places of memory.
//
// Note [Repeated runs]
// What a run records is nearly the same for every input of the same sizes: calls, operands, labels, and the references
// of a baseline that stays. Only values change. So a run that was traced once can be repeated by calling its operators
// again, one after the other, on the values of another input: nothing is intercepted, recorded or looked up by name.
// What comes of it is a TracedRun like that of the model, with the same bits, and everything after it is as ever.
//
// Where a record does not tell what another input would do, the run is refused when it is made ready: operators that
// draw random numbers, writes to memory that was there before the run, results whose sizes depend on elements, integers
// that depend on several ids. Where it tells, the repetition looks: numbers that the model read, to take a branch for
// example, have to be what they were, and every result has to have the layout that it had. What no operator shows is
// seen by whoever makes a plan of it, which is compared with the model (core/explain/plan.h).
#ifndef ADDEND_CORE_RUN_REPEATED_RUN_H_
#define ADDEND_CORE_RUN_REPEATED_RUN_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/progress.h"
#include "core/program/invoke.h"
#include "core/rules/registry.h"
#include "core/run/traced_run.h"

namespace addend {

// An input of the run, as it was declared to the tracer.
struct RepeatedInput {
  int storage = -1;            // -1: no operator met it
  bool same_reference = true;  // false: each run brings another reference, over the whole input
};

class RepeatedRun {
 public:
  // Memory of one repetition, kept for the next one.
  class Memory;

  // `first`: a finished run that keeps everything. Runs it once on its own inputs. Throws FailedPrecondition, with the
  // position, where it cannot be repeated. `progress`: see Run().
  RepeatedRun(std::shared_ptr<const TracedRun> first, const Registry& registry, std::vector<RepeatedInput> inputs,
              const StageProgress& progress = nullptr);
  ~RepeatedRun();

  // One repetition. Its trace holds until it ends.
  class Repetition {
   public:
    Repetition(const RepeatedRun* run, std::unique_ptr<Memory> memory);
    ~Repetition();
    Repetition(Repetition&&) noexcept;
    Repetition& operator=(Repetition&&) = delete;
    const std::shared_ptr<TracedRun>& trace() const;

   private:
    const RepeatedRun* run_;
    std::unique_ptr<Memory> memory_;
  };

  // Runs on other inputs, in the order of the constructor's; contiguous, of the sizes that the first ones had.
  // `references`: undefined where they stay. Nothing of them is written. Throws FailedPrecondition, with the position,
  // where the model would go another way, and what operators throw. Each call is a step of the stage "trace" of
  // `progress`, which may end the run. Thread-safe.
  Repetition Run(const std::vector<at::Tensor>& values, const std::vector<at::Tensor>& references,
                 const StageProgress& progress = nullptr) const;

  const std::shared_ptr<const TracedRun>& first() const { return first_; }
  // Tells for each call of the trace whether all references that it reads or gives stay, and all plain operands too.
  std::vector<bool> SteadyCalls() const;

 private:
  // One version of a storage.
  struct Slot {
    int storage = -1;
    int kept = -1;  // its place in TracedRun::versions; -1: the trace does not hold it
    bool value_varies = false;
    bool reference_varies = false;
  };
  struct Result {
    int slot = -1;  // -1: nobody asks for it
    bool value = false;
    bool reference = false;
  };
  // A call with the places of its operands.
  struct Placed {
    explicit Placed(const Call& called) : call(&called), recipe(called) {}
    const Call* call;
    StackRecipe recipe;
    std::vector<int> slots;  // of its operands; -1: an undefined tensor
  };
  struct Step : Placed {
    using Placed::Placed;
    std::vector<Result> outputs;
    std::vector<std::shared_ptr<const Placed>> wholes;  // of the call's adoptions
    bool on_reference = false;                          // some output's reference varies
    bool is_guard = false;
    std::vector<c10::IValue> numbers;  // of a guard
    int guard = -1;  // its place in TracedRun::guards, where its numbers on the baseline may be others
  };
  // Conditions of which the run says whether they are the same on the baseline.
  struct Comparison {
    size_t condition = 0;
    std::vector<Operand> operands;
  };

  int SlotOf(const Operand& operand);
  void RequireRepeatable() const;
  void AddStep(const Call& call, const Registry& registry);
  void AddComparisons();
  bool Place(const Call& call, Placed& placed);
  std::vector<at::Tensor> Give(const Placed& placed, bool on_reference, Memory& memory,
                               std::vector<c10::IValue>* numbers) const;
  void Adopt(const Step& step, const std::vector<at::Tensor>& given, Memory& memory) const;
  void Keep(const Step& step, const std::vector<at::Tensor>& given, bool on_reference, Memory& memory) const;
  std::vector<c10::IValue> RunStep(const Step& step, Memory& memory) const;
  bool SameOnReferences(const Step& step, Memory& memory) const;
  void LookAtBaseline(Memory& memory) const;
  void RunSteps(Memory& memory, const StageProgress& progress) const;
  void CompareWithFirst(const StageProgress& progress);
  std::unique_ptr<Memory> NewMemory() const;

  std::shared_ptr<const TracedRun> first_;
  std::vector<RepeatedInput> inputs_;
  std::vector<int> input_slots_;
  std::vector<Slot> slots_;
  absl::flat_hash_map<VersionId, int> slot_of_;
  std::vector<Step> steps_;
  std::vector<Comparison> comparisons_;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Memory>> free_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_REPEATED_RUN_H_
