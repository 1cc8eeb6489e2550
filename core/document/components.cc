#include "core/document/components.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"

namespace addend {
namespace {

// The components that an input has by itself, on the axis that all inputs share.
struct Range {
  int64_t first = 0;
  int64_t count = 0;
};

std::vector<Range> RangesOf(const std::vector<ExplainedInput>& inputs) {
  std::vector<Range> ranges;
  int64_t next = 0;
  for (const ExplainedInput& own : inputs) {
    const int64_t first = own.input.first_component >= 0 ? own.input.first_component : next;
    ranges.push_back({first, NumComponents(own.input)});
    if (own.input.split.kind != Split::Kind::kPlain) next = std::max(next, first + ranges.back().count);
  }
  return ranges;
}

bool IsPlain(const Input& input) { return input.split.kind == Split::Kind::kPlain; }
bool IsIds(const Input& input) {
  return input.inside.empty() && !at::isFloatingType(input.value.scalar_type()) && !input.value.is_complex();
}

// The dimensions of a split, counted from the front.
std::vector<int64_t> DimsOf(const Input& input) {
  std::vector<int64_t> dims = input.split.dims;
  for (int64_t& d : dims) d += d < 0 ? input.value.dim() : 0;
  return dims;
}

// One sample, [channels, height, width] or [1, channels, height, width], that is split into its pixels.
bool IsImage(const Input& input, int64_t numc) {
  const int64_t rank = input.value.dim();
  if (input.split.kind != Split::Kind::kDims || rank < 3 || rank > 4 || (rank == 4 && input.value.size(0) != 1)) {
    return false;
  }
  return at::isFloatingType(input.value.scalar_type()) && DimsOf(input) == std::vector<int64_t>{rank - 2, rank - 1} &&
         numc > 1;
}

std::string KindOf(const ExplainedInput& own, int64_t numc) {
  const Input& input = own.input;
  const std::string& stated = own.stated_kind;
  if (!input.inside.empty()) return "list";
  if (IsIds(input)) {
    const bool named = !own.names.empty() || !own.own_names.empty();
    return named && (stated.empty() || stated == "text") ? "text" : "list";
  }
  // Three dimensions may be anything, unless somebody says so.
  if (IsImage(input, numc) && (stated == "image" || (stated.empty() && input.value.dim() == 4))) return "image";
  const bool columns =
      input.split.kind == Split::Kind::kDims && input.value.dim() == 2 && DimsOf(input) == std::vector<int64_t>{1};
  return columns && (stated.empty() || stated == "table") ? "table" : "list";
}

std::string NounOf(const std::string& kind, const Split& split) {
  if (kind == "text") return split.kind == Split::Kind::kLabels ? "word" : "token";
  return kind == "table" ? "feature" : kind == "image" ? "pixel" : "component";
}

// The name of an input's component by its position along the dimensions of the split, the last of them fastest; empty
// where it was split otherwise.
std::string PositionName(const Input& input, const std::string& kind, int64_t component) {
  if (input.split.kind != Split::Kind::kDims) return "";
  const std::vector<int64_t> dims = DimsOf(input);
  std::vector<int64_t> index(dims.size());
  for (size_t k = dims.size(); k-- > 0;) {
    index[k] = component % input.value.size(dims[k]);
    component /= input.value.size(dims[k]);
  }
  if (kind == "image") return absl::StrCat("row ", index[0], ", column ", index[1]);
  if (index.size() != 1) return absl::StrCat("[", absl::StrJoin(index, ", "), "]");
  return absl::StrCat(kind == "table" ? "column " : "position ", index[0]);
}

// Words with the spaces that follow them in the sentence; as they are where they are not its words.
std::vector<std::string> WithSpaces(const std::vector<std::string>& words, const std::string& sentence) {
  std::vector<std::string> spaced;
  size_t at = 0;
  for (const std::string& word : words) {
    if (sentence.compare(at, word.size(), word) != 0) return words;
    size_t end = at + word.size();
    while (end < sentence.size() && sentence[end] == ' ') ++end;
    spaced.push_back(sentence.substr(at, end - at));
    at = end;
  }
  return at == sentence.size() ? spaced : words;
}

// Height and width last; the mean over everything before them.
at::Tensor GreyOf(const at::Tensor& picture) {
  const at::Tensor planes = picture.detach().to(at::kCPU, at::kDouble);
  return planes.reshape({-1, planes.size(-2), planes.size(-1)}).mean(0).contiguous();
}

}  // namespace

ExplainedInput DescribeInput(const Input& input) {
  ExplainedInput own;
  own.input = input;
  own.name = input.name;
  own.split = DescribeSplit(input.split);
  own.baseline_given = input.baseline.given;
  if (IsPlain(input)) return own;
  if (!input.baseline.word.empty()) {
    own.baseline = input.baseline.word;
  } else if (input.baseline.tensor.defined()) {
    own.baseline = "tensor";
  } else if (input.split.kind == Split::Kind::kParts && !input.baseline.given) {
    own.baseline = "what the parts leave over";
  } else {
    own.baseline = absl::StrCat(IsIds(input) ? "token " : "", input.baseline.number);
  }
  return own;
}

std::string ComponentName(int64_t component) { return absl::StrCat("component ", component); }

Components NameComponents(const std::vector<ExplainedInput>& inputs, int64_t numc) {
  Components result;
  result.list.resize(numc);
  const auto split = std::count_if(inputs.begin(), inputs.end(), [](const auto& own) { return !IsPlain(own.input); });
  const std::vector<Range> ranges = RangesOf(inputs);
  std::vector<std::string> kinds;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const ExplainedInput& own = inputs[k];
    const auto [first, count] = ranges[k];
    if (static_cast<int64_t>(own.names.size()) > count) {
      throw InvalidArgument(absl::StrCat(own.name, " has ", count, " components, but ", own.names.size(), " names"));
    }
    if (IsPlain(own.input)) continue;
    std::string kind = KindOf(own, count);
    // An input is shown as an image only if all components are its pixels.
    if (kind == "image" && count != numc) kind = "list";
    const bool words = kind == "text" && !own.sentence.empty();
    const std::vector<std::string> names = words ? WithSpaces(own.names, own.sentence) : own.names;
    const std::vector<std::string> own_names = words ? WithSpaces(own.own_names, own.sentence) : own.own_names;
    const std::string prefix = split > 1 ? absl::StrCat(own.name, ": ") : "";
    for (int64_t i = 0; i < count && first + i < numc; ++i) {
      std::string& name = result.list[first + i].name;
      if (!name.empty()) continue;
      if (i < static_cast<int64_t>(names.size())) {
        name = names[i];
      } else if (i < static_cast<int64_t>(own_names.size())) {
        name = prefix + own_names[i];
      } else if (const std::string position = PositionName(own.input, kind, i); !position.empty()) {
        name = prefix + position;
      }
    }
    kinds.push_back(kind);
    result.noun = NounOf(kind, own.input.split);
    if (split == 1) result.text = own.sentence.empty() && kind == "text" ? absl::StrJoin(own_names, "") : own.sentence;
  }
  // Several inputs make one list, unless all are tables.
  const bool same = std::all_of(kinds.begin(), kinds.end(), [&](const std::string& kind) { return kind == kinds[0]; });
  if (!kinds.empty() && same && (split == 1 || kinds[0] == "table")) result.kind = kinds[0];
  if (result.kind == "list") result.noun = "component";
  for (int64_t i = 0; i < numc; ++i) {
    if (result.list[i].name.empty()) result.list[i].name = ComponentName(i);
  }
  return result;
}

