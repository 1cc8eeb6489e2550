#include "core/explain/several_baselines.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/explain/examples.h"
#include "core/explain/notes.h"
#include "core/program/tensor_io.h"
#include "core/program/traced_calls.h"

namespace addend {

const char kSeveralBaselinesWords[] = "rows:FILE or nearest:COUNT:FILE";

namespace {

constexpr char kRows[] = "rows:";
constexpr char kNearest[] = "nearest:";

[[noreturn]] void Refuse(const std::string& word, const std::string& why) {
  throw InvalidArgument(absl::StrCat("baselines ", word, ": ", why));
}

struct ParsedWord {
  int64_t count = 0;  // 0: all
  std::string place;
};

ParsedWord ParseWord(const std::string& word) {
  ParsedWord parsed;
  if (absl::StartsWith(word, kRows)) {
    parsed.place = word.substr(sizeof(kRows) - 1);
  } else if (absl::StartsWith(word, kNearest)) {
    const std::string rest = word.substr(sizeof(kNearest) - 1);
    const size_t colon = rest.find(':');
    if (colon == std::string::npos || !absl::SimpleAtoi(rest.substr(0, colon), &parsed.count) || parsed.count < 1) {
      Refuse(word, "how many rows is a whole number from 1 on, as in nearest:10:rows.npy");
    }
    parsed.place = rest.substr(colon + 1);
  } else {
    Refuse(word, absl::StrCat("there is no such word; there are ", kSeveralBaselinesWords));
  }
  return parsed;
}

// The rows of a file that a word names, read once for all examples.
class FileRows {
 public:
  explicit FileRows(const std::string& word) : word_(word) {
    const ParsedWord parsed = ParseWord(word);
    const TensorPlace place = ParseTensorPlace(parsed.place);
    const TensorFile file = ReadTensorFile(place.path);
    rows_ = SelectTensor(file, place, {"baseline", "input"}).second;
    if (rows_.dim() == 0 || rows_.size(0) == 0) Refuse(word, absl::StrCat(place.path, " holds no rows"));
    nearest_ = parsed.count;
    if (nearest_ == 0) return;
    if (nearest_ > rows_.size(0)) {
      Refuse(word, absl::StrCat(place.path, " holds ", rows_.size(0), " rows, which is fewer"));
    }
    if (!Continuous(rows_.scalar_type()) || rows_.is_complex()) {
      Refuse(word, "the distance is one of real floating-point numbers");
    }
    flat_ = rows_.reshape({rows_.size(0), -1}).to(at::kDouble);
    deviation_ = flat_.std(0, /*unbiased=*/flat_.size(0) > 1);
    finite_ = at::isfinite(flat_).all().item<bool>();
  }

  // Those that are baselines of an example.
  at::Tensor Of(const at::Tensor& example) const {
    if (nearest_ == 0) return rows_;
    const at::Tensor own = example.detach().to(at::kCPU, at::kDouble).reshape({-1});
    if (own.size(0) != flat_.size(1)) {
      Refuse(word_, absl::StrCat("rows of shape ", ShapeText(rows_.sizes().slice(1)), " do not fit an input of shape ",
                                 ShapeText(example.sizes())));
    }
    if (!finite_ || !at::isfinite(own).all().item<bool>()) {
      Refuse(word_, "an input or a row is not finite, so that there is no distance");
    }
    return rows_.index_select(0, Nearest(own));
  }

 private:
  // The positions of the rows that are nearest to [elements], float64.
  at::Tensor Nearest(const at::Tensor& example) const {
    const at::Tensor apart = (flat_ - example) / deviation_;
    const at::Tensor counted = at::where(deviation_.gt(0), apart, at::zeros_like(apart));
    const at::Tensor squares = counted.mul(counted).sum(1).contiguous();
    // Sorted by hand: a stable order in every LibTorch.
    std::vector<int64_t> order(static_cast<size_t>(squares.numel()));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    const double* distance = squares.data_ptr<double>();
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return distance[a] < distance[b]; });
    order.resize(static_cast<size_t>(nearest_));
    return at::tensor(order, at::kLong);
  }

  std::string word_;
  at::Tensor rows_;
  int64_t nearest_ = 0;   // how many; 0: all, and then nothing follows
  at::Tensor flat_;       // [rows, elements], float64
  at::Tensor deviation_;  // [elements]
  bool finite_ = true;
};

// The sums over baselines of one target, by Welford's recurrence, which loses nothing to cancellation.
class Running {
 public:
  explicit Running(size_t size) : mean_(size), squares_(size), above_(size), below_(size) {}

