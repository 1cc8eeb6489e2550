#include "core/explain/input.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/composition/labels.h"
#include "core/explain/baselines.h"
#include "core/program/traced_calls.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

std::vector<int64_t> CheckedDims(const std::string& name, const at::Tensor& value, std::vector<int64_t> dims) {
  if (dims.empty()) throw InvalidArgument(absl::StrCat(name, ": a split along dimensions names at least one"));
  for (int64_t& d : dims) {
    const int64_t asked = d;
    if (d < 0) d += value.dim();
    if (d < 0 || d >= value.dim()) {
      throw InvalidArgument(
          absl::StrCat(name, " of shape ", TensorText(value), " has no dimension ", asked, " to split along"));
    }
  }
  std::vector<int64_t> sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw InvalidArgument(absl::StrCat(name, ": a split names a dimension twice"));
  }
  return dims;
}

bool OfLeadingDims(const at::Tensor& labels, at::IntArrayRef sizes) {
  const auto dims = static_cast<size_t>(labels.dim());
  return dims <= sizes.size() && labels.sizes() == sizes.slice(0, dims);
}

at::Tensor SpreadLabels(const std::string& name, const at::Tensor& value, at::Tensor labels) {
  if (!labels.defined() || Continuous(labels.scalar_type()) || labels.scalar_type() == at::kBool) {
    throw InvalidArgument(absl::StrCat(name, ": labels are integers"));
  }
  const at::Tensor aligned = AlignLabels(labels.to(value.device(), at::kLong), value.sizes());
  if (!at::is_expandable_to(aligned.sizes(), value.sizes())) {
    throw InvalidArgument(absl::StrCat(name, ": labels of shape ", TensorText(labels), " do not fit an input of shape ",
                                       TensorText(value)));
  }
  labels = aligned.expand(value.sizes()).contiguous();
  if (labels.numel() > 0 && labels.min().item<int64_t>() < -1) {
    throw InvalidArgument(absl::StrCat(name, ": labels count from 0; -1 is for elements without component"));
  }
  return labels;
}

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Returns what `find` gives. Its errors begin with the input's name.
template <typename Find>
at::Tensor Naming(const std::string& name, const Find& find) {
  try {
    return find();
  } catch (const Error& error) {
    throw Error(error.code(), absl::StrCat(name, ": ", error.what()));
  }
}

at::Tensor PrepareBaseline(const std::string& name, const at::Tensor& value, Baseline baseline, bool ids,
                           const NamedTensors& held) {
  if (!baseline.word.empty() && !baseline.tensor.defined()) {
    baseline.tensor = Naming(name, [&] { return BaselineOfWord(baseline.word, value, held); });
  }
  if (!baseline.tensor.defined()) {
    if (ids && (baseline.number != std::floor(baseline.number) || baseline.number < 0)) {
      throw InvalidArgument(absl::StrCat(name, ": the baseline of ids is a token id, not ", baseline.number));
    }
    if (!std::isfinite(baseline.number)) throw InvalidArgument(absl::StrCat(name, ": the baseline is not finite"));
    return at::full_like(value, baseline.number);
  }
  if (!at::is_expandable_to(baseline.tensor.sizes(), value.sizes())) {
    throw InvalidArgument(absl::StrCat(name, ": a baseline of shape ", TensorText(baseline.tensor),
                                       " does not fit an input of shape ", TensorText(value)));
  }
  const at::Tensor own = BaselineLike(name, baseline.tensor, value);
  const at::Tensor spread = own.expand(value.sizes()).clone(at::MemoryFormat::Contiguous);
  // A baseline is finite, but for elements that the value shares.
  if (!ids && !AllFinite(own) &&
      at::isfinite(spread).logical_not().logical_and(at::isfinite(value)).any().item<bool>()) {
    throw InvalidArgument(absl::StrCat(name, ": the baseline holds NaN or infinity"));
  }
  return spread;
}

// "input 0 holds NaN or infinity, first at [0, 3]"; empty where all is finite. `infinite`: where it is not.
std::string DescribeInfinities(const std::string& name, const at::Tensor& infinite) {
  const at::Tensor where = infinite.nonzero();
  if (where.size(0) == 0) return "";
  std::vector<int64_t> at_index;
  for (int64_t d = 0; d < where.size(1); ++d) at_index.push_back(where.select(0, 0).select(0, d).item<int64_t>());
  return absl::StrCat(name, " holds NaN or infinity, first at [", absl::StrJoin(at_index, ", "), "]");
}

// Mask of elements that are not finite.
at::Tensor Infinities(const at::Tensor& value) { return at::isfinite(value).logical_not_(); }

// Mask of elements that differ; NaN is the same as NaN.
at::Tensor Differ(const at::Tensor& a, const at::Tensor& b) {
  return a.eq(b).logical_or(at::isnan(a) & at::isnan(b)).logical_not();
}

