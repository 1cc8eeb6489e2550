// Traces a run: the recorded program and, beside it, the values and references that rules will need.
//
// Note [References]
// The reference of a tensor is what the recorded operators give on the baseline. Each traced operator is therefore run
// once more, right after the model ran it, on reference tensors of the same geometry. No rule is needed for that, and a
// model without data-dependent branches gives bit for bit what it gives when it is run on the baseline alone.
//
// Note [Versions]
// A storage that a traced call reads or writes is kept, as it was at the call, under the storage's version number. The
// newest version is kept by reference; before a call writes the storage, that version is replaced by a copy.
#ifndef ADDEND_CORE_LINEARIZE_TRACE_H_
#define ADDEND_CORE_LINEARIZE_TRACE_H_

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/policy.h"
#include "core/linearize/ids.h"
#include "core/linearize/inside_place.h"
#include "core/linearize/reference_cache.h"
#include "core/program/operator_traits.h"
#include "core/program/program.h"
#include "core/program/recorder.h"
#include "core/rules/registry.h"

namespace addend {

// One version of a storage; all tensors are one-dimensional over the whole storage, value and reference in its dtype.
struct Kept {
  int version = 0;
  at::Tensor value;
  at::Tensor reference;  // undefined: equal to value
  at::Tensor labels;     // int64, of ids and of numbers that begin there; see Note [Ids] and StartsRows
  // Seen to be finite, while it was in the cache; false: not looked at.
  bool reference_is_finite = false;
};

// Where rows begin: a decomposed input. Exactly one of `labels` and `parts` is defined.
struct Start {
  Operand operand;
  at::Tensor labels;  // int64 over the storage: the component that each element belongs to, -1 for none
  at::Tensor parts;   // [numc, storage numel]
  // Only beside parts: what a composition knows that earlier operators gave.
  at::Tensor leftover;  // [storage numel]; undefined: zero
  uint32_t marks = 0;   // bits of Freeze: where the value comes from
  int64_t depth = 0;    // how many operators led to it
  // Inside the model: the tensor that is split, which may be a part of the operand's storage.
  std::optional<Operand> inside;
};

// Where numbers that are plain to rules (conditions, indices, numbers that a program reads) came from decomposed
// tensors or from ids.
struct Condition {
  Position origin;    // the operator that derived them
  Position use;       // the operator that read them
  bool same = false;  // on the baseline they are the same
};

// Rows that begin in what a call gives, because ids become numbers there.
struct RowStart {
  at::Tensor moves;   // value - reference of each element; of a bag: of each id's vector, [ids, width]
  at::Tensor labels;  // int64: the component of each element, or of each vector along the last dimension; -1: none
  // int64 [ids]: the row of the result that an id's vector is added to; undefined: moves are the result's.
  at::Tensor bags;
};

struct TracedRun {
  Program program;
  std::vector<std::vector<Kept>> storages;  // by storage id, versions ascending
  std::vector<Start> starts;
  int64_t numc = 0;
  // Values, references and rows stay in autograd's graph.
  bool differentiable = false;
  // Calls that used ids in a way in which no component follows.
  std::vector<Position> unattributed;
  // Calls that read conditions or indices that were derived from decomposed tensors or ids. Whose the reference takes,
  // the value's or the baseline's, says Policy::conditions.
  std::vector<Condition> conditions;
  bool baseline_conditions = false;
  // Calls that handed a number computed from decomposed tensors or ids to the program around them (item(), if).
  std::vector<Condition> guards;

  const Kept& At(const Operand& operand) const;
  at::Tensor Value(const Operand& operand) const;
  at::Tensor Reference(const Operand& operand) const;
  at::Tensor Labels(const Operand& operand) const;
  // What the run on the baseline read in the operand's place.
  at::Tensor OnBaseline(const Operand& operand) const;
  // Whether rows begin in what a call gives: an embedding, a bag or a cast of ids; see Note [Ids].
  bool StartsRows(const Call& call) const;
  RowStart StartOf(const Call& call) const;
  // Whether a call read conditions that are others on the baseline, which its reference has.
  bool StepsOfConditions(const Call& call) const;
  bool ReferenceIsFinite(const Operand& operand) const;
};

class Tracer : public RecorderObserver {
 public:
  // The registry and the policy must outlive the tracer.
  Tracer(const Registry* registry, const Policy* policy, int64_t numc, bool differentiable = false);

