// Writes the options of requests as C++ from their list. A program of the build:
//   request request_options.txt request_options.h request_table.cc
#include <map>
#include <regex>
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

struct Option {
  std::string key;
  std::string field;   // its name in the struct
  std::string member;  // its declaration
  std::string record;  // an enumerator of RequestOption::Record
  std::string says;
};

// The name of an option in a face; empty: that of the key.
std::string NameIn(const std::string& names, const std::string& face) {
  std::smatch match;
  return std::regex_search(names, match, std::regex("(^|; )" + face + " ([^;]+)")) ? match[2].str() : "";
}

std::string Member(const std::string& type, const std::string& field, const std::string& value) {
  if (type == "flag") return "bool " + field + " = " + value + ";";
  if (type == "bytes") return "int64_t " + field + " = " + value + ";";
  if (type == "seconds") return "double " + field + " = " + value + ";";
  if (type == "text") return "std::string " + field + (value == "empty" ? ";" : " = " + Quote(value) + ";");
  const std::string of = "choice of ";
  if (type.rfind(of, 0) != 0) Fail("not a type: " + type);
  const std::string choice = type.substr(of.size());
  return choice + " " + field + " = " + choice + "::k" + Camel(value) + ";";
}

Option Parse(const Block& block) {
  std::map<std::string, std::string> said(block.entries.begin(), block.entries.end());
  for (const char* head : {"type", "default", "calls", "record", "says"}) {
    if (said.count(head) == 0) Fail(block.name + " lacks its " + head);
  }
  const std::map<std::string, std::string> records = {
      {"always", "kAlways"}, {"where set", "kWhereSet"}, {"never", "kNever"}};
  if (records.count(said["record"]) == 0) Fail("a record has an option always, where set or never: " + said["record"]);
  Option option;
  option.key = block.name;
  option.field = NameIn(said["names"], "field");
  if (option.field.empty()) option.field = option.key;
  option.member = Member(said["type"], option.field, said["default"]);
  option.record = records.at(said["record"]);
  option.says = said["says"] + (said.count("more") == 0 ? "" : " " + said["more"]);
  for (size_t tick; (tick = option.says.find('`')) != std::string::npos;) option.says.erase(tick, 1);
  return option;
}

std::string Header(const std::vector<Option>& options) {
  std::string out =
      "// Options of requests. Generated from core/explain/request_options.txt; do not edit.\n"
      "#ifndef ADDEND_CORE_EXPLAIN_REQUEST_OPTIONS_H_\n#define ADDEND_CORE_EXPLAIN_REQUEST_OPTIONS_H_\n\n"
      "#include <cstdint>\n#include <string>\n\n#include \"core/linearize/direction.h\"\n\n"
      "namespace addend {\n\nstruct RequestOptions {\n";
  for (const Option& option : options) out += Comment(option.says, "  ") + "  " + option.member + "\n";
  return out + "};\n\n}  // namespace addend\n\n#endif  // ADDEND_CORE_EXPLAIN_REQUEST_OPTIONS_H_\n";
}

std::string Table(const std::vector<Option>& options) {
  std::string out =
      "// Generated from core/explain/request_options.txt; do not edit.\n#include \"core/explain/request.h\"\n\n"
      "namespace addend {\n\nconst std::vector<RequestOption>& RequestOptionTable() {\n"
      "  static const auto& options = *new std::vector<RequestOption>{\n";
  for (const Option& option : options) {
    out += "      {" + Quote(option.key) + ", &RequestOptions::" + option.field +
           ", RequestOption::Record::" + option.record + "},\n";
  }
  return out + "  };\n  return options;\n}\n\n}  // namespace addend\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) Fail("usage: request LIST HEADER SOURCE");
  std::vector<Option> options;
  for (const Block& block : ReadBlocks(argv[1])) options.push_back(Parse(block));
  Write(argv[2], Header(options));
  Write(argv[3], Table(options));
  return 0;
}