// Checks what has to hold of an input whichever way it is split.
void CheckInput(const std::string& name, const Input& input) {
  const at::Tensor& value = input.value;
  if (!input.inside.empty() && !value.defined()) {
    throw InvalidArgument(absl::StrCat(input.inside, " is inside the model, where a split can only start in the ",
                                       "decomposition or attribution of a model that can be run twice"));
  }
  if (!value.defined()) throw InvalidArgument(absl::StrCat(name, " is no tensor"));
  if (value.layout() != at::kStrided) {
    throw InvalidArgument(absl::StrCat(name, " is a sparse tensor; decompositions are dense: give to_dense() of it"));
  }
  if (input.split.kind == Split::Kind::kPlain) {
    if (!input.baseline.given) return;
    throw InvalidArgument(absl::StrCat(name, " is plain and has no baseline; give it a split"));
  }
  if (value.scalar_type() == at::kBool) {
    throw InvalidArgument(absl::StrCat(name, " is boolean: a condition, which has no parts; pass it plain"));
  }
}

// Fills parts, as their own components only, and reference of an input whose components the caller gives.
void PrepareParts(const std::string& name, const Input& input, const NamedTensors& held, PreparedInput& own) {
  const at::Tensor& parts = input.split.parts;
  if (own.ids) throw InvalidArgument(absl::StrCat(name, ": ids have no parts; split them by labels"));
  if (!parts.defined() || parts.dim() != own.value.dim() + 1 || parts.sizes().slice(1) != own.value.sizes() ||
      !Continuous(parts.scalar_type()) || (parts.is_complex() && !own.value.is_complex())) {
    throw InvalidArgument(absl::StrCat(name, ": parts of shape ", parts.defined() ? TensorText(parts) : "None",
                                       " do not fit [components, *input] of an input ", TensorText(own.value)));
  }
  if (!at::isfinite(parts).all().item<bool>()) {
    throw InvalidArgument(absl::StrCat(name, ": the parts hold NaN or infinity"));
  }
  own.parts = parts.detach().to(own.value.options());
  // Given parts leave the rest of the input as its reference, whatever it is.
  own.reference = input.baseline.given ? PrepareBaseline(name, own.value, input.baseline, false, held)
                                       : (own.value - own.parts.sum(0)).contiguous();
  // Elements with a value that is not finite need the same reference and parts of zero.
  const at::Tensor odd = Infinities(own.value);
  const at::Tensor moves = Differ(own.value, own.reference).logical_or(own.parts.ne(0).any(0));
  const std::string what = DescribeInfinities(name, odd.logical_and(moves));
  if (!what.empty()) throw InvalidArgument(absl::StrCat(what, ", where parts are zero and the baseline is the same"));
  const at::Tensor gap = (own.parts.sum(0) + own.reference - own.value).abs();
  const at::Tensor mass = own.parts.abs().sum(0) + own.reference.abs() + own.value.abs();
  if (gap.gt(mass * 1e-5).any().item<bool>()) {
    throw InvalidArgument(absl::StrCat(name, ": its parts and its baseline do not sum to its value"));
  }
}

// Fills labels, counted from `first`, and reference of an input that is split along dimensions or by labels. Returns
// its number of components.
int64_t PrepareLabels(const std::string& name, const Input& input, const NamedTensors& held, int64_t first,
                      PreparedInput& own) {
  const bool along_dims = own.kind == Split::Kind::kDims;
  own.labels_unclear = !along_dims && input.split.labels.defined() && AreUnclear(input.split.labels, own.value.sizes());
  const at::Tensor labels = along_dims ? LabelsAlong(own.value, CheckedDims(name, own.value, input.split.dims))
                                       : SpreadLabels(name, own.value, input.split.labels);
  // A dimension of an empty tensor may still have positions, and each of them is a component of nothing.
  const bool by_size = along_dims || labels.numel() == 0;
  const int64_t numc = by_size ? NumComponents(input) : labels.max().item<int64_t>() + 1;
  own.reference = PrepareBaseline(name, own.value, input.baseline, own.ids, held);
  const bool all_labelled = along_dims || labels.numel() == 0 || labels.min().item<int64_t>() >= 0;
  const bool finite = own.ids || AllFinite(own.value);
  if (all_labelled && finite) {
    own.labels = (labels + first).expand(own.value.sizes()).contiguous();
    return numc;
  }
  own.labels = labels.expand(own.value.sizes()).contiguous();
  // Elements that are NaN or infinite have no parts: they are in the reference too, and what comes of them is judged
  // there.
  at::Tensor outside = own.labels.lt(0);
  if (!finite) {
    const at::Tensor infinite = Infinities(own.value);
    const at::Tensor asked = at::where(outside, own.value, own.reference).contiguous();
    if (Differ(asked, own.value).logical_and(infinite).any().item<bool>()) own.baseline = asked;
    outside = outside.logical_or(infinite);
    own.labels = own.labels.masked_fill(infinite, -1);
  }
  own.reference = at::where(outside, own.value, own.reference).contiguous();
  own.labels = at::where(outside, own.labels, own.labels + first).contiguous();
  return numc;
}

