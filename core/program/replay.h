// Runs a recorded program without its model.
//
// Note [Replay]
// A replay makes every call again, on the tensors that the calls before it gave. Tensors alias as in the recording,
// because the views are taken again; writes happen again. Parameters and buffers start each replay as they were when
// the recording met them; a replay writes to copies of them. Inputs are written as the model wrote them.
#ifndef ADDEND_CORE_PROGRAM_REPLAY_H_
#define ADDEND_CORE_PROGRAM_REPLAY_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/intercept/operator.h"
#include "core/program/invoke.h"
#include "core/program/recorded_program.h"

namespace addend {

struct OperatorTraits;

struct ReplayOptions {
  // Names of values that are wanted beside the output, as they were when they were made. The replay copies those that
  // the program overwrites later.
  std::vector<std::string> values;
  bool every_value = false;
  // Whether a guard that does not hold stops the run. Without guards a replay is what other tracers give: the recorded
  // branch and the recorded numbers, whether they still fit or not.
  bool guards = true;
  // How far a floating-point number that left the tensors may differ from the recorded one, relatively. Zero: not at
  // all.
  double guard_tolerance = 0;
  // Whether calls count as called at the source lines and in the modules of the recording.
  bool places = true;
  // Whether every write goes into a copy of the memory, with the values that lie in it. Nothing is overwritten then,
  // inputs included. The results are the same if the program knows of every alias.
  bool out_of_place = false;
  // Whether values may have a wider dtype than was recorded: for whoever has the operators computed in another dtype.
  bool wider = false;
};

struct ReplayResult {
  c10::IValue output;
  std::vector<std::pair<std::string, at::Tensor>> values;  // by options.values, or in the order of the program
};

class Replay {
 public:
  explicit Replay(std::shared_ptr<const RecordedProgram> program);

  // Runs the program. `inputs`: what the model would be given. The results are the model's, bit for bit where its
  // operators are deterministic. Throws InvalidArgument for inputs that are not like those of the recording (all
  // complaints in one message) and for names that the program does not have; FailedPrecondition, with the position and
  // the recorded and found values, for a guard that does not hold or a result of another shape or dtype. What operators
  // throw passes through.
  ReplayResult Run(const std::vector<c10::IValue>& inputs, const ReplayOptions& options = {}) const;
  // Returns the reasons why Run() would refuse these inputs, one line each; empty: none.
  std::vector<std::string> Complaints(const std::vector<c10::IValue>& inputs) const;
  const RecordedProgram& program() const { return *program_; }

 private:
  class Execution;
  std::shared_ptr<const RecordedProgram> program_;
  std::vector<std::shared_ptr<const OperatorTraits>> traits_;  // by call
  std::vector<StackRecipe> recipes_;                           // by call
  std::vector<std::vector<int>> dead_;                         // by call: the values that nobody uses behind it
  std::vector<bool> needs_memory_;                             // by storage: some value is made from it
  Operator detach_;                                            // what runs in place of detach_()
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_REPLAY_H_
