// Scores of the models of ai.onnx.ml: what follows them, and the labels of classes.
#ifndef ADDEND_CORE_ONNX_SCORES_H_
#define ADDEND_CORE_ONNX_SCORES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/onnx/context.h"

namespace addend::onnx {

// The function of the scores of a row that follows them; its numbers are those of TreeEnsemble.
enum class PostTransform : int64_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

// Reads the attribute post_transform, a word.
PostTransform PostTransformOf(const Context& context);

// Scores [rows, scores] with what follows them. A transform of a single score is refused, but for none and kProbit:
// the standard and ONNX Runtime disagree about it.
at::Tensor Transformed(const Context& context, const at::Tensor& scores, PostTransform transform);
// Throws what Transformed() throws for so many scores.
void RequireTransform(const Context& context, int64_t num_scores, PostTransform transform);

// Two scores of a model that scores the second of two classes only: 1 - s or -s, and s; under kLogistic the
// probabilities of -s and of s. Other transforms are refused: the standard and ONNX Runtime disagree about them.
at::Tensor ScoresOfTwo(const at::Tensor& score, bool is_probability, PostTransform transform);
void RequireTransformOfTwo(const Context& context, PostTransform transform);

// How many labels the classes have: integers in the attribute `integers`, or texts in classlabels_strings. Throws
// InvalidArgument where there is not one list of them.
int64_t NumLabels(const Context& context, const char* integers);
// The labels as a tensor, at preparation; empty where they are texts.
at::Tensor LabelsOf(const Context& context, const char* integers);
// The label of each row by the numbers of classes [rows]; undefined, which is none, where labels are texts.
at::Tensor LabelAt(const at::Tensor& labels, const at::Tensor& classes);

// Input 0 as rows of floating-point numbers: one row where it has one dimension. Integers become single precision.
at::Tensor RowsOf(const Context& context);

// Floating-point numbers of an attribute as a tensor in single precision, at preparation.
at::Tensor FloatsTensor(const Context& context, const char* name);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_SCORES_H_
