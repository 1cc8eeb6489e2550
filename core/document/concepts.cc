#include "core/document/concepts.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/read_json.h"

namespace addend {
namespace {

using Placeholder = TextTemplate::Placeholder;

constexpr char kFormat[] = "addend.concepts";
constexpr int64_t kVersion = 1;
constexpr int kMostDecimals = 12;

struct Known {
  const char* name;
  Placeholder placeholder;
};
constexpr Known kPlaceholders[] = {{"concept", Placeholder::kConcept},
                                   {"value", Placeholder::kValue},
                                   {"unit", Placeholder::kUnit},
                                   {"contribution", Placeholder::kContribution},
                                   {"baseline", Placeholder::kBaseline}};

Placeholder FindPlaceholder(const std::string& name, const std::string& owner) {
  std::vector<std::string> all;
  for (const Known& known : kPlaceholders) {
    if (name == known.name) return known.placeholder;
    all.push_back(absl::StrCat("{", known.name, "}"));
  }
  throw InvalidArgument(absl::StrCat(owner, " has the placeholder {", name, "}; there are ", absl::StrJoin(all, ", ")));
}

// An object of JSON whose keys are read one by one. `place` names it in messages: "concepts", "the concept Income".
class Keys {
 public:
  Keys(const Json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object_.is_object()) throw InvalidArgument(absl::StrCat(place_, ": a JSON object is expected"));
  }

  const Json* Find(const std::string& key) {
    read_.insert(key);
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::optional<std::string> Text(const std::string& key) {
    const Json* found = Find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_string()) Refuse(key, "a text");
    return found->get<std::string>();
  }
  std::optional<double> Number(const std::string& key) {
    const Json* found = Find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_number() || !std::isfinite(found->get<double>())) Refuse(key, "a number");
    return found->get<double>();
  }
  std::optional<int64_t> Whole(const std::string& key, int64_t least, int64_t most) {
    const Json* found = Find(key);
    if (found == nullptr) return std::nullopt;
    const bool fits = found->is_number_integer() && found->get<double>() >= static_cast<double>(least) &&
                      found->get<double>() <= static_cast<double>(most);
    if (!fits) Refuse(key, absl::StrCat("a whole number from ", least, " to ", most));
    return found->get<int64_t>();
  }
  // The first of two words where the key is left out.
  bool IsFirst(const std::string& key, const std::string& first, const std::string& second) {
    const std::string text = Text(key).value_or(first);
    if (text != first && text != second) Refuse(key, absl::StrCat("\"", first, "\" or \"", second, "\""));
    return text == first;
  }
  [[noreturn]] void Refuse(const std::string& key, const std::string& wanted) const {
    throw InvalidArgument(absl::StrCat(place_, ": \"", key, "\" is ", wanted));
  }
  // That there is no key which nobody has read: a misspelled one would change reasons in silence.
  void RequireAllRead() const {
    for (const auto& entry : object_.items()) {
      if (read_.count(entry.key()) > 0) continue;
      throw InvalidArgument(
          absl::StrCat(place_, ": there is no \"", entry.key(), "\"; there are ", absl::StrJoin(read_, ", ")));
    }
  }

 private:
  const Json& object_;
  std::string place_;
  std::set<std::string> read_;
};

Concept ReadConcept(const Json& record, size_t position) {
  Concept own;
  Keys unnamed(record, absl::StrCat("concept ", position));
  // A key that is spelled otherwise is named, and not the one that is missed.
  for (const char* key :
       {"name", "code", "components", "unit", "decimals", "scale", "offset", "values", "words", "text"}) {
    unnamed.Find(key);
  }
  unnamed.RequireAllRead();
  own.name = unnamed.Text("name").value_or("");
  if (own.name.empty()) unnamed.Refuse("name", "a text that is not empty");
  const std::string place = absl::StrCat("the concept ", own.name);
  Keys keys(record, place);
  own.code = keys.Text("code").value_or("");
  const Json* components = keys.Find("components");
  if (components == nullptr || !components->is_array() || components->empty()) {
    keys.Refuse("components", "a list of names");
  }
  for (const Json& component : *components) {
    if (!component.is_string()) keys.Refuse("components", "a list of names");
    own.components.push_back(component.get<std::string>());
  }
  own.unit = keys.Text("unit");
  if (const auto decimals = keys.Whole("decimals", 0, kMostDecimals)) own.decimals = static_cast<int>(*decimals);
  own.scale = keys.Number("scale").value_or(1);
  own.offset = keys.Number("offset").value_or(0);
  own.one_hot = !keys.IsFirst("values", "numbers", "one_hot");
  if (own.one_hot && (own.scale != 1 || own.offset != 0)) {
    keys.Refuse("values", "\"one_hot\", which takes neither \"scale\" nor \"offset\"");
  }
  if (const Json* words = keys.Find("words")) {
    if (!words->is_object()) keys.Refuse("words", "an object that maps values to words");
    for (const auto& word : words->items()) {
      if (!word.value().is_string()) keys.Refuse("words", "an object that maps values to words");
      own.words[word.key()] = word.value().get<std::string>();
    }
  }
  if (const auto text = keys.Text("text")) own.text = TextTemplate(*text, absl::StrCat("the text of ", place));
  return own;
}

}  // namespace

