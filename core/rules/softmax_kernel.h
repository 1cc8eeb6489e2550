// The path rule of softmax in fused loops; softmax_path.cc has the ATen form.
#ifndef ADDEND_CORE_RULES_SOFTMAX_KERNEL_H_
#define ADDEND_CORE_RULES_SOFTMAX_KERNEL_H_

#include <cstdint>

namespace addend {

// The scores at both ends of the line, [groups, width] each.
template <typename T>
struct SoftmaxEnds {
  const T* value;
  const T* reference;
  int64_t groups;
  int64_t width;
};

// Computes half the range of each group's move. Returns false if a move is not finite.
template <typename T>
bool HalfRanges(const SoftmaxEnds<T>& ends, T* half_range);

// Nodes and weights of a quadrature.
struct NodesView {
  const double* nodes;
  const double* weights;
  int64_t count;
};

// Computes output[r, g, :] = sum over the nodes of weight * (diag p - p p^T) rows[r, g, :], where p is the softmax of
// group g at a node. `rules`: one for each group. rows, output: [num_rows, groups, width].
template <typename T>
void SoftmaxAlongPath(const SoftmaxEnds<T>& ends, const NodesView* const* rules, const T* rows, int64_t num_rows,
                      T* output);

// Computes output[g, :] = sum over the nodes of weight * p.
template <typename T>
void MeanSoftmaxAlongPath(const SoftmaxEnds<T>& ends, const NodesView* const* rules, T* output);

extern template bool HalfRanges<float>(const SoftmaxEnds<float>&, float*);
extern template bool HalfRanges<double>(const SoftmaxEnds<double>&, double*);
extern template void SoftmaxAlongPath<float>(const SoftmaxEnds<float>&, const NodesView* const*, const float*, int64_t,
                                             float*);
extern template void SoftmaxAlongPath<double>(const SoftmaxEnds<double>&, const NodesView* const*, const double*,
                                              int64_t, double*);
extern template void MeanSoftmaxAlongPath<float>(const SoftmaxEnds<float>&, const NodesView* const*, float*);
extern template void MeanSoftmaxAlongPath<double>(const SoftmaxEnds<double>&, const NodesView* const*, double*);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_SOFTMAX_KERNEL_H_