void RequireSplit(const PreparedInputs& prepared) {
  const auto is_split = [](const PreparedInput& input) { return input.kind != Split::Kind::kPlain; };
  const auto has_elements = [&](const PreparedInput& input) { return is_split(input) && input.value.numel() > 0; };
  const auto& inputs = prepared.inputs;
  if (std::none_of(inputs.begin(), inputs.end(), is_split) ||
      (prepared.numc == 0 && std::any_of(inputs.begin(), inputs.end(), has_elements))) {
    throw InvalidArgument("no input is split into components");
  }
}

// Puts given parts where they belong on the common axis. first: of each input, where that is.
void PlaceParts(const std::vector<int64_t>& first, PreparedInputs& prepared) {
  for (size_t k = 0; k < prepared.inputs.size(); ++k) {
    PreparedInput& own = prepared.inputs[k];
    if (!own.parts.defined()) continue;
    at::DimVector sizes(own.parts.sizes());
    sizes[0] = prepared.numc;
    at::Tensor all = at::zeros(sizes, own.parts.options());
    all.narrow(0, first[k], own.parts.size(0)).copy_(own.parts);
    own.parts = all;
  }
}

}  // namespace

Split Split::Plain() { return {}; }
Split Split::AlongDims(std::vector<int64_t> dims) {
  Split split;
  split.kind = Kind::kDims;
  split.dims = std::move(dims);
  return split;
}
Split Split::ByLabels(at::Tensor labels) {
  Split split;
  split.kind = Kind::kLabels;
  split.labels = std::move(labels);
  return split;
}
Split Split::Parts(at::Tensor parts) {
  Split split;
  split.kind = Kind::kParts;
  split.parts = std::move(parts);
  return split;
}

Baseline Baseline::Of(at::Tensor tensor) {
  Baseline baseline;
  baseline.tensor = std::move(tensor);
  baseline.given = true;
  return baseline;
}
Baseline Baseline::Of(double number) {
  Baseline baseline;
  baseline.number = number;
  baseline.given = true;
  return baseline;
}
Baseline Baseline::Token(int64_t id) { return Of(static_cast<double>(id)); }
Baseline Baseline::Named(std::string word) {
  Baseline baseline;
  baseline.word = std::move(word);
  baseline.given = true;
  return baseline;
}

Input Input::Plain(at::Tensor value) {
  Input input;
  input.value = std::move(value);
  return input;
}

Input Input::Inside(std::string selector, Split split, Baseline baseline) {
  Input input;
  input.inside = std::move(selector);
  input.split = std::move(split);
  input.baseline = std::move(baseline);
  return input;
}

Input Input::Of(const Composition& composition) {
  Input input;
  input.value = composition.recovery();
  input.split = Split::Parts(composition.components());
  input.baseline = Baseline::Of(composition.residual());
  return input;
}

std::vector<at::Tensor> ValuesOf(const PreparedInputs& inputs) {
  std::vector<at::Tensor> values;
  for (const PreparedInput& input : inputs.inputs) values.push_back(input.value);
  return values;
}

std::string InputName(const Input& input, size_t position) {
  return input.name.empty() ? absl::StrCat("input ", position) : input.name;
}

std::string DescribeSplit(const Split& split, const std::string& source) {
  const std::string from = source.empty() ? "" : absl::StrCat("=", source);
  switch (split.kind) {
    case Split::Kind::kPlain:
      return "plain";
    case Split::Kind::kDims:
      return absl::StrCat("dim=", absl::StrJoin(split.dims, ","));
    case Split::Kind::kLabels:
      return absl::StrCat("labels", from);
    case Split::Kind::kParts:
      return absl::StrCat("parts", from);
  }
  return "";
}

int64_t NumComponents(const Input& input) {
  switch (input.split.kind) {
    case Split::Kind::kPlain:
      return 0;
    case Split::Kind::kDims: {
      int64_t product = 1;
      for (const int64_t d : input.split.dims) product *= input.value.size(d);
      return product;
    }
    case Split::Kind::kLabels:
      return input.split.labels.numel() == 0 ? 0 : input.split.labels.max().item<int64_t>() + 1;
    case Split::Kind::kParts:
      return input.split.parts.size(0);
  }
  return 0;
}

at::Tensor AlignLabels(at::Tensor labels, at::IntArrayRef sizes) {
  const bool leading = OfLeadingDims(labels, sizes);
  while (labels.dim() < static_cast<int64_t>(sizes.size())) labels = labels.unsqueeze(leading ? -1 : 0);
  return labels;
}

