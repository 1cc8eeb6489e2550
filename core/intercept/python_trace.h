// Source lines as Python tells them, which exporters write into files.
#ifndef ADDEND_CORE_INTERCEPT_PYTHON_TRACE_H_
#define ADDEND_CORE_INTERCEPT_PYTHON_TRACE_H_

#include <string>
#include <vector>

#include "core/intercept/script_frames.h"

namespace addend {

// Reads the text of a Python traceback: a line that names file, line and function, then the source, for each frame.
std::vector<SourceFrame> FramesOfPythonTrace(const std::string& trace);

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_PYTHON_TRACE_H_
