#include "core/explain/baselines.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/program/tensor_io.h"
#include "core/program/traced_calls.h"

namespace addend {

const char kBaselineWords[] = "mean:FILE, median:FILE, buffer:NAME, mean, blur or blur:SIGMA";

namespace {

constexpr char kMeanOf[] = "mean:";
constexpr char kMedianOf[] = "median:";
constexpr char kBuffer[] = "buffer:";
constexpr char kMean[] = "mean";
constexpr char kBlur[] = "blur";
constexpr char kBlurBy[] = "blur:";

[[noreturn]] void Refuse(const std::string& word, const std::string& why) {
  throw InvalidArgument(absl::StrCat("baseline ", word, ": ", why));
}

bool IsOfRows(const std::string& word) { return absl::StartsWith(word, kMeanOf) || absl::StartsWith(word, kMedianOf); }

// Held tensors that can be a baseline of the value, as they broadcast to it; undefined for another.
at::Tensor Fitting(const at::Tensor& held, const at::Tensor& value) {
  if (Continuous(held.scalar_type()) != Continuous(value.scalar_type())) return {};
  // A batch normalization knows one number for each channel.
  if (held.dim() == 1 && value.dim() > 1 && held.size(0) == value.size(1)) {
    at::DimVector along(value.dim(), 1);
    along[1] = held.size(0);
    return held.view(along);
  }
  return at::is_expandable_to(held.sizes(), value.sizes()) ? held : at::Tensor();
}

at::Tensor HeldTensor(const std::string& word, const at::Tensor& value,
                      const std::vector<std::pair<std::string, at::Tensor>>& held) {
  const std::string name = word.substr(sizeof(kBuffer) - 1);
  std::vector<std::string> fitting;
  for (const auto& [own, tensor] : held) {
    if (!tensor.defined()) continue;
    const at::Tensor fits = Fitting(tensor.detach(), value);
    if (own == name) {
      if (fits.defined()) return fits;
      Refuse(word, absl::StrCat("it is ", ShapeText(tensor.sizes()), ", which does not fit an input of shape ",
                                ShapeText(value.sizes())));
    }
    if (fits.defined() && fitting.size() < 8) fitting.push_back(own);
  }
  Refuse(word, fitting.empty() ? "the model holds no tensor of that name, and none that fits the input"
                               : absl::StrCat("the model holds no tensor of that name; of those that it has, ",
                                              absl::StrJoin(fitting, ", "), " would fit the input"));
}

// [size, size], each row the weights of one position; they sum to one at the borders too.
at::Tensor GaussianWeights(int64_t size, double sigma, const at::TensorOptions& options) {
  const at::Tensor place = at::arange(size, options);
  const at::Tensor apart = place.view({-1, 1}) - place;
  const at::Tensor weights = apart.mul(apart).mul(-0.5 / (sigma * sigma)).exp();
  return weights / weights.sum(1, /*keepdim=*/true);
}

at::Tensor Blurred(const std::string& word, const at::Tensor& value) {
  const int64_t height = value.size(-2);
  const int64_t width = value.size(-1);
  double sigma = static_cast<double>(std::max(height, width)) / 20;
  if (word != kBlur &&
      (!absl::SimpleAtod(word.substr(sizeof(kBlurBy) - 1), &sigma) || !(sigma > 0) || !std::isfinite(sigma))) {
    Refuse(word, "its standard deviation is a number of pixels above zero, as in blur:10");
  }
  const auto options = value.options().dtype(value.is_complex() ? at::kComplexDouble : at::kDouble);
  return at::matmul(at::matmul(GaussianWeights(height, sigma, options), value.to(options)),
                    GaussianWeights(width, sigma, options).transpose(0, 1));
}

}  // namespace

bool IsBaselineWord(const std::string& text) {
  return NeedsValue(text) || IsOfRows(text) || absl::StartsWith(text, kBuffer);
}

void RequireBaselineWord(const std::string& text) {
  if (!IsBaselineWord(text)) Refuse(text, absl::StrCat("there is no such word; there are ", kBaselineWords));
}

bool NeedsValue(const std::string& word) { return word == kMean || word == kBlur || absl::StartsWith(word, kBlurBy); }

at::Tensor BaselineOfRows(const std::string& word, const at::Tensor& rows) {
  const std::string path = FileOfBaselineWord(word);
  if (!Continuous(rows.scalar_type())) Refuse(word, absl::StrCat(path, " holds no floating-point numbers"));
  if (rows.dim() == 0 || rows.size(0) == 0) Refuse(word, absl::StrCat(path, " holds no rows"));
  const at::Tensor whole = rows.is_complex() ? rows : rows.to(at::kDouble);
  if (absl::StartsWith(word, kMeanOf)) return whole.mean(0);
  if (rows.is_complex()) Refuse(word, "complex numbers have no order, and so no median");
  return std::get<0>(whole.median(0));
}

at::Tensor BaselineOfFile(const std::string& word) {
  const TensorPlace place = ParseTensorPlace(word.substr(word.find(':') + 1));
  const TensorFile file = ReadTensorFile(place.path);
  return BaselineOfRows(word, SelectTensor(file, place, {"baseline", "input"}).second);
}

std::string FileOfBaselineWord(const std::string& word) {
  if (!IsOfRows(word)) return "";
  return ParseTensorPlace(word.substr(word.find(':') + 1)).path;
}

at::Tensor BaselineOfWord(const std::string& word, const at::Tensor& value,
                          const std::vector<std::pair<std::string, at::Tensor>>& held) {
  RequireBaselineWord(word);
  if (absl::StartsWith(word, kBuffer)) return HeldTensor(word, value.detach(), held);
  if (!Continuous(value.scalar_type())) {
    Refuse(word, "token ids have none; give a token, such as that of the mask, the padding or the unknown");
  }
  if (IsOfRows(word)) return BaselineOfFile(word).to(value.device());
  if (value.dim() < 3 || value.numel() == 0) {
    Refuse(word, absl::StrCat("it is for images, whose last two dimensions are height and width, not for an input of "
                              "shape ",
                              ShapeText(value.sizes()), "; mean:FILE is the mean of a file of rows"));
  }
  if (word == kMean) return value.detach().mean({-2, -1}, /*keepdim=*/true);
  return Blurred(word, value.detach());
}

}  // namespace addend
