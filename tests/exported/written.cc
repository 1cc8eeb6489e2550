#include "tests/exported/written.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/exported/exported_model.h"
#include "core/model/run_model.h"
#include "core/program/recorder.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

WrittenCall CallIn(const TensorFile& file, const std::string& prefix) {
  WrittenCall call;
  // Inputs that are no tensors have numbers too.
  for (int k = 0; k < 64; ++k) {
    if (const at::Tensor* input = file.Find(absl::StrCat(prefix, "input_", k))) call.inputs.emplace_back(*input);
  }
  for (int k = 0; const at::Tensor* output = file.Find(absl::StrCat(prefix, "output_", k)); ++k) {
    call.outputs.push_back(*output);
  }
  return call;
}

double Difference(const at::Tensor& expected, const at::Tensor& given) {
  const at::Tensor found = given.is_complex() ? at::view_as_real(given.resolve_conj()) : given;
  if (found.sizes() != expected.sizes() || found.scalar_type() != expected.scalar_type()) {
    return std::numeric_limits<double>::infinity();
  }
  if (expected.numel() == 0) return 0;
  const at::Tensor a = expected.to(at::kDouble);
  const at::Tensor b = found.to(at::kDouble);
  const at::Tensor same = a.eq(b).logical_or(a.isnan().logical_and(b.isnan()));
  const double apart = (a - b).abs().masked_fill(same, 0).max().item<double>();
  const double scale = a.nan_to_num(0, 0, 0).abs().max().item<double>();
  return apart / std::max(scale, 1e-9);
}

}  // namespace

std::vector<WrittenCall> WrittenCalls(const std::string& program_path) {
  std::string stem = program_path.substr(0, program_path.size() - 4);
  if (absl::EndsWith(stem, "-core")) stem.resize(stem.size() - 5);
  const TensorFile file = ReadTensorFile(stem + ".safetensors");
  std::vector<WrittenCall> calls = {CallIn(file, "")};
  WrittenCall other = CallIn(file, "other_");
  if (!other.outputs.empty()) calls.push_back(std::move(other));
  return calls;
}

std::vector<std::string> ExportedProgramsIn(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".pt2") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<at::Tensor> TensorsIn(const c10::IValue& value) {
  std::vector<at::Tensor> tensors;
  ForEachTensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

double LargestDifference(const std::vector<at::Tensor>& expected, const c10::IValue& found) {
  const std::vector<at::Tensor> tensors = TensorsIn(found);
  if (tensors.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (size_t k = 0; k < expected.size(); ++k) largest = std::max(largest, Difference(expected[k], tensors[k]));
  return largest;
}

WrittenResult RunWritten(const std::string& program_path) {
  WrittenResult result;
  try {
    auto begin = Clock::now();
    const auto model = LoadExported(program_path);
    result.load_ms = MillisecondsSince(begin);
    for (const std::string& note : model->Notes()) absl::StrAppend(&result.note, "; ", note);
    for (const WrittenCall& call : WrittenCalls(program_path)) {
      std::vector<c10::IValue> inputs;
      for (const c10::IValue& input : call.inputs) inputs.emplace_back(input.toTensor().clone());
      begin = Clock::now();
      const c10::IValue found = RunModel(*model, inputs, "as written");
      result.run_ms = MillisecondsSince(begin);
      result.difference = std::max(result.difference, LargestDifference(call.outputs, found));
    }
  } catch (const std::exception& e) {
    result.refusal = e.what();
  }
  return result;
}

}  // namespace addend
