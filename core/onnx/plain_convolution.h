// Convolution as the attributes of a node say: auto_pad, dilations, group, pads, strides.
#ifndef ADDEND_CORE_ONNX_PLAIN_CONVOLUTION_H_
#define ADDEND_CORE_ONNX_PLAIN_CONVOLUTION_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/onnx/context.h"

namespace addend::onnx {

// The names of these attributes, with kernel_shape, and `more`.
std::vector<std::string> ConvolutionAttributes(std::vector<std::string> more = {});

// `bias` may be undefined.
at::Tensor PlainConvolution(const Context& context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_PLAIN_CONVOLUTION_H_