  // References are taken from the last run that the cache knows, where they are the same, and Finish() puts this run's
  // there; see Note [Kept references]. Not for runs that autograd follows. To be called before inputs are declared.
  void UseReferences(std::shared_ptr<ReferenceCache> cache);

  // Declares the decomposed inputs; all tensors are contiguous, cover their storage and have the shape of `value`.
  void AddFloatInput(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& labels);
  void AddParts(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& parts,
                const at::Tensor& leftover = at::Tensor(), uint32_t marks = 0, int64_t depth = 0);
  void AddIds(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& labels);
  // Declares a tensor that the run will compute; `reference` and `labels` have its shape. An element without label has
  // its value as its reference. Finish() throws FailedPrecondition where the run did not compute it.
  void AddInside(const InsidePlace& place, const at::Tensor& reference, const at::Tensor& labels);

  Recorder& recorder() { return recorder_; }
  // The first error of Addend's own during the run. LibTorch's interpreter may have wrapped what it threw.
  std::exception_ptr error() const { return error_; }
  // The operand that one of the model's results is; keeps its storage.
  Operand Output(const at::Tensor& tensor);
  TracedRun Finish();

  bool HasRule(const std::string& rule_name, const std::string& full_name) override;
  bool IsDecomposed(int storage) override;
  bool IsLabelled(int storage) override;
  void BeforeRun(const Call& call, const std::vector<c10::IValue>& arguments) override;
  void AfterRun(Call& call, const std::vector<c10::IValue>& arguments,
                const std::vector<c10::IValue>& results) override;
  bool HasRewrite(const std::string& rule_name, const std::string& full_name) override;
  std::vector<c10::IValue> RunRewrite(const Call& call, const std::vector<c10::IValue>& arguments) override;
  void AfterExpand(const Operator& op, const std::vector<c10::IValue>& results) override;

 private:
  // What the tracer keeps in mind about a storage while the model runs.
  struct State {
    bool decomposed = false;
    // Integers or booleans that depend on split inputs; such operands are marked as labelled, also where no element has
    // a label.
    bool tracked = false;
    bool unknown = false;            // tracked, and the baseline gives another number of elements, or none
    bool condition = false;          // tracked, and a comparison or a float led to it: an id no more
    bool given = false;              // an input as it was given: nobody has written it
    std::optional<Position> origin;  // tracked: the operator that derived it; none: ids as they were given
    bool uninitialized = false;      // allocated, and no operator has written it since
    at::Tensor reference;            // now; over the whole storage
    bool reference_shared = false;   // somebody else has that tensor too: who writes copies first
    bool reference_known = false;    // it is what the last run found; see Note [Kept references]
    at::Tensor labels;
    std::vector<Kept> kept;
    bool newest_is_live = false;  // the last entry of `kept` shares memory with the model
  };
  // What an operator means to tracing, looked up once for each schema.
  struct Role {
    const Rule* rule = nullptr;
    std::unique_ptr<OperatorTraits> traits;
    bool sizes_only = false;
    IdFlow flow = IdFlow::kEnds;
  };

