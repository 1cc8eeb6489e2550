#include "core/program/name_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace addend {
namespace {

bool Has(const c10::SmallVectorImpl<int>& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// The position of each value among the results of the call, or behind them among what it wrote.
void NumberResults(const RecordedCall& call, std::vector<RecordedValue>* values) {
  for (size_t r = 0; r < call.results.size(); ++r) {
    if (call.results[r] >= 0) (*values)[call.results[r]].result = static_cast<int>(r);
  }
  for (size_t w = 0; w < call.written.size(); ++w) {
    if (Has(call.results, call.written[w])) continue;
    (*values)[call.written[w]].result = static_cast<int>(call.results.size() + w);
  }
}

// The values without a name that the call made, results first.
void UnnamedOf(int number, const RecordedProgram& program, std::vector<int>* unnamed) {
  unnamed->clear();
  const RecordedCall& call = program.calls[number];
  for (const auto* values : {&call.results, &call.written}) {
    for (const int value : *values) {
      if (value < 0 || program.values[value].call != number || !program.values[value].name.empty()) continue;
      if (std::find(unnamed->begin(), unnamed->end(), value) == unnamed->end()) unnamed->push_back(value);
    }
  }
}

}  // namespace

std::string NameTable::Unique(const std::string& name) {
  std::string unique = name;
  for (int k = 1; !names_.insert(unique).second; ++k) unique = absl::StrCat(name, "_", k);
  return unique;
}

int NameTable::StemOf(const std::string& operator_name) {
  const size_t colon = operator_name.rfind(':');
  std::string stem = colon == std::string::npos ? operator_name : operator_name.substr(colon + 1);
  const auto known = std::find(stems_.begin(), stems_.end(), stem);
  const auto number = static_cast<int>(known - stems_.begin());
  if (known == stems_.end()) {
    stems_.push_back(std::move(stem));
    counts_.push_back(0);
  }
  return number;
}

// "relu_1" cannot be the second relu and the first relu_1: with such an operator every name has to be looked up.
bool NameTable::StemsEndInNumbers() const {
  return std::any_of(stems_.begin(), stems_.end(), [](const std::string& stem) {
    const size_t last = stem.find_last_not_of("0123456789");
    return last != std::string::npos && last + 1 < stem.size() && stem[last] == '_';
  });
}

// `keep`: whether later names have to be told apart from this one.
std::string NameTable::Numbered(int stem, bool keep) {
  for (;;) {
    const int k = counts_[stem]++;
    std::string name = stems_[stem];
    if (k > 0) absl::StrAppend(&name, "_", k);
    if (keep ? names_.insert(name).second : !names_.contains(name)) return name;
  }
}

void NameTable::NameResults(RecordedProgram* program) {
  const bool keep = StemsEndInNumbers();
  std::vector<int> own;
  for (size_t c = 0; c < program->calls.size(); ++c) {
    NumberResults(program->calls[c], &program->values);
    UnnamedOf(static_cast<int>(c), *program, &own);
    if (own.empty()) continue;
    std::string name = Numbered(calls_[c], keep);
    if (own.size() == 1) {
      program->values[own[0]].name = std::move(name);
      continue;
    }
    for (size_t k = 0; k < own.size(); ++k) program->values[own[k]].name = Unique(absl::StrCat(name, ".", k));
  }
  for (RecordedValue& value : program->values) {
    if (!value.name.empty()) continue;
    const int base = program->storages[value.storage].value;
    value.name = Unique(absl::StrCat(program->values[base].name, ".part"));
  }
}

}  // namespace addend
