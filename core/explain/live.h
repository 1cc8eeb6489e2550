// Live models: operators of the caller's own program, recorded as they run on this thread, and decomposed afterwards.
//
// Note [Traced as it runs]
// A live model can be recorded as a program too (core/recording/live_program.h), and a program can be decomposed.
// LiveTrace is no second way to that: it decomposes the run that happened, and a replay is another run. It draws other
// random numbers, its guards stop it where a kernel gives other bits, and the model is paid for twice. And a recording
// refuses what no replay could repeat, wherever in the model it is: sparse and quantized tensors, objects as arguments.
// A trace refuses them only where rows have to pass.
#ifndef ADDEND_CORE_EXPLAIN_LIVE_H_
#define ADDEND_CORE_EXPLAIN_LIVE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/explain/input.h"
#include "core/explain/plan.h"
#include "core/intercept/script_frames.h"
#include "core/model/live_run.h"
#include "core/model/live_scope.h"

namespace addend {

class LiveTrace : public LiveRun {
 public:
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

  // Records this thread's operators until Stop(). The values of `inputs` are the live tensors or alias them:
  // contiguous, the whole of their storage, no two in one. `named`: parameters and buffers, for positions. The
  // registry of the options must outlive the trace. Throws InvalidArgument for inputs that do not fit.
  LiveTrace(const std::vector<Input>& inputs, const NamedTensors& named, DecomposeOptions options);
  // Records in the same way, to end with FinishAttribution().
  LiveTrace(const std::vector<Input>& inputs, const NamedTensors& named, AttributeOptions options);
  // Stops the recording. On another thread than that of the constructor the scope stays open, without any effect.
  ~LiveTrace() override;
  LiveTrace(const LiveTrace&) = delete;
  LiveTrace& operator=(const LiveTrace&) = delete;

  // The module that runs from now on; empty: none.
  void SetModule(const std::string& module_path) override;
  void AddModuleOutput(const std::string& module_path, int64_t index, const at::Tensor& tensor) override;
  // Sets who gives the source lines, outermost first, that call the running operator, so that notes can name the line
  // that derives conditions, indices and numbers. Only operators that derive these ask. Throws FailedPrecondition on
  // another thread.
  void SetFrames(std::function<std::vector<SourceFrame>()> frames);
  // Asks for the composition of a tensor, or of what it aliases. Throws NotFound where no operator has met that memory.
  void AddOutput(const std::string& name, const at::Tensor& tensor) override;
  // Adds a note to those that the trace finds.
  void AddNote(const std::string& note);
  // Begins the second run of the model, where splits start inside it. The first run has found the places, and its
  // outputs are named. The model now runs once more with the same numbers; that run is decomposed or attributed, and
  // its outputs are to be named again. Throws what finding the places throws; FailedPrecondition if no split is inside,
  // on a second call, and on another thread.
  void SecondRun();
  // Returns what the model would be given as the baseline of an input, so that its owner can run it there. Stops the
  // recording: that run is not recorded. Throws InvalidArgument if there is no such input, and if a split starts inside
  // the model.
  at::Tensor BaselineOf(size_t input);
  // Takes what the model gave on the baseline for an output; the report then says whether that is the reference, see
  // Report::reference_error. Throws NotFound if no output has this name.
  void AddOnBaseline(const std::string& name, const at::Tensor& tensor);
  // Stops the recording. Throws FailedPrecondition on another thread than that of the constructor.
  void Stop() override;
  // Stops, and decomposes the outputs and probes, once. Throws the first error of the recording, if there was one, and
  // what TracedModel::Decompose throws.
  Decomposition Finish();
  // Stops, and attributes the targets of the options, once. Throws what Attribute() throws.
  Attribution FinishAttribution();
  // Stops, and plans attributions as FinishAttribution() would give, once. Throws what AttributionPlan::Of() throws,
  // and FailedPrecondition where notes were added: they tell of what no operator shows.
  std::shared_ptr<const AttributionPlan> FinishPlan();

 private:
  class Recording;
  std::shared_ptr<Recording> recording_;
  std::unique_ptr<LiveScope> scope_;
};

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_LIVE_H_
