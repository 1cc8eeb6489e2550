#include "core/program/program_recorder.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/intercept/thread_modes.h"
#include "core/program/memory.h"
#include "core/program/module_paths.h"
#include "core/program/operator_traits.h"

namespace addend {
namespace {

bool SamePlaceAs(const RecordedValue& value, const at::Tensor& tensor) {
  return value.geometry.offset == tensor.storage_offset() && tensor.sizes() == at::IntArrayRef(value.geometry.sizes) &&
         tensor.strides() == at::IntArrayRef(value.geometry.strides) && value.dtype == tensor.scalar_type() &&
         value.conjugated == tensor.is_conj() && value.negated == tensor.is_neg();
}

// One-dimensional over the whole storage, in the tensor's dtype where the storage is a whole number of its elements.
at::Tensor Whole(const at::Tensor& tensor) {
  const auto nbytes = static_cast<int64_t>(tensor.storage().nbytes());
  const auto item = static_cast<int64_t>(tensor.itemsize());
  const at::ScalarType dtype = nbytes % item == 0 ? tensor.scalar_type() : at::kByte;
  const int64_t numel = nbytes / static_cast<int64_t>(c10::elementSize(dtype));
  return at::empty({0}, at::TensorOptions().dtype(dtype).device(tensor.device()))
      .set_(tensor.storage(), 0, {numel}, {1});
}

// Lists are shared: the model may change one after the call.
c10::IValue Frozen(const c10::IValue& value) {
  if (value.isList() && value.use_count() > 1) return value.toList().copy();
  return value;
}

// "aten::add_.Tensor" -> "add_".
std::string ShortName(const std::string& name) {
  const size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

}  // namespace

class ProgramRecorder::Impl {
 public:
  // Memory that is not touched costs nothing; memory that moves as it grows costs more than what is written into it.
  Impl() {
    program_.calls.reserve(kExpectedCalls);
    program_.values.reserve(kExpectedCalls);
    program_.storages.reserve(kExpectedCalls);
    states_.reserve(kExpectedCalls);
    before_.reserve(kExpectedCalls);
    stems_.reserve(kExpectedCalls);
    storage_ids_.reserve(kExpectedCalls);
  }

  void NameTensor(const std::string& name, const at::Tensor& tensor, bool learned) {
    if (!tensor.defined() || !tensor.has_storage()) return;
    const c10::StorageImpl* impl = tensor.storage().unsafeGetStorageImpl();
    declared_tensors_.try_emplace(tensor.unsafeGetTensorImpl(), declared_.size());
    // Of several names for one storage the first is the owner's.
    declared_storages_.try_emplace(impl, declared_.size());
    if (match_memory_ && tensor.numel() > 0 && !tensor.is_meta()) {
      declared_memory_.try_emplace(static_cast<const char*>(tensor.data_ptr()), declared_.size());
    }
    declared_.push_back({name, tensor, learned});
  }

  void MatchMemory() { match_memory_ = true; }

  void AddInput(const std::string& name, const c10::IValue& value) {
    const TracingPause pause;
    RecordedInput input;
    input.name = name.empty() ? absl::StrCat("input_", program_.inputs.size()) : name;
    int count = 0;
    input.structure = TakeApart(value, input.name, [&](const at::Tensor& tensor) {
      const std::string own = count == 0 ? input.name : absl::StrCat(input.name, ".", count);
      ++count;
      Require(tensor, input.name);
      if (match_memory_) Await(tensor, own);
      if (FindImpl(tensor) >= 0) {
        throw InvalidArgument(absl::StrCat(own, " is the same tensor as another input; record with an alias of it"));
      }
      const int storage = StorageOf(tensor, ValueKind::kInput);
      states_[storage].from_data = true;
      return NewValue(tensor, storage, ValueKind::kInput, Unique(own));
    });
    program_.inputs.push_back(std::move(input));
  }