TextTemplate::TextTemplate(const std::string& text, const std::string& owner) {
  const auto literal = [this](char c) {
    if (pieces_.empty() || pieces_.back().placeholder != Placeholder::kNone) pieces_.emplace_back();
    pieces_.back().text += c;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '{' && c != '}') {
      literal(c);
    } else if (i + 1 < text.size() && text[i + 1] == c) {
      literal(c);
      ++i;
    } else {
      const size_t end = c == '{' ? text.find('}', i) : std::string::npos;
      if (end == std::string::npos) {
        throw InvalidArgument(
            absl::StrCat(owner, " has a single ", std::string(1, c), "; a brace is written twice: {{"));
      }
      pieces_.push_back({"", FindPlaceholder(text.substr(i + 1, end - i - 1), owner)});
      i = end;
    }
  }
}

bool TextTemplate::Asks(Placeholder placeholder) const {
  return std::any_of(pieces_.begin(), pieces_.end(),
                     [&](const Piece& piece) { return piece.placeholder == placeholder; });
}

Concepts ReadConcepts(const std::string& json) {
  if (absl::EndsWith(json, ".json")) {
    throw InvalidArgument(absl::StrCat("the description of concepts is no JSON but the name of a file, ", json,
                                       ": give the text that the file holds"));
  }
  const Json record = ReadJson(json, "the description of concepts");
  Concepts concepts;
  Keys keys(record, "the description of concepts");
  if (keys.Text("format") != std::optional<std::string>(kFormat))
    keys.Refuse("format", absl::StrCat("\"", kFormat, "\""));
  keys.Whole("version", kVersion, kVersion);
  concepts.adverse_is_negative = keys.IsFirst("adverse", "negative", "positive");
  concepts.side =
      keys.IsFirst("side", "adverse", "favourable") ? Concepts::Side::kAdverse : Concepts::Side::kFavourable;
  concepts.at_most = keys.Whole("at_most", 1, 1000000).value_or(concepts.at_most);
  concepts.threshold = keys.Number("threshold").value_or(0);
  concepts.threshold_share = keys.Number("threshold_share").value_or(0);
  if (concepts.threshold < 0) keys.Refuse("threshold", "not negative");
  if (concepts.threshold_share < 0) keys.Refuse("threshold_share", "not negative");
  if (const auto text = keys.Text("text")) concepts.text = TextTemplate(*text, "the text");
  if (const Json* list = keys.Find("concepts")) {
    if (!list->is_array()) keys.Refuse("concepts", "a list");
    for (const Json& one : *list) concepts.list.push_back(ReadConcept(one, concepts.list.size()));
  }
  keys.RequireAllRead();
  std::set<std::string> names;
  std::map<std::string, std::string> owners;  // of components, by name or pattern
  for (const Concept& own : concepts.list) {
    if (!names.insert(own.name).second) throw InvalidArgument(absl::StrCat("there are two concepts ", own.name));
    for (const std::string& component : own.components) {
      const auto [owner, is_new] = owners.emplace(component, own.name);
      if (is_new) continue;
      throw InvalidArgument(absl::StrCat("the concepts ", owner->second, " and ", own.name, " both name the component ",
                                         component, "; a component belongs to one concept, once"));
    }
    const TextTemplate& text = own.text ? *own.text : concepts.text;
    if (text.Asks(Placeholder::kUnit) && !own.unit) {
      throw InvalidArgument(
          absl::StrCat("the text of the concept ", own.name,
                       " asks for {unit}, which it does not have; give it a \"unit\", \"\" for none"));
    }
  }
  return concepts;
}

std::vector<BoundConcept> BindConcepts(const Concepts& concepts, const std::vector<std::string>& components) {
  std::vector<BoundConcept> bound;
  std::unordered_map<std::string, std::vector<int64_t>> by_name;
  for (size_t c = 0; c < components.size(); ++c) by_name[components[c]].push_back(static_cast<int64_t>(c));
  std::vector<int64_t> owners(components.size(), -1);
  for (const Concept& described : concepts.list) {
    BoundConcept own = {described.name, &described, {}};
    for (const std::string& asked : described.components) {
      std::vector<int64_t> found;
      const auto exact = by_name.find(asked);
      if (exact != by_name.end()) {
        found = exact->second;
      } else if (absl::EndsWith(asked, "*")) {
        const std::string begin = asked.substr(0, asked.size() - 1);
        for (size_t c = 0; c < components.size(); ++c) {
          if (absl::StartsWith(components[c], begin)) found.push_back(static_cast<int64_t>(c));
        }
      }
      if (found.empty()) {
        std::vector<std::string> some(components.begin(), components.begin() + std::min<size_t>(components.size(), 8));
        if (components.size() > some.size()) some.push_back("...");
        throw InvalidArgument(absl::StrCat("the concept ", described.name, " names the component ", asked,
                                           ", which does not exist; there are ", absl::StrJoin(some, ", ")));
      }
      for (const int64_t component : found) {
        int64_t& owner = owners[component];
        if (owner >= 0) {
          throw InvalidArgument(absl::StrCat("the component ", components[component], " is in the concepts ",
                                             concepts.list[owner].name, " and ", described.name,
                                             "; a component belongs to one concept, once"));
        }
        owner = static_cast<int64_t>(bound.size());
        own.components.push_back(component);
      }
    }
    std::sort(own.components.begin(), own.components.end());
    bound.push_back(std::move(own));
  }
  std::set<std::string> names;
  for (const Concept& described : concepts.list) names.insert(described.name);
  for (size_t c = 0; c < components.size(); ++c) {
    if (owners[c] >= 0) continue;
    if (names.count(components[c]) > 0) {
      throw InvalidArgument(absl::StrCat("the concept ", components[c],
                                         " has the name of a component that is not part ",
                                         "of it; add the component, or call the concept otherwise"));
    }
    bound.push_back({components[c], nullptr, {static_cast<int64_t>(c)}});
  }
  return bound;
}

}  // namespace addend
