// What decompositions share, whoever runs the model and whichever way is swept: recording a run, finding what is asked
// for in it, and the way from the recording to compositions and report.
#ifndef ADDEND_CORE_EXPLAIN_FINISH_H_
#define ADDEND_CORE_EXPLAIN_FINISH_H_

#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/explain/input.h"
#include "core/intercept/script_frames.h"
#include "core/intercept/tracing_scope.h"
#include "core/linearize/trace.h"
#include "core/model/model.h"

namespace addend {

struct RecordedOutput {
  std::string name;
  at::Tensor value;
  Probe probe;
  at::Tensor on_baseline;  // what the model gave there, where it was run there; see verify.h
};

// The rules that the options ask for.
const Registry& RulesOf(const DecomposeOptions& options);

// Where calls stand in source code that no interpreter of LibTorch's runs, by the number of the call.
using CallLines = std::map<int64_t, SourceFrame>;

// Linearizes and sweeps what `tracer` recorded. `policy` is resolved; that of the options is as asked for.
Decomposition FinishDecomposition(Tracer& tracer, std::vector<RecordedOutput> outputs, const PreparedInputs& prepared,
                                  const Policy& policy, const DecomposeOptions& options, double trace_seconds,
                                  const CallLines& lines = {});

struct RecordedModel {
  std::vector<RecordedOutput> outputs;  // the floating-point tensors among the model's results, in order
  std::vector<PlainOutput> plain;       // its other tensors
  // Those that the model holds and that its run wrote.
  std::vector<at::Tensor> written;
};

// The inputs made ready. Where some are inside the model, it is run once to find them and their shapes; see
// Input::inside. Throws what Prepare() and RecordModel() throw.
PreparedInputs PrepareFor(Model& model, const std::vector<Input>& inputs, const DecomposeOptions& options);

// Whether a split starts inside the model.
bool HasInside(const std::vector<Input>& inputs);
// The arguments among inputs of which some are inside the model, for the run that finds those. Throws InvalidArgument
// where an argument is split as well.
PreparedInputs ArgumentsOf(const std::vector<Input>& inputs);
// All inputs made ready, those inside the model as the run of the arguments showed them; `output`: its first result;
// `held`: what the model holds.
PreparedInputs PlaceInside(const std::vector<Input>& inputs, const TracedRun& trace, const Probe& output,
                           const std::vector<std::pair<std::string, at::Tensor>>& held);

// For a sweep back, ids get components of their own, one for each element, behind those that the caller asked for: an
// embedding knows its ids by labels only.
PreparedInputs LabelEveryId(PreparedInputs prepared);
// Linearizes what `tracer` recorded and goes back from the targets. `asked`: the inputs as their owner split them, the
// run being that of LabelEveryId(asked); `declared`: their numbers in the order in which the tracer was told of them,
// which plain ones may be among. `policy` is resolved, that of the options is as asked for.
Attribution FinishAttribution(Tracer& tracer, const std::vector<RecordedOutput>& outputs, const PreparedInputs& asked,
                              const std::vector<size_t>& declared, const Policy& policy,
                              const AttributeOptions& options, double trace_seconds, const CallLines& lines = {});
// A finished run whose calls know these lines, and so does what was derived by them.
TracedRun FinishedRun(Tracer& tracer, const CallLines& lines);
// A check with where its operator was called.
OperatorReport Locate(const TracedRun& trace, const OperatorCheck& check);

// What the model computed where a split starts inside it, in the order of those inputs.
std::vector<at::Tensor> InsideValues(const TracedRun& trace);

// Runs a model on prepared inputs with tracing on, and on the baseline where the options ask for that. Throws
// InvalidArgument where the model fails on them or gives no floating-point tensor, and what tracing throws.
RecordedModel RecordModel(Model& model, const PreparedInputs& prepared, const DecomposeOptions& options,
                          Tracer& tracer);

// The probe for a selector; see DecomposeOptions::probes. `output`: the model's first result.
Probe FindProbe(const TracedRun& trace, const std::string& selector, const Probe& output);

// The same in a run whose rows have begun. Throws InvalidArgument for a tensor that none of them can reach and whose
// value, therefore, nobody kept.
Probe FindReached(const TracedRun& trace, const std::string& selector, const Probe& output);

// Says where components ended that should have reached `name`.
std::string Unreached(const TracedRun& trace, const std::string& name);
// Throws that as FailedPrecondition: a table of zeros would look like an answer.
[[noreturn]] void ThrowUnreached(const TracedRun& trace, const std::string& name);

// Tells a tracer of a decomposed input; `value` is what the model is given. Plain inputs need not be told.
void AddInput(const PreparedInput& input, const at::Tensor& value, Tracer& tracer);

// A recorder that reports each operator as a step of the stage "trace", of a total that is not known. What the
// report throws ends the run, and error() still has it when an interpreter has made something else of it.
class ReportingRecorder : public CallHandler {
 public:
  ReportingRecorder(Recorder* recorder, const DecomposeOptions* options) : recorder_(recorder), options_(options) {}
  void Handle(const Operator& op, Stack* stack) override;
  std::exception_ptr error() const { return error_; }

 private:
  Recorder* recorder_;
  const DecomposeOptions* options_;
  int64_t calls_ = 0;
  std::exception_ptr error_;
};

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_FINISH_H_
