// Parts that operators of attention share: heads, masks, rotations by position.
#ifndef ADDEND_CORE_ONNX_HEADS_H_
#define ADDEND_CORE_ONNX_HEADS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Optional.h>

#include <cstdint>

#include "core/onnx/context.h"

namespace addend::onnx {

// batch x length x heads * size as batch x heads x length x size. Throws InvalidArgument where it does not divide.
at::Tensor SplitHeads(const Context& context, const at::Tensor& packed, int64_t heads);
at::Tensor JoinHeads(const at::Tensor& heads);
// Each head of keys or values once for every query head of its group.
at::Tensor RepeatHeads(const Context& context, const at::Tensor& heads, int64_t query_heads);

// Keys that queries may look at, and what is added to the scores.
struct AttentionMask {
  at::Tensor allowed;  // boolean; undefined: all
  at::Tensor bias;     // undefined: none
  // A query that may look at no key gives zeros. False where each has a key.
  bool may_be_empty = false;

  void Allow(const at::Tensor& also);
  bool IsThere() const { return allowed.defined() || bias.defined(); }
};

struct AttentionScores {
  at::Tensor raw;      // scaled products
  at::Tensor masked;   // behind soft cap and mask
  at::Tensor weights;  // softmax of them
  at::Tensor result;
};

// Softmax attention of batch x heads x length x size. `softcap`: 0 for none. `type`: the softmax is computed in it.
AttentionScores Attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double scale,
                       double softcap, const AttentionMask& mask, c10::optional<c10::ScalarType> type = c10::nullopt);

// Queries i and keys j of which j <= i + offset.
at::Tensor UpTo(const Context& context, int64_t queries, int64_t keys, int64_t offset);
// Queries i and keys j of which j >= i + offset.
at::Tensor From(const Context& context, int64_t queries, int64_t keys, int64_t offset);

// Rotates pairs of numbers of batch x heads x length x size: the two halves of the first `size` numbers or, if they are
// interleaved, neighbours. Cosines and sines: batch x length x size / 2.
at::Tensor Rotated(const Context& context, const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines,
                   int64_t size, bool interleaved);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_HEADS_H_
