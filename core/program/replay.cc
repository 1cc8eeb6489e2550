#include "core/program/replay.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/memory.h"
#include "core/program/operator_traits.h"

namespace addend {
namespace {

// Whether a dtype is a wider one of the same kind than the recorded one.
bool Widens(at::ScalarType found, at::ScalarType recorded) {
  const bool numbers = Continuous(found) && at::isComplexType(found) == at::isComplexType(recorded);
  return numbers && Continuous(recorded) && c10::promoteTypes(found, recorded) == found;
}

std::string Text(const c10::IValue& value) {
  std::ostringstream out;
  out.precision(17);
  out << value;
  return out.str();
}

std::string GivenText(const at::Tensor& tensor) {
  return tensor.defined() ? TensorText(tensor) : "an undefined tensor";
}

// A tensor as recorded in the given memory.
at::Tensor In(const c10::Storage& storage, const RecordedValue& value) {
  at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(value.dtype).device(value.device));
  tensor.set_(storage, value.geometry.offset, value.geometry.sizes, value.geometry.strides);
  tensor._set_conj(value.conjugated);
  tensor._set_neg(value.negated);
  if (value.wrapped_number) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  if (value.requires_grad) AskForGradients(tensor);
  return tensor;
}

// The graph behind a value that is kept would keep more of the run alive.
at::Tensor WithoutGraph(const at::Tensor& tensor) { return tensor.requires_grad() ? tensor.detach() : tensor; }

// All of a tensor's storage, seen as `like` is: one-dimensional, of its dtype.
at::Tensor Whole(const at::Tensor& tensor, const at::Tensor& like) {
  return at::empty({0}, like.options()).set_(tensor.storage(), 0, {like.numel()}, {1});
}

bool Near(const c10::IValue& recorded, const c10::IValue& found, double tolerance) {
  if (SamePlain(recorded, found)) return true;
  if (tolerance <= 0 || !recorded.isDouble() || !found.isDouble()) return false;
  return std::abs(found.toDouble() - recorded.toDouble()) <= tolerance * std::abs(recorded.toDouble());
}

}  // namespace

// One run.
class Replay::Execution {
 public:
  Execution(const Replay& replay, const ReplayOptions& options)
      : replay_(replay),
        program_(*replay.program_),
        options_(options),
        tensors_(program_.values.size()),
        memory_(program_.storages.size()),
        wanted_(program_.values.size(), false) {
    for (const std::string& name : options.values) wanted_[FindValue(program_, name)] = true;
    if (options.every_value) wanted_.assign(wanted_.size(), true);
    for (size_t c = 0; c < program_.calls.size(); ++c) {
      const bool writes = !program_.calls[c].written.empty() && !replay_.traits_[c]->geometry_only;
      if (writes) last_write_ = static_cast<int>(c);
    }
  }

  std::vector<std::string> Complaints(const std::vector<c10::IValue>& inputs) {
    std::vector<int> values;
    std::vector<at::Tensor> given;
    return Match(inputs, values, given);
  }

  ReplayResult Run(const std::vector<c10::IValue>& inputs) {
    TakeInputs(inputs);
    // Before the program writes over what they lie in.
    for (size_t v = 0; v < wanted_.size(); ++v) {
      const ValueKind kind = program_.values[v].kind;
      const bool outside = kind == ValueKind::kParameter || kind == ValueKind::kBuffer || kind == ValueKind::kConstant;
      if (wanted_[v] && outside) Get(static_cast<int>(v));
    }
    TellReturns(0);
    for (size_t c = 0; c < program_.calls.size(); ++c) {
      RunCall(static_cast<int>(c));
      TellReturns(static_cast<int>(c) + 1);
      for (const int dead : replay_.dead_[c]) tensors_[dead] = at::Tensor();
    }
    ReplayResult result;
    const TracingPause pause;
    const int end = static_cast<int>(program_.calls.size());
    ForEachNumber(program_.output, [&](int value) { Fill(end, value, Get(value)); });
    result.output = PutTogether(program_.output, [&](int value) { return Get(value); });
    const auto take = [&](int v) {
      if (!kept_.contains(v)) Get(v);
      result.values.emplace_back(program_.values[v].name, kept_[v]);
    };
    if (options_.every_value) {
      for (size_t v = 0; v < program_.values.size(); ++v) take(static_cast<int>(v));
    } else {
      for (const std::string& name : options_.values) take(FindValue(program_, name));
    }
    return result;
  }

