// Summary of a recorded program, for other programs.
#ifndef ADDEND_CORE_PROGRAM_SUMMARY_H_
#define ADDEND_CORE_PROGRAM_SUMMARY_H_

#include "core/base/json.h"
#include "core/program/recorded_program.h"

namespace addend {

// {"format": "addend.program_summary", "version": 1, "operators": 7, "inputs": [{"name", "structure"}], "output",
//  "values": [{"name", "kind", "dtype", "shape"}], "guards": [{"kind", "call", "value", "position"}],
//  "free": [{"input", "dim", "like", "least" and "most" where sizes are limited}]}
// Structures are written as DescribeStructure() does, calls as DescribeCall(); `free` has the dimensions of inputs that
// may have another size, and `like` the place in this list of the one whose size they must have, or null.
Json SummaryRecord(const RecordedProgram& program);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_SUMMARY_H_
