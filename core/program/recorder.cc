#include "core/program/recorder.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
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

// What is recorded of an argument beside its operands: numbers and strings as they are, nothing for tensors, and for a
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

// push_back. A vector that grows copies calls, strings and all, since moving them may throw.
void Append(Call&& call, std::vector<Call>* calls) {
  if (calls->size() == calls->capacity()) {
    std::vector<Call> larger;
    larger.reserve(std::max<size_t>(2 * calls->size(), 64));
    std::move(calls->begin(), calls->end(), std::back_inserter(larger));
    calls->swap(larger);
  }
  calls->push_back(std::move(call));
}

// Parts are of elements that lie in memory one by one.
void RequireDense(const Call& call, const std::vector<c10::IValue>& values, const char* verb) {
  for (const c10::IValue& value : values) {
    VisitArgument(value, [&](const at::Tensor& tensor) {
      if (!tensor.defined() || (tensor.has_storage() && !tensor.is_nested())) return;
      throw Error(absl::StatusCode::kUnimplemented,
                  absl::StrCat(FullName(call.op.schema()), " ", verb,
                               " a tensor that is not dense (sparse, nested), whose parts cannot be found; use a dense "
                               "one (to_dense())"),
                  call.position);
    });
  }
}

// RAII: what is recorded while it lives is part of an operator that is not recorded itself.
class Deeper {
 public:
  explicit Deeper(int16_t* depth) : depth_(depth) { ++*depth_; }
  ~Deeper() { --*depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int16_t* depth_;
};

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

int Recorder::StorageId(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return -1;
  const auto [id, is_new] = storages_.Add(tensor.storage().unsafeGetStorageImpl());
  if (is_new) {
    StorageInfo info;
    info.numel = static_cast<int64_t>(tensor.storage().nbytes() / tensor.itemsize());
    info.dtype = tensor.scalar_type();
    program_.storages.push_back(std::move(info));
  } else {
    // Kernels of composite operators resize what they are given without asking the dispatcher.
    StorageInfo& info = program_.storages[id];
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
  if (id >= 0 && program_.storages[id].name.empty()) program_.storages[id].name = name;
}

Operand Recorder::Describe(const at::Tensor& tensor) {
  Operand operand;
  operand.storage = StorageId(tensor);
  if (!tensor.defined()) return operand;
  operand.dtype = tensor.scalar_type();
  if (operand.storage < 0) return operand;
  operand.version = program_.storages[operand.storage].versions - 1;
  operand.geometry = GeometryOf(tensor);
  operand.conjugated = tensor.is_conj();
  operand.negated = tensor.is_neg();
  if (observer_ != nullptr) {
    if (Continuous(operand.dtype)) {
      operand.decomposed = observer_->IsDecomposed(operand.storage);
    } else {
      operand.labelled = observer_->IsLabelled(operand.storage);
    }
  }
  return operand;
}

const Recorder::OpFacts& Recorder::FactsOf(const Operator& op) {
  const c10::FunctionSchema& schema = op.schema();
  std::unique_ptr<OpFacts>& slot = facts_[&schema];
  if (slot == nullptr) {
    slot = std::make_unique<OpFacts>();
    slot->rule_name = RuleName(schema.name());
    slot->has_rule = observer_ == nullptr || observer_->HasRule(slot->rule_name, FullName(schema));
    slot->has_rewrite =
        observer_ != nullptr && !slot->has_rule && observer_->HasRewrite(slot->rule_name, FullName(schema));
    slot->composite = op.composite();
    const OperatorTraits traits(schema);
    for (size_t a = 0; a < schema.arguments().size(); ++a) {
      const bool written = traits.written[a] && !traits.geometry_only && !IsWrittenAside(schema, schema.arguments()[a]);
      slot->written.push_back(written);
      slot->writes |= written;
    }
  }
  return *slot;
}

Position Recorder::PositionOf(const Call& call) {
  Position position = CurrentScriptPosition();
  position.op_index = call.index;
  position.op = call.op.schema().name();
  for (const Operand& operand : call.operands) {
    if (operand.storage < 0) continue;
    const std::string& name = program_.storages[operand.storage].name;
    if (!name.empty()) position.parameters.push_back(name);
  }
  const std::string parameter = position.parameters.empty() ? "" : position.parameters.front();
  position.module_path = module_.PathOf(position.module_path, parameter);
  return position;
}

void Recorder::Handle(const Operator& op, Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t num_arguments = schema.arguments().size();
  const size_t first = stack->size() - num_arguments;
  const OpFacts& facts = FactsOf(op);

  if (depth_ == 0) ++program_call_;
  Call call(op);
  call.program_call = program_call_;
  {
    TracingPause pause;
    for (size_t a = 0; a < num_arguments; ++a) {
      VisitArgument((*stack)[first + a], [&](const at::Tensor& tensor) {
        Operand operand = Describe(tensor);
        operand.argument = static_cast<int16_t>(a);
        operand.written = facts.written[a];
        call.operands.push_back(std::move(operand));
      });
    }
  }
  bool whole = facts.has_rule;
  if (facts.has_rewrite && call.Traced()) {
    const Deeper deeper(&depth_);
    call.index = static_cast<int64_t>(program_.calls.size());
    call.position = PositionOf(call);
    const std::vector<c10::IValue> arguments(stack->begin() + static_cast<int64_t>(first), stack->end());
    for (const c10::IValue& argument : arguments) call.arguments.push_back(WithoutTensors(argument));
    std::vector<c10::IValue> results = observer_->RunRewrite(call, arguments);
    if (!results.empty()) {
      stack->resize(first);
      stack->insert(stack->end(), std::make_move_iterator(results.begin()), std::make_move_iterator(results.end()));
      return;
    }
    whole = true;
  }
  if (facts.composite && !whole && call.Traced()) {
    {
      const Deeper deeper(&depth_);
      op.Expand(stack);
    }
    if (observer_ != nullptr) {
      const size_t count = schema.returns().size();
      observer_->AfterExpand(op, {stack->end() - static_cast<int64_t>(count), stack->end()});
    }
    return;
  }

  TracingPause pause;
  call.index = static_cast<int64_t>(program_.calls.size());
  call.depth = depth_;
  call.arguments.clear();  // a rewrite may have been asked and declined
  call.arguments.reserve(num_arguments);
  for (size_t a = 0; a < num_arguments; ++a) {
    const c10::IValue& value = (*stack)[first + a];
    call.arguments.push_back(WithoutTensors(value));
  }
  call.position = PositionOf(call);

  // The observer and the shape comparison below need the arguments after the operator has consumed them.
  const bool keep = facts.writes || call.Traced();
  std::vector<c10::IValue> arguments;
  if (keep) arguments.assign(stack->begin() + static_cast<int64_t>(first), stack->end());
  if (observer_ != nullptr && call.Traced()) RequireDense(call, arguments, "cannot read");
  if (observer_ != nullptr && keep) observer_->BeforeRun(call, arguments);
  op.Run(stack);

  const size_t num_returns = schema.returns().size();
  std::vector<c10::IValue> results(stack->end() - static_cast<int64_t>(num_returns), stack->end());
  if (observer_ != nullptr && call.Traced()) RequireDense(call, results, "gives");
  if (facts.writes) {
    size_t k = 0;
    for (size_t a = 0; a < num_arguments; ++a) {
      VisitArgument(arguments[a], [&](const at::Tensor& tensor) {
        const Operand& before = call.operands[k++];
        if (!before.written || before.storage < 0) return;
        StorageInfo& info = program_.storages[before.storage];
        ++info.versions;
        info.numel = static_cast<int64_t>(tensor.storage().nbytes() / c10::elementSize(info.dtype));
        Operand after = Describe(tensor);
        after.written = true;
        after.argument = before.argument;
        call.resized_output |= after.geometry.sizes != before.geometry.sizes;
        call.outputs.push_back(std::move(after));
      });
    }
  } else {
    bool all_alias = true;
    for (size_t r = 0; r < num_returns; ++r) {
      VisitArgument(results[r], [&](const at::Tensor& tensor) {
        Operand output = Describe(tensor);
        output.argument = static_cast<int16_t>(r);
        bool aliases = false;
        for (const Operand& operand : call.operands)
          aliases |= operand.storage >= 0 && operand.storage == output.storage;
        all_alias &= aliases;
        call.outputs.push_back(std::move(output));
      });
    }
    call.is_view = all_alias && !call.outputs.empty();
  }
  if (observer_ != nullptr) observer_->AfterRun(call, arguments, results);
  Append(std::move(call), &program_.calls);
}

}  // namespace addend
