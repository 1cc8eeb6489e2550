// Checks whether a recording stands for the model: records again, replays, and names the first operator to blame if
// not.
#ifndef ADDEND_CORE_RECORDING_CHECK_TRACE_H_
#define ADDEND_CORE_RECORDING_CHECK_TRACE_H_

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/recording/record_program.h"

namespace addend {

enum class FindingKind {
  kGraph,     // another run calls other operators, or with other arguments
  kValue,     // results differ by more than the tolerance
  kGuard,     // a guard of the program does not hold for a further input
  kConstant,  // a constant of the program is another one for a further input or in a second run
  kRandom,    // an operator draws random numbers
  kTraining,  // an operator runs in training mode
  kState,     // the model overwrites its own parameters or buffers
  kOutput,    // strict: the output holds lists or dictionaries, which the caller could change
};
// "graph", "value", ...
const char* FindingKindName(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::kGraph;
  // Whether the program gives something else than the model. Otherwise the finding is only worth knowing.
  bool error = false;
  int input_set = -1;  // which of CheckOptions::inputs showed it; -1: the inputs of the recording
  Position position;   // of the operator; empty where none is to blame
  std::string message;
};

struct CheckOptions {
  // Further inputs to try, each as the model takes them. Without them nothing that depends on the input is found.
  std::vector<std::vector<c10::IValue>> inputs;
  // |found - expected| <= tolerance * |expected| + a few units in the last place of the dtype.
  double tolerance = 1e-5;
  bool strict = true;
  // Also replays without writes in place. A difference is then an alias that the program does not know of.
  bool out_of_place = false;
};

struct CheckReport {
  Recording recording;
  std::vector<Finding> findings;  // errors and hints, in the order of the procedure
  double worst_error = 0;         // the largest difference between a replay and the model, relative
  // True if no finding is an error.
  bool ok() const;
};

// Checks a model: runs it twice on the inputs and once on each further set, always on copies. The default generator of
// the CPU and what the model keeps from run to run are as they were, afterwards. Throws what Record() throws for the
// inputs themselves.
CheckReport CheckTrace(Model& model, const std::vector<c10::IValue>& inputs, const CheckOptions& options = {},
                       const RecordOptions& record_options = {});
// Checks whatever `record` records. `inputs` are example 0, and the further sets are the examples behind it.
CheckReport CheckTrace(const RecordExample& record, const std::vector<c10::IValue>& inputs,
                       const CheckOptions& options);

// Writes the findings:
// {"format": "addend.check_trace", "version": 1, "ok", "worst_error",
//  "findings": [{"kind", "error", "input_set", "position", "message"}]}; `input_set` is null for the recording's own.
Json FindingsRecord(const CheckReport& report);

}  // namespace addend

#endif  // ADDEND_CORE_RECORDING_CHECK_TRACE_H_
