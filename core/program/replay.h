// Runs a recorded program without its model.
//
// Note [Replay]
// Every call is made again, on the tensors that the calls before it gave. What aliased aliases again, because the views
// are taken again; what was written is written again. Parameters and buffers start as they were when the recording met
// them, each time: what a run writes into them, it writes into a copy. Inputs are written as the model wrote them.
#ifndef ADDEND_CORE_PROGRAM_REPLAY_H_
#define ADDEND_CORE_PROGRAM_REPLAY_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/intercept/operator.h"
#include "core/program/recorded_program.h"

namespace addend {

struct OperatorTraits;

struct ReplayOptions {
  // Names of the values wanted beside the output, as they were when they were made. Copies where the program overwrites
  // them later.
  std::vector<std::string> values;
  bool every_value = false;
  // Whether a guard that does not hold stops the run. Without them a replay is what peers give: the recorded branch and
  // the recorded numbers, whether they still fit or not.
  bool guards = true;
  // Floating-point numbers that left the tensors may differ by this, relative to the recorded one. Zero: not at all.
  double guard_tolerance = 0;
  // The source lines and modules of the recording count as the places of the calls.
  bool places = true;
  // Every write goes into a copy of the memory, and the values that lie in it follow: nothing that was there is
  // overwritten, inputs included. The results are the same where the program knows of every alias.
  bool out_of_place = false;
};

struct ReplayResult {
  c10::IValue output;
  std::vector<std::pair<std::string, at::Tensor>> values;  // by options.values, or in the order of the program
};

class Replay {
 public:
  explicit Replay(std::shared_ptr<const RecordedProgram> program);

  // `inputs`: what the model would be given. The results are those of the model, bit for bit where its operators are.
  // Throws InvalidArgument for inputs that are not like those of the recording (all complaints in one message) and for
  // names that the program does not have; FailedPrecondition, with the position and with recorded and found value, for
  // a guard that does not hold or a result of another shape or dtype. What operators throw passes through.
  ReplayResult Run(const std::vector<c10::IValue>& inputs, const ReplayOptions& options = {}) const;
  // What keeps Run() from taking these inputs, each complaint one line; empty: nothing.
  std::vector<std::string> Complaints(const std::vector<c10::IValue>& inputs) const;
  const RecordedProgram& program() const { return *program_; }

 private:
  class Execution;
  std::shared_ptr<const RecordedProgram> program_;
  std::vector<std::shared_ptr<const OperatorTraits>> traits_;  // by call
  std::vector<bool> optional_elements_;                        // by call: its lists hold optional tensors
  std::vector<std::vector<int>> dead_;                         // by call: the values that nobody uses behind it
  std::vector<bool> needs_memory_;                             // by storage: some value is made from it
  Operator detach_;                                            // what runs in place of detach_()
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_REPLAY_H_