void AddValues(const std::vector<ExplainedInput>& inputs, const PreparedInputs& prepared, Components& components) {
  const size_t numc = components.list.size();
  std::vector<int64_t> count(numc);  // elements of the component
  const std::vector<Range> ranges = RangesOf(inputs);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Input& input = inputs[k].input;
    const PreparedInput& own = prepared.inputs[k];
    if (IsPlain(input)) continue;
    const bool numbers = own.labels.defined() && input.inside.empty() && at::isFloatingType(input.value.scalar_type());
    if (!numbers) {
      for (int64_t i = 0; i < ranges[k].count; ++i) count[ranges[k].first + i] += 2;
      continue;
    }
    const at::Tensor values = own.value.to(at::kCPU, at::kDouble).contiguous();
    const at::Tensor baselines = own.reference.to(at::kCPU, at::kDouble).contiguous();
    const at::Tensor labels = own.labels.to(at::kCPU).contiguous();
    for (int64_t i = 0; i < values.numel(); ++i) {
      const int64_t label = labels.data_ptr<int64_t>()[i];
      if (label < 0) continue;
      ++count[label];
      components.list[label].value = values.data_ptr<double>()[i];
      components.list[label].baseline = baselines.data_ptr<double>()[i];
    }
  }
  for (size_t c = 0; c < numc; ++c) {
    if (count[c] != 1) components.list[c].value = components.list[c].baseline = std::nullopt;
  }
}

std::optional<Image> ImageOf(const std::vector<ExplainedInput>& inputs, const Components& components) {
  if (components.kind != "image") return std::nullopt;
  const Input& input =
      std::find_if(inputs.begin(), inputs.end(), [](const auto& own) { return !IsPlain(own.input); })->input;
  const at::Tensor grey = GreyOf(input.value);
  Image image;
  image.height = grey.size(0);
  image.width = grey.size(1);
  image.channels = input.value.size(-3);
  image.values.assign(grey.data_ptr<double>(), grey.data_ptr<double>() + grey.numel());
  std::vector<double> levels = image.values;
  const Baseline& baseline = input.baseline;
  if (baseline.tensor.defined()) {
    const at::Tensor whole = GreyOf(baseline.tensor.to(input.value.device()).expand(input.value.sizes()));
    levels.insert(levels.end(), whole.data_ptr<double>(), whole.data_ptr<double>() + whole.numel());
  } else if (baseline.word.empty()) {
    levels.push_back(baseline.number);
  }
  image.value_min = std::numeric_limits<double>::infinity();
  image.value_max = -image.value_min;
  for (const double level : levels) {
    if (!std::isfinite(level)) continue;
    image.value_min = std::min(image.value_min, level);
    image.value_max = std::max(image.value_max, level);
  }
  return image;
}

}  // namespace addend
