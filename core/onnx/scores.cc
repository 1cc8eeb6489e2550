#include "core/onnx/scores.h"

#include <ATen/ATen.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/text.h"
#include "core/onnx/operands.h"

namespace addend::onnx {
namespace {

using at::Tensor;

// A softmax over the scores that are not zero; those that are stay zero.
Tensor SoftmaxOfNonzero(const Tensor& scores) {
  constexpr double kZero = 1e-7;
  // No mask, so that components pass.
  const Tensor is_nonzero = at::heaviside(at::sub(at::abs(scores), kZero), at::zeros({}, scores.options()));
  const Tensor shares = at::mul(at::softmax(scores, -1), is_nonzero);
  return at::div(shares, at::sum(shares, -1, /*keepdim=*/true));
}

Tensor Probit(const Tensor& scores) { return at::mul(at::erfinv(at::sub(at::mul(scores, 2), 1)), std::sqrt(2.0)); }

}  // namespace

PostTransform PostTransformOf(const Context& context) {
  const std::string word = context.TextAttribute("post_transform", "NONE");
  if (word == "NONE") return PostTransform::kNone;
  if (word == "SOFTMAX") return PostTransform::kSoftmax;
  if (word == "LOGISTIC") return PostTransform::kLogistic;
  if (word == "SOFTMAX_ZERO") return PostTransform::kSoftmaxZero;
  if (word == "PROBIT") return PostTransform::kProbit;
  throw context.Invalid(absl::StrCat("the post_transform ", Quoted(word), " is none"));
}

void RequireTransform(const Context& context, int64_t num_scores, PostTransform transform) {
  if (num_scores != 1 || transform == PostTransform::kNone || transform == PostTransform::kProbit) return;
  throw context.Refused(
      "ONNX Runtime leaves out the post_transform of a single score, which the standard asks for; write the model with "
      "post_transform NONE and a node behind it");
}

Tensor Transformed(const Context& context, const Tensor& scores, PostTransform transform) {
  RequireTransform(context, scores.size(-1), transform);
  switch (transform) {
    case PostTransform::kSoftmax:
      return at::softmax(scores, -1);
    case PostTransform::kLogistic:
      return at::sigmoid(scores);
    case PostTransform::kSoftmaxZero:
      return SoftmaxOfNonzero(scores);
    case PostTransform::kProbit:
      return Probit(scores);
    default:
      return scores;
  }
}

void RequireTransformOfTwo(const Context& context, PostTransform transform) {
  if (transform == PostTransform::kNone || transform == PostTransform::kLogistic) return;
  throw context.Refused(
      "two classes have one score, and ONNX Runtime transforms it otherwise than the standard says; write the model "
      "with a score for each class, or with post_transform LOGISTIC or NONE");
}

Tensor ScoresOfTwo(const Tensor& score, bool is_probability, PostTransform transform) {
  if (transform == PostTransform::kLogistic) {
    return at::sigmoid(at::cat({at::neg(score), score}, -1));
  }
  return at::cat({is_probability ? at::rsub(score, 1) : at::neg(score), score}, -1);
}

int64_t NumLabels(const Context& context, const char* integers) {
  const size_t numbers = context.IntsAttribute(integers).size();
  const size_t texts = context.TextsAttribute("classlabels_strings").size();
  if ((numbers == 0) == (texts == 0)) throw context.Invalid("the classes have not one list of labels");
  return static_cast<int64_t>(numbers + texts);
}

Tensor LabelsOf(const Context& context, const char* integers) {
  return at::tensor(context.IntsAttribute(integers), at::kLong);
}

Tensor LabelAt(const Tensor& labels, const Tensor& classes) {
  return labels.numel() == 0 ? Tensor() : at::index_select(labels, 0, classes);
}

Tensor RowsOf(const Context& context) {
  Tensor x = context.Tensor(0);
  if (x.dim() < 1 || x.dim() > 2) throw context.Invalid(absl::StrCat("the input has ", x.dim(), " dimensions, not 2"));
  if (!c10::isFloatingType(x.scalar_type())) x = x.to(context.TypeOf(DataType::kFloat));
  return x.dim() == 1 ? at::unsqueeze(x, 0) : x;
}

Tensor FloatsTensor(const Context& context, const char* name) {
  return at::tensor(context.FloatsAttribute(name), at::kDouble).to(at::kFloat);
}

}  // namespace addend::onnx