  void Handle(const Operator& op, Stack* stack) {
    if (finished_) return op.Run(stack);
    const c10::FunctionSchema& schema = op.schema();
    const SchemaFacts& facts = FactsOf(schema);
    const OperatorTraits& traits = facts.traits;
    const size_t count = schema.arguments().size();
    const size_t first = stack->size() - count;
    const int index = static_cast<int>(program_.calls.size());

    RecordedCall call(op);
    if (UnderAutocast()) {
      throw Refusal(call, "cannot record under autocast, which casts behind the operators; turn it off");
    }
    call.grad_mode = c10::GradMode::is_enabled();
    call.arguments.reserve(count);
    changed_.clear();
    read_.clear();
    for (size_t a = 0; a < count; ++a) {
      const c10::IValue& value = (*stack)[first + a];
      switch (traits.arguments[a]) {
        case ArgumentKind::kPlain:
          if (value.isTuple() || value.isGenericDict() || value.isStorage() || value.isObject()) {
            Refuse(call, absl::StrCat("cannot record an argument that is a ", value.tagKind()));
          }
          call.arguments.push_back(Frozen(value));
          break;
        case ArgumentKind::kTensor:
          if (value.isTensor()) {
            Use(call, traits, a, value.toTensor());
            call.arguments.emplace_back();
          } else {
            call.arguments.push_back(value);  // None; a number where the interpreter passes one
          }
          break;
        case ArgumentKind::kTensorList:
          call.arguments.push_back(UseList(call, traits, a, value));
          break;
      }
    }
    if (!traits.statistics.empty() && call.arguments[traits.statistics_flag].isBool() &&
        call.arguments[traits.statistics_flag].toBool()) {
      for (TensorUse& use : call.uses) {
        if (use.value < 0) continue;
        for (const int16_t a : traits.statistics) {
          if (use.argument != a) continue;
          use.written = true;
          changed_.push_back((*stack)[first + a].toTensor());
        }
      }
    }
    if (!changed_.empty()) BeforeWrite(call, traits);
    call.random = traits.Draws(call.arguments);
    call.place = PlaceOf(call);
    const bool from_data = call.random || ReadsData(call, traits);

    op.Run(stack);

    if (!changed_.empty()) AfterWrite(call, traits, index);
    const size_t num_returns = traits.returns.size();
    const size_t behind = stack->size() - num_returns;
    call.is_view = num_returns > 0 && (call.written.empty() || traits.geometry_only);
    for (size_t r = 0; r < num_returns; ++r) {
      const c10::IValue& value = (*stack)[behind + r];
      if (traits.returns[r] == ArgumentKind::kTensor && value.isTensor()) {
        Result(call, traits, index, value.toTensor());
      } else if (traits.returns[r] == ArgumentKind::kTensorList && value.isList()) {
        const auto elements = value.toListRef();
        call.result_sizes.resize(r, 1);
        call.result_sizes.push_back(static_cast<int>(elements.size()));
        for (const c10::IValue& element : elements) Result(call, traits, index, element.toTensor());
      } else {
        call.is_view = false;
      }
      if (!call.result_sizes.empty() && call.result_sizes.size() == r) call.result_sizes.push_back(1);
    }
    call.is_view &= !call.results.empty();
    if (from_data) MarkFromData(call, traits);
    if (traits.gives_plain || traits.data_shape || traits.data_shape_bool) {
      AddGuard(call, traits, index, *stack, behind, from_data);
    }
    if (!read_.empty() && !call.is_view && !traits.metadata_only) FillFromOutside();
    program_.calls.push_back(std::move(call));
    stems_.push_back(facts.stem);
  }

  RecordedProgram Finish(const c10::IValue& output) {
    const TracingPause pause;
    read_.clear();
    program_.output = TakeApart(output, "the output", [&](const at::Tensor& given) {
      Require(given, "the output");
      const at::Tensor tensor = match_memory_ ? Met(given) : given;
      const int value = ValueOf(tensor);
      const int storage = program_.values[value].storage;
      if (states_[storage].unwritten) read_.push_back(tensor);
      program_.output_versions.push_back(static_cast<int>(program_.storages[storage].writers.size()));
      return value;
    });
    FillFromOutside();
    NameResults();
    finished_ = true;
    impls_.clear();
    storage_ids_.clear();
    if (program_.calls.size() < kExpectedCalls / 2) {
      program_.calls.shrink_to_fit();
      program_.values.shrink_to_fit();
      program_.storages.shrink_to_fit();
    }
    return std::move(program_);
  }

  void SetModulePaths(std::vector<std::string> paths) {
    module_paths_.clear();
    sorted_paths_ = paths;
    std::sort(sorted_paths_.begin(), sorted_paths_.end());
    program_.module_paths = std::move(paths);
  }
  void SetModule(const std::string& path) {
    module_ = path;
    module_number_ = modules_.try_emplace(path, static_cast<int>(modules_.size())).first->second;
  }
  void SetFrameProvider(std::function<std::vector<SourceFrame>()> frames) { frames_ = std::move(frames); }

 private:
  static constexpr size_t kExpectedCalls = 16384;

