// Reads a log line by line and finds what is not as it was written.
#ifndef ADDEND_CORE_AUDIT_CHAIN_H_
#define ADDEND_CORE_AUDIT_CHAIN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/audit/record.h"
#include "core/base/json.h"

namespace addend {

// Something that is wrong at some lines. Numbers of lines and records count from 1.
struct ChainProblem {
  std::string kind;  // "damaged", "chain" or "torn"
  int64_t first_line = 0;
  int64_t last_line = 0;
  int64_t first_record = 0;  // that stood there; 0: none did
  int64_t last_record = 0;
  std::string message;    // "record 5 (line 5): its hash is not that of its content"
  bool open_end = false;  // nothing whole comes behind it, so that more records may be lost than last_record says
};

// A record that is as it was written.
struct PlacedRecord {
  int64_t line = 0;
  uint64_t offset = 0;  // of its line in the file
  ReadRecord read;
};

struct ChainResult {
  uint64_t bytes = 0;  // that were read
  int64_t lines = 0;
  int64_t records = 0;  // that are as they were written
  int64_t last_number = 0;
  std::string last_hash;
  bool in_use = false;        // another process has it open as a log
  uint64_t foreign_from = 0;  // where what is no record begins, behind the last one and up to the end; 0: there is none
  std::vector<ChainProblem> problems;
};

// Reads the log as far as it goes now, and calls `visit` for each record that is as it was written. Every bit of the
// file counts: a line is a record if it is exactly the canonical JSON whose hash it holds, and follows the line before
// it.
ChainResult ReadChain(const std::string& path, const std::function<void(const PlacedRecord&)>& visit);

// Describes the bytes from `begin` to `end`, behind the record of that number, which nobody wrote as a record, such as
// a table that was printed into the log; says how they are cut off.
std::string ForeignBytes(const std::string& path, uint64_t begin, uint64_t end, int64_t number);

// The line at an offset of the log, as PlacedRecord has it.
std::string LineAt(const std::string& path, uint64_t offset);

}  // namespace addend

#endif  // ADDEND_CORE_AUDIT_CHAIN_H_
