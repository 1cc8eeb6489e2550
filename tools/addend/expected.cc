#include "tools/addend/expected.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/base/text.h"
#include "core/program/tensor_io.h"
#include "tools/addend/input_file.h"
#include "tools/addend/text.h"

namespace addend::cli {
namespace {

constexpr double kWithin = 1e-4;
constexpr double kWithinHalf = 1e-2;

struct Result {
  std::string name;
  at::Tensor value;
};

// All tensors that the model gives, in its order.
std::vector<Result> ResultsOf(const Decomposition& decomposition) {
  std::vector<Result> results(decomposition.outputs.size() + decomposition.plain.size());
  for (const PlainOutput& plain : decomposition.plain) results.at(plain.position) = {plain.name, plain.value};
  auto next = results.begin();
  for (const Decomposed& output : decomposition.outputs) {
    next = std::find_if(next, results.end(), [](const Result& result) { return !result.value.defined(); });
    *next = {output.name, output.value};
  }
  return results;
}

std::string NamesOf(const std::vector<Result>& results) {
  return absl::StrJoin(results, ", ", [](std::string* out, const Result& result) { *out += result.name; });
}

std::string Place(const std::string& path, const std::string& tensor) {
  return tensor.empty() ? path : absl::StrCat(path, "#", tensor);
}

// The output that is called as a tensor is; null where none is.
const Result* Named(const std::string& tensor, const std::vector<Result>& results) {
  for (const Result& result : results) {
    if (result.name == tensor || result.name == "output." + tensor) return &result;
  }
  return nullptr;
}

double WithinOf(c10::ScalarType dtype, std::optional<double> within) {
  if (at::isIntegralType(dtype, /*includeBool=*/true)) return 0;
  if (within) return *within;
  return dtype == at::kHalf || dtype == at::kBFloat16 ? kWithinHalf : kWithin;
}

// Numbers in float64; of complex ones both parts.
at::Tensor NumbersOf(const at::Tensor& tensor, bool complex) {
  if (!complex) return tensor.detach().to(at::kCPU, at::kDouble).contiguous();
  return at::view_as_real(tensor.detach().resolve_conj().to(at::kCPU, at::kComplexDouble)).contiguous();
}

// The largest difference and its place.
void Measure(const at::Tensor& expected, const at::Tensor& found, ComparedOutput* compared) {
  if (expected.numel() == 0) return;
  const bool complex = expected.is_complex() || found.is_complex();
  const at::Tensor wanted = NumbersOf(expected, complex);
  const at::Tensor given = NumbersOf(found, complex);
  const double* a = wanted.data_ptr<double>();
  const double* b = given.data_ptr<double>();
  double scale = 0;
  int64_t place = 0;
  for (int64_t k = 0; k < wanted.numel(); ++k) {
    if (std::isfinite(a[k])) scale = std::max(scale, std::abs(a[k]));
    if (a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]))) continue;  // infinities also
    double difference = std::abs(a[k] - b[k]);
    if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
    if (difference > compared->difference) {
      compared->difference = difference;
      place = k;
    }
  }
  compared->relative =
      compared->difference == 0 ? 0 : compared->difference / scale;  // infinite where nothing is expected
  if (complex) place /= 2;
  for (int64_t dim = expected.dim() - 1; dim >= 0; --dim) {
    compared->index.insert(compared->index.begin(), place % expected.size(dim));
    place /= expected.size(dim);
  }
}

}  // namespace

std::vector<ExpectedOutput> LoadExpected(const CheckArguments& arguments) {
  std::vector<ExpectedOutput> expected;
  const FileFormat format = ReadFormat(arguments.run);
  for (const std::string& text : arguments.expect) {
    const TensorPlace place = ParseTensorPlace(text);
    const TensorFile file = ReadInputFile(place.path, format);
    const std::string sha256 = Sha256OfFile(place.path);
    if (place.tensor.empty() && file.tensors.size() > 1) {
      for (const auto& [name, value] : file.tensors) expected.push_back({place.path, sha256, name, value, true});
      continue;
    }
    const auto& [name, value] = SelectTensor(file, place, {"output"});
    expected.push_back({place.path, sha256, name, value, false});
  }
  return expected;
}

std::vector<ComparedOutput> CompareOutputs(const std::vector<ExpectedOutput>& expected,
                                           const Decomposition& decomposition, std::optional<int64_t> row,
                                           std::optional<double> within) {
  const std::vector<Result> results = ResultsOf(decomposition);
  std::vector<ComparedOutput> all;
  size_t next = 0;
  for (const ExpectedOutput& one : expected) {
    const Result* named = Named(one.tensor, results);
    if (named == nullptr && one.by_name) {
      throw InvalidArgument(absl::StrCat("--expect ", one.path, " has a tensor ", Quoted(one.tensor),
                                         ", and the model gives ", NamesOf(results), "; ", one.path,
                                         "#NAME takes one of several tensors"));
    }
    if (named == nullptr && next == results.size()) {
      throw InvalidArgument(absl::StrCat("--expect ", one.path, ": the model gives ", Plural(results.size(), "tensor"),
                                         " (", NamesOf(results), "), and more are expected"));
    }
    const Result& result = named != nullptr ? *named : results[next++];
    at::Tensor value = one.value;
    // A whole batch may be expected where --row takes one of it.
    const bool is_batch = row && value.dim() == result.value.dim() && value.dim() > 0 && result.value.size(0) == 1;
    if (is_batch && value.size(0) > std::max<int64_t>(*row, 1)) value = value.narrow(0, *row, 1);
    if (value.sizes() != result.value.sizes()) {
      throw InvalidArgument(absl::StrCat("--expect ", one.path, ": the shape is ", ShapeText(value.sizes()), ", and ",
                                         result.name, " of the model has ", ShapeText(result.value.sizes())));
    }
    ComparedOutput compared;
    compared.output = result.name;
    compared.path = one.path;
    compared.sha256 = one.sha256;
    compared.tensor = one.tensor;
    compared.allowed = WithinOf(result.value.scalar_type(), within);
    Measure(value, result.value, &compared);
    all.push_back(std::move(compared));
  }
  return all;
}

Json ComparedJson(const std::vector<ComparedOutput>& compared) {
  Json records = Json::array();
  for (const ComparedOutput& one : compared) {
    records.push_back({{"output", one.output},
                       {"path", one.path},
                       {"sha256", one.sha256},
                       {"tensor", one.tensor},
                       {"ok", one.ok()},
                       {"difference", one.difference},
                       {"relative", one.relative},
                       {"allowed", one.allowed},
                       {"index", one.index}});
  }
  return records;
}

std::string ComparedText(const std::vector<ComparedOutput>& compared, int width) {
  std::string out;
  for (const ComparedOutput& one : compared) {
    std::string line = absl::StrCat(one.ok() ? "" : "FAILED: ", one.output, " beside ",
                                    Clean(Place(one.path, one.tensor)), ": largest difference ", Small(one.difference));
    if (one.difference > 0) absl::StrAppend(&line, " at [", absl::StrJoin(one.index, ", "), "]");
    absl::StrAppend(&line, ", relative ", Small(one.relative), " of ", Small(one.allowed), " allowed");
    out += Wrap(line, width, 2);
  }
  return out;
}

}  // namespace addend::cli
