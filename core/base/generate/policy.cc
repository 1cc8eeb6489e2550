// Writes the choices of a policy as C++ from their list. A program of the build:
//   policy policy_choices.txt policy_choices.h policy_keys.cc
#include <sstream>
#include <string>
#include <vector>

#include "core/base/generate/lists.h"

namespace {

using addend::generate::Block;
using addend::generate::Camel;
using addend::generate::Comment;
using addend::generate::Fail;
using addend::generate::Quote;
using addend::generate::ReadBlocks;
using addend::generate::Write;

struct Value {
  std::string name;
  std::string number;          // what the number in brackets is; empty: it takes none
  std::string default_number;  // as text
  std::string says;
};

struct Key {
  std::string name;
  std::string type;
  std::string default_value;
  std::string scope;
  std::string says;
  std::string about_type;  // what is said of the enumeration
  std::string unset;
  std::vector<Value> values;
};

// "hybrid_affine (threshold 0.15)".
Value ParseValue(const std::string& head, const std::string& says) {
  Value value;
  value.says = says;
  const size_t open = head.find(" (");
  value.name = head.substr(0, open);
  if (open == std::string::npos) return value;
  const size_t space = head.find(' ', open + 2);
  if (head.back() != ')' || space == std::string::npos) Fail("not a value with a number: " + head);
  value.number = head.substr(open + 2, space - open - 2);
  value.default_number = head.substr(space + 1, head.size() - space - 2);
  return value;
}

void Parse(const std::string& head, const std::string& text, Key& key) {
  if (head == "type") {
    key.type = text;
  } else if (head == "default") {
    key.default_value = text;
  } else if (head == "scope") {
    if (text != "model" && text != "operators") Fail("a scope is model or operators: " + text);
    key.scope = text;
  } else if (head == "says") {
    key.says = text;
  } else if (head == "more") {
    key.about_type = key.says + " " + text;
  } else if (head == "enumeration") {
    key.about_type = text;
  } else if (head.rfind("unset ", 0) == 0) {
    key.unset = head.substr(6);
  } else if (head.rfind("value ", 0) == 0) {
    key.values.push_back(ParseValue(head.substr(6), text));
  } else if (head != "since") {
    Fail("unknown: " + head);
  }
}

std::vector<Key> Read(const std::string& path) {
  std::vector<Key> keys;
  for (const Block& block : ReadBlocks(path)) {
    keys.emplace_back();
    keys.back().name = block.name;
    for (const auto& [head, text] : block.entries) Parse(head, text, keys.back());
  }
  for (Key& key : keys) {
    if (key.type.empty() || key.default_value.empty() || key.scope.empty() || key.says.empty()) {
      Fail(key.name + " lacks its type, its default, its scope or what it says");
    }
    // The values of a type stand under the first key that has it.
    for (const Key& other : keys) {
      if (key.values.empty() && other.type == key.type) key.values = other.values;
    }
  }
  return keys;
}

// The name behind "one of " or "some of "; empty for numbers.
std::string EnumOf(const Key& key, const std::string& how) {
  return key.type.rfind(how, 0) == 0 ? key.type.substr(how.size()) : "";
}

std::string Enumeration(const Key& key) {
  std::string out = "\n" + Comment(key.about_type.empty() ? key.says : key.about_type, "");
  const std::string flags = EnumOf(key, "some of ");
  const std::string choice = EnumOf(key, "one of ");
  out += flags.empty() ? "enum class " + choice + " {\n"
                       : "enum " + flags + " : uint32_t {\n  k" + flags + "Nothing = 0,\n";
  int bit = 0;
  for (const Value& value : key.values) {
    out += Comment(value.says, "  ") + "  k" + flags + Camel(value.name);
    out += (flags.empty() ? "" : " = 1u << " + std::to_string(bit++)) + ",\n";
  }
  return out + "};\n";
}

// The default as a constant; nothing where nothing chosen has a word of its own.
std::string Default(const Key& key) {
  if (key.default_value == key.unset) return "";
  const std::string name = " kDefault" + Camel(key.name) + " = ";
  const std::string choice = EnumOf(key, "one of ");
  if (!choice.empty()) return "constexpr " + choice + name + choice + "::k" + Camel(key.default_value) + ";\n";
  const std::string flags = EnumOf(key, "some of ");
  if (flags.empty()) return "constexpr int64_t" + name + key.default_value + ";\n";
  std::string bits;
  std::istringstream pieces(key.default_value);
  for (std::string piece; std::getline(pieces, piece, '+');) {
    bits += (bits.empty() ? "k" : " | k") + flags + Camel(piece);
  }
  return "constexpr uint32_t" + name + bits + ";\n";
}

std::string Header(const std::vector<Key>& keys) {
  std::string out =
      "// Generated from core/base/policy_choices.txt; do not edit.\n"
      "#ifndef ADDEND_CORE_BASE_POLICY_CHOICES_H_\n#define ADDEND_CORE_BASE_POLICY_CHOICES_H_\n\n"
      "#include <cstdint>\n\nnamespace addend {\n";
  std::string known;
  for (const Key& key : keys) {
    const bool is_enum = key.type.find(" of ") != std::string::npos;
    if (is_enum && known.find("|" + key.type + "|") == std::string::npos) out += Enumeration(key);
    known += "|" + key.type + "|";
  }
  out += "\n// What holds where nothing is chosen.\n";
  for (const Key& key : keys) out += Default(key);
  return out + "\n}  // namespace addend\n\n#endif  // ADDEND_CORE_BASE_POLICY_CHOICES_H_\n";
}

std::string Source(const std::vector<Key>& keys) {
  std::string out =
      "// Generated from core/base/policy_choices.txt; do not edit.\n"
      "#include \"core/base/policy_keys.h\"\n\n#include <limits>\n\nnamespace addend {\n\n"
      "const std::vector<PolicyKey>& PolicyKeys() {\n  static const auto& keys = *new std::vector<PolicyKey>{\n";
  for (const Key& key : keys) {
    const bool by_operator = key.scope == "operators";
    out += "      {" + Quote(key.name) + ", " + Quote(key.type) + ", " + Quote(key.default_value) + ", " +
           Quote(key.unset) + ", " + (by_operator ? "true" : "false") + ",\n       " + Quote(key.says) + ",\n       {";
    for (const Value& value : key.values) {
      const std::string number = value.number.empty()            ? "0"
                                 : value.default_number == "inf" ? "std::numeric_limits<double>::infinity()"
                                                                 : value.default_number;
      out += "\n        {" + Quote(value.name) + ", " + Quote(value.number) + ", " + number + ", " + Quote(value.says) +
             "},";
    }
    out += "}},\n";
  }
  return out + "  };\n  return keys;\n}\n\n}  // namespace addend\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) Fail("usage: policy LIST HEADER SOURCE");
  const std::vector<Key> keys = Read(argv[1]);
  Write(argv[2], Header(keys));
  Write(argv[3], Source(keys));
  return 0;
}
