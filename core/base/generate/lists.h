// The parts that the generators of C++ share: lists in the form of core/base/policy_choices.txt, and text of C++.
#ifndef ADDEND_CORE_BASE_GENERATE_LISTS_H_
#define ADDEND_CORE_BASE_GENERATE_LISTS_H_

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace addend::generate {

[[noreturn]] inline void Fail(const std::string& message) {
  std::cerr << message << "\n";
  std::exit(1);
}

// A line without indentation, and what stands under it: pairs of "head: text".
struct Block {
  std::string name;
  std::vector<std::pair<std::string, std::string>> entries;
};

// The lines of a list without comments, each with the lines that go on with it.
inline std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream list(path);
  if (!list) Fail("cannot read " + path);
  std::vector<std::string> lines;
  std::string line;
  while (std::getline(list, line)) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line[begin] == '#') continue;
    if (begin <= 2) {
      lines.push_back(line);
    } else if (!lines.empty()) {
      lines.back() += line.substr(begin - 1);
    }
  }
  return lines;
}

inline std::vector<Block> ReadBlocks(const std::string& path) {
  std::vector<Block> blocks;
  for (const std::string& line : ReadLines(path)) {
    const size_t colon = line.find(": ");
    if (line[0] != ' ') {
      blocks.push_back({line, {}});
    } else if (blocks.empty() || colon == std::string::npos) {
      Fail("a line under nothing, or not of the form \"head: text\": " + line);
    } else {
      blocks.back().entries.emplace_back(line.substr(2, colon - 2), line.substr(colon + 2));
    }
  }
  return blocks;
}

// "missing_rule": "MissingRule".
inline std::string Camel(const std::string& name) {
  std::string camel;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') camel += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return camel;
}

inline std::string Comment(const std::string& text, const std::string& indent) {
  constexpr size_t kColumns = 120;
  std::istringstream words(text);
  std::string out;
  std::string line = indent + "//";
  std::string word;
  while (words >> word) {
    if (line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line = indent + "//";
    }
    line += " " + word;
  }
  return out + line + "\n";
}

inline std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

inline void Write(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  if (!out.flush()) Fail("cannot write " + path);
}

}  // namespace addend::generate

#endif  // ADDEND_CORE_BASE_GENERATE_LISTS_H_