  void Add(const std::vector<double>& numbers) {
    ++count_;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const double apart = numbers[i] - mean_[i];
      mean_[i] += apart / static_cast<double>(count_);
      squares_[i] += apart * (numbers[i] - mean_[i]);
      if (numbers[i] > 0) ++above_[i];
      if (numbers[i] < 0) ++below_[i];
    }
  }
  const std::vector<double>& mean() const { return mean_; }
  double StandardError(size_t i) const {
    if (count_ < 2) return std::numeric_limits<double>::quiet_NaN();
    const auto count = static_cast<double>(count_);
    return std::sqrt(squares_[i] / (count - 1) / count);
  }
  double SameSign(size_t i) const {
    const int64_t same = mean_[i] > 0 ? above_[i] : mean_[i] < 0 ? below_[i] : count_ - above_[i] - below_[i];
    return static_cast<double>(same) / static_cast<double>(count_);
  }

 private:
  int64_t count_ = 0;
  std::vector<double> mean_;
  std::vector<double> squares_;
  std::vector<int64_t> above_;
  std::vector<int64_t> below_;
};

// The baselines of one input for each example: [K, *], all of them in `rows[0]` where examples share theirs.
struct BaselineRows {
  std::vector<at::Tensor> rows;

  at::Tensor Of(int64_t example, int64_t baseline, const at::Tensor& value, const std::string& name) const {
    const at::Tensor one = rows[rows.size() == 1 ? 0 : static_cast<size_t>(example)].select(0, baseline);
    if (!at::is_expandable_to(one.sizes(), value.sizes())) {
      throw InvalidArgument(absl::StrCat(name, ": baselines of shape ", ShapeText(one.sizes()),
                                         " do not fit an example of shape ", ShapeText(value.sizes())));
    }
    return BaselineLike(name, one, value).expand(value.sizes());
  }
};

// The baselines of each input; no rows if its own baseline serves. Throws if the numbers of rows differ.
std::vector<BaselineRows> FindRows(const std::vector<Input>& inputs, const std::vector<SeveralBaselines>& several,
                                   bool each_example, int64_t examples, int64_t* count) {
  std::vector<BaselineRows> found(inputs.size());
  std::string first;
  for (size_t k = 0; k < several.size(); ++k) {
    if (!several[k].given()) continue;
    const std::string name = InputName(inputs.at(k), k);
    if (inputs[k].split.kind == Split::Kind::kPlain)
      throw InvalidArgument(absl::StrCat(name, " is plain and has no baselines; give it a split"));
    if (several[k].word.empty()) {
      found[k].rows = {several[k].rows};
    } else if (absl::StartsWith(several[k].word, kNearest) && each_example) {
      const FileRows rows(several[k].word);
      for (int64_t r = 0; r < examples; ++r) found[k].rows.push_back(rows.Of(inputs[k].value.narrow(0, r, 1)));
    } else {
      found[k].rows = {RowsOfWord(several[k].word, inputs[k].value)};
    }
    const at::Tensor& rows = found[k].rows[0];
    if (rows.dim() == 0 || rows.size(0) == 0)
      throw InvalidArgument(absl::StrCat(name, ": there is no baseline in ", TensorText(rows)));
    if (!first.empty() && rows.size(0) != *count) {
      throw InvalidArgument(absl::StrCat(first, " has ", *count, " baselines and ", name, " ", rows.size(0),
                                         "; rows that belong together are equally many"));
    }
    if (first.empty()) first = name;
    *count = rows.size(0);
  }
  if (first.empty()) throw InvalidArgument("no input has several baselines");
  return found;
}

}  // namespace

bool IsSeveralBaselinesWord(const std::string& text) {
  return absl::StartsWith(text, kRows) || absl::StartsWith(text, kNearest);
}

std::string FileOfSeveralBaselinesWord(const std::string& word) { return ParseTensorPlace(ParseWord(word).place).path; }

at::Tensor RowsOfWord(const std::string& word, const at::Tensor& example) { return FileRows(word).Of(example); }

