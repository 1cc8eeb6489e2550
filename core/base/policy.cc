#include "core/base/policy.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"

namespace addend {
namespace {

template <typename E>
using Names = std::vector<std::pair<std::string, E>>;

const Names<Preset>& PresetNames() {
  static const auto& names =
      *new Names<Preset>{{"auto", Preset::kAuto}, {"faithful", Preset::kFaithful}, {"fast", Preset::kFast}};
  return names;
}
const Names<uint32_t>& FreezeNames() {
  static const auto& names = *new Names<uint32_t>{{"none", kFreezeNothing},
                                                  {"attention", kFreezeAttention},
                                                  {"normalizer", kFreezeNormalizer},
                                                  {"denominator", kFreezeDenominator},
                                                  {"gate", kFreezeGate}};
  return names;
}
const Names<Conditions>& ConditionsNames() {
  static const auto& names = *new Names<Conditions>{{"value", Conditions::kValue}, {"baseline", Conditions::kBaseline}};
  return names;
}
const Names<Nonlinearity>& NonlinearityNames() {
  static const auto& names = *new Names<Nonlinearity>{{"path", Nonlinearity::kPath},
                                                      {"abs_affine", Nonlinearity::kAbsAffine},
                                                      {"hybrid_affine", Nonlinearity::kHybridAffine},
                                                      {"scaling", Nonlinearity::kScaling},
                                                      {"gradient", Nonlinearity::kGradient},
                                                      {"none", Nonlinearity::kNone}};
  return names;
}
const Names<Bias>& BiasNames() {
  static const auto& names =
      *new Names<Bias>{{"residual", Bias::kResidual}, {"abs", Bias::kAbs},
                       {"hybrid", Bias::kHybrid},     {"hybrid_threshold", Bias::kHybridThreshold},
                       {"sign", Bias::kSign},         {"sign_threshold", Bias::kSignThreshold},
                       {"norm", Bias::kNorm}};
  return names;
}
const Names<Anchor>& AnchorNames() {
  static const auto& names = *new Names<Anchor>{{"baseline", Anchor::kBaseline}, {"residual", Anchor::kResidual}};
  return names;
}
const Names<MissingRule>& MissingRuleNames() {
  static const auto& names = *new Names<MissingRule>{
      {"error", MissingRule::kError}, {"path", MissingRule::kPath}, {"absorb", MissingRule::kAbsorb}};
  return names;
}
const Names<OnFailure>& OnFailureNames() {
  static const auto& names = *new Names<OnFailure>{{"error", OnFailure::kError},
                                                   {"warn", OnFailure::kWarn},
                                                   {"absorb", OnFailure::kAbsorb},
                                                   {"ignore", OnFailure::kIgnore}};
  return names;
}
const Names<Check>& CheckNames() {
  static const auto& names =
      *new Names<Check>{{"every_op", Check::kEveryOp}, {"outputs", Check::kOutputs}, {"off", Check::kOff}};
  return names;
}

template <typename E>
std::string Choices(const Names<E>& names) {
  return absl::StrJoin(names, ", ", [](std::string* out, const auto& entry) { out->append(entry.first); });
}

template <typename E>
E Parse(const std::string& key, const std::string& value, const Names<E>& names) {
  for (const auto& entry : names) {
    if (entry.first == value) return entry.second;
  }
  throw InvalidArgument(absl::StrCat("policy ", key, "=", value, " is unknown; choose one of ", Choices(names)));
}

template <typename E>
std::string Name(E value, const Names<E>& names) {
  for (const auto& entry : names) {
    if (entry.second == value) return entry.first;
  }
  return "?";
}

uint32_t ParseKinds(const std::string& key, const std::string& value) {
  uint32_t bits = 0;
  for (const auto piece : absl::StrSplit(value, absl::ByAnyChar("+,"))) {
    bits |= Parse(key, std::string(piece.data(), piece.size()), FreezeNames());
  }
  return bits;
}

std::string KindsText(uint32_t kinds) {
  if (kinds == kFreezeNothing) return "none";
  std::vector<std::string> parts;
  for (const auto& entry : FreezeNames()) {
    if (entry.second != 0 && (kinds & entry.second)) parts.push_back(entry.first);
  }
  return absl::StrJoin(parts, "+");
}

// The shortest text that reads back as the same number.
std::string NumberText(double number) {
  for (const int digits : {6, 15, 16}) {
    const std::string text = absl::StrFormat("%.*g", digits, number);
    double read = 0;
    if (absl::SimpleAtod(text, &read) && read == number) return text;
  }
  return absl::StrFormat("%.17g", number);
}

// "hybrid(0.15)": a choice and its parameter.
struct Choice {
  std::string name;
  std::optional<double> parameter;
};

Choice ParseChoice(const std::string& key, const std::string& value) {
  const size_t open = value.find('(');
  if (open == std::string::npos) return {value, std::nullopt};
  double number = 0;
  if (value.back() != ')' || !absl::SimpleAtod(value.substr(open + 1, value.size() - open - 2), &number)) {
    throw InvalidArgument(absl::StrCat("policy ", key, "=", value, " is not of the form choice(number)"));
  }
  return {value.substr(0, open), number};
}

std::string ChoiceText(const std::string& name, const std::optional<double>& parameter) {
  return parameter ? absl::StrCat(name, "(", NumberText(*parameter), ")") : name;
}

void SetNonlinearity(Policy& policy, const std::string& value) {
  const Choice choice = ParseChoice("nonlinearity", value);
  const Nonlinearity rule = Parse("nonlinearity", choice.name, NonlinearityNames());
  if (choice.parameter && rule != Nonlinearity::kHybridAffine) {
    throw InvalidArgument(absl::StrCat("policy nonlinearity=", value, ": only hybrid_affine takes a number"));
  }
  if (choice.parameter && !(*choice.parameter >= 0 && std::isfinite(*choice.parameter))) {
    throw InvalidArgument(absl::StrCat("policy nonlinearity=", value, ": the number is a threshold, 0 or more"));
  }
  policy.nonlinearity = rule;
  policy.nonlinearity_threshold = choice.parameter;
}

void SetBias(Policy& policy, const std::string& value) {
  const Choice choice = ParseChoice("bias", value);
  const Bias rule = Parse("bias", choice.name, BiasNames());
  if (choice.parameter && (rule == Bias::kResidual || rule == Bias::kAbs)) {
    throw InvalidArgument(absl::StrCat("policy bias=", value, ": ", choice.name, " takes no number"));
  }
  const double number = choice.parameter.value_or(1);
  if (rule == Bias::kNorm ? !(number > 0) : !(number >= 0 && std::isfinite(number))) {
    throw InvalidArgument(
        absl::StrCat("policy bias=", value, ": the number is ",
                     rule == Bias::kNorm ? "the order of a norm, above 0" : "a threshold, 0 or more"));
  }
  policy.bias = rule;
  policy.bias_parameter = choice.parameter;
}

void SetSegments(Policy& policy, const std::string& value) {
  constexpr int64_t kMost = 100000;
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < 1 || number > kMost) {
    throw InvalidArgument(absl::StrCat("policy segments=", value, " is not a whole number from 1 to ", kMost));
  }
  policy.segments = number;
}

// One field of the policy as text: how it is read and how it is written.
struct Field {
  std::string key;
  std::function<void(Policy&, const std::string&)> set;
  std::function<std::string(const Policy&)> get;
};

const std::vector<Field>& Fields() {
  static const auto& fields = *new std::vector<Field>{
      {"preset", [](Policy& p, const std::string& v) { p.preset = Parse("preset", v, PresetNames()); },
       [](const Policy& p) { return Name(p.preset, PresetNames()); }},
      {"segments", SetSegments, [](const Policy& p) { return absl::StrCat(p.segments); }},
      {"nonlinearity", SetNonlinearity,
       [](const Policy& p) { return ChoiceText(Name(p.nonlinearity, NonlinearityNames()), p.nonlinearity_threshold); }},
      {"bias", SetBias, [](const Policy& p) { return ChoiceText(Name(p.bias, BiasNames()), p.bias_parameter); }},
      {"freeze",
       [](Policy& p, const std::string& v) {
         p.freeze = v == "preset" ? std::nullopt : std::optional<uint32_t>(ParseKinds("freeze", v));
       },
       [](const Policy& p) { return p.freeze ? KindsText(*p.freeze) : std::string("preset"); }},
      {"content_first", [](Policy& p, const std::string& v) { p.content_first = ParseKinds("content_first", v); },
       [](const Policy& p) { return KindsText(p.content_first); }},
      {"conditions", [](Policy& p, const std::string& v) { p.conditions = Parse("conditions", v, ConditionsNames()); },
       [](const Policy& p) { return Name(p.conditions, ConditionsNames()); }},
      {"anchor", [](Policy& p, const std::string& v) { p.anchor = Parse("anchor", v, AnchorNames()); },
       [](const Policy& p) { return Name(p.anchor, AnchorNames()); }},
      {"missing_rule",
       [](Policy& p, const std::string& v) { p.missing_rule = Parse("missing_rule", v, MissingRuleNames()); },
       [](const Policy& p) { return Name(p.missing_rule, MissingRuleNames()); }},
      {"on_failure", [](Policy& p, const std::string& v) { p.on_failure = Parse("on_failure", v, OnFailureNames()); },
       [](const Policy& p) { return Name(p.on_failure, OnFailureNames()); }},
      {"check", [](Policy& p, const std::string& v) { p.check = Parse("check", v, CheckNames()); },
       [](const Policy& p) { return Name(p.check, CheckNames()); }},
      {"tolerance",
       [](Policy& p, const std::string& v) {
         double number = 0;
         if (v == "dtype") {
           p.tolerance = std::nullopt;
         } else if (absl::SimpleAtod(v, &number) && std::isfinite(number) && number > 0) {
           p.tolerance = number;
         } else {
           throw InvalidArgument(absl::StrCat("policy tolerance=", v, " is not a positive number (or dtype)"));
         }
       },
       [](const Policy& p) { return p.tolerance ? NumberText(*p.tolerance) : std::string("dtype"); }},
  };
  return fields;
}

}  // namespace

