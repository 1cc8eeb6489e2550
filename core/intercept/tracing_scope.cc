#include "core/intercept/tracing_scope.h"

#include <ATen/core/enum_tag.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/intercept/computed_in.h"
#include "core/intercept/own_operators.h"
#include "core/intercept/thread_modes.h"

namespace addend {
namespace {

// A function: in some versions of LibTorch the kind is an object of its library, not a constant.
c10::DebugInfoKind InfoKind() { return c10::DebugInfoKind::TEST_INFO_2; }

struct HandlerInfo : c10::DebugInfoBase {
  explicit HandlerInfo(CallHandler* h) : handler(h) {}
  CallHandler* handler;
  // Forks of a script call at the same time; a handler sees one call after the other. Recursive: handlers expand
  // composite operators, whose parts come back on the same thread.
  std::recursive_mutex mutex;
};

void Fallback(const c10::OperatorHandle& op, Stack* stack);

struct TracingKey {
  c10::DispatchKey key = c10::DispatchKey::Undefined;
  std::optional<c10::RegistrationHandleRAII> registration;
  std::string tried;
};

// Registered at the first use and never taken back: a scope may be open on another thread when the process ends.
const TracingKey& Key() {
  static const TracingKey& key = *[] {
    auto* chosen = new TracingKey;
    for (const auto candidate : {c10::DispatchKey::TESTING_ONLY_GenericMode,
                                 c10::DispatchKey::TESTING_ONLY_GenericWrapper, c10::DispatchKey::DeferredInit}) {
      try {
        chosen->registration.emplace(c10::Dispatcher::singleton().registerFallback(
            candidate, c10::KernelFunction::makeFromBoxedFunction<&Fallback>(), "addend tracing"));
        chosen->key = candidate;
        break;
      } catch (const c10::Error& taken) {
        absl::StrAppend(&chosen->tried, " ", c10::toString(candidate));
      }
    }
    return chosen;
  }();
  if (key.key == c10::DispatchKey::Undefined) {
    throw FailedPrecondition(
        absl::StrCat("no free dispatch key for tracing (another tracer in this process holds them); tried", key.tried));
  }
  return key;
}

void Fallback(const c10::OperatorHandle& op, Stack* stack) {
  auto* info = static_cast<HandlerInfo*>(c10::ThreadLocalDebugInfo::get(InfoKind()));
  const Operator wrapped(op);
  if (info == nullptr) {
    wrapped.Run(stack);
  } else {
    const std::lock_guard<std::recursive_mutex> one_at_a_time(info->mutex);
    info->handler->Handle(wrapped, stack);
  }
}

// The handler that sees the operators of this thread; null where there is none, or a pause.
const HandlerInfo* HandlerHere() {
  const auto* info = static_cast<const HandlerInfo*>(c10::ThreadLocalDebugInfo::get(InfoKind()));
  const bool traced = info != nullptr && !c10::impl::tls_is_dispatch_key_excluded(Key().key);
  return traced ? info : nullptr;
}

}  // namespace

at::ScalarType ComputedInHere() {
  const HandlerInfo* info = HandlerHere();
  return info != nullptr ? info->handler->computed_in() : at::ScalarType::Undefined;
}

void TellModuleOutput(const std::string& module_path, int64_t index, const at::Tensor& tensor) {
  const HandlerInfo* info = HandlerHere();
  if (info != nullptr) info->handler->AddModuleOutput(module_path, index, tensor);
}

std::optional<Operator> Operator::Find(const std::string& name, const std::string& overload) {
  if (IsOwnOperator(name)) RegisterOwnOperators();
  const auto handle = c10::Dispatcher::singleton().findSchema(c10::OperatorName(name, overload));
  if (!handle) return std::nullopt;
  return Operator(*handle);
}

std::optional<Operator> Operator::WithoutOut() const {
  std::vector<const c10::Argument*> kept;
  for (const c10::Argument& argument : schema().arguments()) {
    if (!argument.is_out()) kept.push_back(&argument);
  }
  if (kept.size() == schema().arguments().size()) return std::nullopt;
  const auto fits = [&](const c10::FunctionSchema& other) {
    if (other.arguments().size() != kept.size()) return false;
    for (size_t k = 0; k < kept.size(); ++k) {
      const c10::Argument& argument = other.arguments()[k];
      if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) return false;
      if (argument.name() != kept[k]->name() || *argument.type() != *kept[k]->type()) return false;
    }
    return true;
  };
  // Overloads are named by habit, "out" or "Scalar_out"; where that does not lead there, all of the name are tried.
  const std::string& own = schema().overload_name();
  const std::string stem = own.size() > 4 && own.rfind("_out") == own.size() - 4 ? own.substr(0, own.size() - 4) : "";
  for (const std::string& overload : {stem, std::string(), std::string("Tensor")}) {
    const auto found = Find(schema().name(), overload);
    if (found && fits(found->schema())) return found;
  }
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name != schema().name()) continue;
    const auto found = Find(name.name, name.overload_name);
    if (found && fits(found->schema())) return found;
  }
  return std::nullopt;
}