  struct Declared {
    std::string name;
    at::Tensor tensor;
    bool learned = false;
  };
  struct Awaited {
    at::Tensor tensor;
    int storage = -1;
    std::string name;
  };
  struct StorageState {
    explicit StorageState(c10::StorageImpl* impl)
        : guard(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(impl)), address(impl) {}
    c10::weak_intrusive_ptr<c10::StorageImpl> guard;  // keeps the address from being used again
    c10::StorageImpl* address;
    int last = -1;           // the value made in it last; before_ leads to the others
    bool unwritten = false;  // allocated by a call, and no call has written it since
    bool from_data = false;  // see Note [What depends on data]
  };
  [[noreturn]] void Refuse(const RecordedCall& call, const std::string& why) { throw Refusal(call, why); }

  Error Refusal(const RecordedCall& call, const std::string& why) {
    Position position;
    position.op_index = static_cast<int64_t>(program_.calls.size());
    position.op = call.op.schema().name();
    const int place = PlaceOf(call);
    if (place >= 0) position.module_path = program_.places[place].module_path;
    return Error(absl::StatusCode::kUnimplemented, why, std::move(position));
  }

  static void Require(const at::Tensor& tensor, const std::string& what) {
    if (tensor.has_storage() && !tensor.is_nested() && !tensor.is_quantized()) return;
    throw Unimplemented(absl::StrCat(what, " is or holds a tensor that is not dense (sparse, nested, quantized)"));
  }

  // What is worked out once for each operator.
  struct SchemaFacts {
    explicit SchemaFacts(const c10::FunctionSchema& schema) : traits(schema) {}
    OperatorTraits traits;
    int stem = -1;  // in stem_names_
  };

  const SchemaFacts& FactsOf(const c10::FunctionSchema& schema) {
    std::unique_ptr<SchemaFacts>& slot = facts_[&schema];
    if (slot != nullptr) return *slot;
    slot = std::make_unique<SchemaFacts>(schema);
    const std::string name = ShortName(schema.name());
    const auto known = std::find(stem_names_.begin(), stem_names_.end(), name);
    slot->stem = static_cast<int>(known - stem_names_.begin());
    if (known == stem_names_.end()) stem_names_.push_back(name);
    return *slot;
  }

  // ------------------------------------------------------------------------------------------- tensors to values

  // A freed tensor's address may be used again. Who has it then is either known by it anew, or lies in the same storage
  // in the same way, which makes it the same elements.
  int FindImpl(const at::Tensor& tensor) const {
    const auto found = impls_.find(tensor.unsafeGetTensorImpl());
    if (found == impls_.end()) return -1;
    const RecordedValue& value = program_.values[found->second];
    // The tensor may have been resized, or been given other memory, behind the dispatcher's back.
    if (states_[value.storage].address != tensor.storage().unsafeGetStorageImpl()) return -1;
    return SamePlaceAs(value, tensor) ? found->second : -1;
  }

  // The id of the tensor's storage, made on first sight.
  int StorageOf(const at::Tensor& tensor, ValueKind kind) {
    c10::StorageImpl* impl = tensor.storage().unsafeGetStorageImpl();
    const auto [found, is_new] = storage_ids_.try_emplace(impl, static_cast<int>(states_.size()));
    if (is_new) {
      states_.emplace_back(impl);
      RecordedStorage storage;
      storage.kind = kind;
      storage.nbytes = static_cast<int64_t>(impl->nbytes());
      program_.storages.push_back(std::move(storage));
    }
    return found->second;
  }

  int NewValue(const at::Tensor& tensor, int storage, ValueKind kind, std::string name) {
    const int number = static_cast<int>(program_.values.size());
    RecordedValue& value = program_.values.emplace_back();
    value.name = std::move(name);
    value.kind = kind;
    value.storage = storage;
    value.version = static_cast<int>(program_.storages[storage].writers.size());
    value.dtype = tensor.scalar_type();
    const at::IntArrayRef sizes = tensor.sizes();
    const at::IntArrayRef strides = tensor.strides();
    value.geometry.sizes.append(sizes.begin(), sizes.end());
    value.geometry.strides.append(strides.begin(), strides.end());
    value.geometry.offset = tensor.storage_offset();
    value.device = tensor.device();
    value.conjugated = tensor.is_conj();
    value.negated = tensor.is_neg();
    value.wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
    if (program_.storages[storage].value < 0) program_.storages[storage].value = number;
    before_.push_back(std::exchange(states_[storage].last, number));
    impls_[tensor.unsafeGetTensorImpl()] = number;
    return number;
  }