uint32_t Policy::FrozenKinds() const {
  if (freeze) return *freeze;
  return preset == Preset::kFast ? kFreezeAttention | kFreezeNormalizer | kFreezeDenominator : kFreezeNothing;
}

double Policy::BiasParameter() const {
  if (bias_parameter) return *bias_parameter;
  switch (bias) {
    case Bias::kSign:
    case Bias::kSignThreshold:
      return 0.4;
    case Bias::kNorm:
      return std::numeric_limits<double>::infinity();
    default:
      return 0.15;
  }
}

Policy Policy::Resolved(bool baseline_given) const {
  Policy resolved = *this;
  if (preset == Preset::kAuto) resolved.preset = baseline_given ? Preset::kFaithful : Preset::kFast;
  return resolved;
}

Policy Policy::For(const std::string& op, const std::string& module_path) const {
  Policy own = *this;
  own.overrides.clear();
  for (const PolicyOverride& entry : overrides) {
    if (entry.Selects(op, module_path)) SetPolicyField(own, entry.key, entry.value);
  }
  return own;
}

bool Policy::LinearInComponents() const {
  const auto linear = [](const Policy& p) {
    if (p.nonlinearity == Nonlinearity::kAbsAffine) return false;
    if (p.nonlinearity == Nonlinearity::kHybridAffine && p.NonlinearityThreshold() > 0) return false;
    // c / S is linear: S is known from value and residual.
    return p.bias == Bias::kResidual || p.bias == Bias::kSignThreshold;
  };
  if (!linear(*this)) return false;
  return std::all_of(overrides.begin(), overrides.end(), [&](const PolicyOverride& entry) {
    Policy other = *this;
    SetPolicyField(other, entry.key, entry.value);
    return linear(other);
  });
}

