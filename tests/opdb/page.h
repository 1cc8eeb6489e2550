// docs/ops.md: every rule, and how every entry of PyTorch's operator database does; for another PyTorch than the
// oldest, docs/ops_VERSION.md.
#ifndef ADDEND_TESTS_OPDB_PAGE_H_
#define ADDEND_TESTS_OPDB_PAGE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tests/opdb/laws.h"

namespace addend {

// Findings of the tests for one entry under one preset.
struct EntryResult {
  bool ran = false;
  Outcome outcome;
  std::pair<int64_t, int64_t> calls;  // of the dispatcher for 2 and for 64 components

  bool passes() const {
    return outcome.runs > 0 && outcome.wrong.empty() && outcome.refused.empty() && calls.first == calls.second;
  }
};

// Results by entry; first faithful, then fast.
using Results = std::map<std::string, std::pair<EntryResult, EntryResult>>;

// Adds what runs of other parts of the database have found: their opdb.tsv.
void AddResults(const std::string& path, Results& results);

// The page of a version of PyTorch ("1.13") as text. Numbers that differ from machine to machine are told by their
// order of magnitude.
std::string OpsPage(const Results& results, const std::string& version);

// Path of the committed page.
std::string OpsPageName(const std::string& version);

}  // namespace addend

#endif  // ADDEND_TESTS_OPDB_PAGE_H_
