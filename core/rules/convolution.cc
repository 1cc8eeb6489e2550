// Convolutions with plain weights: all rows in one batch. conv1d, conv2d, conv3d and the transposed ones expand to
// these.
#include <ATen/ops/convolution.h>

#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

RuleResult Convolution(const RuleCall& call) {
  if (call.Decomposed(1) || call.Decomposed(2)) throw Unimplemented("convolution with decomposed weights");
  const at::Tensor weight = call.Require(1).value;
  const auto stride = call.Ints(3);
  const auto padding = call.Ints(4);
  const auto dilation = call.Ints(5);
  const bool transposed = call.Bool(6, false);
  const auto output_padding = call.Ints(7);
  const int64_t groups = call.Int(8, 1);
  return LinearIn(call, Kind::kAffine, 0, [=](const at::Tensor& rows) {
    return FoldBatch(rows, [&](const at::Tensor& batch) {
      return at::convolution(batch, weight, {}, stride, padding, dilation, transposed, output_padding, groups);
    });
  });
}

}  // namespace

void RegisterConvolution(Registry& registry) {
  registry.Register({"aten::convolution", Kind::kAffine, Convolution});
  registry.Register({"aten::_convolution", Kind::kAffine, Convolution});
}

}  // namespace addend
