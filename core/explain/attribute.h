// The question that most users ask: what did each element of the inputs give to this number? One sweep back through the
// linearization answers it, at the same price for ten components and for ten thousand.
#ifndef ADDEND_CORE_EXPLAIN_ATTRIBUTE_H_
#define ADDEND_CORE_EXPLAIN_ATTRIBUTE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/explain/decompose.h"
#include "core/explain/input.h"
#include "core/explain/recorded_model.h"
#include "core/explain/report.h"
#include "core/explain/run_options.h"
#include "core/explain/target.h"

namespace addend {

struct AttributeOptions : RunOptions {
  // The tensor that the targets are elements of: empty or "output": the model's first result; "output.1" ...; else a
  // selector as of DecomposeOptions::probes, such as "logits" for what a final softmax reads.
  std::string at;
  // The numbers to explain. More than one: each for itself, all in one sweep.
  std::vector<Target> targets = {Target()};
  // The first dimension of every split input and of the explained tensor counts examples, and each example has a target
  // of its own in its row of the tensor (`targets` holds one for each, or one for all; indices leave out the first
  // dimension). The sweep goes back from the sum of the targets, at the price of a single one. An example gets what its
  // own elements give to that sum: where no example looks at another (they do in batch normalization under training),
  // that is what they give to its own target. Inputs split into explicit parts are refused.
  bool each_example = false;
  // Finds what passes through every operator; see Attribution::operators.
  bool operators = false;
};

// What passes through one output of an operator on its way to the targets.
struct OperatorRelevance {
  Position position;
  std::string call;          // as in OperatorReport
  int64_t program_call = 0;  // as in OperatorReport
  int output = 0;
  // By target; one number for all examples together where each has a target.
  std::vector<double> passed;    // of value - reference at the target, what went through here
  std::vector<double> leftover;  // what this operator itself left over
};

struct Attribution {
  int64_t numc = 0;
  std::string name;  // of the explained tensor: "output", "output.1" or the selector
  at::Tensor value;  // the explained tensor as the model computed it
  // In the order of the options' targets, or of the examples. With each_example the leftover is found as
  // value - reference - contributions, and the sum over all examples is what the sweep found and checked.
  std::vector<Contributions> targets;
  // By input: what each element gives, [targets, *S], or [*S] with each_example. float32 or float64 as the input's rows
  // have it; for ids one number each, float64. Undefined for plain inputs. Their sum over an input's elements is that
  // of its components; an input given as explicit parts may have a leftover of its own between the two.
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> inside;            // as of Decomposition
  std::vector<OperatorRelevance> operators;  // in the order of the calls; empty unless asked for
  Report report;                             // its checks are empty: the sweep is judged at the targets
};

// What passed through the operators that the model called, for the printed forms of a program of the same model and
// inputs (see core/program/call_numbers.h): for each target one number by call, NaN for calls that nothing passed
// through. A composite operator passes what the last of its parts passes.
std::vector<std::vector<double>> PassedByCall(const Attribution& attribution, size_t num_calls);

// Throws Error: InvalidArgument for inputs and targets that do not fit, FailedPrecondition where a choice of the policy
// looks at all components together and so has no adjoint, Unimplemented with the position of an operator that no rule
// covers, Internal with that of a tracing failure.
Attribution Attribute(const TracedModel& model, const std::vector<Input>& inputs, const AttributeOptions& options = {});

// Linearizes a recorded run, whose ids were labelled by LabelEveryId(), and goes back from the targets. The policy is
// that of the run; that of the options is as asked for. Throws what Attribute() throws.
Attribution AttributeRun(RecordedRun run, const AttributeOptions& options);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_ATTRIBUTE_H_
