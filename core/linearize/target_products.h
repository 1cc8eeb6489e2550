// Products of cotangents with the values of a run: what the tensors on both sides of a node contribute to each target.
#ifndef ADDEND_CORE_LINEARIZE_TARGET_PRODUCTS_H_
#define ADDEND_CORE_LINEARIZE_TARGET_PRODUCTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/base/views.h"
#include "core/linearize/linearization.h"

namespace addend {

// The tensors of a backward sweep at one node. Rows of cotangents are [R, *S]; an undefined one is zero.
struct BackwardStep {
  const Node& node;
  const Rows& behind;      // by output of the call
  const Rows& back;        // by input of the node
  const at::Tensor& left;  // [targets]: what the node leaves over; undefined: nothing, or not asked for
};

// Computes contributions to targets, in float64. Cotangents have one row for each target or, if nodes pay by share of
// the sum, two blocks of them: those of the components, then those of the leftover.
class TargetProducts {
 public:
  // `rows`: targets or twice as many. The trace must outlive this.
  TargetProducts(const TracedRun& trace, int64_t targets, int64_t rows, at::TensorOptions options)
      : trace_(trace), targets_(targets), rows_(rows), options_(options.dtype(at::kDouble)) {}

  int64_t targets() const { return targets_; }
  int64_t rows() const { return rows_; }
  bool has_blocks() const { return rows_ > targets_; }
  at::Tensor OfComponents(const at::Tensor& cotangents) const { return Narrow(cotangents, 0, 0, targets_); }
  at::Tensor OfLeftover(const at::Tensor& cotangents) const {
    return Narrow(cotangents, 0, rows_ - targets_, targets_);
  }

  at::Tensor Zeros() const;                    // [targets]
  at::Tensor Zeros(int64_t components) const;  // [targets, components]
  const Call& CallOf(const Node& node) const { return trace_.calls[node.call]; }
  // Value, reference and move of an operand in the dtype of its rows; the move is zero where the value is not finite.
  at::Tensor Value(const Operand& operand) const;
  at::Tensor Reference(const Operand& operand) const;
  at::Tensor Move(const Operand& operand) const;
  // Upper bound of an operand's terms: the magnitudes of each target's cotangents, times the largest finite magnitude
  // of value and reference, or of the whole storage, where that is known; `least`, if it is smaller. [targets]
  at::Tensor LargestTerms(const at::Tensor& cotangents, const Operand& operand, double least) const;

  // The contribution of an operand's move to each target, [targets].
  at::Tensor OfMove(const at::Tensor& cotangents, const Operand& operand) const;
  // The contributions of all outputs of a node's call, and of all inputs of the node.
  at::Tensor OfOutputs(const Node& node, const Rows& behind) const;
  at::Tensor OfInputs(const Node& node, const Rows& back) const;

 private:
  const TracedRun& trace_;
  int64_t targets_;
  int64_t rows_;
  at::TensorOptions options_;
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_TARGET_PRODUCTS_H_