std::vector<Operator> Operator::Overloads(const std::string& name) {
  std::vector<Operator> overloads;
  if (name.find("::") == std::string::npos) return overloads;
  if (IsOwnOperator(name)) RegisterOwnOperators();
  // The interpreter's table is by name, the dispatcher's is not. It holds a few of the interpreter's own besides.
  for (const auto& op : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name))) {
    const auto found = Find(name, op->schema().overload_name());
    if (found) overloads.push_back(*found);
  }
  return overloads;
}

bool Operator::composite() const {
  return handle_.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

namespace {

// LibTorch hands several out= results on as references to the arguments on the stack, which it drops first. Until the
// results are there, somebody has to own them.
Stack OwnersOfResults(const c10::FunctionSchema& schema, const Stack& stack) {
  const bool several = schema.returns().size() > 1 && schema.returns()[0].alias_info() != nullptr;
  if (!several) return {};
  return Stack(stack.end() - static_cast<int64_t>(schema.arguments().size()), stack.end());
}

// Gradients of steps are zeros for which LibTorch keeps no memory. Whoever sees operators finds what a tensor is by its
// memory: such zeros get some.
void GiveZerosMemory(const c10::FunctionSchema& schema, Stack* stack) {
  for (size_t r = stack->size() - schema.returns().size(); r < stack->size(); ++r) {
    c10::IValue& result = (*stack)[r];
    if (!result.isTensor() || !result.toTensor().key_set().has(c10::DispatchKey::ZeroTensor)) continue;
    result = at::zeros(result.toTensor().sizes(), result.toTensor().options());
  }
}

}  // namespace

void Operator::Run(Stack* stack) const {
  const Stack owners = OwnersOfResults(schema(), *stack);
  c10::impl::ExcludeDispatchKeyGuard exclude(Key().key);
  if (computed_in_ == at::ScalarType::Undefined) {
    handle_.callBoxed(*stack);
    return GiveZerosMemory(schema(), stack);
  }
  const bool reads_numbers = !TakesFromTable(schema()) && WidenArguments(schema(), computed_in_, stack);
  // Leave the tensor itself to operators that change sizes and strides alone.
  std::optional<WrittenWide> written;
  if (reads_numbers && !handle_.hasTag(at::Tag::inplace_view)) written.emplace(schema(), computed_in_, stack);
  handle_.callBoxed(*stack);
  GiveZerosMemory(schema(), stack);
  if (written) written->PutBack(schema(), stack);
  WidenResults(schema(), computed_in_, stack);
}

void Operator::Expand(Stack* stack) const {
  const Stack owners = OwnersOfResults(schema(), *stack);
  handle_.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
}

struct TracingScope::Guards {
  explicit Guards(CallHandler* handler)
      : paused(c10::impl::tls_is_dispatch_key_excluded(Key().key)),
        info(InfoKind(), std::make_shared<HandlerInfo>(handler)),
        include(Key().key) {
    if (paused) c10::impl::tls_set_dispatch_key_excluded(Key().key, false);
  }
  ~Guards() {
    if (paused) c10::impl::tls_set_dispatch_key_excluded(Key().key, true);
  }
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;

  // A callback of another run opens this scope: what that run calls is not traced, but what is called in here.
  const bool paused;
  c10::DebugInfoGuard info;
  c10::impl::IncludeDispatchKeyGuard include;
};

TracingScope::TracingScope(CallHandler* handler) : guards_(std::make_unique<Guards>(handler)) {
  RegisterOwnOperators();
}
TracingScope::~TracingScope() = default;

struct TracingPause::Guards {
  Guards() : exclude(Excluded()) {}

  // A function that is transformed within the pause (by a rule written in Python) stays so.
  static c10::DispatchKeySet Excluded() {
    const c10::DispatchKeySet tracing(Key().key);
    return UnderTransform() ? tracing | kTransformKeys : tracing;
  }

  c10::impl::ExcludeDispatchKeyGuard exclude;
};

TracingPause::TracingPause() : guards_(std::make_unique<Guards>()) {}
TracingPause::~TracingPause() = default;

std::string TracingKeyName() { return c10::toString(Key().key); }

}  // namespace addend
