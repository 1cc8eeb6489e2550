// Writes the methods or the free functions of the everyday operators from their list. A program of the build:
//   operators methods everyday_operators.txt composition_methods.inc
//   operators functions everyday_operators.txt composition_ops.cc composition_ops.h
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Parameter {
  std::string type;  // of the schema
  std::string name;
  std::string value;  // its default; empty: none
};

struct Entry {
  std::string full_name;  // "aten::add.Tensor"
  std::string name;       // "add"
  std::vector<Parameter> parameters;
  std::string result;
  bool in_place = false;
};

[[noreturn]] void Fail(const std::string& message) {
  std::cerr << message << "\n";
  std::exit(1);
}

std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<std::string> SplitTopLevel(const std::string& text) {
  std::vector<std::string> pieces;
  std::string piece;
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == ',' && depth == 0) {
      pieces.push_back(Trim(piece));
      piece.clear();
    } else {
      piece += c;
    }
  }
  if (!Trim(piece).empty()) pieces.push_back(Trim(piece));
  return pieces;
}

Entry Parse(const std::string& line) {
  const size_t open = line.find('(');
  const size_t arrow = line.find(") -> ");
  if (open == std::string::npos || arrow == std::string::npos) Fail("not a signature: " + line);
  Entry entry;
  entry.full_name = line.substr(0, open);
  entry.name = entry.full_name.substr(entry.full_name.find("::") + 2);
  entry.name = entry.name.substr(0, entry.name.find('.'));
  entry.in_place = entry.name.back() == '_';
  entry.result = Trim(line.substr(arrow + 5));
  for (const std::string& piece : SplitTopLevel(line.substr(open + 1, arrow - open - 1))) {
    if (piece == "*") continue;
    Parameter parameter;
    const size_t space = piece.find(' ');
    const size_t equals = piece.find('=');
    if (space == std::string::npos) Fail("not a parameter: " + piece + " in " + line);
    parameter.type = piece.substr(0, space);
    const size_t name_end = equals == std::string::npos ? piece.size() : equals;
    parameter.name = piece.substr(space + 1, name_end - space - 1);
    if (equals != std::string::npos) parameter.value = piece.substr(equals + 1);
    entry.parameters.push_back(parameter);
  }
  return entry;
}

std::string CppType(const std::string& type) {
  static const std::map<std::string, std::string> types = {
      {"Tensor", "const TensorOrComposition&"},
      {"Tensor?", "const TensorOrComposition&"},
      {"Tensor[]", "const std::vector<TensorOrComposition>&"},
      {"Scalar", "const at::Scalar&"},
      {"Scalar?", "const std::optional<at::Scalar>&"},
      {"int", "int64_t"},
      {"int?", "std::optional<int64_t>"},
      {"float", "double"},
      {"float?", "std::optional<double>"},
      {"bool", "bool"},
      {"str", "const std::string&"},
      {"ScalarType", "at::ScalarType"},
  };
  const auto known = types.find(type);
  if (known != types.end()) return known->second;
  if (type.rfind("int[", 0) == 0) return "at::IntArrayRef";
  Fail("no C++ type for " + type);
}

std::string CppDefault(const Parameter& parameter) {
  const std::string& value = parameter.value;
  if (value == "None") return parameter.type == "Tensor?" ? "{}" : "std::nullopt";
  if (value == "True") return "true";
  if (value == "False") return "false";
  if (value == "[]") return "{}";
  return value;
}

std::string CppResult(const Entry& entry) {
  if (entry.in_place) return "Composition&";
  if (entry.result == "Composition[]") return "std::vector<Composition>";
  if (entry.result == "(Composition values, Tensor indices)") return "std::pair<Composition, at::Tensor>";
  if (entry.result == "Composition") return "Composition";
  if (entry.result == "Tensor") return "at::Tensor";
  Fail("no C++ type for the result " + entry.result);
}

bool IsMethod(const Entry& entry) {
  return entry.parameters[0].type == "Tensor" && entry.parameters[0].name != "condition";
}

