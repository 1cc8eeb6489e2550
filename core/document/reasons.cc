#include "core/document/reasons.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/read_json.h"
#include "core/document/page_template.h"
#include "core/explain/notes.h"

namespace addend {
namespace {

using Placeholder = TextTemplate::Placeholder;

constexpr char kFormat[] = "addend.reasons";
constexpr int64_t kVersion = 1;
constexpr size_t kMostShown = 8;  // numbers or names of one value

// The numbers behind components: elements of inputs with the component that each belongs to.
class Elements {
 public:
  // Elements of an input, or those that a document tells: `labels` has a component for each element, or -1.
  struct Part {
    std::vector<double> values;
    std::vector<double> baselines;
    std::vector<int64_t> labels;
    size_t each = 0;  // elements of one decision
  };

  explicit Elements(size_t numc) : known_(numc, false), unknown_(numc, false) {}

  void Add(Part part) { parts_.push_back(std::move(part)); }
  void SetKnown(int64_t component) { known_.at(component) = true; }
  void SetUnknown(int64_t component) { unknown_.at(component) = true; }
  // Whether all elements of a component are numbers that are there to be shown. An element that is NaN belongs to no
  // component, and what is left of its component gives 0, which is no reason.
  bool Knows(int64_t component) const { return known_[component] && !unknown_[component]; }
  const std::vector<Part>& parts() const { return parts_; }

 private:
  std::vector<Part> parts_;
  std::vector<bool> known_;    // an input has it
  std::vector<bool> unknown_;  // an input has it whose elements are no numbers to be shown
};

std::vector<double> Doubles(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kCPU, at::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

// The elements of a run's inputs. examples: how many decisions share each input between them; 0: each has all of it.
Elements ElementsOf(const std::vector<ExplainedInput>& inputs, size_t numc, size_t examples) {
  Elements elements(numc);
  std::vector<Input> asked;
  for (const ExplainedInput& own : inputs) asked.push_back(own.input);
  const PreparedInputs prepared = Prepare(asked);
  int64_t next = 0;
  for (size_t k = 0; k < asked.size(); ++k) {
    if (asked[k].split.kind == Split::Kind::kPlain) continue;
    const int64_t first = asked[k].first_component >= 0 ? asked[k].first_component : next;
    const int64_t count = NumComponents(asked[k]);
    next = std::max(next, first + count);
    const PreparedInput& own = prepared.inputs[k];
    if (!own.labels.defined() || !asked[k].inside.empty() || own.value.is_complex()) {
      for (int64_t c = first; c < first + count; ++c) elements.SetUnknown(c);
      continue;
    }
    for (int64_t c = first; c < first + count; ++c) elements.SetKnown(c);
    Elements::Part part;
    part.values = Doubles(own.value);
    part.baselines = Doubles(own.reference);
    const at::Tensor labels = own.labels.to(at::kCPU).contiguous();
    part.labels.assign(labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + labels.numel());
    part.each = examples == 0 ? part.values.size() : part.values.size() / examples;
    elements.Add(std::move(part));
  }
  return elements;
}

// Elements that the document of an explanation tells of its components. A component without a value that gives nothing
// to any target may be one whose element is NaN.
Elements ElementsOf(const std::vector<Component>& components, const std::vector<ExplainedTarget>& targets) {
  Elements elements(components.size());
  Elements::Part part;
  for (size_t c = 0; c < components.size(); ++c) {
    const bool known = components[c].value.has_value() && components[c].baseline.has_value();
    part.values.push_back(components[c].value.value_or(0));
    part.baselines.push_back(components[c].baseline.value_or(0));
    part.labels.push_back(known ? static_cast<int64_t>(c) : -1);
    const bool gives = std::any_of(targets.begin(), targets.end(),
                                   [&](const ExplainedTarget& target) { return target.numbers.contributions[c] != 0; });
    if (known || !gives) elements.SetKnown(static_cast<int64_t>(c));
  }
  part.each = components.size();
  elements.Add(std::move(part));
  return elements;
}

// The numbers of one concept in one decision.
struct ConceptNumbers {
  std::vector<double> values;
  std::vector<double> baselines;
  std::vector<int64_t> components;
};

std::string Listed(std::vector<std::string> texts) {
  if (texts.size() > kMostShown) {
    texts.resize(kMostShown);
    texts.push_back("...");
  }
  return absl::StrJoin(texts, ", ");
}

std::string WordFor(const Concept& own, const std::string& text) {
  const auto word = own.words.find(text);
  return word == own.words.end() ? text : word->second;
}

std::string ShownNumbers(const Concept* described, const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < numbers.size() && i <= kMostShown; ++i) {
    if (described == nullptr) {
      texts.push_back(ShownNumber(numbers[i], std::nullopt));
    } else {
      const double shown = described->offset + described->scale * numbers[i];
      texts.push_back(WordFor(*described, ShownNumber(shown, described->decimals)));
    }
  }
  return Listed(std::move(texts));
}

// The names of those that are 1; where others than 0 and 1 are among them, as in a mean row, names with numbers.
std::string ShownBlock(const Concept& own, const std::vector<double>& numbers, const std::vector<int64_t>& components,
                       const std::vector<std::string>& names) {
  const bool hot = std::all_of(numbers.begin(), numbers.end(), [](double x) { return x == 0 || x == 1; });
  std::vector<std::string> texts;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 0) continue;
    const std::string name = WordFor(own, names[components[i]]);
    texts.push_back(hot ? name : absl::StrCat(name, " ", ShownNumber(numbers[i], own.decimals)));
  }
  return texts.empty() ? "none" : Listed(std::move(texts));
}

