#include "core/exported/exported_model.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/exported/input_checks.h"
#include "core/exported/nesting.h"
#include "core/exported/run_steps.h"
#include "core/exported/state.h"
#include "core/exported/steps.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/memory.h"
#include "core/weights/converted.h"
#include "core/weights/mapped_file.h"

namespace addend {
namespace exported {
namespace {

using c10::IValue;
using weights::DtypeMap;
using weights::WithIndex;

// Maps a type that the file names to the one that the model computes with; null: no type changes.
DtypeMap MapTo(std::optional<c10::ScalarType> dtype, const Program& program) {
  if (!dtype) return nullptr;
  if (!c10::isFloatingType(*dtype)) throw InvalidArgument("parameters are converted to floating-point types only");
  absl::flat_hash_set<c10::ScalarType> own;
  for (const InputSpec& input : program.inputs) {
    if (input.kind != InputSpec::Kind::kParameter) continue;
    const auto found = program.state.find(input.name);
    if (found != program.state.end() && found->second.defined()) own.insert(found->second.scalar_type());
  }
  return weights::MapTo(*dtype, std::move(own));
}

void AddCalls(const Steps& steps, std::vector<ModelCall>* calls) {
  for (const Step& step : steps.all) {
    for (const auto& inner : step.bodies) AddCalls(*inner, calls);
    if (!step.op) continue;
    ModelCall call;
    call.op = step.op->schema().name();
    call.overload = step.op->schema().overload_name();
    if (step.place != nullptr) call.position = PositionAt(*step.place);
    call.position.op = call.op;
    call.training = step.training;
    calls->push_back(std::move(call));
  }
}

class ExportedModel : public Model {
 public:
  ExportedModel(std::shared_ptr<const Program> program, const ScriptOptions& options, c10::Device device, bool copy)
      : program_(std::move(program)), device_(WithIndex(device)), dtype_(options.dtype), copied_(copy) {
    const TracingPause pause;
    const DtypeMap dtype = MapTo(dtype_, *program_);
    state_ = Converted(program_->state, dtype, device_, copy);
    Prepare(dtype);
  }

  // With memory of its own for what runs write, and the rest of the other's.
  struct OwnMemory {};
  ExportedModel(const ExportedModel& other, OwnMemory /*tag*/)
      : program_(other.program_), device_(other.device_), dtype_(other.dtype_), copied_(other.copied_) {
    const TracingPause pause;
    state_ = Converted(other.state_, nullptr, device_, /*copy=*/false);
    Prepare(MapTo(dtype_, *program_));
    KeepWritten();
  }

  IValue Run(const std::vector<IValue>& inputs) override {
    // Threads share this model, and each run begins with what the file holds.
    if (const std::shared_ptr<Model> own = ForOneTrace()) return own->Run(inputs);
    return RunHere(inputs);
  }

  std::shared_ptr<Model> ForOneTrace() const override {
    if (prepared_.written.empty() || !initial_.empty()) return nullptr;
    return std::make_shared<ExportedModel>(*this, OwnMemory());
  }

  void RequireUnchanged() const override {
    if (program_->file != nullptr && !copied_) program_->file->RequireUnchanged();
  }

  std::vector<std::pair<std::string, at::Tensor>> NamedTensors() const override { return named_; }
  std::vector<std::string> BufferNames() const override { return buffers_; }
  std::vector<std::string> ModulePaths() const override { return module_paths_; }

  std::vector<std::string> InputNames() const override {
    std::vector<std::string> names;
    for (const ProgramArgument& argument : arguments_) names.push_back(argument.name);
    return names;
  }

  std::vector<std::string> Complaints(const std::vector<IValue>& inputs) const override {
    std::vector<IValue> leaves;
    return TakeInputs(inputs, &leaves);
  }

  std::optional<std::vector<ModelCall>> Calls() const override {
    std::vector<ModelCall> calls;
    AddCalls(*prepared_.steps, &calls);
    return calls;
  }

