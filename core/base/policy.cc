#include "core/base/policy.h"

#include <cmath>
#include <functional>

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

uint32_t ParseFreeze(const std::string& value) {
  uint32_t bits = 0;
  for (const auto piece : absl::StrSplit(value, absl::ByAnyChar("+,"))) {
    bits |= Parse("freeze", std::string(piece.data(), piece.size()), FreezeNames());
  }
  return bits;
}

std::string FreezeText(const std::optional<uint32_t>& freeze) {
  if (!freeze) return "preset";
  if (*freeze == kFreezeNothing) return "none";
  std::vector<std::string> parts;
  for (const auto& entry : FreezeNames()) {
    if (entry.second != 0 && (*freeze & entry.second)) parts.push_back(entry.first);
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
      {"freeze",
       [](Policy& p, const std::string& v) {
         p.freeze = v == "preset" ? std::nullopt : std::optional<uint32_t>(ParseFreeze(v));
       },
       [](const Policy& p) { return FreezeText(p.freeze); }},
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

Policy Policy::Resolved(bool baseline_given) const {
  Policy resolved = *this;
  if (preset == Preset::kAuto) resolved.preset = baseline_given ? Preset::kFaithful : Preset::kFast;
  return resolved;
}

void SetPolicyField(Policy& policy, const std::string& key, const std::string& value) {
  for (const Field& field : Fields()) {
    if (field.key == key) return field.set(policy, value);
  }
  throw InvalidArgument(
      absl::StrCat("policy has no field ", key, "; choose one of ",
                   absl::StrJoin(Fields(), ", ", [](std::string* out, const Field& f) { out->append(f.key); })));
}

std::vector<std::pair<std::string, std::string>> DescribePolicy(const Policy& policy) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Field& field : Fields()) out.emplace_back(field.key, field.get(policy));
  return out;
}

std::string PresetName(Preset preset) { return Name(preset, PresetNames()); }

}  // namespace addend
