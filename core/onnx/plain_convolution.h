// Convolution as the attributes of a node say: auto_pad, dilations, group, pads, strides.
#ifndef ADDEND_CORE_ONNX_PLAIN_CONVOLUTION_H_
#define ADDEND_CORE_ONNX_PLAIN_CONVOLUTION_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/onnx/context.h"
#include "core/onnx/windows.h"

namespace addend::onnx {

// The names of these attributes, with kernel_shape, and `more`.
std::vector<std::string> ConvolutionAttributes(std::vector<std::string> more = {});

// The sizes of the kernel, which kernel_shape has to repeat if it is there. Throws Unimplemented for more than three.
PerDimension KernelOf(const Context& context, const at::Tensor& weight);

// Input `k`, where it is there.
c10::optional<at::Tensor> BiasOf(const Context& context, size_t k);

at::Tensor PlainConvolution(const Context& context, at::Tensor x, const at::Tensor& weight,
                            const c10::optional<at::Tensor>& bias);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_PLAIN_CONVOLUTION_H_