  int ValueOf(const at::Tensor& tensor) {
    int number = FindImpl(tensor);
    if (number >= 0) return number;
    auto storage = storage_ids_.find(tensor.storage().unsafeGetStorageImpl());
    if (storage == storage_ids_.end() && !awaited_.empty() && Adopt(tensor)) {
      storage = storage_ids_.find(tensor.storage().unsafeGetStorageImpl());
    }
    if (storage == storage_ids_.end()) return NewOutside(tensor);
    // Another tensor object for what is known: an alias made behind the dispatcher's back.
    for (int v = states_[storage->second].last; v >= 0; v = before_[v]) {
      if (!SamePlaceAs(program_.values[v], tensor)) continue;
      impls_[tensor.unsafeGetTensorImpl()] = v;
      return v;
    }
    return NewValue(tensor, storage->second, ValueKind::kPart, "");
  }

  // A tensor that no call made: the model's own or a constant.
  int NewOutside(const at::Tensor& tensor) {
    const TracingPause pause;
    const Declared* declared = nullptr;
    if (const auto exact = declared_tensors_.find(tensor.unsafeGetTensorImpl()); exact != declared_tensors_.end()) {
      declared = &declared_[exact->second];
    }
    const auto owner = declared_storages_.find(tensor.storage().unsafeGetStorageImpl());
    if (declared == nullptr && owner != declared_storages_.end()) declared = &declared_[owner->second];
    at::Tensor own;  // what is declared, in the storage that the model reads
    if (declared == nullptr && !tensor.is_meta()) declared = DeclaredIn(tensor, own);
    if (declared != nullptr && !own.defined()) own = declared->tensor;
    ValueKind kind = ValueKind::kConstant;
    std::string name = absl::StrCat("constant_", constants_);
    if (declared != nullptr) {
      kind = declared->learned ? ValueKind::kParameter : ValueKind::kBuffer;
      name = declared->name;
    } else {
      ++constants_;
    }
    const int storage = StorageOf(tensor, kind);
    if (!tensor.is_meta()) program_.storages[storage].initial = Whole(tensor);
    if (declared != nullptr && !SameTensor(own, tensor)) {
      // The model reads a part of the parameter: the parameter itself is a value as well.
      const int whole = NewValue(own, storage, kind, Unique(name));
      program_.values[whole].requires_grad = declared->tensor.requires_grad();
      return NewValue(tensor, storage, ValueKind::kPart, "");
    }
    const int number = NewValue(tensor, storage, kind, Unique(name));
    program_.values[number].requires_grad = tensor.requires_grad();
    return number;
  }

  // ------------------------------------------------------------------------------------------- tensors by memory

  // The declared tensor that the memory of this one belongs to: itself, or the first in its storage.
  const Declared* DeclaredIn(const at::Tensor& tensor, at::Tensor& own) const {
    const c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
    const auto* begin = static_cast<const char*>(storage.data());
    const Declared* first = nullptr;
    for (auto at = declared_memory_.lower_bound(begin);
         at != declared_memory_.end() && at->first < begin + storage.nbytes(); ++at) {
      const Declared& declared = declared_[at->second];
      if (!LiesIn(storage, declared.tensor)) continue;
      const at::Tensor seen = SeenIn(tensor.storage(), declared.tensor);
      if (!seen.defined()) continue;
      if (first == nullptr || SameTensor(seen, tensor)) {
        first = &declared;
        own = seen;
      }
      if (SameTensor(seen, tensor)) break;
    }
    return first;
  }

  // An input that may come in another storage.
  void Await(const at::Tensor& tensor, const std::string& name) {
    if (tensor.numel() == 0 || tensor.is_meta()) return;
    for (size_t s = 0; s < states_.size(); ++s) {
      const auto alive = states_[s].guard.lock();
      if (!alive || !LiesIn(*alive, tensor)) continue;
      throw FailedPrecondition(absl::StrCat(name, program_.storages[s].kind == ValueKind::kInput
                                                      ? " shares the memory of another input; record a copy of it"
                                                      : " was used before it was declared as an input"));
    }
    awaited_.push_back({tensor, static_cast<int>(states_.size()), name});
  }

