#include "core/program/program_recorder.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/UndefinedTensorImpl.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
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
  void NameTensor(const std::string& name, const at::Tensor& tensor, bool learned) {
    if (!tensor.defined() || !tensor.has_storage()) return;
    const c10::StorageImpl* impl = tensor.storage().unsafeGetStorageImpl();
    declared_tensors_.try_emplace(tensor.unsafeGetTensorImpl(), declared_.size());
    // Of several names for one storage the first is the owner's.
    declared_storages_.try_emplace(impl, declared_.size());
    declared_.push_back({name, tensor, learned});
  }

  void AddInput(const std::string& name, const c10::IValue& value) {
    const TracingPause pause;
    RecordedInput input;
    input.name = name.empty() ? absl::StrCat("input_", program_.inputs.size()) : name;
    int count = 0;
    input.structure = TakeApart(value, input.name, [&](const at::Tensor& tensor) {
      const std::string own = count == 0 ? input.name : absl::StrCat(input.name, ".", count);
      ++count;
      Require(tensor, input.name);
      if (FindImpl(tensor) >= 0) {
        throw InvalidArgument(absl::StrCat(own, " is the same tensor as another input; record with an alias of it"));
      }
      return NewValue(tensor, StorageOf(tensor, ValueKind::kInput), ValueKind::kInput, Unique(own));
    });
    program_.inputs.push_back(std::move(input));
  }

  void Handle(const Operator& op, Stack* stack) {
    if (finished_) return op.Run(stack);
    const c10::FunctionSchema& schema = op.schema();
    const OperatorTraits& traits = TraitsOf(schema);
    const size_t count = schema.arguments().size();
    const size_t first = stack->size() - count;
    const int index = static_cast<int>(program_.calls.size());

    RecordedCall call(op);
    if (at::autocast::is_enabled() || at::autocast::is_cpu_enabled()) {
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
    if (traits.gives_plain || traits.data_shape || traits.data_shape_bool)
      AddGuard(call, traits, index, *stack, behind);
    if (!read_.empty() && !call.is_view && !traits.metadata_only) FillFromOutside();
    program_.calls.push_back(std::move(call));
  }

  RecordedProgram Finish(const c10::IValue& output) {
    const TracingPause pause;
    read_.clear();
    program_.output = TakeApart(output, "the output", [&](const at::Tensor& tensor) {
      Require(tensor, "the output");
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
    return std::move(program_);
  }

  void SetModulePaths(std::vector<std::string> paths) { program_.module_paths = std::move(paths); }
  void SetModule(const std::string& path) { module_ = path; }
  void SetFrameProvider(std::function<std::vector<SourceFrame>()> frames) { frames_ = std::move(frames); }

 private:
  struct Declared {
    std::string name;
    at::Tensor tensor;
    bool learned = false;
  };
  struct StorageState {
    explicit StorageState(c10::StorageImpl* impl)
        : guard(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(impl)), address(impl) {}
    c10::weak_intrusive_ptr<c10::StorageImpl> guard;  // keeps the address from being used again
    c10::StorageImpl* address;
    std::vector<int> values;
    bool unwritten = false;  // allocated by a call, and no call has written it since
  };
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

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
    if (tensor.has_storage() && !tensor.is_quantized()) return;
    throw Unimplemented(absl::StrCat(what, " is or holds a tensor that is not dense (sparse, nested, quantized)"));
  }

  const OperatorTraits& TraitsOf(const c10::FunctionSchema& schema) {
    std::unique_ptr<OperatorTraits>& slot = traits_[&schema];
    if (slot == nullptr) slot = std::make_unique<OperatorTraits>(schema);
    return *slot;
  }

  // ------------------------------------------------------------------------------------------- tensors to values

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
    value.geometry.sizes = c10::DimVector(tensor.sizes());
    value.geometry.strides = c10::DimVector(tensor.strides());
    value.geometry.offset = tensor.storage_offset();
    value.device = tensor.device();
    value.conjugated = tensor.is_conj();
    value.negated = tensor.is_neg();
    value.wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
    if (program_.storages[storage].value < 0) program_.storages[storage].value = number;
    states_[storage].values.push_back(number);
    Remember(tensor, number);
    return number;
  }

  void Remember(const at::Tensor& tensor, int number) {
    const auto [found, is_new] = impls_.insert_or_assign(tensor.unsafeGetTensorImpl(), number);
    if (is_new) impl_guards_.emplace_back(tensor.getIntrusivePtr());
  }

  int ValueOf(const at::Tensor& tensor) {
    int number = FindImpl(tensor);
    if (number >= 0) return number;
    const auto storage = storage_ids_.find(tensor.storage().unsafeGetStorageImpl());
    if (storage == storage_ids_.end()) return NewOutside(tensor);
    // Another tensor object for what is known: an alias made behind the dispatcher's back.
    const std::vector<int>& values = states_[storage->second].values;
    for (auto v = values.rbegin(); v != values.rend(); ++v) {
      if (!SamePlaceAs(program_.values[*v], tensor)) continue;
      Remember(tensor, *v);
      return *v;
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
    if (declared != nullptr && !SameTensor(declared->tensor, tensor)) {
      // The model reads a part of the parameter: the parameter itself is a value as well.
      const int whole = NewValue(declared->tensor, storage, kind, Unique(name));
      program_.values[whole].requires_grad = declared->tensor.requires_grad();
      return NewValue(tensor, storage, ValueKind::kPart, "");
    }
    const int number = NewValue(tensor, storage, kind, Unique(name));
    program_.values[number].requires_grad = tensor.requires_grad();
    return number;
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
      if (!tensor.has_storage() || tensor.is_quantized()) {
        Refuse(call, "cannot record tensors that are not dense (sparse, nested, quantized)");
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
    if (!tensor.has_storage())
      Refuse(call, "gives a tensor that is not dense (sparse, nested), which cannot be recorded");
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

  void AddGuard(RecordedCall& call, const OperatorTraits& traits, int index, const Stack& stack, size_t behind) {
    RecordedGuard guard;
    guard.call = index;
    if (traits.gives_plain) {
      guard.kind = traits.property ? GuardKind::kProperty : GuardKind::kNumber;
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
      if (!traits.data_shape && !boolean) return;
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
      place.frames = frames_();
      return Place(std::move(place), parameter);
    }
    const auto [found, is_new] = places_.try_emplace({script, parameter, module_}, -1);
    if (is_new) found->second = Place(script < 0 ? CodePlace() : script_places_.places()[script], parameter);
    return found->second;
  }

  int Place(CodePlace place, int parameter) {
    if (!module_.empty()) {
      place.module_path = module_;
    } else {
      const std::string name = parameter < 0 ? "" : program_.values[parameter].name;
      place.module_path = ResolveModulePath(place.module_path, name, program_.module_paths);
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

  void NameResults() {
    absl::flat_hash_map<std::string, int> counts;
    const auto numbered = [&](const std::string& stem) {
      for (;;) {
        const int k = counts[stem]++;
        std::string name = k == 0 ? stem : absl::StrCat(stem, "_", k);
        if (names_.insert(name).second) return name;
      }
    };
    for (const RecordedCall& call : program_.calls) {
      std::vector<int> own;
      const int index = static_cast<int>(&call - program_.calls.data());
      const auto add = [&](int value) {
        const bool made_here =
            value >= 0 && program_.values[value].call == index && program_.values[value].name.empty();
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
      const std::string stem = numbered(ShortName(call.op.schema().name()));
      for (size_t k = 0; k < own.size(); ++k) {
        std::string name = own.size() == 1 ? stem : Unique(absl::StrCat(stem, ".", k));
        program_.values[own[k]].name = std::move(name);
      }
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
  std::function<std::vector<SourceFrame>()> frames_;
  std::vector<Declared> declared_;
  absl::flat_hash_map<const c10::TensorImpl*, size_t> declared_tensors_;
  absl::flat_hash_map<const c10::StorageImpl*, size_t> declared_storages_;
  absl::flat_hash_map<const c10::FunctionSchema*, std::unique_ptr<OperatorTraits>> traits_;
  std::vector<StorageState> states_;  // by storage
  absl::flat_hash_map<const c10::StorageImpl*, int> storage_ids_;
  absl::flat_hash_map<const c10::TensorImpl*, int> impls_;
  std::vector<WeakTensor> impl_guards_;
  ScriptPlaces script_places_;
  absl::flat_hash_map<std::tuple<int, int, std::string>, int> places_;
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
