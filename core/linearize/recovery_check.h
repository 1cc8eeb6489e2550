// The check of a forward sweep, after a node and at probes: does the recovery equal the value, and is the bracket as
// small as the rule claims?
//
// Note [Inherited errors]
// A layer norm on its way from zero has terms a hundred times as large as their sum, and may err by their rounding. The
// next linear map carries the same error on a value of the same size, but its own terms are small. What its operands'
// parts miss, sent through the map, is therefore no failure of that map: the operands have been judged before. This
// holds while every operator is checked and none has failed.
#ifndef ADDEND_CORE_LINEARIZE_RECOVERY_CHECK_H_
#define ADDEND_CORE_LINEARIZE_RECOVERY_CHECK_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/linearize/linearization.h"
#include "core/linearize/operator_check.h"
#include "core/linearize/rounding.h"
#include "core/linearize/row_table.h"
#include "core/linearize/settle.h"

namespace addend {

// How large the terms are that an output of a node is summed from, whatever they cancel to, [*S]: L of the operands'
// magnitudes on the value (and on the reference) under random signs, a few times. Rounding errors are of this size.
// Undefined where rows do not reach it through a map.
at::Tensor ReachOf(const TracedRun& trace, const Node& node, size_t output, bool with_reference);

class RecoveryCheck {
 public:
  // `components`: how many there are in all, for tolerances; the sweep may hold a part of them. What is given must
  // outlive the check.
  RecoveryCheck(const Linearization& linearization, const RowTable& rows, const Rounding& rounding, int64_t components);

  // Judges output k of a node by what Settle found of its rows [numc + 2, *S]. `check` keeps the largest numbers so
  // far. `whole`: the output covers its storage. Returns false if the output fails.
  bool JudgeOutput(const Node& node, size_t k, const Settled& settled, const at::Tensor& rows,
                   const at::Tensor& reference, bool whole, OperatorCheck& check);
  // An output whose rows are gone is judged by these numbers alone. Returns false if it takes the rows to tell.
  bool JudgeByNumbers(const Node& node, size_t k, const Settled& settled, double tolerance, bool whole,
                      OperatorCheck& check);
  // The tolerance that rounding alone asks for when an operator has just run: the error of output k, relative to its
  // value.
  double ToleranceOf(const Node& node, size_t k) const;
  // Judges an operand by itself. Returns false if it fails.
  bool JudgeRecovery(const Operand& operand, const at::Tensor& rows, const at::Tensor& reference,
                     const Settled& settled, OperatorCheck& check) const;
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

  bool JudgeRecovery(const Operand& operand, const at::Tensor& rows, const at::Tensor& reference,
                     const Settled& settled, const Allowance& allowance, OperatorCheck& check) const;
  // The bracket of an output that was judged, and how far its recovery is off.
  void NoteOutput(const Operand& output, const Settled& settled, double bracket, bool whole, OperatorCheck& check);
  double Reach(const Node& node, size_t output) const;
  double Inherited(const Node& node, size_t output) const;
  at::Tensor Missing(const Call& call, const Operand& operand) const;
  const Call& CallOf(const Node& node) const { return trace_.program.calls[node.call]; }

  const Linearization& linearization_;
  const TracedRun& trace_;
  const RowTable& rows_;
  const Rounding& rounding_;
  const int64_t components_;
  std::vector<double> errors_;  // by storage: how far recovery was off where it was judged; see Note [Inherited errors]
};

// Absorbs a failure: makes the recovery of an operator's output its value; see Note [Absorbing]. components: [numc,
// *S], leftover: [*S]; both are written. Throws FailedPrecondition if the reference is not finite though the value is.
void Absorb(at::Tensor components, at::Tensor leftover, const at::Tensor& value, const at::Tensor& reference,
            const Call& call);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_RECOVERY_CHECK_H_