  std::vector<std::string> Notes() const override {
    std::vector<std::string> notes = program_->notes;
    if (!prepared_.training.empty()) {
      notes.push_back(absl::StrCat("the model was exported in training mode: ", absl::StrJoin(prepared_.training, ", "),
                                   "; call eval() before exporting it"));
    }
    if (!checks_->unchecked().empty()) {
      notes.push_back(
          absl::StrCat("the exporter's guards that are not checked: ", absl::StrJoin(checks_->unchecked(), "; ")));
    }
    return notes;
  }

  std::shared_ptr<Model> To(const c10::Device& device, std::optional<c10::ScalarType> dtype) const override {
    ScriptOptions options;
    options.dtype = dtype ? dtype : dtype_;
    return std::make_shared<ExportedModel>(program_, options, device, /*copy=*/true);
  }

 private:
  // A tensor that gets an output of the graph as its new content.
  struct Mutation {
    at::Tensor state;  // undefined: it is the leaf's
    size_t leaf = 0;
    size_t output = 0;
  };

  void Prepare(const DtypeMap& dtype) {
    StepsOptions options;
    options.device = device_;
    options.dtype = dtype;
    std::vector<const InputSpec*> user_inputs;
    ReadInputs(&options, &user_inputs);
    arguments_ = ArgumentsOf(*program_, user_inputs.size());
    checks_ = std::make_unique<InputChecks>(*program_, user_inputs, LeavesOf(arguments_), dtype, device_);
    for (const OutputSpec& output : program_->outputs) {
      if (output.kind == OutputSpec::Kind::kUserOutput) options.returned.push_back(output.argument.name);
    }
    prepared_ = MakeSteps(program_->graph, options);
    ReadOutputs();
    AddModulePaths();
  }

  IValue RunHere(const std::vector<IValue>& inputs) {
    RequireUnchanged();
    std::vector<IValue> leaves;
    const std::vector<std::string> complaints = TakeInputs(inputs, &leaves);
    if (!complaints.empty()) {
      throw InvalidArgument(
          absl::StrCat("the inputs do not fit the exported program: ", absl::StrJoin(complaints, "; ")));
    }
    Reset();
    std::vector<IValue> values(program_->graph.inputs.size());
    for (size_t k = 0; k < leaves.size(); ++k) values[user_inputs_[k]] = leaves[k];
    const std::vector<IValue> outputs = RunSteps(*prepared_.steps, std::move(values));
    for (const Mutation& mutation : mutations_) {
      const at::Tensor target = mutation.state.defined() ? mutation.state : leaves[mutation.leaf].toTensor();
      target.copy_(outputs[mutation.output].toTensor());
    }
    std::vector<IValue> results;
    for (const size_t output : user_outputs_) results.push_back(outputs[output]);
    return Nested(program_->out_spec, results);
  }

  const at::Tensor& State(const std::string& name) const {
    const auto found = state_.find(name);
    if (found == state_.end()) throw InvalidArgument(absl::StrCat("the exported program has no data for ", name));
    return found->second;
  }

  void ReadInputs(StepsOptions* options, std::vector<const InputSpec*>* user_inputs) {
    const Program& program = *program_;
    if (program.inputs.size() != program.graph.inputs.size()) {
      throw InvalidArgument("the exported program describes another number of inputs than its graph has");
    }
    for (size_t k = 0; k < program.inputs.size(); ++k) {
      const InputSpec& input = program.inputs[k];
      switch (input.kind) {
        case InputSpec::Kind::kUserInput:
        case InputSpec::Kind::kConstantInput:
          user_inputs->push_back(&input);
          user_inputs_.push_back(k);
          break;
        case InputSpec::Kind::kParameter:
        case InputSpec::Kind::kBuffer:
        case InputSpec::Kind::kTensorConstant:
          if (AsksForGradients(input)) AskForGradients(State(input.name));
          options->known[input.argument.name] = State(input.name);
          Name(input);
          break;
        case InputSpec::Kind::kToken:
          options->known[input.argument.name] = IValue();
          break;
        case InputSpec::Kind::kCustomObject:
          throw Unimplemented(absl::StrCat("the exported program takes the custom object ", input.name,
                                           "; export a model without objects of C++ classes"));
      }
    }
  }

