#include "core/onnx/onnx_model.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/intercept/tracing_scope.h"
#include "core/onnx/input_checks.h"
#include "core/onnx/integers.h"
#include "core/onnx/model_proto.h"
#include "core/onnx/node_place.h"
#include "core/onnx/plan.h"
#include "core/onnx/run.h"
#include "core/weights/converted.h"
#include "core/weights/mapped_file.h"

namespace addend {
namespace onnx {
namespace {

using c10::IValue;
using weights::DtypeMap;
using weights::WithIndex;

// Maps a type that the file names to the one that the model computes with; null: no type changes.
DtypeMap MapTo(std::optional<c10::ScalarType> dtype, const Plan& plan) {
  if (!dtype) return nullptr;
  if (!c10::isFloatingType(*dtype)) throw InvalidArgument("weights are converted to floating-point types only");
  absl::flat_hash_set<c10::ScalarType> own;
  for (const ConstantTensor& constant : plan.constants) {
    if (constant.tensor.defined()) own.insert(constant.tensor.scalar_type());
  }
  return weights::MapTo(*dtype, std::move(own));
}

// `type`: as the file tells it; may be null.
Datum DatumOf(const IValue& input, const TypeProto* type) {
  if (input.isNone()) return Datum();
  if (type != nullptr && type->kind == TypeProto::Kind::kOptional) type = type->element.get();
  if (input.isTensor()) {
    Datum datum = Datum::Of(input.toTensor(), Descent::kContent);
    const bool is_tensor = type != nullptr && type->kind == TypeProto::Kind::kTensor;
    if (is_tensor && IsWidened(type->data_type)) datum.integers = type->data_type;
    return datum;
  }
  if (!input.isList()) throw InvalidArgument("an ONNX model takes tensors, lists of them, and None");
  std::vector<Datum> elements;
  const bool is_sequence = type != nullptr && type->kind == TypeProto::Kind::kSequence;
  for (const IValue& element : input.toList().vec()) {
    elements.push_back(DatumOf(element, is_sequence ? type->element.get() : nullptr));
  }
  Datum sequence = Datum::Sequence(std::move(elements));
  sequence.descent = Descent::kContent;
  return sequence;
}

IValue ValueOf(const Datum& datum, const Placement& placement) {
  if (datum.IsNone()) return IValue();
  if (datum.IsTensor()) {
    const at::Tensor tensor = placement.TensorOf(datum);
    return c10::isFloatingType(tensor.scalar_type()) && datum.HoldsIntegers() ? AsIntegers(tensor, datum.integers)
                                                                              : tensor;
  }
  c10::impl::GenericList list(c10::AnyType::get());
  for (const Datum& element : *datum.elements) list.push_back(ValueOf(element, placement));
  return list;
}

// The inputs that batch norms read as mean and variance are not learned.
void AddStatistics(const GraphPlan& graph, absl::flat_hash_set<int>* values) {
  ForEachStep(graph, [&](const Step& step) {
    if (step.op->node->op_type != "BatchNormalization") return;
    for (size_t k = 3; k < step.op->inputs.size(); ++k) values->insert(step.op->inputs[k]);
  });
}

bool IsTraining(const Step& step) {
  for (const Attribute& attribute : step.attributes) {
    if (attribute.name == "training_mode") return attribute.i != 0;
  }
  return false;
}

class OnnxModel : public Model {
 public:
  OnnxModel(std::shared_ptr<const Plan> plan, const ScriptOptions& options, c10::Device device, bool copy)
      : plan_(std::move(plan)), dtype_(options.dtype), notes_(options.notes), copied_(copy) {
    placement_.dtype = MapTo(dtype_, *plan_);
    placement_.device = WithIndex(device);
    constants_ = ConstantsOf(*plan_, placement_, copy);
    NameTensors();
    AddModulePaths();
  }

  IValue Run(const std::vector<IValue>& inputs) override {
    RequireUnchanged();
    const std::vector<std::string> complaints = Complaints(inputs);
    if (!complaints.empty()) {
      throw InvalidArgument(absl::StrCat("the inputs do not fit the ONNX model: ", absl::StrJoin(complaints, "; ")));
    }
    std::vector<Datum> values;
    values.reserve(inputs.size());
    for (size_t k = 0; k < inputs.size(); ++k) {
      const auto number = static_cast<size_t>(body().graph.inputs[k]);
      values.push_back(DatumOf(inputs[k], body().values[number].type));
    }
    return Result(RunPlan(*plan_, constants_, placement_, std::move(values)));
  }

  void RequireUnchanged() const override {
    if (copied_) return;
    const weights::Bytes& bytes = plan_->model.proto->bytes;
    if (bytes.file != nullptr) bytes.file->RequireUnchanged();
    for (const ExternalFile& file : plan_->files.files()) {
      if (file.bytes.file != nullptr) file.bytes.file->RequireUnchanged();
    }
  }

  std::vector<std::pair<std::string, at::Tensor>> NamedTensors() const override { return named_; }
  std::vector<std::string> BufferNames() const override { return buffers_; }
  std::vector<std::string> ModulePaths() const override { return module_paths_; }

  std::vector<std::string> InputNames() const override {
    std::vector<std::string> names;
    for (const int number : body().graph.inputs) names.emplace_back(body().values[static_cast<size_t>(number)].name);
    return names;
  }