// Finds reasons: brings the numbers of a run together with the description of concepts.
class Finder {
 public:
  Finder(const Concepts& concepts, std::vector<std::string> names, const Elements& elements)
      : concepts_(concepts), names_(std::move(names)), elements_(elements), bound_(BindConcepts(concepts, names_)) {
    concept_of_.resize(names_.size());
    knows_.resize(bound_.size());
    for (size_t k = 0; k < bound_.size(); ++k) {
      knows_[k] = true;
      for (const int64_t component : bound_[k].components) {
        concept_of_[component] = k;
        knows_[k] = knows_[k] && elements_.Knows(component);
      }
      const bool asks = TextOf(k).Asks(Placeholder::kValue) || TextOf(k).Asks(Placeholder::kBaseline);
      if (asks && !knows_[k]) {
        throw InvalidArgument(absl::StrCat("the text of ", bound_[k].name, " asks for {value} or {baseline}, but ",
                                           names_[bound_[k].components[0]],
                                           " is no number of an input that is known here; write a text without them"));
      }
      if (bound_[k].described == nullptr && TextOf(k).Asks(Placeholder::kUnit)) {
        throw InvalidArgument(absl::StrCat("the text asks for {unit}, but ", names_[bound_[k].components[0]],
                                           " is in no concept and has none; describe it as a concept of its own"));
      }
    }
  }

  void Describe(Reasons& reasons) const {
    reasons.adverse_is_negative = concepts_.adverse_is_negative;
    reasons.side = concepts_.side;
    reasons.at_most = concepts_.at_most;
    reasons.threshold = concepts_.threshold;
    reasons.threshold_share = concepts_.threshold_share;
    for (const BoundConcept& own : bound_) {
      Reasons::NamedConcept named;
      named.name = own.name;
      if (own.described != nullptr) {
        named.code = own.described->code;
        named.unit = own.described->unit;
      }
      for (const int64_t component : own.components) named.components.push_back(names_[component]);
      reasons.concepts.push_back(std::move(named));
    }
  }