  bool AsksForGradients(const InputSpec& input) const {
    const auto meta = program_->graph.tensors.find(input.argument.name);
    return meta != program_->graph.tensors.end() && meta->second.requires_grad;
  }

  void Name(const InputSpec& input) {
    // Constants without a name of the author's are no help to a reader.
    if (absl::StrContains(input.name, "lifted_tensor_")) return;
    named_.emplace_back(input.name, State(input.name));
    if (input.kind != InputSpec::Kind::kParameter) buffers_.push_back(input.name);
  }

  void ReadOutputs() {
    const Program& program = *program_;
    if (program.outputs.size() != program.graph.outputs.size()) {
      throw InvalidArgument("the exported program describes another number of outputs than its graph has");
    }
    for (size_t k = 0; k < program.outputs.size(); ++k) {
      const OutputSpec& output = program.outputs[k];
      Mutation mutation;
      mutation.output = k;
      switch (output.kind) {
        case OutputSpec::Kind::kUserOutput:
        case OutputSpec::Kind::kLoss:
          user_outputs_.push_back(k);
          break;
        case OutputSpec::Kind::kBufferMutation:
        case OutputSpec::Kind::kParameterMutation:
          mutation.state = State(output.name);
          prepared_.written.push_back(mutation.state);
          mutations_.push_back(mutation);
          break;
        case OutputSpec::Kind::kUserInputMutation:
          mutation.leaf = LeafOf(output.name);
          mutations_.push_back(mutation);
          break;
        case OutputSpec::Kind::kToken:
          break;
        case OutputSpec::Kind::kGradientToParameter:
        case OutputSpec::Kind::kGradientToUserInput:
          throw Unimplemented("the exported program computes gradients; export the model's forward() alone");
      }
    }
  }

  size_t LeafOf(const std::string& name) const {
    for (size_t k = 0; k < user_inputs_.size(); ++k) {
      if (program_->inputs[user_inputs_[k]].argument.name == name) return k;
    }
    throw InvalidArgument(absl::StrCat("the exported program writes to ", name, ", which is no input"));
  }

  void AddModulePaths() {
    absl::flat_hash_set<std::string> seen;
    const auto add = [&](const std::string& path) {
      for (size_t end = path.find('.'); end != std::string::npos; end = path.find('.', end + 1)) {
        if (seen.insert(path.substr(0, end)).second) module_paths_.push_back(path.substr(0, end));
      }
      if (!path.empty() && seen.insert(path).second) module_paths_.push_back(path);
    };
    for (const auto& [name, tensor] : named_) {
      const size_t dot = name.rfind('.');
      if (dot != std::string::npos) add(name.substr(0, dot));
    }
    for (const auto& place : *prepared_.places) add(place->module_path);
  }

  // Gives tensors that runs write memory of their own, and keeps its content in initial_. A model without it runs only
  // if its runs write nothing; see ForOneTrace(). The steps and all lists of tensors hold the same tensor objects.
  void KeepWritten() {
    const c10::AutoGradMode no_grad(false);
    std::map<const void*, c10::Storage> memories;
    for (const at::Tensor& tensor : prepared_.written) {
      const c10::Storage& storage = tensor.storage();
      if (memories.count(storage.unsafeGetStorageImpl()) > 0) continue;
      const auto bytes = static_cast<int64_t>(storage.nbytes());
      const auto options = at::TensorOptions().dtype(at::kByte).device(tensor.device());
      const at::Tensor copy = at::empty({0}, options).set_(storage, 0, {bytes}, {1}).clone();
      memories.emplace(storage.unsafeGetStorageImpl(), copy.storage());
    }
    for (const auto& [name, tensor] : state_) {
      const auto memory = memories.find(tensor.storage().unsafeGetStorageImpl());
      if (memory == memories.end()) continue;
      tensor.set_(memory->second, tensor.storage_offset(), tensor.sizes().vec(), tensor.strides().vec());
    }
    for (const at::Tensor& tensor : prepared_.written) initial_.emplace_back(tensor, tensor.clone());
  }