 private:
  [[noreturn]] void Stop(int call, const std::string& what) const {
    throw Error(absl::StatusCode::kFailedPrecondition,
                absl::StrCat(FullName(program_.calls[call].op.schema()), ": ", what), PositionOf(program_, call),
                "the program holds for runs that go the way of the recorded one; record another");
  }

  bool Free(int value, int dim) const {
    for (const FreeDimension& free : program_.free) {
      if (free.input == value && free.dim == dim) return true;
    }
    return false;
  }

  // ------------------------------------------------------------------------------------------------ inputs

  // The tensors of the inputs and the values that they are.
  std::vector<std::string> Match(const std::vector<c10::IValue>& inputs, std::vector<int>& values,
                                 std::vector<at::Tensor>& given) const {
    const TracingPause pause;
    if (inputs.size() != program_.inputs.size()) {
      return {absl::StrCat("the program takes ", program_.inputs.size(), " inputs, not ", inputs.size())};
    }
    std::vector<std::string> complaints;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const RecordedInput& input = program_.inputs[k];
      std::vector<at::Tensor> tensors;
      const Structure found = TakeApart(inputs[k], input.name, [&](const at::Tensor& tensor) {
        tensors.push_back(tensor);
        return 0;
      });
      const std::string difference = Difference(input.structure, found);
      if (!difference.empty()) {
        complaints.push_back(absl::StrCat(input.name, difference));
        continue;
      }
      size_t t = 0;
      ForEachNumber(input.structure, [&](int value) {
        CheckInput(value, tensors[t], complaints);
        values.push_back(value);
        given.push_back(tensors[t++]);
      });
    }
    if (complaints.empty()) CheckAliases(values, given, complaints);
    if (complaints.empty()) CheckFree(values, given, complaints);
    return complaints;
  }

  void TakeInputs(const std::vector<c10::IValue>& inputs) {
    const TracingPause pause;
    std::vector<int> values;
    std::vector<at::Tensor> given;
    const std::vector<std::string> complaints = Match(inputs, values, given);
    if (!complaints.empty()) {
      throw InvalidArgument(absl::StrCat("the inputs do not fit the program: ", absl::StrJoin(complaints, "; ")));
    }
    for (size_t k = 0; k < values.size(); ++k) {
      sizes_[values[k]] = given[k].sizes().vec();
      Set(values[k], given[k], -1);
    }
    const c10::AutoGradMode no_grad(false);
    for (; relation_ < program_.sizes.size() && program_.sizes[relation_].call < 0; ++relation_) {
      const SizeRelation& relation = program_.sizes[relation_];
      at::Tensor& sized = sized_[relation.storage];
      if (!sized.defined()) sized = program_.storages[relation.storage].initial.clone();
      sized.select(0, relation.element).fill_(NumberOf(relation));
    }
  }

  void CheckInput(int value, const at::Tensor& tensor, std::vector<std::string>& complaints) const {
    const RecordedValue& recorded = program_.values[value];
    const std::string expected = DescribeValue(recorded);
    const bool same_rank = tensor.dim() == static_cast<int64_t>(recorded.geometry.sizes.size());
    bool fits = same_rank && tensor.scalar_type() == recorded.dtype && tensor.has_storage();
    bool only_sizes = fits;
    for (int64_t d = 0; same_rank && d < tensor.dim(); ++d) {
      if (tensor.size(d) != recorded.geometry.sizes[d] && !Free(value, static_cast<int>(d))) fits = false;
    }
    if (!fits) {
      complaints.push_back(
          absl::StrCat(recorded.name, " is ", GivenText(tensor), ", recorded was ", expected,
                       only_sizes ? " (recordings with inputs of several sizes learn which sizes may change)" : ""));
    } else if (tensor.device() != recorded.device) {
      complaints.push_back(
          absl::StrCat(recorded.name, " is on ", tensor.device().str(), ", recorded was ", recorded.device.str()));
    }
  }

  // Dimensions that always had the same size: which of them a number followed is not known.
  void CheckFree(const std::vector<int>& values, const std::vector<at::Tensor>& given,
                 std::vector<std::string>& complaints) const {
    const auto size = [&](const FreeDimension& dimension) {
      const auto at = std::find(values.begin(), values.end(), dimension.input) - values.begin();
      return given[at].size(dimension.dim);
    };
    const auto name = [&](const FreeDimension& dimension) {
      return DescribeDimension(program_, dimension.input, dimension.dim);
    };
    for (const FreeDimension& dimension : program_.free) {
      if (!dimension.Has(size(dimension))) {
        complaints.push_back(absl::StrCat(name(dimension), " is ", size(dimension), ", but ", DescribeLimits(dimension),
                                          "; record with an example of this size too"));
      }
      if (dimension.like < 0) continue;
      const FreeDimension& other = program_.free[dimension.like];
      if (size(dimension) == size(other)) continue;
      complaints.push_back(absl::StrCat(name(dimension), " has to be as large as ", name(other)));
    }
  }

  // Writes make it matter which inputs share memory.
  void CheckAliases(const std::vector<int>& values, const std::vector<at::Tensor>& given,
                    std::vector<std::string>& complaints) const {
    for (size_t a = 0; a < values.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const int storage_a = program_.values[values[a]].storage;
        const int storage_b = program_.values[values[b]].storage;
        const bool now = given[a].storage().unsafeGetStorageImpl() == given[b].storage().unsafeGetStorageImpl();
        if (now == (storage_a == storage_b)) continue;
        if (program_.storages[storage_a].writers.empty() && program_.storages[storage_b].writers.empty()) continue;
        complaints.push_back(
            absl::StrCat(program_.values[values[a]].name, " and ", program_.values[values[b]].name,
                         now ? " share memory, which they did not when recorded, and the program writes it"
                             : " do not share memory, which they did when recorded, and the program writes it"));
      }
    }
  }

  // ------------------------------------------------------------------------------------------------ values

  // The value is `tensor` from now on. `call`: that made it.
  void Set(int value, const at::Tensor& tensor, int call) {
    const RecordedValue& recorded = program_.values[value];
    tensors_[value] = tensor;
    if (replay_.needs_memory_[recorded.storage] && !memory_[recorded.storage]) {
      memory_[recorded.storage] = tensor.storage();
    }
    if (!wanted_[value] || kept_.contains(value)) return;
    const std::vector<int>& writers = program_.storages[recorded.storage].writers;
    // At other sizes it may share memory with what is written.
    const bool overwritten = program_.free.empty() ? !writers.empty() && writers.back() > call : last_write_ > call;
    const TracingPause pause;
    const c10::AutoGradMode no_grad(false);
    kept_[value] = overwritten ? tensor.detach().clone() : WithoutGraph(tensor);
  }

  const at::Tensor& Get(int value) {
    if (!tensors_[value].defined()) {
      const TracingPause pause;
      const c10::AutoGradMode no_grad(false);
      const RecordedValue& recorded = program_.values[value];
      const c10::Storage& memory = Memory(recorded.storage, value);
      const size_t needed =
          at::detail::computeStorageNbytes(recorded.geometry.sizes, recorded.geometry.strides,
                                           c10::elementSize(recorded.dtype), recorded.geometry.offset);
      if (needed > memory.nbytes()) {
        throw FailedPrecondition(absl::StrCat(recorded.name, " reaches behind its storage of ", memory.nbytes(),
                                              " bytes; sizes that no operator gave cannot change"));
      }
      Set(value, In(memory, recorded), now_);
    }
    return tensors_[value];
  }

  // Initial contents of a storage from outside, with the elements that follow sizes.
  const at::Tensor& Initial(int storage) const {
    const auto sized = sized_.find(storage);
    return sized == sized_.end() ? program_.storages[storage].initial : sized->second;
  }

  const c10::Storage& Memory(int storage, int value) {
    std::optional<c10::Storage>& memory = memory_[storage];
    if (memory) return *memory;
    const RecordedStorage& recorded = program_.storages[storage];
    if (recorded.initial.defined() && recorded.filled < 0) {
      const at::Tensor& initial = Initial(storage);
      memory = (recorded.writers.empty() ? initial : initial.clone()).storage();
      if (recorded.writers.empty()) lent_.emplace(memory->unsafeGetStorageImpl(), storage);
    } else if (program_.values[value].device.is_meta()) {
      memory = at::empty({recorded.nbytes}, at::TensorOptions().dtype(at::kByte).device(at::kMeta)).storage();
    } else {
      throw Internal(absl::StrCat("the program reads ", program_.values[value].name, " before it is made"));
    }
    return *memory;
  }

  // Puts what was there from outside into memory that a call allocated.
  void Fill(int call, int value, const at::Tensor& tensor) {
    const RecordedStorage& storage = program_.storages[program_.values[value].storage];
    if (storage.filled != call || !storage.initial.defined()) return;
    if (tensor.storage().nbytes() != storage.initial.nbytes()) {
      throw FailedPrecondition(absl::StrCat(program_.values[storage.value].name, " was filled from outside with ",
                                            storage.initial.nbytes(), " bytes; here it has ",
                                            tensor.storage().nbytes()));
    }
    const c10::AutoGradMode no_grad(false);
    Whole(tensor, storage.initial).copy_(Initial(program_.values[value].storage));
  }

  // Tells what the modules have returned that had done so when `end` calls had run.
  void TellReturns(int end) {
    const std::vector<RecordedReturn>& returns = program_.returns;
    for (; returned_ < returns.size() && returns[returned_].end == end; ++returned_) {
      const RecordedReturn& own = returns[returned_];
      for (size_t k = 0; k < own.values.size(); ++k) {
        const at::Tensor tensor = own.values[k] >= 0 ? tensors_[own.values[k]] : at::Tensor();
        TellModuleOutput(own.module_path, static_cast<int64_t>(k), tensor);
      }
    }
  }

  // ------------------------------------------------------------------------------------------------- calls

  void RunCall(int index) {
    now_ = index;
    const RecordedCall& call = program_.calls[index];
    const OperatorTraits& traits = *replay_.traits_[index];
    if (options_.out_of_place && !call.written.empty() && !traits.geometry_only) LeaveBehind(call);
    changed_.clear();
    std::vector<at::Tensor> operands;
    operands.reserve(call.uses.size());
    for (const TensorUse& use : call.uses) operands.push_back(Operand(call, traits, index, use));
    Stack stack = replay_.recipes_[index].Make(call.arguments, operands);
    while (relation_ < program_.sizes.size() && program_.sizes[relation_].call == index) {
      Apply(program_.sizes[relation_++], stack);
    }
    {
      const c10::AutoGradMode grad(call.grad_mode);
      std::optional<PlaceScope> place;
      if (options_.places && call.place >= 0) place.emplace(&program_.places[call.place]);
      (traits.detaches ? replay_.detach_ : call.op).Call(&stack);
    }
    if (traits.detaches) changed_ = {stack.back().toTensor()};
    TakeResults(call, traits, index, stack);
    if (call.guard >= 0 && options_.guards) CheckGuard(call, traits, index, stack);
  }

  // Moves all values of the memory that the call is about to write into a copy of it.
  void LeaveBehind(const RecordedCall& call) {
    const TracingPause pause;
    const c10::AutoGradMode no_grad(false);
    // Which values share memory depends on sizes, so the tensors tell.
    std::vector<c10::Storage> storages;
    const auto is = [](const c10::Storage& a, const c10::Storage& b) {
      return a.unsafeGetStorageImpl() == b.unsafeGetStorageImpl();
    };
    for (const TensorUse& use : call.uses) {
      if (!use.written || use.value < 0) continue;
      const c10::Storage& storage = Get(use.value).storage();
      const bool known =
          std::any_of(storages.begin(), storages.end(), [&](const auto& own) { return is(own, storage); });
      if (!known) storages.push_back(storage);
    }
    for (const c10::Storage& storage : storages) {
      c10::optional<c10::Storage> copy;
      for (size_t v = 0; v < tensors_.size(); ++v) {
        at::Tensor& tensor = tensors_[v];
        if (!tensor.defined() || tensor.is_meta() || !is(tensor.storage(), storage)) continue;
        if (!copy) {
          const auto nbytes = static_cast<int64_t>(tensor.storage().nbytes());
          const auto bytes = at::TensorOptions().dtype(at::kByte).device(tensor.device());
          copy = at::empty({0}, bytes).set_(tensor.storage(), 0, {nbytes}, {1}).clone().storage();
        }
        const at::Tensor before = tensor;
        tensor = TensorIn(*copy, before, before.strides(), before.storage_offset());
        tensor._set_conj(before.is_conj());
        tensor._set_neg(before.is_neg());
        if (program_.values[v].wrapped_number) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
      }
      for (std::optional<c10::Storage>& memory : memory_) {
        if (copy && memory && is(*memory, storage)) memory = *copy;
      }
    }
  }

  at::Tensor Operand(const RecordedCall& call, const OperatorTraits& traits, int index, const TensorUse& use) {
    if (use.value < 0) return {};
    at::Tensor tensor = Get(use.value);
    if (program_.storages[program_.values[use.value].storage].filled == index) {
      const TracingPause pause;
      Fill(index, use.value, tensor);
    }
    if (!use.written) return tensor;
    if (!traits.geometry_only) RequireOwn(index, tensor);
    if (traits.may_reshape && !traits.detaches) {
      const TracingPause pause;
      const c10::AutoGradMode grad(call.grad_mode);
      tensor = at::alias(tensor);
    }
    changed_.push_back(tensor);
    return tensor;
  }

  // Throws if a call would write memory that the program lends its replays: a copy when recorded may be a view at other
  // sizes.
  void RequireOwn(int call, const at::Tensor& written) const {
    if (program_.free.empty() || !written.has_storage()) return;
    const auto lent = lent_.find(written.storage().unsafeGetStorageImpl());
    if (lent == lent_.end()) return;
    const std::string& name = program_.values[program_.storages[lent->second].value].name;
    Stop(call,
         absl::StrCat("for inputs of these sizes it would write ", name, ", of which it wrote a copy when recorded"));
  }

  int64_t NumberOf(const SizeRelation& relation) const {
    int64_t size = sizes_.at(relation.input)[relation.dim];
    if (relation.other_input >= 0) size *= sizes_.at(relation.other_input)[relation.other_dim];
    return relation.factor * ((size + relation.shift) / relation.divisor) + relation.offset;
  }

  void Apply(const SizeRelation& relation, Stack& stack) const {
    const int64_t number = NumberOf(relation);
    c10::IValue& argument = stack[relation.argument];
    if (relation.element < 0) {
      argument = number;
    } else {
      c10::List<int64_t> list = argument.toIntList().copy();
      list.set(relation.element, number);
      argument = std::move(list);
    }
  }

  void TakeResults(const RecordedCall& call, const OperatorTraits& traits, int index, const Stack& stack) {
    size_t k = 0;
    const auto take = [&](const at::Tensor& tensor) {
      if (k >= call.results.size()) Stop(index, "the operator gives more tensors than it gave when recorded");
      const int value = call.results[k++];
      if ((value >= 0) != tensor.defined()) {
        Stop(index, absl::StrCat("the operator gives ", GivenText(tensor), "; recorded was ",
                                 value < 0 ? "an undefined tensor" : DescribeValue(program_.values[value])));
      }
      if (value >= 0) Made(value, tensor, index);
    };
    const size_t behind = stack.size() - traits.returns.size();
    for (size_t r = 0; r < traits.returns.size(); ++r) {
      const c10::IValue& result = stack[behind + r];
      if (traits.returns[r] == ArgumentKind::kTensor && result.isTensor()) {
        take(result.toTensor());
      } else if (traits.returns[r] == ArgumentKind::kTensorList && result.isList()) {
        for (const c10::IValue& element : result.toListRef()) take(element.toTensor());
      }
    }
    if (k < call.results.size()) Stop(index, "the operator gives fewer tensors than it gave when recorded");
    for (size_t w = 0; w < call.written.size(); ++w) Made(call.written[w], changed_.at(w), index);
  }

  void Made(int value, const at::Tensor& tensor, int index) {
    const RecordedValue& recorded = program_.values[value];
    const at::IntArrayRef sizes = recorded.geometry.sizes;
    const bool same_dtype =
        tensor.scalar_type() == recorded.dtype || (options_.wider && Widens(tensor.scalar_type(), recorded.dtype));
    const bool fits = same_dtype && tensor.dim() == static_cast<int64_t>(sizes.size()) &&
                      (!program_.free.empty() || tensor.sizes() == sizes);
    const bool shape_guard =
        program_.calls[index].guard >= 0 && program_.guards[program_.calls[index].guard].kind == GuardKind::kShape;
    if (!fits && (!shape_guard || !same_dtype)) {
      Stop(index, absl::StrCat("the operator gives ", GivenText(tensor), "; recorded was ", DescribeValue(recorded)));
    }
    Set(value, tensor, index);
  }

  void CheckGuard(const RecordedCall& call, const OperatorTraits& traits, int index, const Stack& stack) const {
    const RecordedGuard& guard = program_.guards[call.guard];
    if (guard.kind == GuardKind::kShape) {
      const auto& sizes = guard.value.toTupleRef().elements();
      for (size_t r = 0; r < sizes.size() && r < call.results.size(); ++r) {
        if (call.results[r] < 0) continue;
        const at::Tensor& found = tensors_[call.results[r]];
        if (found.sizes() == at::IntArrayRef(sizes[r].toIntVector())) continue;
        Stop(index, absl::StrCat("a guard does not hold: the result has the sizes ", ShapeText(found.sizes()),
                                 "; recorded were ", ShapeText(sizes[r].toIntVector())));
      }
      return;
    }
    std::vector<c10::IValue> found;
    const size_t behind = stack.size() - traits.returns.size();
    for (size_t r = 0; r < traits.returns.size(); ++r) {
      if (traits.returns[r] == ArgumentKind::kPlain) found.push_back(stack[behind + r]);
    }
    for (size_t r = 0; r < found.size(); ++r) {
      const c10::IValue recorded = found.size() == 1 ? guard.value : guard.value.toTupleRef().elements()[r];
      // Sizes follow the input where the program has learned how; what they steered it has learned as well.
      const bool size = recorded.isInt() || recorded.isIntList() || recorded.isDouble();
      if (guard.kind == GuardKind::kProperty && !program_.free.empty() && size) continue;
      if (Near(recorded, found[r], options_.guard_tolerance)) continue;
      Stop(index, absl::StrCat("a guard does not hold: the operator gives ", Text(found[r]), "; recorded was ",
                               Text(recorded)));
    }
  }

  const Replay& replay_;
  const RecordedProgram& program_;
  const ReplayOptions& options_;
  std::vector<at::Tensor> tensors_;                         // by value
  std::vector<std::optional<c10::Storage>> memory_;         // by storage, where needs_memory_ says so
  std::vector<bool> wanted_;                                // by value
  absl::flat_hash_map<int, at::Tensor> kept_;               // by value
  absl::flat_hash_map<int, std::vector<int64_t>> sizes_;    // of the inputs, by value
  absl::flat_hash_map<int, at::Tensor> sized_;              // by storage: constants with elements that follow sizes
  absl::flat_hash_map<const c10::StorageImpl*, int> lent_;  // the program's own memory that is not copied: its storage
  std::vector<at::Tensor> changed_;                         // by written use of the call at hand
  size_t relation_ = 0;
  size_t returned_ = 0;  // how many modules have
  int last_write_ = -1;  // the last call that writes elements
  int now_ = -1;
};

