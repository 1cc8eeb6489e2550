// The judge of sweeps: is the sum of the parts the value, to rounding, and is each bracket as small as its rule claims?
// Sweeps measure; what their numbers mean is decided here, after an operator and at probes of a forward sweep, at the
// targets of a backward one, and where components come in chunks. People's numbers are judged once more: see Note [Two
// judgements] in core/explain/outcome.h.
//
// Note [Inherited errors]
// A layer norm on its way from zero has terms a hundred times as large as their sum, and may err by their rounding. The
// next linear map carries the same error on a value of the same size, but its own terms are small. What its operands'
// parts miss, sent through the map, is therefore no failure of that map: the operands have been judged before. This
// holds while every operator is checked and none has failed.
#ifndef ADDEND_CORE_LINEARIZE_JUDGE_H_
#define ADDEND_CORE_LINEARIZE_JUDGE_H_

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/linearize/adjoint.h"
#include "core/linearize/linearization.h"
#include "core/linearize/operator_check.h"
#include "core/linearize/rounding.h"
#include "core/linearize/row_table.h"
#include "core/linearize/settle.h"
#include "core/linearize/sum_check.h"

namespace addend {

// How large the terms are that an output of a node is summed from, whatever they cancel to, [*S]: L of the operands'
// magnitudes on the value (and on the reference) under random signs, a few times. Rounding errors are of this size.
// Undefined where rows do not reach it through a map.
at::Tensor ReachOf(const TracedRun& trace, const Node& node, size_t output, bool with_reference);

// Judges the outputs of a forward sweep.
class ForwardJudge {
 public:
  // `components`: how many there are in all, for tolerances; the sweep may hold a part of them. What is given must
  // outlive the judge.
  ForwardJudge(const Linearization& linearization, const RowTable& rows, const Rounding& rounding, int64_t components);

  // Judges output k of a node by what Settle found of its rows [numc + 2, *S]. `check` keeps the largest numbers so
  // far. `whole`: the output covers its storage. Returns false if the output fails.
  bool JudgeOutput(const Node& node, size_t k, const Settled& settled, const at::Tensor& rows,
                   const at::Tensor& reference, bool whole, OperatorCheck& check);
  // Judges an output whose rows are gone, by these numbers alone. Returns false if it takes the rows to tell.
  bool JudgeByNumbers(const Node& node, size_t k, const Settled& settled, double tolerance, bool whole,
                      OperatorCheck& check);
  // The tolerance that rounding alone asks for when an operator has just run: the error of output k, relative to its
  // value.
  double ToleranceOf(const Node& node, size_t k) const;
  // Judges a probe by itself. Returns false if it fails.
  bool JudgeProbe(const Probe& probe, const Settled& settled, const at::Tensor& rows, const at::Tensor& reference);
  // Keeps the check of a node.
  void Finish(const OperatorCheck& check);

  // Checks by node, if Policy::check is every_op.
  std::vector<OperatorCheck> checks;
  std::vector<OperatorCheck> failures;
  double worst_recovery_error = 0;

 private:
  // Allowances that are computed only if a check would fail; absolute.
  struct Allowance {
    double reach = 0;
    double inherited = 0;
  };

  bool Recovers(const Operand& operand, const Settled& settled, const at::Tensor& rows, const at::Tensor& reference,
                const Allowance& allowance, OperatorCheck& check) const;
  // The bracket of an output that was judged, and how far its recovery is off.
  void NoteOutput(const Operand& output, const Settled& settled, double bracket, bool whole, OperatorCheck& check);
  double Reach(const Node& node, size_t output) const;
  double Inherited(const Node& node, size_t output) const;
  at::Tensor Missing(const Call& call, const Operand& operand) const;
  const Call& CallOf(const Node& node) const { return trace_.calls[node.call]; }

  const Linearization& linearization_;
  const TracedRun& trace_;
  const RowTable& rows_;
  const Rounding& rounding_;
  const int64_t components_;
  std::vector<double> errors_;  // by storage: how far recovery was off where it was judged; see Note [Inherited errors]
};

// The numbers of one target that a backward sweep has measured; see AdjointResult.
struct TargetSums {
  double value = 0;
  double reference = 0;
  double components = 0;  // the sum of all
  double leftover = 0;
  double mass = 0;
  double terms = 0;
  double allowed = 0;  // how far value and sum may be apart; set by the judge

  // Like the forward sweep, nothing is said about values that are not finite.
  bool counted() const { return std::isfinite(value); }
  double missing() const { return counted() ? value - (components + leftover + reference) : 0; }
  bool holds() const { return !counted() || std::abs(missing()) <= allowed; }
};
std::vector<TargetSums> SumsOf(const AdjointResult& result);

// A node with a bound on its bracket: what it left over, and what its terms came to.
struct BoundedBracket {
  int64_t call;
  Kind kind;
  double bound;
  at::Tensor left;   // [targets]
  at::Tensor terms;  // [targets]
};

class BackwardObserver;

// Judges the brackets that targets have seen, and recovery at every target. `sweep_again`: lets an observer see the
// sweep. It is asked for where recovery fails: the terms of every node tell what rounding may come to, and name the
// operator.
void JudgeTargets(const Linearization& linearization, const Rounding& rounding,
                  const std::vector<at::Tensor>& cotangents, const std::vector<BoundedBracket>& brackets,
                  const std::function<void(BackwardObserver*)>& sweep_again, AdjointResult& result);

// Compares, at each probe, the components of the later chunks with the row that stood for all of them.
void JudgeChunks(const Linearization& linearization, const SumCheck& sum_check, SweepResult& result);

// Absorbs a failure: makes the recovery of an operator's output its value; see Note [Absorbing]. components: [numc,
// *S], leftover: [*S]; both are written. Throws FailedPrecondition if the reference is not finite though the value is.
void Absorb(at::Tensor components, at::Tensor leftover, const at::Tensor& value, const at::Tensor& reference,
            const Call& call);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_JUDGE_H_