  // number: of the decision among those that the elements are divided between.
  Decision Decide(const Contributions& numbers, std::string name, size_t number) const {
    Decision decision;
    decision.name = std::move(name);
    decision.target = TargetText(numbers.target);
    decision.value = numbers.value;
    decision.reference = numbers.reference;
    decision.leftover = numbers.leftover;
    decision.recovery_error = numbers.recovery - numbers.value;
    decision.conditioning = numbers.conditioning;
    std::vector<double> sums(bound_.size(), 0.0);
    bool finite = std::isfinite(numbers.value) && std::isfinite(numbers.reference) && std::isfinite(numbers.leftover);
    for (size_t c = 0; c < names_.size(); ++c) {
      sums[concept_of_[c]] += numbers.contributions[c];
      finite = finite && std::isfinite(numbers.contributions[c]);
    }
    if (!finite) {
      decision.outcome = Decision::Outcome::kNotFinite;
      decision.notes.push_back("numbers of this decision are not finite, so that no reason can be told");
      return decision;
    }
    decision.threshold =
        std::max(concepts_.threshold, concepts_.threshold_share * std::abs(numbers.value - numbers.reference));
    std::vector<size_t> passing;
    for (size_t k = 0; k < sums.size(); ++k) {
      const bool asked = concepts_.negative() ? sums[k] < 0 : sums[k] > 0;
      if (asked && std::abs(sums[k]) >= decision.threshold) passing.push_back(k);
    }
    decision.passing = static_cast<int64_t>(passing.size());
    const size_t given = std::min<size_t>(passing.size(), concepts_.at_most);
    std::partial_sort(passing.begin(), passing.begin() + static_cast<int64_t>(given), passing.end(),
                      [&](size_t a, size_t b) {
                        const double left = std::abs(sums[a]);
                        const double right = std::abs(sums[b]);
                        return left > right || (left == right && a < b);
                      });
    passing.resize(given);
    AddReasons(passing, sums, number, decision);
    for (const size_t k : passing) sums[k] = 0;
    for (const double sum : sums) decision.others += sum;
    AddNotes(Cancelling(numbers), decision);
    return decision;
  }

 private:
  const TextTemplate& TextOf(size_t k) const {
    const Concept* described = bound_[k].described;
    return described != nullptr && described->text ? *described->text : concepts_.text;
  }

  void AddReasons(const std::vector<size_t>& given, const std::vector<double>& sums, size_t number,
                  Decision& decision) const {
    if (given.empty()) return;
    // Place of each concept in `given`; -1 if it is not there.
    std::vector<int64_t> places(bound_.size(), -1);
    for (size_t i = 0; i < given.size(); ++i) places[given[i]] = static_cast<int64_t>(i);
    std::vector<ConceptNumbers> found(given.size());
    for (const Elements::Part& part : elements_.parts()) {
      const size_t first = part.each * (part.each == part.values.size() ? 0 : number);
      for (size_t i = first; i < first + part.each; ++i) {
        const int64_t label = part.labels[i];
        const int64_t place = label < 0 ? -1 : places[concept_of_[label]];
        if (place < 0) continue;
        found[place].values.push_back(part.values[i]);
        found[place].baselines.push_back(part.baselines[i]);
        found[place].components.push_back(label);
      }
    }
    for (size_t i = 0; i < given.size(); ++i) {
      const size_t k = given[i];
      Reason reason;
      reason.concept_number = k;
      reason.contribution = sums[k];
      // There is none where all elements are NaN, which belong to no component.
      if (knows_[k] && !found[i].values.empty()) {
        const Concept* described = bound_[k].described;
        const bool block = described != nullptr && described->one_hot;
        reason.value = block ? ShownBlock(*described, found[i].values, found[i].components, names_)
                             : ShownNumbers(described, found[i].values);
        reason.baseline = block ? ShownBlock(*described, found[i].baselines, found[i].components, names_)
                                : ShownNumbers(described, found[i].baselines);
      }
      reason.text = Filled(k, reason);
      decision.reasons.push_back(std::move(reason));
    }
  }

  std::string Filled(size_t k, const Reason& reason) const {
    std::string text;
    for (const TextTemplate::Piece& piece : TextOf(k).pieces()) {
      switch (piece.placeholder) {
        case Placeholder::kNone:
          text += piece.text;
          break;
        case Placeholder::kConcept:
          text += bound_[k].name;
          break;
        case Placeholder::kValue:
          text += reason.value.value_or("not known");
          break;
        case Placeholder::kBaseline:
          text += reason.baseline.value_or("not known");
          break;
        case Placeholder::kUnit:
          text += *bound_[k].described->unit;
          break;
        case Placeholder::kContribution:
          text += absl::StrFormat("%+.4g", reason.contribution);
          break;
      }
    }
    return text;
  }

