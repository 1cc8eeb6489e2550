// Attribution: what each element of the inputs contributed to chosen numbers, by one sweep backward through the
// linearization, at the same price for ten components and for ten thousand.
#ifndef ADDEND_CORE_EXPLAIN_ATTRIBUTE_H_
#define ADDEND_CORE_EXPLAIN_ATTRIBUTE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/explain/decompose.h"
#include "core/explain/influence.h"
#include "core/explain/input.h"
#include "core/explain/recorded_model.h"
#include "core/explain/report.h"
#include "core/explain/run_options.h"
#include "core/explain/target.h"

namespace addend {

// Something that a live model returned by the name in `at` comes before any other tensor so called. With each_example
// the sweep starts from the sum of the targets, at the price of a single one, and with every_target there is one for
// each of the list. An example gets its own elements' contributions to that sum; if no example influences another (they
// do in batch normalization under training), these are the contributions to its own target. Inputs split into explicit
// parts are refused then.
struct AttributeOptions : RunOptions {
  // The numbers to explain, each by itself, all in one sweep.
  std::vector<Target> targets = {Target()};
};

// The purpose for which a run with these options is recorded.
RunFor PurposeOf(const AttributeOptions& options);

// The relevance that passes through one output of an operator on its way to the targets.
struct OperatorRelevance {
  Position position;
  std::string call;          // as in OperatorReport
  int64_t program_call = 0;  // as in OperatorReport
  int output = 0;
  // One number for each target; one for all examples together if each has a target of its own.
  std::vector<double> passed;    // of value - reference at the target, what went through here
  std::vector<double> leftover;  // what this operator itself left over
};

struct Attribution {
  int64_t numc = 0;
  std::string name;  // of the explained tensor: "output", "output.1" or the selector
  at::Tensor value;  // the explained tensor as the model computed it
  // In the order of the options' targets, or of the examples; with every_target the first target of all examples, then
  // the second. With each_example the leftover is found as value - reference - contributions, and the sum over all
  // examples is what the sweep found and checked.
  std::vector<Contributions> targets;
  // The attributions of each input's elements, [targets, *S], or [*S] with each_example unless every example has every
  // target. float32 or float64 as the input's rows; for ids one number each, float64. Undefined for plain inputs. Their
  // sum over an input's elements is that of its components; an input given as explicit parts may have a leftover of its
  // own between the two.
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> inside;            // as of Decomposition
  std::vector<OperatorRelevance> operators;  // in the order of the calls; empty unless asked for
  Report report;                             // its checks are empty: the sweep is judged at the targets
};

// Returns the relevance that passed through the operators that the model called, for the printed forms of a program of
// the same model and inputs (see core/program/call_numbers.h): for each target one number by call, NaN for calls that
// nothing passed through. A composite operator passes what the last of its parts passes.
std::vector<std::vector<double>> PassedByCall(const Attribution& attribution, size_t num_calls);

// Attributes the targets of the options. Throws Error: InvalidArgument for inputs and targets that do not fit,
// FailedPrecondition if a policy choice looks at all components together and so has no adjoint, Unimplemented with the
// position of an operator that no rule covers, Internal with the position of a tracing failure.
// influence: kept by a caller who attributes batch after batch; null: each is looked at.
Attribution Attribute(const TracedModel& model, const std::vector<Input>& inputs, const AttributeOptions& options = {},
                      std::shared_ptr<KnownInfluence> influence = nullptr);

// The tensor that the options explain, in a recorded run: the one that `at` names, or the first output that counts.
// Throws what FindAsked() throws.
RecordedOutput FindExplained(const std::vector<RecordedOutput>& outputs, TracedRun& trace,
                             const AttributeOptions& options);

// Linearizes a recorded run, whose ids were labelled by LabelEveryId(), and sweeps backward from the targets. The
// policy is that of the run; that of the options is as asked for. Throws what Attribute() throws.
Attribution AttributeRun(RecordedRun run, const AttributeOptions& options);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_ATTRIBUTE_H_