  // True when the storage turns out to be that of an input, as which it is known from now on.
  bool Adopt(const at::Tensor& tensor) {
    c10::StorageImpl* live = tensor.storage().unsafeGetStorageImpl();
    int adopted = -1;
    for (auto input = awaited_.begin(); input != awaited_.end();) {
      if (!LiesIn(*live, input->tensor)) {
        ++input;
        continue;
      }
      if (adopted >= 0) {
        throw InvalidArgument(
            absl::StrCat(input->name, " lies in one storage with another input; record a copy of it"));
      }
      const TracingPause pause;
      const at::Tensor seen = SeenIn(tensor.storage(), input->tensor);
      if (!seen.defined()) {
        throw InvalidArgument(absl::StrCat(input->name,
                                           " is no whole number of elements from the beginning of its "
                                           "storage; record a copy of it"));
      }
      adopted = input->storage;
      RecordedValue& value = program_.values[program_.storages[adopted].value];
      value.geometry.offset = seen.storage_offset();
      storage_ids_.erase(input->tensor.storage().unsafeGetStorageImpl());
      held_.push_back(std::move(input->tensor));  // keeps the address from being used again
      input = awaited_.erase(input);
    }
    if (adopted < 0) return false;
    StorageState state(live);
    state.last = states_[adopted].last;
    state.from_data = true;
    states_[adopted] = std::move(state);
    storage_ids_[live] = adopted;
    program_.storages[adopted].nbytes = static_cast<int64_t>(live->nbytes());
    return true;
  }

  // The tensor as operators have met it.
  at::Tensor Met(const at::Tensor& tensor) const {
    if (storage_ids_.contains(tensor.storage().unsafeGetStorageImpl()) || tensor.is_meta()) return tensor;
    // Two storages that are alive hold the same memory only where one was made to alias the other.
    for (auto state = states_.rbegin(); state != states_.rend(); ++state) {
      const auto alive = state->guard.lock();
      if (!alive || !LiesIn(*alive, tensor)) continue;
      const at::Tensor seen = SeenIn(c10::Storage(alive), tensor);
      if (seen.defined()) return seen;
    }
    at::Tensor own;
    if (DeclaredIn(tensor, own) != nullptr) return tensor;
    throw NotFound("no operator of the recording has met the memory of the output");
  }

  static bool SameTensor(const at::Tensor& a, const at::Tensor& b) {
    return a.unsafeGetTensorImpl() == b.unsafeGetTensorImpl() ||
           (a.sizes() == b.sizes() && a.strides() == b.strides() && a.storage_offset() == b.storage_offset() &&
            a.scalar_type() == b.scalar_type());
  }

  void Use(RecordedCall& call, const OperatorTraits& traits, size_t argument, const at::Tensor& tensor) {
    TensorUse use;
    use.argument = static_cast<int16_t>(argument);
    if (tensor.defined()) {
      if (!tensor.has_storage() || tensor.is_nested() || tensor.is_quantized()) {
        Refuse(call, absl::StrCat("cannot record tensors that are not dense (sparse, nested, quantized), which ",
                                  call.op.schema().name(), " reads"));
      }
      use.value = ValueOf(tensor);
      const int storage = program_.values[use.value].storage;
      use.version = static_cast<int>(program_.storages[storage].writers.size());
      use.written = traits.written[argument];
      if (use.written) changed_.push_back(tensor);
      if (states_[storage].unwritten && !use.written) read_.push_back(tensor);
    }
    call.uses.push_back(use);
  }

