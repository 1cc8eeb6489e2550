// A run of a model as it was recorded, whoever ran it: what decompositions and attributions begin with.
#ifndef ADDEND_CORE_EXPLAIN_RECORDED_MODEL_H_
#define ADDEND_CORE_EXPLAIN_RECORDED_MODEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/policy.h"
#include "core/base/progress.h"
#include "core/explain/influence.h"
#include "core/explain/input.h"
#include "core/explain/run_options.h"
#include "core/intercept/first_error.h"
#include "core/intercept/script_frames.h"
#include "core/intercept/tracing_scope.h"
#include "core/linearize/linearization.h"
#include "core/model/model.h"
#include "core/run/trace.h"

namespace addend {

// A floating-point or complex result of the model.
struct RecordedOutput {
  std::string name;
  at::Tensor value;
  Probe probe;
  at::Tensor on_baseline;  // what the model gave there, where it was run there; see verify.h
  std::string note{};      // what has to be known of which tensor it is; empty: nothing
};

// A result of the model that has no parts: integers, bools.
struct PlainOutput {
  size_t position = 0;  // among all tensors that the model gives
  std::string name;
  at::Tensor value;
};

struct RecordedRun {
  std::shared_ptr<TracedRun> trace;
  std::vector<RecordedOutput> outputs;  // at least one, in the order in which the model gives them
  std::vector<PlainOutput> plain;       // the model's other tensors, in order
  PreparedInputs inputs;  // as their owner split them; those of an attribution were traced by LabelEveryId
  // The numbers of the inputs in the order in which the tracer was told of them, which plain ones may be among.
  std::vector<size_t> declared;
  // The storage that the tracer knows each input as; -1: a plain one, or no operator has met it.
  std::vector<int> storages;
  Policy policy;                                // resolved
  std::shared_ptr<const Preparation> prepared;  // of a run that is planned; null: is made
  std::shared_ptr<KnownInfluence> influence;    // of a run that is one of many; null: is looked for
  // Throws FailedPrecondition if a second run on the inputs differs from the first, so that what the model gave on the
  // baseline says nothing. Null: the model did not run on the baseline, or nobody can look. See Note [Two runs] in
  // same_run.h.
  std::function<void()> require_repeatable;
  double seconds = 0;
};

// Throws InvalidArgument where none of the outputs has the name.
void RequireOutput(const std::vector<RecordedOutput>& outputs, const std::string& name);

// Leaves the outputs that are named, which there have to be; no names: all.
void ChooseOutputs(const std::vector<std::string>& names, std::vector<RecordedOutput>& outputs);

// The tensor of a run that a text names: one of its outputs, or a selector of DecomposeOptions::probes. A model that
// names its results may also have an output without "output." before its name, where no module that ran has that path;
// "logits" is such an output before anything else. `chosen`: the outputs that count, of those that are `given`. Its
// value is undefined where it is no output. Throws InvalidArgument where there is no such tensor, and where "logits"
// may be one of several outputs.
RecordedOutput FindAsked(const std::vector<RecordedOutput>& chosen, const std::vector<RecordedOutput>& given,
                         const TracedRun& trace, const std::string& text);

// FindAsked() for a tensor inside the model. Throws InvalidArgument also where a module with the name of an output gave
// another tensor.
RecordedOutput FindInner(const std::vector<RecordedOutput>& chosen, const std::vector<RecordedOutput>& given,
                         const TracedRun& trace, const std::string& text);

// The texts of which one with a star stands for all, as EachOf() has them.
std::vector<std::string> EachAsked(const std::vector<RecordedOutput>& given, const TracedRun& trace,
                                   const std::string& text);

// Purpose of a recording: rows that are sent forward, or a sweep back, which may be asked for the relevance that passes
// through each operator.
enum class RunFor { kForward, kBackward, kBackwardByOperator };

// Runs a model on prepared inputs and records it, and runs it on the baseline where the options ask for that. A run for
// a sweep back is one of LabelEveryId(). Leaves `seconds` to the caller. Throws InvalidArgument where the
// model fails on the inputs or gives no floating-point tensor, and what tracing throws.
RecordedRun RecordModel(Model& shared, const PreparedInputs& inputs, const RunOptions& options,
                        RunFor purpose = RunFor::kForward);

// Runs a model on these inputs, of which none is split, and gives ModulesOfSeveral() of the run. Throws what
// RecordModel() throws.
std::vector<std::string> ModulesOfSeveral(Model& model, const std::vector<at::Tensor>& values);

// Tells the tracer what the run is for. A sweep back gets how much may be kept, within a limit of memory, or also
// references for the next run. Throws InvalidArgument for a negative limit.
void PrepareTracer(const RunOptions& options, RunFor purpose, Tracer& tracer);

// Tells a tracer of a decomposed input; `value` is what the model is given. Plain inputs need not be told.
void AddInput(const PreparedInput& input, const at::Tensor& value, Tracer& tracer);

// Lines of calls in source code that no interpreter of LibTorch's runs, by the number of the call.
using CallLines = std::map<int64_t, SourceFrame>;

// The run that a tracer has followed. Its calls know these lines, and so does what was derived by them.
TracedRun FinishedRun(Tracer& tracer, const CallLines& lines);

// A handler that reports each operator as a step of the stage "trace", of a total that is not known. What the report
// throws ends the run, and error() still has it when an interpreter has made something else of it.
class ReportingRecorder : public CallHandler {
 public:
  // `next` handles the operators. It and `progress` must outlive this.
  ReportingRecorder(CallHandler* next, const StageProgress* progress) : next_(next), progress_(progress) {}
  void Handle(const Operator& op, Stack* stack) override;
  at::ScalarType computed_in() const override { return next_->computed_in(); }
  void AddModuleOutput(const std::string& module_path, int64_t index, const at::Tensor& tensor) override {
    next_->AddModuleOutput(module_path, index, tensor);
  }
  std::exception_ptr error() const { return first_error_.error(); }

 private:
  CallHandler* next_;
  const StageProgress* progress_;
  int64_t calls_ = 0;
  FirstError first_error_;
};

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_RECORDED_MODEL_H_
