// Payments: nodes that depend on all components together, and the constant that some of them distribute over the
// components.
//
// Note [Paid by share of the sum]
// Bias::kSignThreshold pays component c of a node's output the share c / S of a constant, where S is the sum of all
// components, and takes it from the leftover. S does not depend on how the input is split: one forward sweep of one
// component finds it, and c + c / S * constant is linear in c. Such a node can be swept in chunks and backward as long
// as S is given to it. Every other way of paying needs each component by itself.
#ifndef ADDEND_CORE_LINEARIZE_PAYMENTS_H_
#define ADDEND_CORE_LINEARIZE_PAYMENTS_H_

#include <ATen/core/Tensor.h>

#include <string>

#include "core/linearize/linearization.h"

namespace addend {

// Whether a node pays by share of the sum.
bool PaysByShare(const Node& node);
// Whether the policy's choice for a node needs all components at the same time.
bool LooksAtAll(const Node& node);

// The constant that a node with PaysByShare pays, [*S], for the sum of all components of its output, [*S]; and the
// share of a component in it: component c gets c * share.
struct PaidByShare {
  at::Tensor paid;
  at::Tensor share;
};
PaidByShare PaymentOf(const Node& node, const at::Tensor& sum);

// Throws FailedPrecondition, with the operator's position, if a node, or one node of the linearization, looks at all
// components together. `cannot`: what they can therefore not do, such as "move in chunks".
void RequireLinear(const Linearization& linearization, const Node& node, const std::string& cannot,
                   const std::string& hint);
void RequireLinear(const Linearization& linearization, const std::string& cannot, const std::string& hint);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_PAYMENTS_H_