Replay::Replay(std::shared_ptr<const RecordedProgram> program)
    : program_(std::move(program)), detach_(*Operator::Find("aten::detach", "")) {
  if (program_ == nullptr) throw InvalidArgument("there is no program");
  const size_t num_calls = program_->calls.size();
  absl::flat_hash_map<const c10::FunctionSchema*, std::shared_ptr<const OperatorTraits>> traits;
  dead_.resize(num_calls);
  needs_memory_.assign(program_->storages.size(), false);
  std::vector<int> last(program_->values.size(), -1);
  for (size_t c = 0; c < num_calls; ++c) {
    const RecordedCall& call = program_->calls[c];
    std::shared_ptr<const OperatorTraits>& known = traits[&call.op.schema()];
    if (known == nullptr) known = std::make_shared<OperatorTraits>(call.op.schema());
    traits_.push_back(known);
    std::vector<int16_t> positions;
    for (const TensorUse& use : call.uses) positions.push_back(use.argument);
    recipes_.emplace_back(call.op.schema(), positions, /*without_out=*/false);
    for (const TensorUse& use : call.uses) {
      if (use.value >= 0) last[use.value] = static_cast<int>(c);
    }
    for (const int value : call.results) {
      if (value >= 0) last[value] = static_cast<int>(c);
    }
    for (const int value : call.written) last[value] = static_cast<int>(c);
  }
  for (const RecordedReturn& returned : program_->returns) {
    for (const int value : returned.values) {
      if (value >= 0) last[value] = std::max(last[value], returned.end - 1);
    }
  }
  ForEachNumber(program_->output, [&](int value) { last[value] = static_cast<int>(num_calls); });
  for (size_t v = 0; v < last.size(); ++v) {
    const RecordedValue& value = program_->values[v];
    // Values that no call gives are made from their storage, whenever it is needed first.
    if (value.kind != ValueKind::kResult) needs_memory_[value.storage] = true;
    if (last[v] >= 0 && last[v] < static_cast<int>(num_calls)) dead_[last[v]].push_back(static_cast<int>(v));
  }
}

std::vector<std::string> Replay::Complaints(const std::vector<c10::IValue>& inputs) const {
  return Execution(*this, {}).Complaints(inputs);
}

ReplayResult Replay::Run(const std::vector<c10::IValue>& inputs, const ReplayOptions& options) const {
  return Execution(*this, options).Run(inputs);
}

}  // namespace addend
