// One step of the forward sweep: the rows of a node's inputs become the rows of its outputs.
//
// Note [The move row]
// The move row is one more row behind those of components and leftover: value - reference of the tensor itself. It goes
// through every map with the others and comes out as L(move), which gives the bracket; then it is set to the output's
// own move. So a bracket costs one row more instead of a second run of every operator.
#ifndef ADDEND_CORE_LINEARIZE_FORWARD_STEP_H_
#define ADDEND_CORE_LINEARIZE_FORWARD_STEP_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/linearize/linearization.h"
#include "core/linearize/row_table.h"

namespace addend {

// The rows that a sweep carries: the components and, if `all`, those of leftover and move behind them.
struct RowLayout {
  int64_t components = 0;
  bool all = true;

  int64_t count() const { return components + (all ? 2 : 0); }
  int64_t leftover() const { return components; }
  int64_t move() const { return components + 1; }
};

class ForwardStep {
 public:
  // `sums_of_all`: as SumsBeforePayments; read where components are carried alone. `sums_before`: written with the same
  // if not null. What is given must outlive this.
  ForwardStep(const Linearization& linearization, RowLayout layout, const std::vector<at::Tensor>* sums_of_all,
              std::vector<at::Tensor>* sums_before, RowTable* rows);

  // Starts rows in an input: with the parts that are given, or with each element in the component of its label.
  void Begin(const Start& start);
  // Makes the rows of node n's outputs. Returns true if they are the result of a map, so that there is a bracket to
  // find; false if rows begin, or stay as they were.
  bool Apply(size_t n);
  // Drops the rows that no later node or probe reads.
  void Release(size_t n);

 private:
  const Call& CallOf(const Node& node) const { return trace_.calls[node.call]; }
  const StorageInfo& StorageOf(const Operand& operand) const { return trace_.storages[operand.storage]; }
  at::Tensor Move(const Operand& operand) const;
  void StartRows(const Call& call);
  bool HandsOn(const Node& node, const Call& call) const;
  bool SameRows(const Operand& input, const Operand& output) const;
  bool ApplyInPlace(const Node& node, const Call& call, size_t n);
  void ApplyMap(const Node& node, const Call& call);
  void PayConstant(const Node& node, size_t n);

  const Linearization& linearization_;
  const TracedRun& trace_;
  const RowLayout layout_;
  const std::vector<at::Tensor>* sums_of_all_;
  std::vector<at::Tensor>* sums_before_;
  RowTable& rows_;
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_FORWARD_STEP_H_
