#include "core/program/output_names.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/program/recorder.h"

namespace addend {
namespace {

constexpr char kWhole[] = "output.";

bool Distinct(const std::vector<std::string>& names) {
  return std::set<std::string>(names.begin(), names.end()).size() == names.size();
}

std::string TextOf(const c10::IValue& key) {
  if (key.isString()) return key.toStringRef();
  if (key.isInt()) return absl::StrCat(key.toInt());
  if (key.isBool()) return key.toBool() ? "True" : "False";
  return absl::StrCat(key.toDouble());
}

// Adds the name of each tensor by its place, and says whether a dictionary is on the way to one.
bool AddPlaces(const Structure& structure, const std::string& place, std::vector<std::string>& names) {
  if (structure.kind == Structure::Kind::kTensor && structure.tensor >= 0) names.push_back(place);
  const size_t before = names.size();
  bool named = false;
  for (size_t k = 0; k < structure.elements.size(); ++k) {
    std::string step = absl::StrCat(k);
    if (structure.kind == Structure::Kind::kDict) step = TextOf(structure.keys[k]);
    named |= AddPlaces(structure.elements[k], absl::StrCat(place, ".", step), names);
  }
  return named || (structure.kind == Structure::Kind::kDict && names.size() > before);
}

std::vector<std::string> Numbered(size_t count) {
  std::vector<std::string> names;
  for (size_t k = 0; k < count; ++k) names.push_back(OutputName(k));
  return names;
}

bool IsNumber(const std::string& key) {
  return std::all_of(key.begin(), key.end(), [](char c) { return absl::ascii_isdigit(c) || c == '.'; });
}

size_t CountTensors(const c10::IValue& value) {
  size_t count = 0;
  ForEachTensor(value, [&](const at::Tensor& tensor) { count += tensor.defined() ? 1 : 0; });
  return count;
}

}  // namespace

std::string OutputName(size_t number) { return number == 0 ? "output" : absl::StrCat(kWhole, number); }

std::vector<std::string> OutputNames(const Structure& result) {
  std::vector<std::string> names;
  const bool named = AddPlaces(result, "output", names);
  return named && Distinct(names) ? names : Numbered(names.size());
}

std::vector<std::string> OutputNames(const c10::IValue& result) {
  Structure structure;
  try {
    structure = TakeApart(result, "the result", [](const at::Tensor&) { return 0; });
  } catch (const Error&) {
    return Numbered(CountTensors(result));  // something else is in it, which has no place for a name
  }
  return OutputNames(structure);
}

c10::IValue NamedResult(const std::vector<std::string>& names, const std::vector<at::Tensor>& tensors) {
  std::vector<std::string> keys;
  for (const std::string& name : names) {
    if (absl::StartsWith(name, kWhole)) keys.push_back(name.substr(sizeof(kWhole) - 1));
  }
  if (keys.size() == tensors.size() && Distinct(keys) && !std::all_of(keys.begin(), keys.end(), IsNumber)) {
    c10::Dict<std::string, at::Tensor> result;
    for (size_t k = 0; k < keys.size(); ++k) result.insert(keys[k], tensors[k]);
    return result;
  }
  if (tensors.size() == 1) return tensors[0];
  return c10::ivalue::Tuple::create(std::vector<c10::IValue>(tensors.begin(), tensors.end()));
}

}  // namespace addend
