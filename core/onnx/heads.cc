#include "core/onnx/heads.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/onnx/operands.h"

namespace addend::onnx {

using at::Tensor;

Tensor SplitHeads(const Context& context, const Tensor& packed, int64_t heads) {
  if (packed.dim() != 3 || heads < 1 || packed.size(2) % heads != 0) {
    throw context.Invalid("an input does not divide into its heads");
  }
  return at::transpose(at::reshape(packed, {packed.size(0), packed.size(1), heads, packed.size(2) / heads}), 1, 2);
}

Tensor JoinHeads(const Tensor& heads) {
  return at::reshape(at::transpose(heads, 1, 2), {heads.size(0), heads.size(2), heads.size(1) * heads.size(3)});
}

Tensor RepeatHeads(const Context& context, const Tensor& heads, int64_t query_heads) {
  const int64_t count = heads.size(1);
  if (count == query_heads) return heads;
  if (count < 1 || query_heads % count != 0) {
    throw context.Invalid("the number of the query's heads is no multiple of that of the key or the value");
  }
  const int64_t each = query_heads / count;
  const Tensor repeated = at::unsqueeze(heads, 2).expand({heads.size(0), count, each, heads.size(2), heads.size(3)});
  return at::reshape(repeated, {heads.size(0), query_heads, heads.size(2), heads.size(3)});
}

void AttentionMask::Allow(const Tensor& also) { allowed = allowed.defined() ? at::logical_and(allowed, also) : also; }

namespace {

// Queries that may look at no key: batch x heads x length x 1, or fewer dimensions.
Tensor EmptyRows(const AttentionMask& mask) {
  Tensor blocked;
  if (mask.allowed.defined()) blocked = at::logical_not(mask.allowed);
  if (mask.bias.defined()) {
    const Tensor infinite = at::isneginf(mask.bias);
    blocked = blocked.defined() ? at::logical_or(blocked, infinite) : infinite;
  }
  return at::all(blocked, -1, /*keepdim=*/true);
}

}  // namespace

AttentionScores Attend(const Tensor& query, const Tensor& key, const Tensor& value, double scale, double softcap,
                       const AttentionMask& mask, c10::optional<c10::ScalarType> type) {
  AttentionScores scores;
  scores.raw = at::mul(at::matmul(query, at::transpose(key, 2, 3)), scale);
  scores.masked = softcap > 0 ? at::mul(at::tanh(at::div(scores.raw, softcap)), softcap) : scores.raw;
  if (mask.bias.defined()) scores.masked = at::add(scores.masked, mask.bias);
  if (mask.allowed.defined()) {
    scores.masked =
        at::masked_fill(scores.masked, at::logical_not(mask.allowed), -std::numeric_limits<double>::infinity());
  }
  Tensor empty;
  Tensor logits = type ? InType(scores.masked, *type) : scores.masked;
  if (mask.may_be_empty && mask.IsThere()) {
    empty = EmptyRows(mask);
    logits = at::masked_fill(logits, empty, 0);
  }
  Tensor weights = at::softmax(logits, -1);
  if (empty.defined()) weights = at::masked_fill(weights, empty, 0);
  scores.weights = InType(weights, query.scalar_type());
  scores.result = at::matmul(scores.weights, value);
  return scores;
}

Tensor UpTo(const Context& context, int64_t queries, int64_t keys, int64_t offset) {
  return at::tril(at::ones({queries, keys}, context.Options(at::kBool)), offset);
}

Tensor From(const Context& context, int64_t queries, int64_t keys, int64_t offset) {
  return at::triu(at::ones({queries, keys}, context.Options(at::kBool)), offset);
}

Tensor Rotated(const Context& context, const Tensor& x, const Tensor& cosines, const Tensor& sines, int64_t size,
               bool interleaved) {
  if (size == 0) size = x.size(3);
  if (size > x.size(3) || size % 2 != 0 || cosines.size(-1) != size / 2 || sines.size(-1) != size / 2) {
    throw context.Invalid(
        "the rotated width has to be even, at most that of a head, and twice that of the cosines and sines");
  }
  const Tensor c = at::unsqueeze(cosines, 1), s = at::unsqueeze(sines, 1);
  const Tensor turned = at::narrow(x, 3, 0, size);
  const Tensor first = interleaved ? at::slice(turned, 3, 0, size, 2) : at::narrow(turned, 3, 0, size / 2);
  const Tensor second = interleaved ? at::slice(turned, 3, 1, size, 2) : at::narrow(turned, 3, size / 2, size / 2);
  const Tensor real = at::sub(at::mul(c, first), at::mul(s, second));
  const Tensor imaginary = at::add(at::mul(s, first), at::mul(c, second));
  const Tensor result =
      interleaved ? at::reshape(at::stack({real, imaginary}, -1), turned.sizes()) : at::cat({real, imaginary}, 3);
  return size == x.size(3) ? result : at::cat({result, at::narrow(x, 3, size, x.size(3) - size)}, 3);
}

}  // namespace addend::onnx