std::string Signature(const Entry& entry, const std::string& name, bool method, bool defaults) {
  std::string out = name + "(";
  for (size_t p = method ? 1 : 0; p < entry.parameters.size(); ++p) {
    const Parameter& parameter = entry.parameters[p];
    out += CppType(parameter.type) + " " + parameter.name;
    if (defaults && !parameter.value.empty()) out += " = " + CppDefault(parameter);
    out += ", ";
  }
  return out + "const CallOptions& options" + (defaults ? " = {}" : "") + ")" +
         (method && !entry.in_place ? " const" : "");
}

std::string CallText(const Entry& entry, bool method) {
  std::string out = "CallOperator(\"" + entry.full_name + "\", {";
  for (size_t p = 0; p < entry.parameters.size(); ++p) {
    const bool self = method && p == 0;
    const std::string argument = self ? (entry.in_place ? "this" : "*this") : entry.parameters[p].name;
    out += (p > 0 ? ", " : "") + ("Named(\"" + entry.parameters[p].name + "\", " + argument + ")");
  }
  return out + "}, options)";
}

std::string Body(const Entry& entry, bool method) {
  const std::string call = CallText(entry, method);
  if (entry.in_place) return "  " + call + ";\n  return *this;\n";
  if (entry.result == "Composition[]") return "  return " + call + ".compositions();\n";
  if (entry.result == "Tensor") return "  return " + call + ".tensor();\n";
  if (entry.result == "Composition") return "  return " + call + ".composition();\n";
  return "  const Results results = " + call + ";\n  return {results.composition(0), results.tensor(1)};\n";
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  if (!out.flush()) Fail("cannot write " + path);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (!(what == "methods" && argc == 4) && !(what == "functions" && argc == 5)) {
    Fail("usage: operators methods LIST METHODS, operators functions LIST SOURCE HEADER");
  }
  std::ifstream list(argv[2]);
  if (!list) Fail(std::string("cannot read ") + argv[2]);
  std::ostringstream methods;
  std::ostringstream header;
  std::ostringstream source;
  const std::string origin = "// Generated from core/composition/everyday_operators.txt; do not edit.\n";
  methods << origin;
  header << origin
         << "// The everyday operators as functions, for calls that do not begin with a composition.\n"
            "#ifndef ADDEND_CORE_EAGER_COMPOSITION_OPS_H_\n#define ADDEND_CORE_EAGER_COMPOSITION_OPS_H_\n\n"
            "#include <optional>\n#include <string>\n#include <utility>\n#include <vector>\n\n"
            "#include \"core/composition/composition.h\"\n"
            "#include \"core/eager/composition_operators.h\"  // IWYU pragma: export\n\nnamespace addend {\n\n";
  source << origin
         << "#include \"core/eager/composition_ops.h\"\n\n#include \"core/eager/eager.h\"\n\nnamespace addend {\n\n";
  std::string line;
  while (std::getline(list, line)) {
    if (Trim(line).empty() || line[0] == '#') continue;
    const Entry entry = Parse(line);
    const std::string result = CppResult(entry);
    if (IsMethod(entry)) {
      methods << result << " " << Signature(entry, entry.name, true, true) << ";\n";
      source << result << " " << Signature(entry, "Composition::" + entry.name, true, false) << " {\n"
             << Body(entry, true) << "}\n\n";
    }
    if (entry.in_place) continue;
    header << result << " " << Signature(entry, entry.name, false, true) << ";\n";
    source << result << " " << Signature(entry, entry.name, false, false) << " {\n" << Body(entry, false) << "}\n\n";
  }
  header << "\n}  // namespace addend\n\n#endif  // ADDEND_CORE_EAGER_COMPOSITION_OPS_H_\n";
  source << "}  // namespace addend\n";
  if (what == "methods") {
    Write(argv[3], methods.str());
  } else {
    Write(argv[3], source.str());
    Write(argv[4], header.str());
  }
  return 0;
}
