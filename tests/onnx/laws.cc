#include "tests/onnx/laws.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/policy.h"
#include "core/explain/decompose.h"
#include "core/explain/input.h"
#include "core/model/run_model.h"

namespace addend {
namespace {

using at::Tensor;
using c10::IValue;

constexpr int64_t kMostComponents = 8;
constexpr double kTolerance = 1e-4;
constexpr int64_t kMostTargets = 4096;
constexpr int64_t kMostCotangents = 1 << 22;  // numbers that arrive at the inputs: of each target, one for each element

// Results whose elements are counted alike: those of the plain model that are floating-point.
void CollectFloats(const IValue& value, std::vector<Tensor>* tensors) {
  if (value.isTensor()) {
    if (value.toTensor().is_floating_point()) tensors->push_back(value.toTensor());
  } else if (value.isList()) {
    for (const IValue& element : value.toList().vec()) CollectFloats(element, tensors);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) CollectFloats(entry.value(), tensors);
  }
}

std::vector<Tensor> FloatsOf(Model& model, const std::vector<IValue>& inputs) {
  std::vector<Tensor> tensors;
  CollectFloats(RunModel(model, inputs, "the suite's inputs"), &tensors);
  return tensors;
}

bool IsSplit(const Tensor& tensor) { return tensor.is_floating_point() && tensor.numel() > 0; }

Tensor BaselineOf(const Tensor& tensor) { return tensor * 0.5 + 0.125; }

std::vector<Input> InputsOf(const std::vector<Tensor>& values) {
  std::vector<Input> inputs;
  for (const Tensor& value : values) {
    Input input;
    input.value = value;
    if (IsSplit(value)) {
      input.split = Split::ByLabels(at::arange(value.numel()).remainder(kMostComponents).reshape(value.sizes()));
      input.baseline = Baseline::Of(BaselineOf(value));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

double Scale(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0) return 1;
  return std::max({a.abs().max().item<double>(), b.abs().max().item<double>(), 1e-6});
}

// The largest difference relative to the largest element; infinite where one of them is not finite.
double Difference(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0) return 0;
  const Tensor wide = a.to(at::kDouble), other = b.to(at::kDouble);
  const double difference = (wide - other).abs().max().item<double>();
  return std::isfinite(difference) ? difference / Scale(wide, other) : INFINITY;
}

bool AllFinite(const std::vector<Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const Tensor& tensor) { return tensor.isfinite().all().item<bool>(); });
}

LawOutcome Compare(const Decomposition& result, const std::vector<Tensor>& outputs,
                   const std::vector<Tensor>& on_baseline) {
  if (result.outputs.size() != outputs.size()) {
    return {LawOutcome::Kind::kBroken, absl::StrCat(result.outputs.size(), " outputs, not ", outputs.size())};
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const Composition& parts = result.outputs[k].composition;
    const Tensor sum = parts.components().to(at::kDouble).sum(0) + parts.leftover() + parts.reference();
    const double tolerance = c10::elementSize(outputs[k].scalar_type()) < 4 ? 1e-2 : kTolerance;
    const double recovery = Difference(sum, outputs[k]);
    if (recovery > tolerance) return {LawOutcome::Kind::kBroken, absl::StrCat("recovery is off by ", recovery)};
    const double value = Difference(result.outputs[k].value, outputs[k]);
    if (value > tolerance) return {LawOutcome::Kind::kBroken, absl::StrCat("the value is off by ", value)};
    const double reference = Difference(parts.reference(), on_baseline[k]);
    if (reference > tolerance) {
      return {LawOutcome::Kind::kConditions, absl::StrCat("the reference is off by ", reference)};
    }
  }
  return {};
}

int64_t CountElements(const std::vector<Tensor>& tensors) {
  int64_t count = 0;
  for (const Tensor& tensor : tensors) count += tensor.numel();
  return count;
}

}  // namespace

std::string LawOutcome::Text() const {
  switch (kind) {
    case Kind::kHeld:
      return "laws held";
    case Kind::kHeldForward:
      return absl::StrCat("laws held forward: ", what);
    case Kind::kNotAsked:
      return absl::StrCat("laws not asked: ", what);
    case Kind::kConditions:
      return absl::StrCat("laws conditions: ", what);
    case Kind::kRefused:
      return absl::StrCat("laws refused: ", what);
    case Kind::kBroken:
      return absl::StrCat("laws broken: ", what);
  }
  return "";
}

LawOutcome CheckLaws(const std::shared_ptr<Model>& model, const std::vector<IValue>& inputs) {
  std::vector<Tensor> values;
  std::vector<IValue> baseline;
  for (const IValue& input : inputs) {
    if (!input.isTensor()) return {LawOutcome::Kind::kNotAsked, "an input is no tensor"};
    values.push_back(input.toTensor());
    baseline.emplace_back(IsSplit(values.back()) ? BaselineOf(values.back()) : values.back());
  }
  if (std::none_of(values.begin(), values.end(), IsSplit)) return {LawOutcome::Kind::kNotAsked, "no float input"};
  try {
    const std::vector<Tensor> outputs = FloatsOf(*model, inputs);
    if (outputs.empty()) return {LawOutcome::Kind::kNotAsked, "no float output"};
    const std::vector<Tensor> on_baseline = FloatsOf(*model, baseline);
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (k >= on_baseline.size() || outputs[k].sizes() != on_baseline[k].sizes()) {
        return {LawOutcome::Kind::kNotAsked, "sizes follow from the input"};
      }
    }
    if (!AllFinite(values) || !AllFinite(outputs) || !AllFinite(on_baseline)) {
      return {LawOutcome::Kind::kNotAsked, "not finite"};
    }
    const int64_t num_targets = CountElements(outputs), num_elements = CountElements(values);
    const bool goes_back = num_targets <= std::min(kMostTargets, kMostCotangents / num_elements);
    for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
      for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
        if (direction == Direction::kBackward && !goes_back) continue;
        DecomposeOptions options;
        options.policy.preset = preset;
        options.direction = direction;
        const LawOutcome outcome =
            Compare(TracedModel(model).Decompose(InputsOf(values), options), outputs, on_baseline);
        if (outcome.kind != LawOutcome::Kind::kHeld) return outcome;
      }
    }
    if (!goes_back) {
      return {LawOutcome::Kind::kHeldForward,
              absl::StrCat(num_targets, " targets and ", num_elements, " elements are too many to go back")};
    }
  } catch (const Error& error) {
    return {LawOutcome::Kind::kRefused, error.what()};
  } catch (const std::exception& error) {
    return {LawOutcome::Kind::kBroken, SentenceOf(error)};
  }
  return {};
}

}  // namespace addend
