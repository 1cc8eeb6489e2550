#include "core/explain/examples.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/explain/notes.h"
#include "core/run/reference_cache.h"

namespace addend {
namespace {

constexpr int64_t kMostAtOnce = 512;
constexpr int64_t kMostElements = int64_t{1} << 22;  // of all inputs of a batch

bool CountsExamples(const at::Tensor& tensor) { return tensor.dim() > 0 && tensor.size(0) == 1; }

// How far two attributions of one example may be apart by rounding, batches being summed in another order.
double Allowance(const Contributions& a, const Contributions& b, bool exact) {
  return 16 * (a.tolerance + b.tolerance) + (exact ? 1e-9 : 1e-4) * std::max(a.mass, b.mass);
}

bool Apart(double a, double b, double allowance) {
  // Numbers that are not finite in both do not differ.
  if (!std::isfinite(a) && !std::isfinite(b)) return false;
  return !(std::abs(a - b) <= allowance);
}

bool IsFinite(const Contributions& own) {
  const auto finite = [](double number) { return std::isfinite(number); };
  return finite(own.value) && finite(own.reference) &&
         std::all_of(own.contributions.begin(), own.contributions.end(), finite);
}

// Whether one answer of Report::reference_is_model_on_baseline says less good things than another.
bool Worse(const std::string& answer, const std::string& than) {
  const auto rank = [](const std::string& own) { return own == "no" ? 2 : own == "yes" ? 0 : 1; };
  return rank(answer) > rank(than);
}

bool ReadsNumbers(const Report& report) {
  return std::any_of(report.notes.begin(), report.notes.end(), [](const std::string& note) {
    const NoteKind kind = KindOf(note);
    return kind == NoteKind::kReadsNumbers || kind == NoteKind::kReadsNumbersSame;
  });
}

}  // namespace

void RequireNoInfluence(const Contributions& among, const Contributions& alone, bool exact) {
  const double allowance = Allowance(among, alone, exact);
  bool apart = Apart(among.value, alone.value, allowance) || Apart(among.reference, alone.reference, allowance);
  for (size_t c = 0; c < among.contributions.size(); ++c) {
    apart = apart || Apart(among.contributions[c], alone.contributions[c], allowance);
  }
  if (!apart) return;
  if (!IsFinite(among) || !IsFinite(alone)) {
    throw FailedPrecondition(
        "an example among others has other contributions than alone, because the model gives numbers that are not "
        "finite on the way from the baseline; choose a baseline on which it is finite (of logarithms and divisors: not "
        "zero), or ask for one example at a time");
  }
  throw FailedPrecondition(
      "the examples of a batch influence each other, as in batch normalization in training mode or where a number is "
      "taken of all of them (a maximum over the batch), so that they have no contributions of their own; put the model "
      "into evaluation mode, or ask for one example at a time");
}

at::Tensor CutExample(const at::Tensor& whole, bool each_example, int64_t example, int64_t examples) {
  const bool counts = each_example && whole.defined() && whole.dim() > 0 && whole.size(0) == examples;
  return counts ? whole.narrow(0, example, 1) : whole;
}

Target OfFirstExample(Target target) {
  if (!target.index.empty()) target.index[0] = 0;
  if (!target.subtract.empty()) target.subtract[0] = 0;
  for (Target& part : target.parts) part = OfFirstExample(part);
  return target;
}

Target WithoutExample(Target target) {
  if (!target.index.empty()) target.index.erase(target.index.begin());
  if (!target.subtract.empty()) target.subtract.erase(target.subtract.begin());
  for (Target& part : target.parts) part = WithoutExample(part);
  return target;
}

Examples::Examples(const TracedModel& model, const std::vector<Input>& inputs, const PreparedInputs& prepared,
                   const AttributeOptions& options, std::string one, int64_t at_once)
    : model_(model),
      numc_(prepared.numc),
      options_(options),
      one_(std::move(one)),
      values_(ValuesOf(prepared)),
      before_(model.model()->KeepState()),
      drawn_before_(values_) {
  if (options.operators) {
    throw InvalidArgument("what passes through operators is not known for several examples; ask for one of them");
  }
  int64_t elements = 1;  // of one example
  for (size_t k = 0; k < inputs.size(); ++k) {
    const PreparedInput& own = prepared.inputs[k];
    names_.push_back(InputName(inputs[k], k));
    if (!inputs[k].inside.empty()) {
      throw InvalidArgument(absl::StrCat(inputs[k].inside,
                                         " starts inside the model, where examples have no baselines of ",
                                         "their own; split an input"));
    }
    if (own.kind == Split::Kind::kPlain) continue;
    if (!own.labels.defined()) {
      throw InvalidArgument(absl::StrCat(names_[k],
                                         " is given as explicit parts, which belong to one baseline; split it ",
                                         "along dimensions or by labels"));
    }
    elements += own.value.numel() / (options.each_example ? std::max<int64_t>(own.value.size(0), 1) : 1);
    exact_ = exact_ && (own.ids || own.value.scalar_type() == at::kDouble);
  }
  const int64_t most = std::clamp<int64_t>(kMostElements / elements, 1, kMostAtOnce);
  at_once_ = at_once > 0 ? at_once : most;
}

Examples::~Examples() {
  drawn_before_.Leave();
  try {
    Finish();
  } catch (const std::exception&) {  // the error that ended the call counts
  }
}

void Examples::Finish() {
  if (drawn_after_) drawn_after_->Restore();
  if (const std::shared_ptr<ModelState> after = std::move(after_)) after->Restore();
}

void Examples::Begin() {
  before_->Restore();
  drawn_before_.Restore();
}

void Examples::TakeNotes(const Report& report) {
  for (const std::string& note : WarningsAmong(report.notes)) warnings_.Add(note, taken_, 1);
  ++taken_;
  if (Worse(report.reference_is_model_on_baseline, on_baseline_)) {
    on_baseline_ = report.reference_is_model_on_baseline;
    reason_ = report.reference_reason;
  }
}

void Examples::AddTo(Report& report) const {
  NoteCounts known;
  for (const std::string& note : report.notes) known.Add(note, 0, 1);
  report.notes.insert(report.notes.end(), notes_.begin(), notes_.end());
  for (const CountedNote& own : warnings_.list()) {
    // Notes on spoilt numbers are given for all runs, even if the report has one already.
    if (known.Has(own.note) && !SpoilsNumbers(own.note)) continue;
    const std::string more = own.count == 1   ? ""
                             : own.count == 2 ? ", and one more like it"
                                              : absl::StrCat(", and ", own.count - 1, " more like it");
    report.notes.push_back(absl::StrCat(own.note, " (in a run ", one_, more, ")"));
  }
  if (Worse(on_baseline_, report.reference_is_model_on_baseline)) {
    report.reference_is_model_on_baseline = on_baseline_;
    report.reference_reason = absl::StrCat("in a run ", one_, ": ", reason_);
  }
}

Attribution Examples::First(const std::vector<Input>& inputs) {
  AttributeOptions once = options_;
  once.references = nullptr;
  Attribution found = Attribute(model_, inputs, once);
  after_ = model_.model()->KeepState();
  drawn_after_.emplace(values_);
  return found;
}

void Examples::Align(int64_t count) {
  if (count > 0 && at_once_ > count) at_once_ -= at_once_ % count;
}

AttributeOptions Examples::OptionsFor(std::vector<Target> targets, bool each_example) const {
  AttributeOptions options = options_;
  options.targets = std::move(targets);
  options.each_example = each_example;
  options.every_target = false;
  options.operators = false;
  options.verify_reference = false;
  return options;
}

std::vector<Input> Examples::InputsOf(const std::vector<Example>& examples) const {
  std::vector<Input> inputs;
  for (size_t k = 0; k < names_.size(); ++k) {
    std::vector<at::Tensor> values;
    std::vector<at::Tensor> baselines;
    std::vector<at::Tensor> labels;
    for (const Example& example : examples) {
      values.push_back(example.values[k]);
      baselines.push_back(example.baselines[k]);
      labels.push_back(example.labels[k]);
    }
    const bool one = examples.size() == 1;
    Input own;
    own.name = names_[k];
    if (!labels[0].defined()) {
      own.value = one || !CountsExamples(values[0]) ? values[0] : at::cat(values);
    } else {
      own.value = one ? values[0] : at::cat(values);
      own.split = Split::ByLabels(one ? labels[0] : at::cat(labels));
      own.baseline = Baseline::Of(one ? baselines[0] : at::cat(baselines));
      own.first_component = 0;
    }
    inputs.push_back(std::move(own));
  }
  return inputs;
}

ExampleAttribution Examples::Alone(const Example& example, Report& report) {
  AttributeOptions options = OptionsFor({example.target}, false);
  options.references = nullptr;  // those of batches are kept
  Begin();
  Attribution found = Attribute(model_, InputsOf({example}), options);
  report = std::move(found.report);
  ExampleAttribution result;
  result.numbers = std::move(found.targets.at(0));
  result.numbers.contributions.resize(static_cast<size_t>(numc_), 0.0);
  for (const at::Tensor& elements : found.inputs) {
    result.elements.push_back(elements.defined() ? elements.select(0, 0) : elements);
  }
  return result;
}

std::vector<ExampleAttribution> Examples::Together(const std::vector<Example>& examples, Report& report) {
  std::vector<Target> targets;
  for (const Example& example : examples) targets.push_back(WithoutExample(example.target));
  Begin();
  Attribution found = Attribute(model_, InputsOf(examples), OptionsFor(std::move(targets), true), influence_);
  report = std::move(found.report);
  std::vector<ExampleAttribution> results(examples.size());
  for (size_t i = 0; i < examples.size(); ++i) {
    results[i].numbers = std::move(found.targets.at(i));
    results[i].numbers.target = examples[i].target;
    results[i].numbers.contributions.resize(static_cast<size_t>(numc_), 0.0);
    for (const at::Tensor& elements : found.inputs) {
      results[i].elements.push_back(elements.defined() ? elements.narrow(0, static_cast<int64_t>(i), 1) : elements);
    }
  }
  return results;
}

bool Examples::CanBatch(const Example& example) const {
  if (example.target.index.empty() && example.target.parts.empty()) return false;  // the tensor has no dimensions
  for (size_t k = 0; k < names_.size(); ++k) {
    if (example.labels[k].defined() && !CountsExamples(example.values[k])) return false;
  }
  return true;
}

void Examples::Run(int64_t count, const std::function<Example(int64_t)>& example,
                   const std::function<void(int64_t, ExampleAttribution)>& take) {
  if (options_.references == nullptr && options_.memory_bytes == 0 && count > at_once_ && at_once_ > 1) {
    options_.references = std::make_shared<ReferenceCache>();
  }
  int64_t done = 0;
  while (done < count && at_once_ > 1) {
    std::vector<Example> batch;
    for (int64_t i = done; i < std::min(count, done + at_once_); ++i) batch.push_back(example(i));
    if (batch.size() == 1 || !CanBatch(batch[0])) break;
    std::vector<ExampleAttribution> results;
    // Whatever is wrong with the request shows here, too.
    Report report;
    const ExampleAttribution first = done == 0 ? Alone(batch.front(), report) : ExampleAttribution();
    if (done == 0 && ReadsNumbers(report)) {
      notes_.push_back(NoteOf(NoteKind::kReadsNumbers,
                              ", in a batch those of all examples together, and may branch on them; examples were "
                              "attributed one by one"));
      break;
    }
    try {
      results = Together(batch, report);
    } catch (const Error& error) {
      if (done > 0 || error.code() != absl::StatusCode::kInvalidArgument) throw;
      notes_.push_back(
          absl::StrCat(WordsOf(NoteKind::kOneByOne).begins, error.what(), "); they were attributed one by one"));
      break;
    }
    if (done == 0) {
      RequireNoInfluence(results.front().numbers, first.numbers, exact_);
      Report of_last;
      RequireNoInfluence(results.back().numbers, Alone(batch.back(), of_last).numbers, exact_);
    }
    TakeNotes(report);
    for (size_t i = 0; i < results.size(); ++i) take(done + static_cast<int64_t>(i), std::move(results[i]));
    done += static_cast<int64_t>(batch.size());
  }
  for (; done < count; ++done) {
    Report report;
    take(done, Alone(example(done), report));
    TakeNotes(report);
  }
}

}  // namespace addend
