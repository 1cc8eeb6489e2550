// Parts of ONNX Runtime's operators that those of quantized models share.
#ifndef ADDEND_CORE_ONNX_MICROSOFT_H_
#define ADDEND_CORE_ONNX_MICROSOFT_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <optional>

#include "core/onnx/context.h"
#include "core/onnx/datum.h"

namespace addend::onnx {

// Attention, with its attributes, of queries, keys and values that stand side by side in the last dimension. `mask`,
// `past` and `bias`: the inputs that are the mask of keys, keys and values of the past, and what is added to the
// scores.
Results AttentionOf(const Context& context, const at::Tensor& all, size_t mask, size_t past,
                    std::optional<size_t> bias);

// The sum of embeddings of words, positions and segments, normalized. Inputs: ids of words and of segments, then, as
// `table` gives them by their numbers, tables of words, positions and segments, weight and bias of the norm; the mask.
// `places`: ids of positions, or undefined.
Results EmbeddingsOf(const Context& context, const std::function<at::Tensor(size_t)>& table, const at::Tensor& places);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_MICROSOFT_H_
