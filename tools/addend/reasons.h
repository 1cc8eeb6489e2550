// Reasons in a terminal.
#ifndef ADDEND_TOOLS_ADDEND_REASONS_H_
#define ADDEND_TOOLS_ADDEND_REASONS_H_

#include <string>
#include <vector>

#include "core/document/reasons.h"
#include "tools/addend/text.h"

namespace addend::cli {

// The description of a file. Throws NotFound, and InvalidArgument that names the file.
Concepts LoadConcepts(const std::string& path);
// Every decision with its reasons in order, the sum that they are part of, and its notes; then the notes of the run
// that are to be shown.
std::string ReasonsTable(const Reasons& reasons, const std::vector<std::string>& notes, const Terminal& terminal);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_REASONS_H_
