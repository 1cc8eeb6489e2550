// Programs as the sections that make them see them.
#ifndef ADDEND_C_API_PROGRAM_H_
#define ADDEND_C_API_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "c_api/bodies.h"
#include "core/program/code_trace.h"
#include "core/program/recorded_program.h"
#include "core/program/replay.h"
#include "core/recording/check_trace.h"

namespace addend::c_api {

struct ProgramBody {
  std::shared_ptr<const RecordedProgram> program;
  std::shared_ptr<const Replay> replay;
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::vector<int> outputs;  // values of the program, one for each output
  std::string path;          // of the folder that it comes from, or of the model that was recorded
  c10::IValue output;        // of the run, where a trace recorded it; None otherwise
};

// Options of addend_model_check_trace.
CheckOptions CheckOptionsOf(const char* options);
// Options of addend_program_code_text.
CodeTraceOptions CodeOptionsOf(const char* given);

ProgramBody ProgramOf(std::shared_ptr<const RecordedProgram> program, const std::string& path);

}  // namespace addend::c_api

#endif  // ADDEND_C_API_PROGRAM_H_
