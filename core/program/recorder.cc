#include "core/program/recorder.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "core/intercept/tracing_scope.h"
#include "core/program/operator_traits.h"
#include "core/program/written_aside.h"

namespace addend {
namespace {

Geometry GeometryOf(const at::Tensor& tensor) {
  Geometry geometry;
  geometry.sizes = c10::DimVector(tensor.sizes());
  geometry.strides = c10::DimVector(tensor.strides());
  geometry.offset = tensor.storage_offset();
  return geometry;
}

// Tensor arguments come as a tensor, an optional tensor (None), a tensor list or a list of optional tensors.
template <typename Visit>
void VisitArgument(const c10::IValue& value, Visit visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      if (element.isTensor()) visit(element.toTensor());
    }
  }
}

// Recorded form of an argument beside its operands: numbers and strings as they are, nothing for tensors, and for a
// list of optional tensors which of its entries are there (1) and which are not (0).
c10::IValue WithoutTensors(const c10::IValue& value) {
  if (value.isTensor() || value.isTensorList()) return {};
  if (!value.isList()) return value;
  bool tensors = false;
  std::vector<int64_t> present;
  for (const c10::IValue& element : value.toListRef()) {
    tensors |= element.isTensor();
    present.push_back(element.isTensor() ? 1 : 0);
  }
  return tensors ? c10::IValue(present) : value;
}

}  // namespace

void ForEachTensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) ForEachTensor(element, visit);
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) ForEachTensor(element, visit);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) ForEachTensor(entry.value(), visit);
  }
}

std::vector<at::Tensor> TensorsIn(const std::vector<c10::IValue>& values) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : values) {
    ForEachTensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
  }
  return tensors;
}

void ForEachArgument(const Operator& op, const Stack& stack, const std::function<void(const at::Tensor&)>& visit) {
  for (size_t a = stack.size() - op.schema().arguments().size(); a < stack.size(); ++a) ForEachTensor(stack[a], visit);
}

int Recorder::StorageId(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return -1;
  const auto [id, is_new] = storages_.Add(tensor.storage().unsafeGetStorageImpl());
  if (is_new) {
    StorageInfo info;
    info.numel = static_cast<int64_t>(tensor.storage().nbytes() / tensor.itemsize());
    info.dtype = tensor.scalar_type();
    info.device = tensor.device();
    traced_.storages.push_back(std::move(info));
  } else {
    // Kernels of composite operators resize what they are given without asking the dispatcher.
    StorageInfo& info = traced_.storages[id];
    info.numel = static_cast<int64_t>(tensor.storage().nbytes() / c10::elementSize(info.dtype));
  }
  return id;
}

int Recorder::FindStorage(const at::Tensor& tensor) const {
  if (!tensor.defined() || !tensor.has_storage()) return -1;
  return storages_.Find(tensor.storage().unsafeGetStorageImpl());
}

void Recorder::NameStorage(const at::Tensor& tensor, const std::string& name) {
  const int id = StorageId(tensor);
  if (id >= 0 && traced_.storages[id].name.empty()) traced_.storages[id].name = name;
}

void Recorder::Give(const at::Tensor& tensor) {
  const int id = StorageId(tensor);
  if (id >= 0) traced_.storages[id].inner = true;
}

void Recorder::AddModuleOutput(const std::string& path, int64_t index, Operand tensor) {
  std::vector<ModuleReturn>& returns = traced_.returns;
  if (index == 0) returns.push_back({path, static_cast<int64_t>(traced_.calls.size()), {}});
  const bool next = !returns.empty() && returns.back().module_path == path &&
                    returns.back().tensors.size() == static_cast<size_t>(index);
  if (!next) throw ModuleOutputsDoNotFollow(path, index);
  returns.back().tensors.push_back(std::move(tensor));
}

Operand Recorder::Describe(const at::Tensor& tensor) {
  Operand operand;
  operand.storage = StorageId(tensor);
  if (!tensor.defined()) return operand;
  operand.dtype = tensor.scalar_type();
  if (operand.storage < 0) return operand;
  operand.version = traced_.storages[operand.storage].versions - 1;
  operand.geometry = GeometryOf(tensor);
  operand.conjugated = tensor.is_conj();
  operand.negated = tensor.is_neg();
  operand.wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  operand.requires_grad = tensor.requires_grad();
  return operand;
}

