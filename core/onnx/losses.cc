// Losses: they are rewritten by rules of Addend's own.
#include <ATen/ATen.h>

#include <limits>

#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/operands.h"

namespace addend::onnx {
namespace {

using at::Tensor;

int64_t ReductionOf(const Context& context) {
  const std::string reduction = context.TextAttribute("reduction", "mean");
  if (reduction == "none") return at::Reduction::None;
  if (reduction == "sum") return at::Reduction::Sum;
  if (reduction != "mean") throw context.Invalid("the reduction is none of none, sum and mean");
  return at::Reduction::Mean;
}

// The loss of classes whose logarithms stand in dimension 1. A class of no place where nothing is to be ignored: no
// target can be the smallest number.
Tensor LikelihoodLoss(const Context& context, const Tensor& logarithms) {
  const int64_t ignored = context.IntAttribute("ignore_index", std::numeric_limits<int64_t>::min());
  const Tensor weight = context.OptionalTensor(2);
  if (logarithms.dim() < 2) throw context.Invalid("the input has less than two dimensions");
  return at::nll_loss_nd(logarithms, InType(context.Tensor(1), at::kLong),
                         weight.defined() ? c10::optional<Tensor>(weight) : c10::nullopt, ReductionOf(context),
                         ignored);
}

Results NegativeLogLikelihoodLoss(const Context& context) { return LikelihoodLoss(context, context.Tensor(0)); }

Results SoftmaxCrossEntropyLoss(const Context& context) {
  const Tensor scores = context.Tensor(0);
  const Tensor logarithms = at::log_softmax(scores, context.Axis(1, scores.dim()));
  return {LikelihoodLoss(context, logarithms), logarithms};
}

}  // namespace

void RegisterLosses(OperatorTable& table) {
  table.Add("NegativeLogLikelihoodLoss", 12, NegativeLogLikelihoodLoss)
      .Inputs(2, 3)
      .Attributes({"ignore_index", "reduction"});
  table.Add("SoftmaxCrossEntropyLoss", 12, SoftmaxCrossEntropyLoss)
      .Inputs(2, 3)
      .Attributes({"ignore_index", "reduction"});
}

}  // namespace addend::onnx
