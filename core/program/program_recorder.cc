#include "core/program/program_recorder.h"

#include <ATen/core/List.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/intercept/thread_modes.h"
#include "core/program/differentiation.h"
#include "third_party/torch/version.h"

namespace addend {
namespace {

// Memory that is not touched costs nothing; memory that moves as it grows costs more than what is written into it.
constexpr size_t kExpectedCalls = 16384;

void RequireDense(const at::Tensor& tensor, const std::string& what) {
  if (tensor.has_storage() && !tensor.is_nested() && !tensor.is_quantized()) return;
  throw Unimplemented(absl::StrCat(what, " is or holds a tensor that is not dense (sparse, nested, quantized)"));
}

}  // namespace

ProgramRecorder::ProgramRecorder() {
  program_.libtorch = LibTorchVersion();
  program_.calls.reserve(kExpectedCalls);
  program_.values.reserve(kExpectedCalls);
  program_.storages.reserve(kExpectedCalls);
  values_.Reserve(kExpectedCalls);
  names_.Reserve(kExpectedCalls);
}

void ProgramRecorder::AddInput(const std::string& name, const c10::IValue& value) {
  const TracingPause pause;
  RecordedInput input;
  input.name = name.empty() ? absl::StrCat("input_", program_.inputs.size()) : name;
  int count = 0;
  input.structure = TakeApart(value, input.name, [&](const at::Tensor& tensor) {
    const std::string own = count == 0 ? input.name : absl::StrCat(input.name, ".", count);
    ++count;
    RequireDense(tensor, input.name);
    const int number = outside_.AddInput(tensor, own);
    guards_.Mark(program_.values[number].storage);
    return number;
  });
  program_.inputs.push_back(std::move(input));
}

void ProgramRecorder::Handle(const Operator& op, Stack* stack) {
  if (finished_) return op.Run(stack);
  try {
    if (IsTakenApart(op, *stack)) return op.Expand(stack);
    Record(op, stack);
  } catch (const Error&) {
    if (!error_) error_ = std::current_exception();
    throw;
  }
}

void ProgramRecorder::AddModuleOutput(const std::string& module_path, int64_t index, const at::Tensor& tensor) {
  if (finished_ || error_) return;
  const TracingPause pause;
  std::vector<RecordedReturn>& returns = program_.returns;
  if (index == 0) returns.push_back({module_path, static_cast<int>(program_.calls.size()), {}});
  const bool next = !returns.empty() && returns.back().module_path == module_path &&
                    returns.back().values.size() == static_cast<size_t>(index);
  if (!next) throw ModuleOutputsDoNotFollow(module_path, index);
  const at::Tensor met = tensor.defined() && tensor.has_storage() ? outside_.FindMet(tensor) : at::Tensor();
  const int storage = met.defined() ? values_.FindStorage(met) : -1;
  int value = storage >= 0 ? values_.Find(met) : -1;
  if (storage >= 0 && value < 0) value = values_.FindAlias(met, storage);
  returns.back().values.push_back(value);
}

RecordedProgram ProgramRecorder::Finish(const c10::IValue& output) {
  const TracingPause pause;
  unwritten_.Forget();
  program_.output = TakeApart(output, "the output", [&](const at::Tensor& given) {
    RequireDense(given, "the output");
    const at::Tensor tensor = outside_.AsMet(given);
    const int value = ValueOf(tensor);
    const int storage = program_.values[value].storage;
    unwritten_.Read(storage, tensor);
    program_.output_versions.push_back(values_.Version(storage));
    return value;
  });
  unwritten_.FillRead();
  names_.NameResults(&program_);
  finished_ = true;
  values_.Clear();
  if (program_.calls.size() < kExpectedCalls / 2) {
    program_.calls.shrink_to_fit();
    program_.values.shrink_to_fit();
    program_.storages.shrink_to_fit();
  }
  return std::move(program_);
}

const ProgramRecorder::SchemaFacts& ProgramRecorder::FactsOf(const c10::FunctionSchema& schema) {
  std::unique_ptr<SchemaFacts>& slot = facts_[&schema];
  if (slot == nullptr) {
    slot = std::make_unique<SchemaFacts>(schema);
    slot->stem = names_.StemOf(schema.name());
  }
  return *slot;
}

Error ProgramRecorder::Refusal(const RecordedCall& call, const std::string& why) {
  Position position;
  position.op_index = static_cast<int64_t>(program_.calls.size());
  position.op = call.op.schema().name();
  const int place = places_.PlaceOf(call);
  if (place >= 0) position.module_path = program_.places[place].module_path;
  return Error(absl::StatusCode::kUnimplemented, why, std::move(position));
}

bool ProgramRecorder::IsTakenApart(const Operator& op, const Stack& stack) {
  differentiates_ = differentiates_ || Differentiates(op, stack, [&](const at::Tensor& tensor) {
                      const int storage = tensor.has_storage() ? values_.FindStorage(tensor) : -1;
                      if (storage < 0) return outside_.IsInput(tensor);
                      const ValueKind kind = program_.storages[storage].kind;
                      return kind == ValueKind::kResult || kind == ValueKind::kInput;
                    });
  return differentiates_ && addend::IsTakenApart(op, FactsOf(op.schema()).traits);
}

void ProgramRecorder::Record(const Operator& op, Stack* stack) {
  const SchemaFacts& facts = FactsOf(op.schema());
  const OperatorTraits& traits = facts.traits;
  const size_t num_arguments = traits.arguments.size();
  const size_t num_returns = traits.returns.size();

  RecordedCall call(op);
  if (UnderAutocast()) {
    throw Refusal(call, "cannot record under autocast, which casts behind the operators; turn it off");
  }
  if (UnderTransform()) {
    throw Refusal(call,
                  "cannot record inside of a function that torch.func or functorch transforms (vmap, grad): call the "
                  "function on the whole batch, or write out what it computes");
  }
  call.grad_mode = c10::GradMode::is_enabled();
  RecordArguments(&call, traits, c10::ArrayRef<c10::IValue>(*stack).slice(stack->size() - num_arguments));
  if (!changed_.empty()) BeforeWrite(call, traits);
  call.random = traits.Draws(call.arguments);
  call.place = places_.PlaceOf(call);
  const bool from_data = call.random || guards_.ReadsData(call, traits);

  op.Run(stack);

  const auto results = c10::ArrayRef<c10::IValue>(*stack).slice(stack->size() - num_returns);
  if (!changed_.empty()) AfterWrite(&call, traits);
  RecordResults(&call, traits, results);
  if (from_data) guards_.MarkResults(call, traits);
  guards_.Add(&call, traits, results, from_data);
  if (unwritten_.HasRead() && !call.is_view && !traits.metadata_only) unwritten_.FillRead();
  program_.calls.push_back(std::move(call));
  names_.AddCall(facts.stem);
  if (listener_ != nullptr) {
    const TracingPause pause;
    listener_(program_, static_cast<int>(program_.calls.size()) - 1);
  }
}

void ProgramRecorder::RecordArguments(RecordedCall* call, const OperatorTraits& traits,
                                      c10::ArrayRef<c10::IValue> arguments) {
  call->arguments.reserve(arguments.size());
  changed_.clear();
  leaves_first_ = traits.LeavesFirst(arguments);
  unwritten_.Forget();
  for (size_t a = 0; a < arguments.size(); ++a) {
    const c10::IValue& value = arguments[a];
    switch (traits.arguments[a]) {
      case ArgumentKind::kPlain:
        if (value.isTuple() || value.isGenericDict() || value.isStorage() || value.isObject()) {
          throw Refusal(*call, absl::StrCat("cannot record an argument that is a ", value.tagKind()));
        }
        call->arguments.push_back(Frozen(value));
        break;
      case ArgumentKind::kTensor:
        if (value.isTensor()) {
          Use(call, traits, a, value.toTensor());
          call->arguments.emplace_back();
        } else {
          call->arguments.push_back(value);  // None; a number where the interpreter passes one
        }
        break;
      case ArgumentKind::kTensorList:
        call->arguments.push_back(UseList(call, traits, a, value));
        break;
    }
  }
  MarkStatistics(call, traits, arguments);
}

void ProgramRecorder::Use(RecordedCall* call, const OperatorTraits& traits, size_t argument, const at::Tensor& tensor) {
  TensorUse use;
  use.argument = static_cast<int16_t>(argument);
  if (tensor.defined()) {
    if (!tensor.has_storage() || tensor.is_nested() || tensor.is_quantized()) {
      throw Refusal(*call, absl::StrCat("cannot record tensors that are not dense (sparse, nested, quantized), which ",
                                        call->op.schema().name(), " reads"));
    }
    use.value = ValueOf(tensor);
    const int storage = program_.values[use.value].storage;
    outside_.Know(storage);
    use.version = values_.Version(storage);
    use.written = traits.written[argument];
    if (use.written) {
      changed_.push_back(tensor);
    } else if (argument > 0 || !leaves_first_) {
      unwritten_.Read(storage, tensor);
    }
  }
  call->uses.push_back(use);
}

c10::IValue ProgramRecorder::UseList(RecordedCall* call, const OperatorTraits& traits, size_t argument,
                                     const c10::IValue& value) {
  if (!value.isList()) return value;
  const auto elements = value.toListRef();
  const bool optional = value.toList().elementType()->kind() == c10::TypeKind::OptionalType;
  c10::List<int64_t> present;
  for (const c10::IValue& element : elements) {
    if (optional) present.push_back(element.isTensor() && element.toTensor().defined() ? 1 : 0);
    if (!element.isTensor() || (optional && !element.toTensor().defined())) continue;
    Use(call, traits, argument, element.toTensor());
  }
  // None stands for a list of tensors: one that is not there has to look different from one that is empty.
  return optional || elements.empty() ? c10::IValue(std::move(present)) : c10::IValue();
}

// Running statistics are written in training, which the schema does not say.
void ProgramRecorder::MarkStatistics(RecordedCall* call, const OperatorTraits& traits,
                                     c10::ArrayRef<c10::IValue> arguments) {
  const c10::ArrayRef<int16_t> updated = traits.StatisticsWritten(call->arguments);
  for (TensorUse& use : call->uses) {
    if (use.value < 0 || std::count(updated.begin(), updated.end(), use.argument) == 0) continue;
    use.written = true;
    changed_.push_back(arguments[use.argument].toTensor());
  }
}

// The value that a tensor is; new ones are made for what no call has given.
int ProgramRecorder::ValueOf(const at::Tensor& tensor) {
  int number = values_.Find(tensor);
  if (number >= 0) return number;
  int storage = values_.FindStorage(tensor);
  if (storage < 0 && outside_.MeetInput(tensor)) storage = values_.FindStorage(tensor);
  if (storage < 0) return outside_.Add(tensor);
  number = values_.FindAlias(tensor, storage);
  return number >= 0 ? number : values_.Add(tensor, storage, ValueKind::kPart, "");
}

void ProgramRecorder::BeforeWrite(const RecordedCall& call, const OperatorTraits& traits) {
  if (traits.geometry_only) return;
  const TracingPause pause;
  size_t k = 0;
  for (const TensorUse& use : call.uses) {
    if (!use.written) continue;
    const at::Tensor& tensor = changed_[k++];
    const int number = program_.values[use.value].storage;
    if (!traits.overwrites && !traits.output[use.argument]) unwritten_.FillBeforeWrite(number, tensor);
    RecordedStorage& storage = program_.storages[number];
    if (storage.initial.defined() && !storage.copied) {
      storage.initial = storage.initial.clone();
      storage.copied = true;
    }
    // A new size gives new memory, which holds nothing yet.
    if (!traits.allocates) unwritten_.Remove(number);
  }
}

void ProgramRecorder::AfterWrite(RecordedCall* call, const OperatorTraits& traits) {
  const auto index = static_cast<int>(program_.calls.size());
  // Several written arguments may lie in one storage: it has one more version, not several.
  for (const TensorUse& use : call->uses) {
    if (!use.written || traits.geometry_only) continue;
    std::vector<int>& writers = program_.storages[program_.values[use.value].storage].writers;
    if (writers.empty() || writers.back() != index) writers.push_back(index);
  }
  size_t k = 0;
  for (const TensorUse& use : call->uses) {
    if (!use.written) continue;
    const at::Tensor& tensor = changed_[k++];
    const int storage = values_.StorageOf(tensor, ValueKind::kResult);
    outside_.Know(storage);
    program_.storages[storage].nbytes = static_cast<int64_t>(tensor.storage().nbytes());
    // Look up the tensor first: it may be passed twice.
    int number = values_.Find(tensor);
    if (!MadeNow(number)) {
      number = values_.Add(tensor, storage, ValueKind::kResult, "");
      program_.values[number].call = index;
    }
    call->written.push_back(number);
  }
}

void ProgramRecorder::RecordResults(RecordedCall* call, const OperatorTraits& traits,
                                    c10::ArrayRef<c10::IValue> results) {
  call->is_view = !results.empty() && (call->written.empty() || traits.geometry_only);
  for (size_t r = 0; r < results.size(); ++r) {
    const c10::IValue& value = results[r];
    if (traits.returns[r] == ArgumentKind::kTensor && value.isTensor()) {
      AddResult(call, traits, value.toTensor());
    } else if (traits.returns[r] == ArgumentKind::kTensorList && value.isList()) {
      const auto elements = value.toListRef();
      call->result_sizes.resize(r, 1);
      call->result_sizes.push_back(static_cast<int>(elements.size()));
      for (const c10::IValue& element : elements) AddResult(call, traits, element.toTensor());
    } else {
      call->is_view = false;
    }
    if (!call->result_sizes.empty() && call->result_sizes.size() == r) call->result_sizes.push_back(1);
  }
  call->is_view &= !call->results.empty();
}

void ProgramRecorder::AddResult(RecordedCall* call, const OperatorTraits& traits, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    call->results.push_back(-1);
    return;
  }
  if (!tensor.has_storage() || tensor.is_nested()) {
    throw Refusal(*call, absl::StrCat(call->op.schema().name(),
                                      " gives a tensor that is not dense (sparse, nested), which cannot be recorded"));
  }
  const int known = values_.Find(tensor);
  if (MadeNow(known)) {
    call->results.push_back(known);
    return;
  }
  const int before = values_.storages().size();
  const int storage = values_.StorageOf(tensor, ValueKind::kResult);
  const bool fresh = storage == before;
  outside_.Know(storage);
  if (fresh && traits.allocates) unwritten_.Add(storage);
  call->is_view &= !fresh && std::any_of(call->uses.begin(), call->uses.end(), [&](const TensorUse& use) {
    return use.value >= 0 && program_.values[use.value].storage == storage;
  });
  const int number = values_.Add(tensor, storage, ValueKind::kResult, "");
  program_.values[number].call = static_cast<int>(program_.calls.size());
  call->results.push_back(number);
}

// Whether the value was made by the call at hand.
bool ProgramRecorder::MadeNow(int value) const {
  return value >= 0 && program_.values[value].call == static_cast<int>(program_.calls.size());
}

}  // namespace addend
