// Runs of models: how a request and a context become options of the core, and how what the core gives becomes results.
#ifndef ADDEND_C_API_RUN_H_
#define ADDEND_C_API_RUN_H_

#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "c_api/bodies.h"
#include "c_api/warnings.h"
#include "core/explain/decompose.h"

namespace addend::c_api {

// Refers to the context's rules, which have to outlive it.
DecomposeOptions OptionsOf(const ContextBody& context, const RequestBody& request);
// References that the model keeps; null if the request does not ask for that.
std::shared_ptr<ReferenceCache> ReferencesFor(const ModelBody& model, const RequestBody& request);
// Throws FailedPrecondition while this thread records a trace.
void RequireNoTrace();
// Throws the error of a run that was cancelled.
void RequireGoingOn(const RequestBody& request);

// Throws InvalidArgument where an input has several baselines, which attributions of models alone take.
void RequireOneBaseline(const std::vector<RequestInput>& inputs);
// Throws InvalidArgument for a request with further examples, where only one is taken.
void RequireOneExample(const RequestBody& request);

// Throws unless a run may begin: LibTorch is the one that this was built for, autocast is off, this thread records no
// trace, and the request was not cancelled.
void RequireReady(const RequestBody& request);
// Throws like RequireReady(), and for a request with further examples.
void RequireReadyForOne(const RequestBody& request);

// The beginning of every run of a model: looks the handles up, asks what every run asks, and sends LibTorch's warnings
// to the log of the context, which may be NULL, for as long as it lives.
struct ModelRun {
  enum class Examples { kOne, kAny };

  // `out`: where the result goes, a parameter of that name.
  ModelRun(const addend_context* context, const addend_model* model, const addend_request* request, const void* out,
           const char* out_name, Examples examples = Examples::kOne);

  const ContextBody& context;
  const ModelBody& model;
  const RequestBody& request;
  const WarningsToLog warnings;
};

// The rules of a context: its own, or the default ones.
const Registry& RulesOf(const ContextBody& context);

// The inputs of an example in the order of a model's arguments: those with a name where it says, the others in the
// places that are left.
std::vector<RequestInput> Arrange(const std::vector<std::string>& names, const std::vector<RequestInput>& inputs);
std::vector<Input> InputsOf(const std::vector<RequestInput>& inputs);
// A model with the inputs that it takes of the first example of a request, in its order; what is split inside the model
// comes behind. Where the request has a structure, the model is one of tensors alone, and takes them in the order in
// which its arguments hold them.
struct AskedModel {
  std::shared_ptr<Model> model;
  std::vector<RequestInput> inputs;
  std::shared_ptr<const RequestStructure> structure = nullptr;  // of these inputs
};
AskedModel AskedOf(const ModelBody& model, const RequestBody& request);

// Copies of the inputs that a model is run on, without those inside it; the model may write them.
std::vector<at::Tensor> CopiesOf(const std::vector<RequestInput>& inputs);
// The arguments of a model for each example of a request, from copies of the inputs.
std::vector<std::vector<c10::IValue>> ExamplesOf(const std::vector<std::string>& names, const RequestBody& request);

// Keeps what readers of a run ask for later: copies of inputs, splits and baselines, whose memory the caller may use
// again, and buffers of the model that are baselines by their names. held: gives the model's tensors by name.
void KeepInputs(const std::function<std::vector<std::pair<std::string, at::Tensor>>()>& held,
                std::vector<RequestInput>& inputs);
// Keeps another row of a plan's inputs: only values are new. values: undefined where that of the plan stays.
void KeepValues(const std::vector<at::Tensor>& values, std::vector<RequestInput>& inputs);
// Facts of a run for handles; `inputs` as they were handed in, `inside` what the model computed for those inside it.
std::shared_ptr<const ExplainedRun> RecordOf(Report report, int64_t numc, std::vector<RequestInput> inputs,
                                             const std::vector<at::Tensor>& inside, Preset asked,
                                             const std::string& model_path);
// Adds the warnings of earlier runs to the report of what was computed from compositions that they gave, each once.
void AddWarnings(const std::vector<std::shared_ptr<const ExplainedRun>>& earlier, Report& report);
// The run of a composition that was taken from others without a run of its own: the warnings of theirs, with the policy
// of the first; null where they warn of nothing. Its components may be others than theirs.
std::shared_ptr<const ExplainedRun> RunBehind(const std::vector<std::shared_ptr<const ExplainedRun>>& earlier);
// The results know their components by name.
ResultsBody ResultsOf(Decomposition decomposition, const std::vector<RequestInput>& inputs, Preset asked,
                      const std::string& model_path);
// The tensors that a model gives, "output", "output.1"...; what else it gives is left out.
std::vector<ResultEntry> OutputsOf(const c10::IValue& output);

}  // namespace addend::c_api

#endif  // ADDEND_C_API_RUN_H_