  // Returns what is recorded of the list beside the uses; see RecordedCall.
  c10::IValue UseList(RecordedCall& call, const OperatorTraits& traits, size_t argument, const c10::IValue& value) {
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

  // --------------------------------------------------------------------------------------------------- writes

  void BeforeWrite(const RecordedCall& call, const OperatorTraits& traits) {
    if (traits.geometry_only) return;
    const TracingPause pause;
    size_t k = 0;
    for (const TensorUse& use : call.uses) {
      if (!use.written) continue;
      const at::Tensor& tensor = changed_[k++];
      const int id = program_.values[use.value].storage;
      if (states_[id].unwritten && !traits.overwrites && !traits.output[use.argument]) FillFromOutside(tensor);
      RecordedStorage& storage = program_.storages[id];
      if (storage.initial.defined() && !storage.copied) {
        storage.initial = storage.initial.clone();
        storage.copied = true;
      }
      // A new size gives new memory, which holds nothing yet.
      if (!traits.allocates) states_[id].unwritten = false;
    }
  }

  void AfterWrite(RecordedCall& call, const OperatorTraits& traits, int index) {
    size_t k = 0;
    // Several written arguments may lie in one storage: it has one more version, not several.
    for (const TensorUse& use : call.uses) {
      if (!use.written || traits.geometry_only) continue;
      std::vector<int>& writers = program_.storages[program_.values[use.value].storage].writers;
      if (writers.empty() || writers.back() != index) writers.push_back(index);
    }
    for (const TensorUse& use : call.uses) {
      if (!use.written) continue;
      const at::Tensor& tensor = changed_[k++];
      const int storage = StorageOf(tensor, ValueKind::kResult);
      program_.storages[storage].nbytes = static_cast<int64_t>(tensor.storage().nbytes());
      // The same tensor may be passed twice.
      const int known = FindImpl(tensor);
      if (known >= 0 && program_.values[known].call == index) {
        call.written.push_back(known);
        continue;
      }
      const int number = NewValue(tensor, storage, ValueKind::kResult, "");
      program_.values[number].call = index;
      program_.values[number].result = static_cast<int>(call.written.size());  // made final in Handle()
      call.written.push_back(number);
    }
  }

  void Result(RecordedCall& call, const OperatorTraits& traits, int index, const at::Tensor& tensor) {
    if (!tensor.defined()) {
      call.results.push_back(-1);
      return;
    }
    if (!tensor.has_storage() || tensor.is_nested())
      Refuse(call, absl::StrCat(call.op.schema().name(),
                                " gives a tensor that is not dense (sparse, nested), which cannot be recorded"));
    const int position = static_cast<int>(call.results.size());
    const int known = FindImpl(tensor);
    if (known >= 0 && program_.values[known].call == index) {
      call.results.push_back(known);
      return;
    }
    const size_t before = states_.size();
    const int storage = StorageOf(tensor, ValueKind::kResult);
    const bool fresh = states_.size() != before;
    if (fresh && traits.allocates) states_[storage].unwritten = true;
    call.is_view &= !fresh && Aliases(call, storage);
    const int number = NewValue(tensor, storage, ValueKind::kResult, "");
    program_.values[number].call = index;
    program_.values[number].result = position;
    call.results.push_back(number);
  }

  bool Aliases(const RecordedCall& call, int storage) const {
    return std::any_of(call.uses.begin(), call.uses.end(), [&](const TensorUse& use) {
      return use.value >= 0 && program_.values[use.value].storage == storage;
    });
  }

  // Memory that a call allocated and that something other than a recorded call has filled.
  void FillFromOutside(const at::Tensor& tensor) {
    const int id = storage_ids_.at(tensor.storage().unsafeGetStorageImpl());
    states_[id].unwritten = false;
    if (tensor.is_meta()) return;
    program_.storages[id].kind = ValueKind::kConstant;
    program_.storages[id].initial = Whole(tensor);
    program_.storages[id].filled = static_cast<int>(program_.calls.size());
  }

  void FillFromOutside() {
    const TracingPause pause;
    for (const at::Tensor& tensor : read_) FillFromOutside(tensor);
    read_.clear();
  }

  // --------------------------------------------------------------------------------------------------- guards

  // Note [What depends on data]
  // A guard is worth its name where it can fail: where the number depends on elements of an input, or on what was
  // drawn. Storages tell: those of inputs do, what a generator filled does, and so does whatever a call wrote or gave
  // that read one that does. Once marked a storage stays so. Everything else (parameters, constants, sizes and what is
  // computed from them) is the same in each replay. Constants that were made of numbers of the input are so as well,
  // since the operators by which numbers leave are guards themselves.

  // `first`: of the arguments that count.
  bool ReadsData(const RecordedCall& call, const OperatorTraits& traits, int16_t first = 0) const {
    if (traits.metadata_only || traits.property) return false;
    return std::any_of(call.uses.begin(), call.uses.end(), [&](const TensorUse& use) {
      if (use.value < 0 || use.argument < first || traits.shown[use.argument]) return false;
      const bool only_written = use.written && (traits.overwrites || traits.output[use.argument]);
      return !only_written && states_[program_.values[use.value].storage].from_data;
    });
  }

  void MarkFromData(const RecordedCall& call, const OperatorTraits& traits) {
    for (const auto* values : {&call.results, &call.written}) {
      for (size_t r = 0; r < values->size(); ++r) {
        const int value = (*values)[r];
        if (value < 0 || (traits.lengths_apart && r == 1 && !ReadsData(call, traits, /*first=*/1))) continue;
        states_[program_.values[value].storage].from_data = true;
      }
    }
  }

  void AddGuard(RecordedCall& call, const OperatorTraits& traits, int index, const Stack& stack, size_t behind,
                bool from_data) {
    RecordedGuard guard;
    guard.call = index;
    if (traits.gives_plain) {
      guard.kind = from_data ? GuardKind::kNumber : GuardKind::kProperty;
      std::vector<c10::IValue> plain;
      for (size_t r = 0; r < traits.returns.size(); ++r) {
        if (traits.returns[r] == ArgumentKind::kPlain) plain.push_back(Frozen(stack[behind + r]));
      }
      guard.value = plain.size() == 1 ? plain[0] : c10::IValue(c10::ivalue::Tuple::create(std::move(plain)));
    } else {
      const bool boolean = std::any_of(call.uses.begin(), call.uses.end(), [&](const TensorUse& use) {
        return use.argument > 0 && use.value >= 0 &&
               (program_.values[use.value].dtype == at::kBool || program_.values[use.value].dtype == at::kByte);
      });
      if (!traits.SizesFromData(call.arguments) && !(traits.data_shape_bool && boolean)) return;
      if (!call.random && !ReadsData(call, traits, traits.data_shape_from)) return;
      guard.kind = GuardKind::kShape;
      std::vector<c10::IValue> sizes;
      for (const int value : call.results) {
        sizes.emplace_back(value < 0 ? at::IntArrayRef() : at::IntArrayRef(program_.values[value].geometry.sizes));
      }
      guard.value = c10::ivalue::Tuple::create(std::move(sizes));
    }
    call.guard = static_cast<int>(program_.guards.size());
    program_.guards.push_back(std::move(guard));
  }

  // --------------------------------------------------------------------------------------------------- places

  int PlaceOf(const RecordedCall& call) {
    int parameter = -1;
    for (const TensorUse& use : call.uses) {
      if (use.value < 0) continue;
      const RecordedStorage& storage = program_.storages[program_.values[use.value].storage];
      if (storage.kind != ValueKind::kParameter && storage.kind != ValueKind::kBuffer) continue;
      parameter = storage.value;
      break;
    }
    const int script = script_places_.Current();
    if (script < 0 && frames_) {
      CodePlace place;
      const TracingPause pause;
      place.frames = frames_();
      return Place(std::move(place), parameter);
    }
    const auto [found, is_new] = places_.try_emplace({script, parameter, module_number_}, -1);
    if (is_new) found->second = Place(script < 0 ? CodePlace() : script_places_.places()[script], parameter);
    return found->second;
  }

  int Place(CodePlace place, int parameter) {
    if (!module_.empty()) {
      place.module_path = module_;
    } else {
      const std::string name = parameter < 0 ? "" : program_.values[parameter].name;
      // Comparing a place with every module takes a while, and the operators of a module share it.
      const auto [found, is_new] = module_paths_.try_emplace({place.module_path, name}, "");
      if (is_new) found->second = ResolveModulePath(place.module_path, name, sorted_paths_);
      place.module_path = found->second;
    }
    if (place.module_path.empty() && place.frames.empty()) return -1;
    // Only neighbours are compared: places of a loop repeat at once or in a pattern, and the cache above knows most.
    const auto recent = program_.places.size() > 64 ? program_.places.end() - 64 : program_.places.begin();
    const auto same = std::find(recent, program_.places.end(), place);
    if (same != program_.places.end()) return static_cast<int>(same - program_.places.begin());
    program_.places.push_back(std::move(place));
    return static_cast<int>(program_.places.size()) - 1;
  }

  // ---------------------------------------------------------------------------------------------------- names

  std::string Unique(const std::string& name) {
    std::string unique = name;
    for (int k = 1; !names_.insert(unique).second; ++k) unique = absl::StrCat(name, "_", k);
    return unique;
  }

  // "relu_1" cannot be the second relu and the first relu_1: with such an operator every name has to be looked up.
  bool StemsEndInNumbers() const {
    return std::any_of(stem_names_.begin(), stem_names_.end(), [](const std::string& stem) {
      const size_t last = stem.find_last_not_of("0123456789");
      return last != std::string::npos && last + 1 < stem.size() && stem[last] == '_';
    });
  }

  void NameResults() {
    std::vector<int> counts(stem_names_.size(), 0);
    const bool keep = StemsEndInNumbers();
    const auto numbered = [&](int stem) {
      for (;;) {
        const int k = counts[stem]++;
        std::string name = stem_names_[stem];
        if (k > 0) absl::StrAppend(&name, "_", k);
        if (keep ? names_.insert(name).second : !names_.contains(name)) return name;
      }
    };
    std::vector<int> own;
    for (size_t c = 0; c < program_.calls.size(); ++c) {
      const RecordedCall& call = program_.calls[c];
      own.clear();
      const auto add = [&](int value) {
        const bool made_here =
            value >= 0 && program_.values[value].call == static_cast<int>(c) && program_.values[value].name.empty();
        if (made_here && std::find(own.begin(), own.end(), value) == own.end()) own.push_back(value);
      };
      for (size_t r = 0; r < call.results.size(); ++r) {
        add(call.results[r]);
        if (call.results[r] >= 0) program_.values[call.results[r]].result = static_cast<int>(r);
      }
      for (size_t w = 0; w < call.written.size(); ++w) {
        add(call.written[w]);
        const bool returned =
            std::find(call.results.begin(), call.results.end(), call.written[w]) != call.results.end();
        if (!returned) {
          program_.values[call.written[w]].result = static_cast<int>(call.results.size() + w);
        }
      }
      if (own.empty()) continue;
      std::string stem = numbered(stems_[c]);
      if (own.size() == 1) {
        program_.values[own[0]].name = std::move(stem);
        continue;
      }
      for (size_t k = 0; k < own.size(); ++k) program_.values[own[k]].name = Unique(absl::StrCat(stem, ".", k));
    }
    for (RecordedValue& value : program_.values) {
      if (!value.name.empty()) continue;
      const int base = program_.storages[value.storage].value;
      value.name = Unique(absl::StrCat(program_.values[base].name, ".part"));
    }
  }

  RecordedProgram program_;
  bool finished_ = false;
  int constants_ = 0;
  std::string module_;
  int module_number_ = -1;
  absl::flat_hash_map<std::string, int> modules_;  // by path
  std::function<std::vector<SourceFrame>()> frames_;
  std::vector<Declared> declared_;
  absl::flat_hash_map<const c10::TensorImpl*, size_t> declared_tensors_;
  absl::flat_hash_map<const c10::StorageImpl*, size_t> declared_storages_;
  bool match_memory_ = false;
  std::map<const char*, size_t> declared_memory_;  // where the elements of the declared tensors begin
  std::vector<Awaited> awaited_;                   // inputs that no operator has met
  std::vector<at::Tensor> held_;
  absl::flat_hash_map<const c10::FunctionSchema*, std::unique_ptr<SchemaFacts>> facts_;
  std::vector<std::string> stem_names_;
  std::vector<int> stems_;            // by call, in stem_names_
  std::vector<StorageState> states_;  // by storage
  absl::flat_hash_map<const c10::StorageImpl*, int> storage_ids_;
  absl::flat_hash_map<const c10::TensorImpl*, int> impls_;
  std::vector<int> before_;  // by value: the value made in its storage before it
  ScriptPlaces script_places_;
  // By what the interpreter says and the parameter: the module's path in full.
  absl::flat_hash_map<std::pair<std::string, std::string>, std::string> module_paths_;
  std::vector<std::string> sorted_paths_;
  absl::flat_hash_map<std::tuple<int, int, int>, int> places_;
  absl::flat_hash_set<std::string> names_;
  // Of the call at hand: the tensors of its written uses, in order, and those in memory that nobody has written.
  std::vector<at::Tensor> changed_;
  std::vector<at::Tensor> read_;
};

ProgramRecorder::ProgramRecorder() : impl_(std::make_unique<Impl>()) {}
ProgramRecorder::~ProgramRecorder() = default;

void ProgramRecorder::NameTensor(const std::string& name, const at::Tensor& tensor, bool learned) {
  impl_->NameTensor(name, tensor, learned);
}

void ProgramRecorder::AddInput(const std::string& name, const c10::IValue& value) { impl_->AddInput(name, value); }

void ProgramRecorder::MatchMemory() { impl_->MatchMemory(); }

void ProgramRecorder::SetModulePaths(std::vector<std::string> paths) { impl_->SetModulePaths(std::move(paths)); }

void ProgramRecorder::SetModule(const std::string& path) { impl_->SetModule(path); }

void ProgramRecorder::SetFrameProvider(std::function<std::vector<SourceFrame>()> frames) {
  impl_->SetFrameProvider(std::move(frames));
}

void ProgramRecorder::Handle(const Operator& op, Stack* stack) {
  try {
    impl_->Handle(op, stack);
  } catch (const Error&) {
    if (!error_) error_ = std::current_exception();
    throw;
  }
}

RecordedProgram ProgramRecorder::Finish(const c10::IValue& output) { return impl_->Finish(output); }

}  // namespace addend
