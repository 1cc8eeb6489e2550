// The names of a program's values while its run is recorded; see RecordedValue::name.
#ifndef ADDEND_CORE_PROGRAM_NAME_TABLE_H_
#define ADDEND_CORE_PROGRAM_NAME_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/program/recorded_program.h"

namespace addend {

// Names of the values of a program. Values from outside are named as they come, results of calls after the run, so that
// naming them takes no time of it.
class NameTable {
 public:
  // `name`, or where another value has it `name` with a counter.
  std::string Unique(const std::string& name);
  // A number for what the results of an operator are called: "add_" for "aten::add_".
  int StemOf(const std::string& operator_name);
  // The next call of the program is of an operator with this stem.
  void AddCall(int stem) { calls_.push_back(stem); }
  // Names the values that have no name, and sets which result of its call each is.
  void NameResults(RecordedProgram* program);

  void Reserve(size_t calls) { calls_.reserve(calls); }

 private:
  bool StemsEndInNumbers() const;
  std::string Numbered(int stem, bool keep);

  absl::flat_hash_set<std::string> names_;
  std::vector<std::string> stems_;
  std::vector<int> counts_;  // by stem: how many calls have been named
  std::vector<int> calls_;   // the stem of each
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_NAME_TABLE_H_
