// Windows that slide over the spatial dimensions of a tensor, as convolutions and pools describe them.
#ifndef ADDEND_CORE_ONNX_WINDOWS_H_
#define ADDEND_CORE_ONNX_WINDOWS_H_

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/onnx/context.h"

namespace addend::onnx {

// A number for each spatial dimension.
using PerDimension = std::vector<int64_t>;

struct Windows {
  PerDimension kernel;
  PerDimension strides;
  PerDimension dilations;
  PerDimension before;  // elements of padding
  PerDimension after;
  PerDimension outputs;  // how many windows there are

  size_t rank() const { return kernel.size(); }
  // How many elements a window reaches over.
  int64_t Span(size_t k) const { return dilations[k] * (kernel[k] - 1) + 1; }
  bool IsDilated() const;
};

// The sizes of a tensor behind batch and channels. Throws InvalidArgument where there are none.
PerDimension SpatialSizes(const Context& context, const at::Tensor& x);

// An attribute of `count` numbers. Throws InvalidArgument where it has another number of them.
PerDimension PerDimensionAttribute(const Context& context, const char* name, size_t count, int64_t otherwise);

// The attribute auto_pad, one of NOTSET, VALID, SAME_UPPER and SAME_LOWER.
std::string AutoPadOf(const Context& context);

// Reads strides, dilations, pads and auto_pad. With `ceil`, windows may reach beyond the padding, but begin before it.
Windows WindowsOf(const Context& context, const PerDimension& sizes, PerDimension kernel, bool ceil = false);

// Pads, or with negative numbers crops, the spatial dimensions.
at::Tensor PadSpatial(const at::Tensor& x, const PerDimension& before, const PerDimension& after, double value = 0);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_WINDOWS_H_