BaselinesAttribution AttributeBaselines(const TracedModel& model, const std::vector<Input>& inputs,
                                        const std::vector<SeveralBaselines>& several, const AttributeOptions& options,
                                        int64_t at_once) {
  const bool each = options.each_example;
  int64_t examples = 1;
  for (const Input& input : inputs) {
    if (each && input.split.kind != Split::Kind::kPlain && input.value.defined() && input.value.dim() > 0) {
      examples = input.value.size(0);
      break;
    }
  }
  int64_t count = 0;
  const std::vector<BaselineRows> rows = FindRows(inputs, several, each, examples, &count);
  // The first baseline tells the explained tensor, its targets and the report.
  std::vector<Input> first = inputs;
  for (size_t k = 0; k < first.size(); ++k) {
    if (rows[k].rows.empty()) continue;
    std::vector<at::Tensor> of_examples;
    for (int64_t r = 0; r < examples; ++r) {
      const at::Tensor value = CutExample(first[k].value, each, r, examples);
      of_examples.push_back(rows[k].Of(r, 0, value, InputName(first[k], k)));
    }
    first[k].baseline = Baseline::Of(examples == 1 ? of_examples[0] : at::cat(of_examples));
  }
  const PreparedInputs prepared = Prepare(first, model.model()->NamedTensors());
  Examples runner(model, first, prepared, options, "with a later baseline", at_once);
  runner.Align(count);
  BaselinesAttribution result;
  result.mean = runner.First(first);
  const size_t targets = result.mean.targets.size();  // or examples
  const auto numc = static_cast<size_t>(prepared.numc);
  std::vector<Running> sums(targets, Running(numc + 2));  // contributions, reference, leftover
  std::vector<double> tolerances(targets, 0.0);
  result.spread.resize(targets);
  std::vector<std::vector<at::Tensor>> elements(targets, std::vector<at::Tensor>(inputs.size()));
  const auto example = [&](int64_t i) {
    const int64_t t = i / count;
    const int64_t r = each ? t % examples : 0;  // with every_target each target has all examples
    Example own;
    own.target = result.mean.targets[t].target;
    if (each && examples > 1) own.target = OfFirstExample(own.target);
    for (size_t k = 0; k < prepared.inputs.size(); ++k) {
      const PreparedInput& whole = prepared.inputs[k];
      const at::Tensor value = CutExample(whole.value, each, r, examples);
      const at::Tensor labels = CutExample(whole.labels, each, r, examples);
      at::Tensor baseline;
      if (!rows[k].rows.empty()) {
        const at::Tensor asked = rows[k].Of(r, i % count, value, InputName(first[k], k));
        // Elements that belong to no component take part with their value.
        baseline = at::where(labels.lt(0), value, asked).contiguous();
      } else if (whole.kind != Split::Kind::kPlain) {
        baseline = CutExample(whole.reference, each, r, examples);
      }
      own.values.push_back(value);
      own.baselines.push_back(baseline);
      own.labels.push_back(labels);
    }
    return own;
  };
  const auto take = [&](int64_t i, ExampleAttribution one) {
    const auto t = static_cast<size_t>(i / count);
    std::vector<double> numbers = std::move(one.numbers.contributions);
    numbers.push_back(one.numbers.reference);
    numbers.push_back(one.numbers.leftover);
    sums[t].Add(numbers);
    tolerances[t] += one.numbers.tolerance / static_cast<double>(count);
    result.spread[t].worst_leftover = std::max(result.spread[t].worst_leftover, std::abs(one.numbers.leftover));
    for (size_t k = 0; k < one.elements.size(); ++k) {
      if (!one.elements[k].defined()) continue;
      const at::Tensor own = one.elements[k].to(at::kDouble);
      elements[t][k] = elements[t][k].defined() ? elements[t][k].add_(own) : own.clone();
    }
  };
  runner.Run(static_cast<int64_t>(targets) * count, example, take);
  runner.Finish();
  for (size_t t = 0; t < targets; ++t) {
    Contributions& numbers = result.mean.targets[t];
    const std::vector<double>& mean = sums[t].mean();
    numbers.contributions.assign(mean.begin(), mean.begin() + static_cast<int64_t>(numc));
    numbers.reference = mean[numc];
    numbers.leftover = mean[numc + 1];
    numbers.tolerance = tolerances[t];
    AddUp(numbers);
    BaselineSpread& spread = result.spread[t];
    spread.count = count;
    for (size_t c = 0; c < numc; ++c) {
      spread.standard_errors.push_back(sums[t].StandardError(c));
      spread.same_sign.push_back(sums[t].SameSign(c));
    }
    spread.reference_standard_error = sums[t].StandardError(numc);
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    at::Tensor& whole = result.mean.inputs[k];
    if (!whole.defined()) continue;
    std::vector<at::Tensor> parts;
    for (size_t t = 0; t < targets; ++t) parts.push_back(elements[t][k] / static_cast<double>(count));
    whole = (each ? at::cat(parts) : at::stack(parts)).reshape(whole.sizes()).to(whole.scalar_type());
  }
  Report& report = result.mean.report;
  report.notes.push_back(absl::StrCat(WordsOf(NoteKind::kSeveralBaselines).begins, count,
                                      " baselines, and add up as those of each do; the report is that of the first"));
  runner.AddTo(report);
  return result;
}

}  // namespace addend
