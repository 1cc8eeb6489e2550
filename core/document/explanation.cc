#include "core/document/explanation.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/error.h"
#include "core/base/read_json.h"
#include "core/base/readable.h"
#include "core/document/page_template.h"
#include "core/explain/outcome.h"
#include "core/explain/target_numbers.h"

namespace addend {
namespace {

using Quantity = Target::Quantity;

constexpr char kFormat[] = "addend.explanation";
constexpr int64_t kVersion = 1;
// The probe for what a final softmax reads.
constexpr char kLogits[] = "logits";

// The numbers along the last dimension that an element is one of.
std::vector<double> RowOf(const at::Tensor& value, const std::vector<int64_t>& index) {
  at::Tensor row = value.detach();
  for (size_t d = 0; d + 1 < index.size(); ++d) row = row.select(0, index[d]);
  row = row.to(at::kCPU, at::kDouble).contiguous();
  return {row.data_ptr<double>(), row.data_ptr<double>() + row.numel()};
}

double Softmax(const std::vector<double>& row, int64_t index) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const double x : row) sum += std::exp(x - largest);
  return std::exp(row[index] - largest) / sum;
}

std::string Bracketed(const std::vector<int64_t>& index) { return absl::StrCat("[", absl::StrJoin(index, ", "), "]"); }

// Facts about a tensor from which its numbers are named.
struct Named {
  at::IntArrayRef sizes;
  std::string tensor;
  const std::vector<std::string>* classes;  // along its last dimension; null: none are known

  std::string Class(int64_t i) const { return classes == nullptr ? absl::StrCat(i) : (*classes)[i]; }
};

constexpr char kContinuation[] = "log-probability of the continuation ";

const char* NounOf(Quantity quantity) {
  switch (quantity) {
    case Quantity::kProbability:
      return "probability";
    case Quantity::kLogProbability:
      return "log-probability";
    case Quantity::kEntropy:
      return "entropy";
    default:
      return "";
  }
}

std::string Joined(const std::vector<Target>& parts, const std::function<std::string(const Target&)>& name) {
  return absl::StrJoin(parts, " + ", [&](std::string* out, const Target& part) { out->append(name(part)); });
}

// " at position 5" of a row of [1, positions, classes]; "" where there is only one row.
std::string RowIn(const std::vector<int64_t>& index, const Named& named) {
  const size_t rows = named.sizes.size() - 1;
  bool only = true;
  for (size_t d = 0; d + 1 < rows; ++d) only = only && named.sizes[d] == 1;
  if (!only) return absl::StrCat(" at ", Bracketed({index.begin(), index.begin() + static_cast<int64_t>(rows)}));
  return rows == 0 || named.sizes[rows - 1] == 1 ? "" : absl::StrCat(" at position ", index[rows - 1]);
}

std::string NameIn(const Target& target, const Named& named) {
  const std::string elsewhere = named.tensor == "output" ? "" : absl::StrCat(" of ", named.tensor);
  switch (target.quantity) {
    case Quantity::kElement: {
      if (named.classes == nullptr) {
        return absl::StrCat(named.tensor, target.index.empty() ? "" : " ",
                            target.index.empty() ? "" : DescribeElements(target));
      }
      // A single class is that of a number without dimensions, too.
      const auto name = [&](const std::vector<int64_t>& own) { return named.Class(own.empty() ? 0 : own.back()); };
      return absl::StrCat(name(target.index), target.subtract.empty() ? "" : " minus ",
                          target.subtract.empty() ? "" : name(target.subtract));
    }
    case Quantity::kContinuation: {
      const auto name = [&](std::string* out, int64_t id) { out->append(named.Class(id)); };
      const bool example = named.sizes.size() > 2 && named.sizes[0] > 1;
      return absl::StrCat(kContinuation, absl::StrJoin(target.ids, ", ", name), elsewhere,
                          example ? absl::StrCat(" in example ", target.index[0]) : "");
    }
    case Quantity::kSum:
      return Joined(target.parts, [&](const Target& part) { return NameIn(part, named); });
    case Quantity::kRegion:
      return absl::StrCat("sum of ", named.tensor, " ", DescribeElements(target));
    case Quantity::kEntropy:
      return absl::StrCat(NounOf(target.quantity), elsewhere, RowIn(target.index, named));
    default:
      return absl::StrCat(NounOf(target.quantity), " of ", named.Class(target.index.back()), elsewhere,
                          RowIn(target.index, named));
  }
}

