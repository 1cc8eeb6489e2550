#include "core/base/policy.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"
#include "core/base/policy_keys.h"

namespace addend {
namespace {

constexpr char kNoKinds[] = "none";  // the empty set of coefficients

const PolicyKey* FindKey(const std::string& name) {
  for (const PolicyKey& key : PolicyKeys()) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

// The key of a field; each field has one.
const PolicyKey& KeyOf(const std::string& name) { return *FindKey(name); }

std::string Quoted(const PolicyKey& key, const std::string& value) {
  return absl::StrCat("policy ", key.name, "=", value);
}

// The position of a value, which is the number of its enumerator. `words`: what else is a choice.
int64_t IndexOf(const PolicyKey& key, const std::string& value, std::vector<std::string> words = {}) {
  for (size_t index = 0; index < key.values.size(); ++index) {
    if (key.values[index].name == value) return static_cast<int64_t>(index);
  }
  for (const PolicyValue& choice : key.values) words.push_back(choice.name);
  throw InvalidArgument(absl::StrCat(Quoted(key, value), " is unknown; choose one of ", absl::StrJoin(words, ", ")));
}

uint32_t ParseKinds(const PolicyKey& key, const std::string& value) {
  uint32_t bits = kFreezeNothing;
  for (const auto view : absl::StrSplit(value, absl::ByAnyChar("+,"))) {
    const std::string piece(view.data(), view.size());
    if (piece != kNoKinds) bits |= 1u << IndexOf(key, piece, {kNoKinds});
  }
  return bits;
}

std::string KindsText(const PolicyKey& key, uint32_t kinds) {
  if (kinds == kFreezeNothing) return kNoKinds;
  std::vector<std::string> parts;
  for (size_t bit = 0; bit < key.values.size(); ++bit) {
    if (kinds & (1u << bit)) parts.push_back(key.values[bit].name);
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

// Throws unless the choice takes a number, and this one.
void RequireNumber(const PolicyKey& key, const PolicyValue& choice, const std::string& value, double number) {
  if (choice.number.empty()) {
    throw InvalidArgument(absl::StrCat(Quoted(key, value), ": ", choice.name, " takes no number"));
  }
  const bool order = choice.number == "order";
  if (order ? number > 0 : number >= 0 && std::isfinite(number)) return;
  throw InvalidArgument(absl::StrCat(Quoted(key, value), ": the number is ",
                                     order ? "the order of a norm, above 0" : "a threshold, 0 or more"));
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

// A field of an enumeration, whose enumerators are numbered as the values of the key are.
template <typename E>
Field OneOf(const std::string& key, E Policy::*field) {
  return {key, [key, field](Policy& p, const std::string& v) { p.*field = static_cast<E>(IndexOf(KeyOf(key), v)); },
          [key, field](const Policy& p) { return KeyOf(key).values[static_cast<size_t>(p.*field)].name; }};
}

// A field of an enumeration of which some values take a number.
template <typename E>
Field OneWithNumber(const std::string& key, E Policy::*field, std::optional<double> Policy::*number) {
  return {key,
          [key, field, number](Policy& p, const std::string& v) {
            const Choice choice = ParseChoice(key, v);
            const int64_t index = IndexOf(KeyOf(key), choice.name);
            if (choice.parameter) RequireNumber(KeyOf(key), KeyOf(key).values[index], v, *choice.parameter);
            p.*field = static_cast<E>(index);
            p.*number = choice.parameter;
          },
          [key, field, number](const Policy& p) {
            return ChoiceText(KeyOf(key).values[static_cast<size_t>(p.*field)].name, p.*number);
          }};
}

void SetTolerance(Policy& policy, const std::string& value) {
  const PolicyKey& key = KeyOf("tolerance");
  double number = 0;
  if (value == key.unset) {
    policy.tolerance = std::nullopt;
  } else if (absl::SimpleAtod(value, &number) && std::isfinite(number) && number > 0) {
    policy.tolerance = number;
  } else {
    throw InvalidArgument(absl::StrCat(Quoted(key, value), " is not a positive number (or ", key.unset, ")"));
  }
}

void SetFreeze(Policy& policy, const std::string& value) {
  const PolicyKey& key = KeyOf("freeze");
  policy.freeze = value == key.unset ? std::nullopt : std::optional<uint32_t>(ParseKinds(key, value));
}

void SetByMagnitude(Policy& policy, const std::string& value) {
  const PolicyKey& key = KeyOf("by_magnitude");
  const uint32_t kinds = ParseKinds(key, value);
  if ((kinds & (kFreezeNormalizer | kFreezeDenominator)) != 0) {
    throw InvalidArgument(absl::StrCat(Quoted(key, value),
                                       ": normalizers and denominators may have a reference of nothing, where no share "
                                       "keeps their content finite; choose some of attention, gate, activation"));
  }
  policy.by_magnitude = kinds;
}

// In the order of PolicyKeys().
const std::vector<Field>& Fields() {
  static const auto& fields = *new std::vector<Field>{
      OneOf("preset", &Policy::preset),
      {"segments", SetSegments, [](const Policy& p) { return absl::StrCat(p.segments); }},
      OneWithNumber("nonlinearity", &Policy::nonlinearity, &Policy::nonlinearity_threshold),
      OneWithNumber("bias", &Policy::bias, &Policy::bias_parameter),
      {"freeze", SetFreeze,
       [](const Policy& p) { return p.freeze ? KindsText(KeyOf("freeze"), *p.freeze) : KeyOf("freeze").unset; }},
      {"content_first",
       [](Policy& p, const std::string& v) { p.content_first = ParseKinds(KeyOf("content_first"), v); },
       [](const Policy& p) { return KindsText(KeyOf("content_first"), p.content_first); }},
      {"by_magnitude", SetByMagnitude,
       [](const Policy& p) { return KindsText(KeyOf("by_magnitude"), p.by_magnitude); }},
      OneOf("conditions", &Policy::conditions),
      OneOf("compute_dtype", &Policy::compute_dtype),
      OneOf("anchor", &Policy::anchor),
      OneOf("missing_rule", &Policy::missing_rule),
      OneOf("on_failure", &Policy::on_failure),
      OneOf("check", &Policy::check),
      {"tolerance", SetTolerance,
       [](const Policy& p) { return p.tolerance ? NumberText(*p.tolerance) : KeyOf("tolerance").unset; }},
  };
  return fields;
}

// The number that an enumerator of the key takes where none is given.
template <typename E>
double DefaultNumber(const std::string& key, E choice) {
  return KeyOf(key).values[static_cast<size_t>(choice)].default_number;
}

}  // namespace

uint32_t Policy::FrozenKinds() const {
  if (freeze) return *freeze;
  return preset == Preset::kFast ? kFreezeAttention | kFreezeNormalizer | kFreezeDenominator : kFreezeNothing;
}

double Policy::NonlinearityThreshold() const {
  return nonlinearity_threshold ? *nonlinearity_threshold : DefaultNumber("nonlinearity", nonlinearity);
}

double Policy::BiasParameter() const { return bias_parameter ? *bias_parameter : DefaultNumber("bias", bias); }

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

// "preset, bias and missing_rule": the keys that may differ from operator to operator.
std::string KeysByOperator() {
  std::vector<std::string> keys;
  for (const PolicyKey& key : PolicyKeys()) {
    if (key.by_operator) keys.push_back(key.name);
  }
  const std::string last = keys.back();
  keys.pop_back();
  return absl::StrCat(absl::StrJoin(keys, ", "), " and ", last);
}

void SetOverride(Policy& policy, const std::string& key, const std::string& selector, const std::string& value) {
  if (const PolicyKey* known = FindKey(key); known != nullptr && !known->by_operator) {
    throw InvalidArgument(absl::StrCat("policy ", key, " is the same for the whole model; ", KeysByOperator(),
                                       " may be given for ", selector));
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

std::string PresetName(Preset preset) { return KeyOf("preset").values[static_cast<size_t>(preset)].name; }

}  // namespace addend