  std::vector<std::string> Complaints(const std::vector<IValue>& inputs) const override {
    return InputComplaints(body(), inputs, placement_);
  }

  std::optional<std::vector<ModelCall>> Calls() const override {
    std::vector<ModelCall> calls;
    const auto add = [&](const Step& step) {
      if (step.row == nullptr) return;
      ModelCall call;
      call.position = PositionOf(*step.op->node);
      call.op = call.position.op;
      call.training = IsTraining(step);
      calls.push_back(std::move(call));
    };
    ForEachStep(plan_->body.graph, add);
    for (const BodyPlan& function : plan_->functions) ForEachStep(function.graph, add);
    return calls;
  }

  std::vector<std::string> Notes() const override {
    std::vector<std::string> notes = notes_;
    notes.insert(notes.end(), plan_->notes.begin(), plan_->notes.end());
    return notes;
  }

  std::shared_ptr<Model> To(const c10::Device& device, std::optional<c10::ScalarType> dtype) const override {
    ScriptOptions options;
    options.dtype = dtype ? dtype : dtype_;
    options.notes = notes_;
    return std::make_shared<OnnxModel>(plan_, options, device, /*copy=*/true);
  }

 private:
  const Body& body() const { return plan_->model.body; }

  IValue Result(const std::vector<Datum>& outputs) const {
    if (outputs.size() == 1) return ValueOf(outputs[0], placement_);
    c10::impl::GenericDict results(c10::StringType::get(), c10::AnyType::get());
    for (size_t k = 0; k < outputs.size(); ++k) {
      const auto number = static_cast<size_t>(plan_->body.graph.outputs[k]);
      results.insert(std::string(body().values[number].name), ValueOf(outputs[k], placement_));
    }
    return results;
  }

  void NameTensors() {
    absl::flat_hash_set<int> statistics;
    AddStatistics(plan_->body.graph, &statistics);
    for (const auto& [value, number] : plan_->body.graph.constants) {
      const absl::string_view name = plan_->constants[number].name;
      if (name.empty()) continue;
      const at::Tensor& tensor = constants_[number].tensor;
      named_.emplace_back(std::string(name), tensor);
      if (statistics.contains(value) || !c10::isFloatingType(tensor.scalar_type())) buffers_.emplace_back(name);
    }
  }

  // The modules that nodes name, and those around them.
  void AddModulePaths() {
    absl::flat_hash_set<std::string> seen;
    ForEachStep(plan_->body.graph, [&](const Step& step) {
      const std::string& path = step.place.module_path;
      for (size_t end = path.find('.'); end != std::string::npos; end = path.find('.', end + 1)) {
        if (seen.insert(path.substr(0, end)).second) module_paths_.push_back(path.substr(0, end));
      }
      if (!path.empty() && seen.insert(path).second) module_paths_.push_back(path);
    });
  }

  std::shared_ptr<const Plan> plan_;
  std::optional<c10::ScalarType> dtype_;
  std::vector<std::string> notes_;
  bool copied_ = false;  // no tensor shares a file's memory
  Placement placement_;
  std::vector<Datum> constants_;  // by their numbers in the plan
  std::vector<std::pair<std::string, at::Tensor>> named_;
  std::vector<std::string> buffers_;
  std::vector<std::string> module_paths_;
};

std::shared_ptr<const Plan> PlanOf(weights::Bytes bytes, const std::string& name, ExternalFiles files) {
  if (!IsOnnx(absl::string_view(bytes.data, bytes.size))) {
    throw InvalidArgument(absl::StrCat(OneLine(name), " is not an ONNX model"));
  }
  CheckedModel model = CheckModel(ReadModelProto(std::move(bytes), name));
  RequireKnownInputs(model.body);
  return MakePlan(std::move(model), std::move(files));
}

std::shared_ptr<Model> Load(weights::Bytes bytes, const std::string& name, ExternalFiles files,
                            const ScriptOptions& options) {
  const TracingPause pause;
  return std::make_shared<OnnxModel>(PlanOf(std::move(bytes), name, std::move(files)), options, c10::Device(c10::kCPU),
                                     /*copy=*/false);
}

}  // namespace
}  // namespace onnx

std::shared_ptr<Model> LoadOnnx(const std::string& path, const ScriptOptions& options) {
  return onnx::Load(weights::MapFile(path), path, onnx::ExternalFiles(path), options);
}

std::shared_ptr<Model> LoadOnnxBytes(const void* data, size_t size, const std::string& name,
                                     const ScriptOptions& options) {
  const auto copy = std::make_shared<std::vector<char>>(size);
  if (size > 0) std::memcpy(copy->data(), data, size);
  weights::Bytes bytes;
  bytes.data = copy->data();
  bytes.size = size;
  bytes.owner = copy;
  return onnx::Load(std::move(bytes), name, onnx::ExternalFiles(), options);
}

bool IsOnnxBytes(const void* data, size_t size) {
  return onnx::IsOnnx(absl::string_view(static_cast<const char*>(data), size));
}

std::vector<std::string> WeightFilesOf(const std::string& path) {
  const TracingPause pause;
  const auto plan = onnx::PlanOf(weights::MapFile(path), path, onnx::ExternalFiles(path));
  std::vector<std::string> files;
  for (const onnx::ExternalFile& file : plan->files.files()) files.push_back(file.location);
  return files;
}

}  // namespace addend
