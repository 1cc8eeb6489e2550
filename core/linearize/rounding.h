// The rounding of each storage's rows: how many operators led to it, in which precision.
#ifndef ADDEND_CORE_LINEARIZE_ROUNDING_H_
#define ADDEND_CORE_LINEARIZE_ROUNDING_H_

#include <cstdint>
#include <vector>

#include "core/linearize/linearization.h"

namespace addend {

// The largest |recovery - value| that rounding explains, over the largest value: Policy::tolerance if it is set, else
// RecoveryTolerance.
double ToleranceFor(const Policy& policy, bool single, int64_t components, int64_t depth);

// Follows the nodes of a linearization in their order. The linearization must outlive it.
class Rounding {
 public:
  explicit Rounding(const Linearization& linearization);

  // Starts with an input in which rows begin and which some node or probe reads.
  void Begin(const Start& start);
  void Follow(const Node& node);
  void FollowAll();

  // The longest chain of nodes that led to an operand's storage so far; 0 for a plain one.
  int64_t Depth(const Operand& operand) const;
  // Whether the rows were once in single precision, which a later cast to double does not mend.
  bool IsSingle(const Operand& operand) const;
  // ToleranceFor() the operand and `components` components.
  double Tolerance(const Operand& operand, int64_t components) const;

 private:
  const Linearization& linearization_;
  std::vector<int64_t> depth_;  // by storage
  std::vector<bool> single_;    // by storage
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_ROUNDING_H_