  // A second run of this model starts with what the file holds, as the first. Before it rather than behind it: results
  // may share memory with buffers.
  void Reset() {
    const TracingPause pause;
    const c10::AutoGradMode no_grad(false);
    for (const auto& [tensor, initial] : initial_) tensor.copy_(initial);
  }

  // The leaves of the inputs. Returns what is wrong with them.
  std::vector<std::string> TakeInputs(const std::vector<IValue>& inputs, std::vector<IValue>* leaves) const {
    const TracingPause pause;
    std::string wrong;
    if (inputs.size() == arguments_.size()) {
      for (size_t k = 0; k < inputs.size() && wrong.empty(); ++k) {
        wrong = TakeLeaves(inputs[k], arguments_[k].spec, arguments_[k].name, leaves);
      }
    } else {
      wrong = absl::StrCat("the model takes ", arguments_.size(), " inputs (", absl::StrJoin(InputNames(), ", "),
                           "), not ", inputs.size());
    }
    if (!wrong.empty() && !TakeFlat(inputs, leaves)) return {wrong};
    return checks_->Complaints(*leaves);
  }

  // All leaves, or those that the file does not give itself.
  bool TakeFlat(const std::vector<IValue>& inputs, std::vector<IValue>* leaves) const {
    if (inputs.size() == user_inputs_.size()) {
      *leaves = inputs;
      return true;
    }
    leaves->clear();
    size_t next = 0;
    for (const size_t k : user_inputs_) {
      const InputSpec& input = program_->inputs[k];
      if (input.kind == InputSpec::Kind::kConstantInput) {
        leaves->push_back(input.value);
      } else if (input.argument.kind == Argument::Kind::kConstant) {
        leaves->push_back(input.argument.constant);
      } else {
        if (next == inputs.size()) return false;
        leaves->push_back(inputs[next++]);
      }
    }
    return next == inputs.size();
  }

  std::shared_ptr<const Program> program_;
  c10::Device device_;
  std::optional<c10::ScalarType> dtype_;
  bool copied_ = false;  // no tensor shares the file's memory
  std::map<std::string, at::Tensor> state_;
  std::vector<std::pair<std::string, at::Tensor>> named_;
  std::vector<std::string> buffers_;
  std::vector<std::string> module_paths_;
  std::vector<size_t> user_inputs_;  // by leaf: of the graph's inputs
  std::vector<ProgramArgument> arguments_;
  std::unique_ptr<InputChecks> checks_;
  PreparedSteps prepared_;
  std::vector<size_t> user_outputs_;  // of the graph's outputs
  std::vector<Mutation> mutations_;
  std::vector<std::pair<at::Tensor, at::Tensor>> initial_;  // see KeepWritten()
};

}  // namespace

std::shared_ptr<Model> ModelOf(std::shared_ptr<const Program> program, const ScriptOptions& options,
                               c10::Device device) {
  if (program == nullptr) throw InvalidArgument("there is no program");
  return std::make_shared<ExportedModel>(std::move(program), options, device, /*copy=*/false);
}

}  // namespace exported

std::shared_ptr<Model> LoadExported(const std::string& path, const ScriptOptions& options) {
  return exported::ModelOf(std::make_shared<const exported::Program>(exported::ReadProgram(path)), options);
}

std::shared_ptr<Model> LoadExportedBytes(const void* data, size_t size, const std::string& name,
                                         const ScriptOptions& options) {
  return exported::ModelOf(std::make_shared<const exported::Program>(exported::ReadProgramBytes(data, size, name)),
                           options);
}

}  // namespace addend
