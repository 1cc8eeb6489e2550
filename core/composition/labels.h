// Labels: int64 tensors that tell which component each element of a value belongs to; -1: none.
#ifndef ADDEND_CORE_COMPOSITION_LABELS_H_
#define ADDEND_CORE_COMPOSITION_LABELS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace addend {

// One label for each position along `dims`, counted row by row in the order of `dims`; of the value's shape, with size
// 1 in all other dimensions. dims: dimensions of the value, none negative and none twice.
at::Tensor LabelsAlong(const at::Tensor& value, const std::vector<int64_t>& dims);

// The labels with a dimension of size 1 for each dimension of the value that they lack. Throws InvalidArgument where
// they broadcast neither to the value's shape nor to its leading dimensions.
at::Tensor AlignLabels(const at::Tensor& value, const at::Tensor& labels);

// Checks every label against numc, or finds the numc that the labels need where it is -1. Throws InvalidArgument.
int64_t CheckLabels(const at::Tensor& labels, int64_t numc);

}  // namespace addend

#endif  // ADDEND_CORE_COMPOSITION_LABELS_H_