  // `cancelling`: of the numbers that it was made of.
  void AddNotes(double cancelling, Decision& decision) const {
    const char* side = concepts_.side == Concepts::Side::kAdverse ? "adverse" : "favourable";
    if (decision.reasons.empty()) {
      decision.outcome = Decision::Outcome::kNoPrincipalReason;
      decision.notes.push_back(absl::StrCat(
          "no principal reason: no ", side, " contribution of a concept reaches ",
          decision.threshold > 0 ? absl::StrFormat("%.4g", decision.threshold) : std::string("more than 0")));
    } else {
      const double smallest = std::abs(decision.reasons.back().contribution);
      const auto compare = [&](const char* what, double number) {
        if (std::abs(number) <= smallest) return;
        decision.notes.push_back(absl::StrFormat("the %s (%.4g) is larger than the smallest reason given (%.4g)", what,
                                                 number, decision.reasons.back().contribution));
      };
      compare("leftover", decision.leftover);
      compare("recovery error", decision.recovery_error);
    }
    if (cancelling >= kIllConditioned) {
      decision.notes.push_back(
          absl::StrFormat("contributions cancel: their magnitudes are %.4g times the move that they sum to, so that "
                          "the order of reasons says little",
                          cancelling));
    }
  }

  const Concepts& concepts_;
  const std::vector<std::string> names_;
  const Elements& elements_;
  const std::vector<BoundConcept> bound_;
  std::vector<size_t> concept_of_;
  std::vector<bool> knows_;  // by concept: the numbers of all its elements
};

std::vector<std::string> NamesOf(const std::vector<Component>& components, size_t numc) {
  std::vector<std::string> names;
  for (size_t c = 0; c < numc; ++c) {
    names.push_back(components.size() == numc ? components[c].name : ComponentName(static_cast<int64_t>(c)));
  }
  return names;
}

const char* OutcomeWord(Decision::Outcome outcome) {
  switch (outcome) {
    case Decision::Outcome::kReasons:
      return "reasons";
    case Decision::Outcome::kNoPrincipalReason:
      return "no_principal_reason";
    default:
      return "not_finite";
  }
}

template <typename T>
Json NullUnless(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json DecisionJson(const Reasons& reasons, const Decision& decision) {
  Json list = Json::array();
  for (const Reason& reason : decision.reasons) {
    const Reasons::NamedConcept& own = reasons.concepts[reason.concept_number];
    list.push_back({{"concept", own.name},
                    {"code", own.code},
                    {"contribution", reason.contribution},
                    {"value", NullUnless(reason.value)},
                    {"unit", NullUnless(own.unit)},
                    {"baseline", NullUnless(reason.baseline)},
                    {"text", reason.text}});
  }
  return {{"outcome", OutcomeWord(decision.outcome)},
          {"name", decision.name},
          {"target", decision.target},
          {"value", decision.value},
          {"reference", decision.reference},
          {"reasons", std::move(list)},
          {"others", decision.others},
          {"leftover", decision.leftover},
          {"recovery_error", decision.recovery_error},
          {"conditioning", decision.conditioning},
          {"threshold", decision.threshold},
          {"passing", decision.passing},
          {"notes", decision.notes}};
}

}  // namespace

std::string ShownNumber(double number, std::optional<int> decimals) {
  if (decimals) {
    const std::string text = absl::StrFormat("%.*f", *decimals, number);
    // A minus sign is left out if all digits that are shown are zero.
    return text[0] == '-' && text.find_first_of("123456789") == std::string::npos ? text.substr(1) : text;
  }
  if (number == 0) return "0";
  // From a million on six digits are whole numbers, which people read more easily than powers of ten.
  constexpr double kMostWhole = 1e15;
  const bool whole = number == std::floor(number) || std::abs(number) >= 1e6;
  return whole && std::abs(number) < kMostWhole ? absl::StrFormat("%.0f", number) : absl::StrFormat("%.6g", number);
}

Reasons FindReasons(const Attribution& attribution, bool each_example, const std::string& at, const ExplainedRun& run,
                    const Concepts& concepts, const Writer& writer) {
  const size_t decisions = attribution.targets.size();
  const size_t numc = static_cast<size_t>(attribution.numc);
  // If each example has several targets, all examples of the first target come first.
  const size_t examples = each_example ? static_cast<size_t>(attribution.value.size(0)) : 0;
  const Elements elements = ElementsOf(run.inputs, numc, examples);
  const Finder finder(concepts, NamesOf(run.components.list, numc), elements);
  Reasons reasons;
  finder.Describe(reasons);
  reasons.at = at;
  reasons.each_example = each_example;
  reasons.origin = OriginJson(run, writer);
  reasons.notes = run.report.notes;
  reasons.reference_is_model_on_baseline = run.report.reference_is_model_on_baseline;
  reasons.decisions.reserve(decisions);
  for (size_t i = 0; i < decisions; ++i) {
    const Contributions& numbers = attribution.targets[i];
    reasons.decisions.push_back(finder.Decide(numbers, NameTarget(attribution.value, at, run.classes, numbers.target),
                                              examples == 0 ? 0 : i % examples));
  }
  return reasons;
}

