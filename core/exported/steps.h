// Steps of an exported graph, made once: operators are found, names have become numbers, and constants have the types
// that operators take.
#ifndef ADDEND_CORE_EXPORTED_STEPS_H_
#define ADDEND_CORE_EXPORTED_STEPS_H_

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/exported/numbers.h"
#include "core/exported/program.h"
#include "core/intercept/operator.h"
#include "core/intercept/script_frames.h"

namespace addend::exported {

struct Steps;

// An argument of a step, or an output of all.
struct Source {
  enum class Kind { kConstant, kSlot, kList };
  Kind kind = Kind::kConstant;
  c10::IValue constant;
  int slot = -1;
  std::vector<Source> elements;  // kList
  c10::TypePtr type;             // that the callee takes; null: any
};

// Destination of a result of a step.
struct Result {
  int slot = -1;              // -1: nowhere
  bool is_list = false;       // its elements go to slots of their own
  std::vector<int> elements;  // -1: nowhere
};

// Takes its arguments from the end of a stack and leaves its results there, as kernels of LibTorch do.
using BoxedFunction = void (*)(Stack* stack);

// The tensor that a call of a module has returned.
struct ModuleResult {
  std::string path;
  int slot = -1;  // -1: nobody knows
};

// One call.
struct Step {
  enum class Kind {
    kOperator,        // of LibTorch's dispatcher
    kFunction,        // of this library, in place of an operator
    kNumbers,         // of numbers
    kSubgraph,        // runs bodies[0] on the arguments
    kCond,            // arguments: condition, operands; runs bodies[0] or bodies[1]
    kWhile,           // bodies: condition, body; arguments: what changes from turn to turn, what does not
    kMap,             // bodies[0] on each row of the first arguments
    kScan,            // bodies[0] on a state and each row
    kFunctionalized,  // an operator that writes, on copies of what it would write
  };
  Kind kind = Kind::kOperator;
  std::string name;  // "aten::linear", for messages
  std::optional<Operator> op;
  BoxedFunction function = nullptr;
  NumberFunction numbers = nullptr;
  std::vector<std::shared_ptr<Steps>> bodies;
  std::vector<Source> arguments;
  std::vector<Result> results;
  std::vector<int> dead;             // slots that nobody reads behind this step
  const CodePlace* place = nullptr;  // null: not known
  std::vector<ModuleResult> told;    // modules whose calls end here

  std::optional<bool> gradients;  // kSubgraph: runs with gradients on or off
  size_t changing = 0;            // kWhile: how many arguments change; kMap, kScan: how many are rows
  size_t state = 0;               // kScan: how many arguments, before the rows, are the state
  int64_t dim = 0;                // kScan: that rows are taken along
  bool reverse = false;           // kScan: from the last row to the first
  std::vector<size_t> copied;     // kFunctionalized: the arguments that are copied, in the order of their results
  // True for a view that may become a copy: the memory of its argument may not fit the new sizes, because this
  // LibTorch's operators have laid it out otherwise than the exporter's. False if either is written later.
  bool may_copy = false;
  bool training = false;        // a flag says so
  std::vector<size_t> written;  // the arguments that it changes; of those inside that writes: all
};

struct Steps {
  int num_slots = 0;
  std::vector<int> inputs;  // slots; -1: not read
  std::vector<Step> all;
  std::vector<Source> outputs;
  bool writes = false;  // some step, also of those inside, changes an argument
};

struct StepsOptions {
  c10::Device device = c10::Device(c10::kCPU);  // that stands for every device of the file
  // Maps a type that the file names to the one that the model computes with; by default the same.
  std::function<c10::ScalarType(c10::ScalarType)> dtype;
  // Values of the outermost graph that are known: parameters, buffers, constants.
  std::map<std::string, c10::IValue> known;
  // Values of the outermost graph that the model returns.
  std::vector<std::string> returned;
};

// Steps with all that they refer to.
struct PreparedSteps {
  std::shared_ptr<const Steps> steps;
  std::shared_ptr<const std::vector<std::unique_ptr<CodePlace>>> places;
  // Known tensors that some step may write, or something that may share memory with them.
  std::vector<at::Tensor> written;
  std::vector<std::string> training;  // operators that run as in training: "dropout (train=True)"
};

// Makes the steps of a graph. Throws Unimplemented, with the node's position and what to do, for operators that neither
// this LibTorch nor this library has and for arguments that they do not take; InvalidArgument for a graph that reads
// what nothing before makes.
PreparedSteps MakeSteps(const Graph& graph, const StepsOptions& options);

// Gives a value the type that an operator takes: a number becomes a tensor, an integer a floating-point number, a list
// one of the elements' type. Other values stay as they are.
c10::IValue Fitted(const c10::IValue& value, const c10::TypePtr& type);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_STEPS_H_
