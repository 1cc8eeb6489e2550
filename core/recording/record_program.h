// Records what a model does for one set of inputs, from any front end; see core/program/recorded_program.h.
#ifndef ADDEND_CORE_RECORDING_RECORD_PROGRAM_H_
#define ADDEND_CORE_RECORDING_RECORD_PROGRAM_H_

#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/program/recorded_program.h"

namespace addend {

struct RecordOptions {
  // Names of the arguments, in order; by default what a TorchScript model calls them, else "input_0", "input_1".
  std::vector<std::string> input_names;
  // Asked at every operator outside TorchScript for the caller's own source lines, outermost first.
  std::function<std::vector<SourceFrame>()> frames;
};

struct Recording {
  std::shared_ptr<const RecordedProgram> program;
  c10::IValue output;  // what the model gave
};

// Runs the model once, without gradients, and records it. `inputs`: tensors, also in nested tuples, lists and
// dictionaries, and plain values; the model may write them. Throws InvalidArgument, with one line, where the model
// fails, and Unimplemented, with the position, for what cannot be recorded (tensors that are not dense, autocast).
Recording Record(Model& shared, const std::vector<c10::IValue>& inputs, const RecordOptions& options = {});

// Records a model, whatever it is, for inputs that the caller chooses: what checks recordings, or learns from several,
// calls it. `example`: which of the given examples the inputs are, or were derived from.
using RecordExample = std::function<Recording(const std::vector<c10::IValue>& inputs, size_t example)>;

}  // namespace addend

#endif  // ADDEND_CORE_RECORDING_RECORD_PROGRAM_H_