bool AreUnclear(const at::Tensor& labels, at::IntArrayRef sizes) {
  const bool whole = labels.dim() == static_cast<int64_t>(sizes.size());
  if (whole || labels.numel() <= 1 || !OfLeadingDims(labels, sizes)) return false;
  return at::is_expandable_to(labels.sizes(), sizes) &&
         !AlignLabels(labels, sizes).expand(sizes).equal(labels.expand(sizes));
}

at::Tensor BaselineLike(const std::string& name, const at::Tensor& baseline, const at::Tensor& value) {
  const at::ScalarType given = baseline.scalar_type();
  const bool ids = !Continuous(value.scalar_type());
  // Whole numbers are floats, too.
  if ((ids && Continuous(given)) || (at::isComplexType(given) && !value.is_complex())) {
    throw InvalidArgument(absl::StrCat(name, ": a baseline of dtype ", DtypeName(given),
                                       " does not fit an input of dtype ", DtypeName(value.scalar_type())));
  }
  at::Tensor own = baseline.to(value.options());
  if (ids && own.to(at::kLong).ne(baseline.to(own.device(), at::kLong)).any().item<bool>()) {
    throw InvalidArgument(absl::StrCat(name, ": the baseline holds a number that ", DtypeName(value.scalar_type()),
                                       ", the dtype of the input, does not hold"));
  }
  return own;
}

void ReadBaselineFile(Input& input, size_t position) {
  Baseline& baseline = input.baseline;
  if (FileOfBaselineWord(baseline.word).empty() || baseline.tensor.defined()) return;
  // Ids have no such baseline, as Prepare() says.
  if (input.value.defined() && !Continuous(input.value.scalar_type())) return;
  const std::string name = input.inside.empty() ? InputName(input, position) : input.inside;
  baseline.tensor = Naming(name, [&] { return BaselineOfFile(baseline.word); });
}

PreparedInputs Prepare(const std::vector<Input>& inputs, const NamedTensors& held) {
  if (inputs.empty()) throw InvalidArgument("there is no input");
  PreparedInputs prepared;
  std::vector<int64_t> first;  // the first component of each input on the common axis
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Input& input = inputs[k];
    const std::string name = InputName(input, k);
    CheckInput(name, input);
    PreparedInput own;
    own.kind = input.split.kind;
    own.ids = !Continuous(input.value.scalar_type());
    own.value = input.value.detach().clone(at::MemoryFormat::Contiguous);
    first.push_back(input.first_component >= 0 ? input.first_component : prepared.numc);
    if (own.kind == Split::Kind::kPlain) {
      own.reference = own.value;
    } else if (own.kind == Split::Kind::kParts) {
      PrepareParts(name, input, held, own);
      prepared.numc = std::max(prepared.numc, first[k] + own.parts.size(0));
      prepared.baseline_given = true;
    } else {
      prepared.numc = std::max(prepared.numc, first[k] + PrepareLabels(name, input, held, first[k], own));
      prepared.baseline_given = prepared.baseline_given || input.baseline.given;
      if (!input.baseline.given) prepared.assumed.push_back(absl::StrCat(own.ids ? "token 0" : "zero", " for ", name));
    }
    prepared.inputs.push_back(std::move(own));
  }
  RequireSplit(prepared);
  PlaceParts(first, prepared);
  return prepared;
}

bool ReadAsIds(const PreparedInput& input) {
  return input.kind != Split::Kind::kPlain && !input.ids && !input.parts.defined() && input.inside.call < 0;
}

PreparedInputs LabelEveryId(PreparedInputs prepared) {
  int64_t next = prepared.numc;
  for (PreparedInput& input : prepared.inputs) {
    if (!input.ids || input.kind == Split::Kind::kPlain) continue;
    const at::Tensor own = at::arange(next, next + input.value.numel(), input.labels.options());
    input.labels = at::where(input.labels.lt(0), input.labels, own.view(input.labels.sizes())).contiguous();
    next += input.value.numel();
  }
  for (PreparedInput& input : prepared.inputs) {
    if (!input.parts.defined() || next == prepared.numc) continue;
    at::DimVector sizes(input.parts.sizes());
    sizes[0] = next - prepared.numc;
    input.parts = at::cat({input.parts, at::zeros(sizes, input.parts.options())}, 0);
  }
  prepared.numc = next;
  for (PreparedInput& input : prepared.inputs) {
    if (!ReadAsIds(input)) continue;
    const at::Tensor own = at::arange(next, next + input.value.numel(), input.labels.options());
    input.read_labels = at::where(input.labels.lt(0), input.labels, own.view(input.labels.sizes())).contiguous();
    next += input.value.numel();
  }
  return prepared;
}

}  // namespace addend