const ExplainedRun& RunOf(const Explanation& explanation) {
  static const auto& none = *new ExplainedRun();
  return explanation.run == nullptr ? none : *explanation.run;
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json ComponentsJson(const Explanation& explanation) {
  const std::vector<Component>& known = RunOf(explanation).components.list;
  const size_t numc = explanation.targets.at(0).numbers.contributions.size();
  Json records = Json::array();
  for (size_t i = 0; i < numc; ++i) {
    const Component component = known.size() == numc ? known[i] : Component();
    records.push_back({{"name", NameOf(explanation, static_cast<int64_t>(i))},
                       {"value", OrNull(component.value)},
                       {"baseline", OrNull(component.baseline)}});
  }
  return records;
}

Json ImageJson(const std::optional<Image>& image) {
  if (!image) return nullptr;
  return {{"height", image->height}, {"width", image->width},         {"channels", image->channels},
          {"values", image->values}, {"value_min", image->value_min}, {"value_max", image->value_max}};
}

Json SpreadJson(const BaselineSpread& spread) {
  return {{"count", spread.count},
          {"standard_errors", spread.standard_errors},
          {"same_sign", spread.same_sign},
          {"reference_standard_error", spread.reference_standard_error},
          {"worst_leftover", spread.worst_leftover}};
}

Json TargetJson(const ExplainedTarget& target) {
  const Contributions& numbers = target.numbers;
  const Target& place = numbers.target;
  Json record = {{"name", target.name},
                 {"target", TargetText(place)},
                 {"index", place.index},
                 {"subtract", place.subtract.empty() ? Json(nullptr) : Json(place.subtract)},
                 {"value", numbers.value},
                 {"probability", OrNull(target.probability)},
                 {"reference", numbers.reference},
                 {"leftover", numbers.leftover},
                 {"recovery", numbers.recovery},
                 {"recovery_error", target.recovery_error()},
                 {"tolerance", numbers.tolerance},
                 {"conditioning", numbers.conditioning},
                 {"mass", numbers.mass},
                 {"contributions", numbers.contributions}};
  if (target.spread) record["baselines"] = SpreadJson(*target.spread);
  return record;
}

// A number of a document; JSON has no other than finite ones.
double NumberIn(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

std::optional<double> NumberOrNone(const Json& record, const char* key) {
  const auto found = record.find(key);
  return found == record.end() || !found->is_number() ? std::nullopt : std::optional<double>(found->get<double>());
}

ExplainedTarget ReadTarget(const Json& record) {
  ExplainedTarget target;
  target.name = record.at("name").get<std::string>();
  Contributions& numbers = target.numbers;
  // Documents had no text of the target at first.
  if (record.contains("target")) numbers.target = ParseTarget(record["target"].get<std::string>());
  numbers.target.top1 = false;
  numbers.target.index = record.at("index").get<std::vector<int64_t>>();
  numbers.target.subtract.clear();
  if (!record.at("subtract").is_null()) numbers.target.subtract = record["subtract"].get<std::vector<int64_t>>();
  for (const Json& part : record.at("contributions")) numbers.contributions.push_back(NumberIn(part));
  numbers.value = NumberIn(record.at("value"));
  numbers.reference = NumberIn(record.at("reference"));
  numbers.leftover = NumberIn(record.at("leftover"));
  numbers.recovery = NumberIn(record.at("recovery"));
  numbers.tolerance = NumberIn(record.at("tolerance"));
  numbers.conditioning = NumberIn(record.at("conditioning"));
  numbers.mass = NumberIn(record.at("mass"));
  if (record.contains("baselines")) {
    const Json& baselines = record["baselines"];
    BaselineSpread spread;
    spread.count = baselines.at("count").get<int64_t>();
    for (const Json& one : baselines.at("standard_errors")) spread.standard_errors.push_back(NumberIn(one));
    for (const Json& one : baselines.at("same_sign")) spread.same_sign.push_back(NumberIn(one));
    spread.reference_standard_error = NumberIn(baselines.at("reference_standard_error"));
    spread.worst_leftover = NumberIn(baselines.at("worst_leftover"));
    if (spread.standard_errors.size() != numbers.contributions.size() ||
        spread.same_sign.size() != numbers.contributions.size()) {
      throw InvalidArgument("json is no explanation as Addend writes it");
    }
    target.spread = std::move(spread);
  }
  return target;
}

}  // namespace

bool HasClasses(const at::Tensor& value, const std::string& at, const std::vector<std::string>& classes) {
  const bool scores = at.empty() || at == kLogits || absl::StartsWith(at, "output");
  const int64_t last = value.dim() > 0 ? value.size(-1) : 1;
  return scores && last == static_cast<int64_t>(classes.size());
}

std::string NameTarget(const at::Tensor& value, const std::string& at, const std::vector<std::string>& classes,
                       const Target& target) {
  const bool named = HasClasses(value, at, classes);
  return NameIn(target, {value.sizes(), at.empty() ? "output" : at, named ? &classes : nullptr});
}

ExplainedTarget DescribeTarget(const at::Tensor& value, const std::string& at, const std::vector<std::string>& classes,
                               Contributions numbers) {
  ExplainedTarget target;
  const bool named = HasClasses(value, at, classes);
  target.numbers = std::move(numbers);
  const Target& place = target.numbers.target;
  const bool element = place.quantity == Quantity::kElement;
  target.named = named && element;
  target.name = NameTarget(value, at, classes, place);
  if (element) {
    const bool distribution = (named || at == kLogits) && value.dim() > 0 && value.size(-1) > 1;
    if (distribution && place.subtract.empty()) {
      const std::vector<double> row = RowOf(value, place.index);
      target.probability =
          AreProbabilities(value, place.index) ? target.numbers.value : Softmax(row, place.index.back());
    }
  } else if (place.quantity == Quantity::kProbability) {
    target.probability = target.numbers.value;
  } else if (place.quantity != Quantity::kEntropy && place.quantity != Quantity::kSum) {
    target.probability = std::exp(target.numbers.value);
  }
  return target;
}

std::string DescribeElements(const Target& target) {
  const std::string place = Bracketed(target.index);
  switch (target.quantity) {
    case Quantity::kElement:
      return absl::StrCat(place, target.subtract.empty() ? "" : " minus ",
                          target.subtract.empty() ? "" : Bracketed(target.subtract));
    case Quantity::kContinuation:
      return absl::StrCat(kContinuation, absl::StrJoin(target.ids, ", "));
    case Quantity::kSum:
      return Joined(target.parts, [](const Target& part) { return DescribeElements(part); });
    case Quantity::kRegion:
      return absl::StrCat("[", absl::StrReplaceAll(TargetText(target), {{",", ", "}}), "]");
    default:
      return absl::StrCat(NounOf(target.quantity), target.index.empty() ? "" : " of ",
                          target.index.empty() ? "" : place);
  }
}

std::vector<at::Tensor> InputsOf(const ExplainedRun& run) {
  std::vector<at::Tensor> inputs;
  for (const ExplainedInput& input : run.inputs) inputs.push_back(input.input.value);
  return inputs;
}

std::string NameOf(const Explanation& explanation, int64_t component) {
  const std::vector<Component>& known = RunOf(explanation).components.list;
  return known.size() == explanation.targets.at(0).numbers.contributions.size() ? known[component].name
                                                                                : ComponentName(component);
}

std::string DescribeCancelling(const Contributions& numbers) {
  const double cancelling = Cancelling(numbers);
  if (cancelling < kIllConditioned) return "";
  return absl::StrCat("without their signs these parts come to ",
                      std::isfinite(cancelling) ? Number(cancelling, 3) : "infinitely many",
                      " times the difference that they sum to, so that no single one means much.");
}

Explanation Explain(const Composition& composition, const Target& target, const std::string& at,
                    std::shared_ptr<const ExplainedRun> run) {
  Explanation explanation;
  explanation.at = at;
  explanation.run = std::move(run);
  const at::Tensor value = composition.value();
  const Report* report = explanation.run == nullptr ? nullptr : &explanation.run->report;
  explanation.targets.push_back(
      DescribeTarget(value, at, RunOf(explanation).classes, Contribute(value, composition, target, report)));
  const Contributions& numbers = explanation.targets[0].numbers;
  explanation.notes = NotesOfRecovery(at, {numbers}, report);
  for (std::string& note : NotesOfTarget(value, numbers.target, InputsOf(RunOf(explanation)))) {
    explanation.notes.push_back(std::move(note));
  }
  return explanation;
}

Explanation Explain(const Attribution& attribution, bool asked, const std::string& at,
                    std::shared_ptr<const ExplainedRun> run) {
  Explanation explanation;
  explanation.at = at;
  explanation.run = std::move(run);
  for (const Contributions& target : attribution.targets) {
    explanation.targets.push_back(DescribeTarget(attribution.value, at, RunOf(explanation).classes, target));
  }
  if (asked) explanation.operators = attribution.operators;
  return explanation;
}

Json ExplanationJson(const Explanation& explanation, const Writer& writer) {
  if (!explanation.stored.empty()) return Json::parse(explanation.stored);
  const ExplainedRun& run = RunOf(explanation);
  Json record = {{"format", kFormat}, {"version", kVersion}};
  record.update(OriginJson(run, writer));
  record["kind"] = run.components.kind;
  record["noun"] = run.components.noun;
  record["at"] = OrNull(explanation.at);
  record["components"] = ComponentsJson(explanation);
  record["image"] = ImageJson(ImageOf(run.inputs, run.components));
  record["text"] = OrNull(run.components.text);
  record["targets"] = Json::array();
  for (const ExplainedTarget& target : explanation.targets) record["targets"].push_back(TargetJson(target));
  if (explanation.operators) record["operators"] = RelevanceJson(*explanation.operators);
  record["report"] = CountsJson(run.report, explanation.notes);
  return record;
}

std::string ExplanationHtml(const Explanation& explanation, const Writer& writer) {
  return FillPage(kPageTemplate, ExplanationJson(explanation, writer));
}

Explanation ReadExplanation(const std::string& json) {
  const auto refused = [](const std::string& why) {
    return InvalidArgument(absl::StrCat("json is no explanation as Addend writes it", why));
  };
  Explanation explanation;
  auto run = std::make_shared<ExplainedRun>();
  try {
    const Json record = ReadJson(json, "json");
    // Documents had neither key at first.
    if (record.contains("format") && record["format"] != kFormat) throw refused("");
    if (record.contains("version") && record["version"].get<int64_t>() > kVersion) {
      throw refused(
          absl::StrCat(": its version is ", record["version"].get<int64_t>(), ", and this library reads ", kVersion));
    }
    const Json& targets = record.at("targets");
    if (!targets.is_array() || targets.empty()) throw refused("; it has no target");
    for (const Json& target : targets) explanation.targets.push_back(ReadTarget(target));
    if (!record.at("at").is_null()) explanation.at = record["at"].get<std::string>();
    for (const Json& component : record.at("components")) {
      run->components.list.push_back({component.at("name").get<std::string>(), NumberOrNone(component, "value"),
                                      NumberOrNone(component, "baseline")});
    }
  } catch (const Json::exception&) {
    throw refused("");
  }
  for (const ExplainedTarget& target : explanation.targets) {
    if (run->components.list.size() != target.numbers.contributions.size()) throw refused("");
  }
  explanation.run = std::move(run);
  explanation.stored = json;
  return explanation;
}

}  // namespace addend