const Recorder::Written& Recorder::WrittenBy(const Operator& op) {
  const c10::FunctionSchema& schema = op.schema();
  const auto [it, is_new] = written_.try_emplace(&schema);
  Written& written = it->second;
  if (is_new) {
    const OperatorTraits traits(schema);
    for (size_t a = 0; a < schema.arguments().size(); ++a) {
      const bool own = traits.written[a] && !traits.geometry_only && !IsWrittenAside(schema, schema.arguments()[a]);
      written.by_argument.push_back(own);
      written.any |= own;
    }
  }
  return written;
}

Position Recorder::PositionOf(const Call& call) {
  Position position = CurrentScriptPosition();
  position.op_index = call.index;
  position.op = call.op.schema().name();
  for (const Operand& operand : call.operands) {
    if (operand.storage < 0) continue;
    const std::string& name = traced_.storages[operand.storage].name;
    if (!name.empty()) position.parameters.push_back(name);
  }
  const std::string parameter = position.parameters.empty() ? "" : position.parameters.front();
  position.module_path = module_.PathOf(position.module_path, parameter);
  return position;
}

Call Recorder::Begin(const Operator& op, const Stack& stack) {
  const Written& written = WrittenBy(op);
  const size_t num_arguments = op.schema().arguments().size();
  if (AtModel()) ++program_call_;
  Call call(op);
  call.program_call = program_call_;
  const TracingPause pause;
  for (size_t a = 0; a < num_arguments; ++a) {
    VisitArgument(stack[stack.size() - num_arguments + a], [&](const at::Tensor& tensor) {
      Operand operand = Describe(tensor);
      operand.argument = static_cast<int16_t>(a);
      operand.written = written.by_argument[a];
      call.operands.push_back(std::move(operand));
    });
  }
  return call;
}

std::vector<c10::IValue> Recorder::Place(const Stack& stack, Call& call) {
  const auto first = stack.end() - static_cast<int64_t>(call.op.schema().arguments().size());
  call.index = static_cast<int64_t>(traced_.calls.size());
  call.depth = depth_;
  call.arguments.reserve(call.op.schema().arguments().size());
  for (auto argument = first; argument != stack.end(); ++argument) {
    call.arguments.push_back(WithoutTensors(*argument));
  }
  call.position = PositionOf(call);
  const bool kept = call.Traced() || WrittenBy(call.op).any;
  return kept ? std::vector<c10::IValue>(first, stack.end()) : std::vector<c10::IValue>();
}

void Recorder::AddOutputs(const std::vector<c10::IValue>& arguments, const std::vector<c10::IValue>& results,
                          Call& call) {
  WrittenBy(call.op).any ? AddWritten(arguments, call) : AddReturned(results, call);
}

void Recorder::AddWritten(const std::vector<c10::IValue>& arguments, Call& call) {
  size_t k = 0;
  for (const c10::IValue& argument : arguments) {
    VisitArgument(argument, [&](const at::Tensor& tensor) {
      const Operand& before = call.operands[k++];
      if (!before.written || before.storage < 0) return;
      StorageInfo& info = traced_.storages[before.storage];
      ++info.versions;
      info.numel = static_cast<int64_t>(tensor.storage().nbytes() / c10::elementSize(info.dtype));
      Operand after = Describe(tensor);
      after.written = true;
      after.argument = before.argument;
      call.resized_output |= after.geometry.sizes != before.geometry.sizes;
      call.outputs.push_back(std::move(after));
    });
  }
}

void Recorder::AddReturned(const std::vector<c10::IValue>& results, Call& call) {
  bool all_alias = true;
  for (size_t r = 0; r < results.size(); ++r) {
    VisitArgument(results[r], [&](const at::Tensor& tensor) {
      const size_t known = traced_.storages.size();
      Operand output = Describe(tensor);
      if (traced_.storages.size() > known) traced_.storages.back().inner = true;
      output.argument = static_cast<int16_t>(r);
      all_alias &= std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand& operand) {
        return operand.storage >= 0 && operand.storage == output.storage;
      });
      call.outputs.push_back(std::move(output));
    });
  }
  call.is_view = all_alias && !call.outputs.empty();
}

// A vector that grows by itself copies calls, strings and all, since moving them may throw.
void Recorder::End(Call&& call) {
  std::vector<Call>& calls = traced_.calls;
  if (calls.size() == calls.capacity()) {
    std::vector<Call> larger;
    larger.reserve(std::max<size_t>(2 * calls.size(), 64));
    std::move(calls.begin(), calls.end(), std::back_inserter(larger));
    calls.swap(larger);
  }
  calls.push_back(std::move(call));
}

std::vector<c10::IValue> ResultsOf(const Operator& op, const Stack& stack) {
  return {stack.end() - static_cast<int64_t>(op.schema().returns().size()), stack.end()};
}

}  // namespace addend
