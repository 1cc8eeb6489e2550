// Exact Shapley values of the components of a few compositions under any function: a yardstick for the path rule where
// components are few.
//
// Note [Exact Shapley values]
// A coalition is a set of components; the residual is always present. v(S) = f(residual + sum of the components in S).
// Component i gets the mean of v(S + i) - v(S) over all orders in which components may join: the sum over the sets S
// without i, of size s out of n, of s! (n - s - 1)! / n! (v(S + i) - v(S)). So f is called once for each of the 2^n
// sets.
#ifndef ADDEND_CORE_COMPOSITION_SHAPLEY_H_
#define ADDEND_CORE_COMPOSITION_SHAPLEY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/composition/composition.h"

namespace addend {

constexpr int64_t kMostShapleyComponents = 16;

// Computes the Shapley values. `f` gets one tensor for each composition and must compute the same thing every time; it
// may capture plain tensors. All compositions share one component axis. The components of the result sum to f(recovery)
// - f(residual); its reference is f(reference), its leftover f(residual) - f(reference). Differences are summed in
// float64. Throws InvalidArgument if there are more than 16 components, or if numbers of components differ.
Composition Shapley(const std::function<at::Tensor(const std::vector<at::Tensor>&)>& f,
                    const std::vector<Composition>& inputs);

}  // namespace addend

#endif  // ADDEND_CORE_COMPOSITION_SHAPLEY_H_
