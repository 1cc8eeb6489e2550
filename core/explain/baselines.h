// Baselines by a word: natural baselines that a model, a file of rows or the input itself provides.
#ifndef ADDEND_CORE_EXPLAIN_BASELINES_H_
#define ADDEND_CORE_EXPLAIN_BASELINES_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace addend {

// The list of words for messages and help: "mean:FILE, median:FILE, buffer:NAME, mean, blur or blur:SIGMA".
extern const char kBaselineWords[];

// Whether a text is one of these words, whatever follows its colon.
bool IsBaselineWord(const std::string& text);

// Throws InvalidArgument, with the list of words, for any other text.
void RequireBaselineWord(const std::string& text);

// Whether a word's baseline is computed from the input's value: "mean" and "blur".
bool NeedsValue(const std::string& word);

// Returns the file that a word names: "rows.npy" for "mean:rows.npy#x"; empty if it names none.
std::string FileOfBaselineWord(const std::string& word);

// The baseline "mean:FILE" or "median:FILE" of the rows of that file, for callers that read it by themselves. Throws as
// BaselineOfWord() does.
at::Tensor BaselineOfRows(const std::string& word, const at::Tensor& rows);

// The baseline of the file that the word names, as it is now. Throws as BaselineOfWord() does.
at::Tensor BaselineOfFile(const std::string& word);

// The baseline that a word stands for, which broadcasts to `value`, a floating-point or complex input:
//   "mean:FILE", "median:FILE"   of the rows of a tensor in a .npy or .safetensors file (FILE#NAME where it holds
//                                several and none is called "input" or "baseline"), along its first dimension; of an
//                                even number of rows the median is the lower of the two in the middle
//   "buffer:NAME"                a tensor that the model holds, such as the running mean of a batch normalization of
//                                its input; one of a single dimension, as long as the input has channels (dimension
//                                1), runs along these
//   "mean"                       of each channel of an image, over height and width, the last two dimensions
//   "blur", "blur:SIGMA"         the image under a Gaussian of standard deviation SIGMA in pixels (a twentieth of the
//                                longer side unless given); weights are normalized at the borders
// `held`: the tensors that the model holds, by name. Throws InvalidArgument that names the word and says what there is,
// NotFound where there is no such file.
at::Tensor BaselineOfWord(const std::string& word, const at::Tensor& value,
                          const std::vector<std::pair<std::string, at::Tensor>>& held);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_BASELINES_H_
