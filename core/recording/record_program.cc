#include "core/recording/record_program.h"

#include <ATen/ops/alias.h>

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/intercept/tracing_scope.h"
#include "core/model/run_model.h"
#include "core/program/program_recorder.h"

namespace addend {
namespace {

// The inputs, in which no tensor object comes twice: only then does an operator tell which of two it reads.
std::vector<c10::IValue> Distinct(const std::vector<c10::IValue>& inputs,
                                  const std::vector<std::pair<std::string, at::Tensor>>& named) {
  absl::flat_hash_set<const c10::TensorImpl*> seen;
  for (const auto& [name, tensor] : named) seen.insert(tensor.unsafeGetTensorImpl());
  std::vector<c10::IValue> distinct;
  for (const c10::IValue& input : inputs) {
    std::vector<at::Tensor> tensors;
    bool twice = false;
    const Structure structure = TakeApart(input, "an input", [&](const at::Tensor& tensor) {
      const bool is_new = seen.insert(tensor.unsafeGetTensorImpl()).second;
      twice |= !is_new;
      tensors.push_back(is_new ? tensor : at::alias(tensor));
      return static_cast<int>(tensors.size()) - 1;
    });
    // Containers that the model may change stay the caller's.
    distinct.push_back(twice ? PutTogether(structure, [&](int k) { return tensors[k]; }) : input);
  }
  return distinct;
}

std::string Describe(const std::vector<c10::IValue>& inputs) {
  return absl::StrJoin(inputs, ", ", [](std::string* out, const c10::IValue& input) {
    if (input.isTensor() && input.toTensor().defined()) {
      const at::Tensor& tensor = input.toTensor();
      absl::StrAppend(out, TensorText(tensor));
    } else {
      absl::StrAppend(out, DescribeStructure(TakeApart(input, "an input", [](const at::Tensor&) { return 0; })));
    }
  });
}

}  // namespace

Recording Record(Model& shared, const std::vector<c10::IValue>& inputs, const RecordOptions& options) {
  const std::shared_ptr<Model> own = shared.ForOneTrace();
  Model& model = own != nullptr ? *own : shared;
  const auto named = model.NamedTensors();
  const std::vector<std::string> buffers = model.BufferNames();
  const absl::flat_hash_set<std::string> is_buffer(buffers.begin(), buffers.end());
  std::vector<std::string> names = options.input_names.empty() ? model.InputNames() : options.input_names;
  names.resize(std::max(names.size(), inputs.size()));
  const std::vector<c10::IValue> arguments = Distinct(inputs, named);

  ProgramRecorder recorder;
  for (const auto& [name, tensor] : named) recorder.NameTensor(name, tensor, !is_buffer.contains(name));
  recorder.SetModulePaths(model.ModulePaths());
  recorder.SetFrameProvider(options.frames);
  for (size_t k = 0; k < arguments.size(); ++k) recorder.AddInput(names[k], arguments[k]);
  Recording recording;
  try {
    const TracingScope scope(&recorder);
    recording.output = RunModel(model, arguments, Describe(arguments));
  } catch (...) {
    // The interpreter hands on our errors as its own; the first one is the cause.
    if (recorder.error()) std::rethrow_exception(recorder.error());
    throw;
  }
  if (recorder.error()) std::rethrow_exception(recorder.error());
  recording.program = std::make_shared<const RecordedProgram>(recorder.Finish(recording.output));
  return recording;
}

}  // namespace addend