bool PolicyOverride::Selects(const std::string& op, const std::string& module_path) const {
  if (!absl::StrContains(selector, "::")) {
    return module_path == selector || absl::StartsWith(module_path, selector + ".");
  }
  if (op == selector) return true;
  std::string name = op.substr(0, op.find('.'));
  if (name == selector) return true;
  const bool in_place = name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_';
  return in_place && name.substr(0, name.size() - 1) == selector;
}

namespace {

const Field* FindField(const std::string& key) {
  for (const Field& field : Fields()) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

// Whether a field says how an operator is linearized, so that it may differ from operator to operator.
bool MayDiffer(const std::string& key) {
  return key == "preset" || key == "nonlinearity" || key == "bias" || key == "freeze" || key == "content_first" ||
         key == "missing_rule";
}

void SetOverride(Policy& policy, const std::string& key, const std::string& selector, const std::string& value) {
  if (FindField(key) != nullptr && !MayDiffer(key)) {
    throw InvalidArgument(absl::StrCat("policy ", key, " is the same for the whole model; preset, nonlinearity, bias, ",
                                       "freeze, content_first and missing_rule may be given for ", selector));
  }
  if (selector.empty()) {
    throw InvalidArgument(absl::StrCat("policy ", key, "@ names neither an operator nor a module behind the @"));
  }
  Policy probe;  // throws for what is no field or no choice
  SetPolicyField(probe, key, value);
  if (key == "preset" && probe.preset == Preset::kAuto) {
    throw InvalidArgument(absl::StrCat("policy preset@", selector, "=auto is unknown; choose one of faithful, fast"));
  }
  // Spelled in the one way in which it is described.
  policy.overrides.push_back({selector, key, FindField(key)->get(probe)});
}

}  // namespace

void SetPolicyField(Policy& policy, const std::string& key, const std::string& value) {
  const size_t mark = key.find('@');
  if (mark != std::string::npos) return SetOverride(policy, key.substr(0, mark), key.substr(mark + 1), value);
  if (const Field* field = FindField(key)) return field->set(policy, value);
  throw InvalidArgument(
      absl::StrCat("policy has no field ", key, "; choose one of ",
                   absl::StrJoin(Fields(), ", ", [](std::string* out, const Field& f) { out->append(f.key); })));
}

std::vector<std::pair<std::string, std::string>> DescribePolicy(const Policy& policy) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Field& field : Fields()) out.emplace_back(field.key, field.get(policy));
  for (const PolicyOverride& entry : policy.overrides) {
    out.emplace_back(absl::StrCat(entry.key, "@", entry.selector), entry.value);
  }
  return out;
}

std::string PresetName(Preset preset) { return Name(preset, PresetNames()); }

}  // namespace addend
