// The table of one explanation in a terminal.
#ifndef ADDEND_TOOLS_ADDEND_TABLE_H_
#define ADDEND_TOOLS_ADDEND_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/document/explanation.h"
#include "tools/addend/inputs.h"
#include "tools/addend/text.h"

namespace addend::cli {

// Header of a run: model, inputs, baselines and policy; one or two short lines each.
std::string RunHeader(const LoadedRun& run, const Report& report, const Terminal& terminal);
// Notes but for those whose content the header has.
std::vector<std::string> NotesBehindHeader(const std::vector<std::string>& notes);
// One target alone: its largest `top` contributions with bars, the sum that they are part of, and what passed through
// operators where that was asked for.
std::string TargetTable(const Explanation& explanation, size_t target, int64_t top, const Terminal& terminal);
// The target asked for, behind the header of its run and before the other scores and the notes.
std::string ExplanationTable(const LoadedRun& run, const Explanation& explanation, int64_t top,
                             const Terminal& terminal);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_TABLE_H_
