#include "core/exported/tree_spec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/exported/json_reader.h"

namespace addend::exported {
namespace {

using Kind = TreeSpec::Kind;

constexpr int64_t kProtocol = 1;
constexpr uint64_t kKeyCost = 3 * sizeof(c10::IValue) + 96;

struct KindOfType {
  const char* type;
  Kind kind;
};

constexpr KindOfType kKinds[] = {
    {"builtins.tuple", Kind::kTuple},
    {"torch.Size", Kind::kTuple},
    {"builtins.list", Kind::kList},
    {"collections.deque", Kind::kList},
    {"torch.fx.immutable_collections.immutable_list", Kind::kList},
    {"builtins.dict", Kind::kDict},
    {"collections.OrderedDict", Kind::kDict},
    {"collections.defaultdict", Kind::kDict},
    {"torch.fx.immutable_collections.immutable_dict", Kind::kDict},
    {"collections.namedtuple", Kind::kNamedTuple},
};

Kind KindOf(const std::string& type) {
  for (const KindOfType& known : kKinds) {
    if (type == known.type) return known.kind;
  }
  return Kind::kOther;
}

// A key of a dict.
c10::IValue ReadKey(JsonReader& json) {
  json.budget()->Take(kKeyCost);
  switch (json.Next()) {
    case JsonReader::Kind::kString:
      return json.String();
    case JsonReader::Kind::kNumber:
      return json.Integer();
    case JsonReader::Kind::kBool:
      return json.Bool();
    default:
      throw Unimplemented(absl::StrCat(
          json.Place(), ": a dict has a key that is neither a string nor an integer; give it string keys"));
  }
}

std::vector<c10::IValue> ReadKeys(JsonReader& json) {
  std::vector<c10::IValue> keys;
  json.Array([&] { keys.push_back(ReadKey(json)); });
  return keys;
}

// The names that the context of an unknown class lists: ["a", "b"], or [["a", "b"], ...] as dataclasses have it, whose
// second list names fields that are None. Empty where it is something else.
std::vector<c10::IValue> ReadNames(JsonReader& json) {
  std::vector<c10::IValue> names;
  if (json.Next() != JsonReader::Kind::kArray) {
    json.Skip();
    return names;
  }
  bool first = true;
  bool nested = false;
  bool others = false;
  json.Array([&] {
    if (json.Next() == JsonReader::Kind::kString && !nested) {
      names.push_back(ReadKey(json));
    } else if (json.Next() == JsonReader::Kind::kArray && first) {
      names = ReadNames(json);
      nested = true;
    } else {
      json.Skip();
      others = true;
    }
    first = false;
  });
  if (others && !nested) names.clear();
  return names;
}

class Reader {
 public:
  Reader(const NamedTupleFields& fields, MemoryBudget* budget) : fields_(fields), budget_(budget) {}

  TreeSpec Read(JsonReader& json) const {
    TreeSpec spec;
    bool leaf = true;
    bool children = false;
    std::string context;  // JSON within a string
    json.Object([&](const std::string& key) {
      if (key == "type") {
        if (json.Next() == JsonReader::Kind::kNull) return json.Null();
        spec.type = json.String();
        leaf = false;
      } else if (key == "context") {
        if (json.Next() == JsonReader::Kind::kNull) return json.Null();
        if (json.Next() == JsonReader::Kind::kObject) return ReadDefaultDict(json, spec);
        context = json.String();
      } else if (key == "children_spec") {
        children = true;
        json.Array([&] {
          json.budget()->TakeElement(spec.children);
          spec.children.push_back(Read(json));
        });
      } else {
        json.SkipUnknown(key);
      }
    });
    if (!children) json.Fail("has no \"children_spec\"");
    if (leaf) {
      if (!spec.children.empty() || !spec.keys.empty()) json.Fail("has children and no type");
      return spec;
    }
    spec.kind = KindOf(spec.type);
    Finish(json, context, spec);
    if (spec.kind != Kind::kNamedTuple && spec.kind != Kind::kOther) spec.type.clear();
    return spec;
  }

 private:
  // {"default_factory_module": ..., "default_factory_name": ..., "dict_context": ["a", "b"]}
  static void ReadDefaultDict(JsonReader& json, TreeSpec& spec) {
    json.Object([&](const std::string& key) {
      if (key == "dict_context") {
        spec.keys = ReadKeys(json);
      } else {
        json.Skip();
      }
    });
  }

  // Takes type and keys from the context, whose meaning depends on the kind.
  void Finish(JsonReader& json, const std::string& context, TreeSpec& spec) const {
    const size_t count = spec.children.size();
    if (spec.kind == Kind::kTuple || spec.kind == Kind::kList) return;
    if (spec.kind == Kind::kNamedTuple) {
      spec.type = context;
      const auto found = fields_.find(context);
      if (found == fields_.end()) return;
      if (found->second.size() != count) json.Fail("has not as many children as its named tuple has fields");
      for (const std::string& name : found->second) {
        budget_->Take(kKeyCost);
        spec.keys.emplace_back(name);
      }
      return;
    }
    if (spec.kind == Kind::kDict) {
      if (spec.keys.empty() && !context.empty()) {
        JsonReader inner(context, absl::StrCat(json.Place(), "/context"), budget_);
        spec.keys = ReadKeys(inner);
        inner.End();
      }
      if (spec.keys.size() != count) json.Fail("has not as many children as the dict has keys");
      for (size_t k = 1; k < count; ++k) {
        if (spec.keys[k].tagKind() != spec.keys[0].tagKind()) {
          throw Unimplemented(absl::StrCat(json.Place(), ": a dict has keys of different types; give it string keys"));
        }
      }
      return;
    }
    spec.keys.clear();
    if (context.empty()) return;
    // The class is unknown and its context may be anything; keep it only if it is a list of names.
    try {
      JsonReader inner(context, absl::StrCat(json.Place(), "/context"), budget_);
      spec.keys = ReadNames(inner);
    } catch (const Error&) {
      spec.keys.clear();
    }
    if (spec.keys.size() != count) spec.keys.clear();
  }

  const NamedTupleFields& fields_;
  MemoryBudget* budget_;
};

}  // namespace

TreeSpec ReadTreeSpec(const std::string& text, const NamedTupleFields& fields, const std::string& where,
                      MemoryBudget* budget) {
  JsonReader json(text, where, budget);
  TreeSpec spec;
  int64_t count = 0;
  json.Array([&] {
    if (++count == 1) {
      const int64_t protocol = json.Integer();
      if (protocol != kProtocol) json.Fail(absl::StrCat("protocol ", protocol, " is not known; ", kProtocol, " is"));
    } else if (count == 2) {
      spec = Reader(fields, budget).Read(json);
    } else {
      json.Fail("should be a list of two");
    }
  });
  if (count != 2) json.Fail("should be a list of two");
  json.End();
  return spec;
}

size_t CountLeaves(const TreeSpec& spec) {
  if (spec.kind == Kind::kLeaf) return 1;
  size_t count = 0;
  for (const TreeSpec& child : spec.children) count += CountLeaves(child);
  return count;
}

}  // namespace addend::exported