Reasons FindReasons(const Explanation& explanation, const Concepts& concepts, const Writer& writer) {
  const bool stored = !explanation.stored.empty();
  const size_t numc = explanation.targets.at(0).numbers.contributions.size();
  std::vector<std::string> names;
  for (size_t c = 0; c < numc; ++c) names.push_back(NameOf(explanation, static_cast<int64_t>(c)));
  Elements elements(numc);
  // Without a run of these components nothing is known but the numbers.
  if (explanation.run != nullptr && explanation.run->components.list.size() == numc) {
    const ExplainedRun& run = *explanation.run;
    elements = stored ? ElementsOf(run.components.list, explanation.targets)
                      : ElementsOf(run.inputs, numc, explanation.example ? explanation.example->count : 0);
  }
  const Finder finder(concepts, std::move(names), elements);
  Reasons reasons;
  finder.Describe(reasons);
  reasons.at = explanation.at;
  if (stored) {
    const Json record = Json::parse(explanation.stored);
    reasons.origin = OriginJson(ExplainedRun(), writer);  // what the first documents lacked
    for (const char* key : {"addend", "libtorch", "model", "preset", "policy", "inputs"}) {
      if (record.contains(key)) reasons.origin[key] = record[key];
    }
    const auto report = record.find("report");
    if (report != record.end() && report->contains("notes")) {
      reasons.notes = (*report)["notes"].get<std::vector<std::string>>();
      reasons.reference_is_model_on_baseline = report->value("reference_is_model_on_baseline", "unknown");
    }
  } else {
    reasons.origin = OriginJson(explanation.run == nullptr ? ExplainedRun() : *explanation.run, writer);
    if (explanation.run != nullptr) {
      reasons.notes = explanation.run->report.notes;
      reasons.reference_is_model_on_baseline = explanation.run->report.reference_is_model_on_baseline;
    }
    reasons.notes.insert(reasons.notes.end(), explanation.notes.begin(), explanation.notes.end());
  }
  for (const ExplainedTarget& target : explanation.targets) {
    reasons.decisions.push_back(
        finder.Decide(target.numbers, target.name, explanation.example ? explanation.example->number : 0));
  }
  return reasons;
}

Json ReasonsJson(const Reasons& reasons) {
  Json record = {{"format", kFormat}, {"version", kVersion}};
  record.update(reasons.origin);
  record["at"] = OrNull(reasons.at);
  record["each_example"] = reasons.each_example;
  record["adverse"] = reasons.adverse_is_negative ? "negative" : "positive";
  record["side"] = reasons.side == Concepts::Side::kAdverse ? "adverse" : "favourable";
  record["at_most"] = reasons.at_most;
  record["threshold"] = reasons.threshold;
  record["threshold_share"] = reasons.threshold_share;
  record["concepts"] = Json::array();
  for (const Reasons::NamedConcept& own : reasons.concepts) {
    record["concepts"].push_back(
        {{"name", own.name}, {"code", own.code}, {"unit", NullUnless(own.unit)}, {"components", own.components}});
  }
  Json decisions = Json::array();
  for (const Decision& decision : reasons.decisions) decisions.push_back(DecisionJson(reasons, decision));
  record["decisions"] = std::move(decisions);
  record["notes"] = reasons.notes;
  AddWarnings(record);
  record["reference_is_model_on_baseline"] = reasons.reference_is_model_on_baseline;
  return record;
}

std::string ReasonsHtml(const std::string& json) {
  const Json record = ReadJson(json, "json");
  if (!record.is_object() || record.value("format", Json()) != kFormat || !record.contains("decisions")) {
    throw InvalidArgument("json is no document of reasons as Addend writes it");
  }
  return FillPage(kReasonsPageTemplate, record);
}

}  // namespace addend
