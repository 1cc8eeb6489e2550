// Live models: operators of the caller's own program, recorded as they run on this thread, and decomposed afterwards.
//
// Note [Live tensors]
// A live model belongs to another library, a Python module say, and its tensors reach us through an exchange format
// that tells where elements lie but not which storage they belong to. Tracing knows tensors by their storages. So an
// input is declared by its memory, and adopted when the first operator is called with a tensor whose storage begins
// there: that is the storage that the model computes with. An output is found among the storages that operators have
// shown, as the one that is alive and holds its memory; two at once cannot, unless one was made to alias the other.
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
#include "core/model/live_scope.h"

namespace addend {

class LiveTrace {
 public:
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

  // Records this thread's operators until Stop(). The values of `inputs` are the live tensors or alias them:
  // contiguous, the whole of their storage, no two in one. `named`: parameters and buffers, for positions. The
  // registry of the options must outlive the trace. Throws InvalidArgument for inputs that do not fit.
  LiveTrace(const std::vector<Input>& inputs, const NamedTensors& named, DecomposeOptions options);
  // The same, to end with FinishAttribution().
  LiveTrace(const std::vector<Input>& inputs, const NamedTensors& named, AttributeOptions options);
  // Also stops. On another thread than that of the constructor the scope stays open, and does nothing any more.
  ~LiveTrace();
  LiveTrace(const LiveTrace&) = delete;
  LiveTrace& operator=(const LiveTrace&) = delete;

  // The module that runs from now on; empty: none.
  void SetModule(const std::string& module_path);
  // Who gives the source lines that call the operator which runs, outermost first, so that notes tell the line of what
  // derives conditions, indices and numbers. Asked at such operators only. Throws FailedPrecondition on another thread.
  void SetFrames(std::function<std::vector<SourceFrame>()> frames);
  // Asks for the composition of a tensor, or of what it aliases. Throws NotFound where no operator has met that memory.
  void AddOutput(const std::string& name, const at::Tensor& tensor);
  // What a reader of the report has to know beside what the trace finds.
  void AddNote(const std::string& note);
  // Where splits start inside the model: it ran so that they could be found, its outputs are named, and now it runs
  // once more with the same numbers; what it calls from here on is what is decomposed or attributed, and its outputs
  // are to be named again. Throws what finding the places throws, FailedPrecondition where no split is inside, where
  // this was called before, and on another thread.
  void RunAgain();
  // What the model would be given as the baseline of an input, so that its owner can run it there and tell what it
  // gave. Also stops: that run is not recorded. Throws InvalidArgument where there is no such input and where a split
  // starts inside the model.
  at::Tensor BaselineOf(size_t input);
  // What the model gave on the baseline for an output of that name: the report says whether that is the reference, see
  // Report::reference_error. Throws NotFound where no output is called so.
  void AddOnBaseline(const std::string& name, const at::Tensor& tensor);
  // Throws FailedPrecondition on another thread than that of the constructor.
  void Stop();
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