  const Role& RoleOf(const Operator& op);
  State& StateOf(int storage);
  void Keep(const Operand& operand, const at::Tensor& tensor);
  void PrepareWrite(const Operand& operand, const at::Tensor& tensor, bool traced);
  bool GivesUnseen(const Call& call) const;
  void StartInside(Call& call, const std::vector<at::Tensor>& outputs);
  void TraceCall(Call& call, const std::vector<c10::IValue>& arguments, const std::vector<c10::IValue>& results);
  // See Note [Ids].
  bool StartsRows(const Role& role, const Call& call) const;
  bool IsId(const Operand& operand) const;
  Position OriginOf(const Call& call) const;
  at::Tensor MovesOf(const Operand& operand, const at::Tensor& value) const;
  bool SameOnBaseline(const Call& call, const std::vector<c10::IValue>& arguments) const;
  void NoteGuard(const Call& call, const std::vector<c10::IValue>& arguments, const std::vector<c10::IValue>& results);
  void TraceIds(Call& call, const std::vector<c10::IValue>& arguments, const std::vector<c10::IValue>& results,
                const std::vector<at::Tensor>& tensors);
  void AdoptIds(Operand& output, const at::Tensor& value, const at::Tensor& reference, const Call& call);
  IdLabels LabelsOf(const Call& call, const Role& role, const std::vector<c10::IValue>& arguments,
                    at::IntArrayRef sizes) const;
  void RequireKnown(const Call& call) const;
  at::Tensor FlatLabels(const at::Tensor& labels, const Operand& operand) const;
  void SetLabels(const Operand& output, const at::Tensor& labels);
  void Refuse(const Call& call, const std::string& why) const;
  // `ids`: integers and booleans are all that the call gives. Nothing is given where such a call fails.
  std::vector<c10::IValue> ReferenceResults(const Call& call, const Role& role,
                                            const std::vector<c10::IValue>& arguments,
                                            const std::vector<c10::IValue>& results, bool ids = false);
  std::vector<c10::IValue> RunAside(const Call& call, const std::vector<c10::IValue>& arguments, bool on_reference,
                                    const std::vector<int>& updates);
  // Whether the rule that stands in for a rewrite covers a call; see Note [Fused rewrites] in core/rules/fused.h.
  bool IsFused(const Call& call, const std::vector<c10::IValue>& arguments, const addend::Rewrite& rewrite) const;
  // `own`: what the operator itself gives.
  std::vector<c10::IValue> Rewritten(const Call& call, const std::vector<c10::IValue>& arguments,
                                     const addend::Rewrite& rewrite, const std::vector<c10::IValue>& own);
  bool IsLastWord(const at::Tensor& result, const Call& call, size_t first) const;
  void Adopt(const Call& call, const at::Tensor& result, const at::Tensor& value, const at::Tensor& reference,
             size_t first, bool known);
  void AdoptReference(const Operand& output, const at::Tensor& value, const at::Tensor& reference);

  // See Note [Kept references].
  using Runs = absl::flat_hash_map<int64_t, RunReferences::Known> RunReferences::*;
  static void OwnReference(State& state);
  bool Moves(const Role& role, const Call& call, const Operand& operand) const;
  void KnowInput(const Operand& operand);
  RunReferences::Known SeenBefore(const Call& call, const std::vector<c10::IValue>& arguments);
  bool IsKnown(const Call& call, const RunReferences::Known& last, const RunReferences::Known& now);
  const RunReferences::Known* FindKnown(const Call& call, const RunReferences::Known& now, Runs runs);
  void KeepReferences(const Call& call);

  const Registry* registry_;
  const Policy* policy_;
  Recorder recorder_;
  TracedRun trace_;
  std::vector<State> states_;
  absl::flat_hash_map<const c10::FunctionSchema*, Role> roles_;
  std::vector<std::pair<at::Generator, at::Tensor>> generators_;  // saved before a random call
  std::exception_ptr error_;

  struct Inside {
    InsidePlace place;
    at::Tensor reference;
    at::Tensor labels;
    size_t start = 0;  // in trace_.starts
    bool started = false;
  };
  std::vector<Inside> inside_;

  std::shared_ptr<ReferenceCache> cache_;
  std::shared_ptr<const RunReferences> last_run_;  // null: none
  std::shared_ptr<RunReferences> this_run_;        // null: nothing is kept
  // Of the call at hand: what it reads, and what the last run found, where that is the same; null: it is not.
  RunReferences::Known seen_;
  const RunReferences::Known* found_ = nullptr;
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_TRACE_H_
