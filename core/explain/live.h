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
  // The same, to end with FinishAttribution().
  LiveTrace(const std::vector<Input>& inputs, const NamedTensors& named, AttributeOptions options);
  ~LiveTrace() override;
  LiveTrace(const LiveTrace&) = delete;
  LiveTrace& operator=(const LiveTrace&) = delete;

  void SetModule(const std::string& module_path) override;
  // Who gives the source lines that call the operator which runs, outermost first, so that notes tell the line of what
  // derives conditions, indices and numbers. Asked at such operators only.
  void SetFrames(std::function<std::vector<SourceFrame>()> frames);
  // Asks for the composition of a tensor, or of what it aliases. Throws NotFound where no operator has met that memory.
  void AddOutput(const std::string& name, const at::Tensor& tensor) override;
  // What a reader of the report has to know beside what the trace finds.
  void AddNote(const std::string& note);
  // Where splits start inside the model: it ran so that they could be found, its outputs are named, and now it runs
  // once more with the same numbers; what it calls from here on is what is decomposed or attributed, and its outputs
  // are to be named again. Throws what finding the places throws, FailedPrecondition where no split is inside, where
  // this was called before.
  void RunAgain();
  // What the model would be given as the baseline of an input, so that its owner can run it there and tell what it
  // gave. Also stops: that run is not recorded. Throws InvalidArgument where there is no such input and where a split
  // starts inside the model.
  at::Tensor BaselineOf(size_t input);
  // What the model gave on the baseline for an output of that name: the report says whether that is the reference, see
  // Report::reference_error. Throws NotFound where no output is called so.
  void AddOnBaseline(const std::string& name, const at::Tensor& tensor);
  void Stop() override;
  // Stops, and decomposes the outputs and probes, once. Throws the first error of the recording, if there was one, and
  // what TracedModel::Decompose throws.
  Decomposition Finish();
  // The same for the targets of the options. Throws what Attribute() throws.
  Attribution FinishAttribution();

 private:
  class Recording;
  std::shared_ptr<Recording> recording_;
  std::unique_ptr<LiveScope> scope_;
};

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_LIVE_H_
