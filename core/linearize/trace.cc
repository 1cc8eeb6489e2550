#include "core/linearize/trace.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"
#include "core/intercept/thread_modes.h"
#include "core/linearize/freed_memory.h"
#include "core/linearize/random.h"
#include "core/linearize/rerun.h"
#include "core/linearize/view.h"
#include "core/rules/fused.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

// Integer operators that hand every id on unchanged.
bool KeepsLabels(const std::string& rule_name) {
  static const auto& names = *new absl::flat_hash_set<std::string>{"aten::clone", "aten::_to_copy", "aten::contiguous",
                                                                   "aten::_unsafe_view", "aten::_reshape_copy"};
  return names.contains(rule_name);
}

// Calls `replace(tensor)` for every tensor of an argument and returns the argument with the tensors that it gives.
template <typename Replace>
c10::IValue ReplaceTensors(const c10::IValue& value, Replace replace) {
  if (value.isTensor()) return replace(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(replace(tensor));
    return list;
  }
  if (value.isList()) {
    const auto elements = value.toListRef();
    const bool tensors = std::any_of(elements.begin(), elements.end(), [](const auto& e) { return e.isTensor(); });
    if (!tensors) return value;
    c10::impl::GenericList list(value.toList().elementType());
    for (const c10::IValue& element : elements) {
      list.push_back(element.isTensor() ? c10::IValue(replace(element.toTensor())) : element);
    }
    return list;
  }
  return value;
}

RewriteCall DescribeForRewrite(const Call& call, const std::vector<c10::IValue>& arguments) {
  const c10::FunctionSchema& schema = call.op.schema();
  RewriteCall described = {RuleName(schema.name()), schema.overload_name(), arguments, {}};
  for (const c10::Argument& argument : schema.arguments()) described.names.push_back(argument.name());
  return described;
}

std::vector<at::Tensor> TensorsIn(const std::vector<c10::IValue>& values) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : values) {
    ForEachTensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
  }
  return tensors;
}

// The tensors of `call.outputs`, in their order.
std::vector<at::Tensor> TensorsOfOutputs(const Call& call, const std::vector<c10::IValue>& arguments,
                                         const std::vector<c10::IValue>& results) {
  if (std::none_of(call.operands.begin(), call.operands.end(), [](const Operand& o) { return o.written; })) {
    return TensorsIn(results);
  }
  std::vector<at::Tensor> tensors;
  size_t k = 0;
  for (const c10::IValue& argument : arguments) {
    ForEachTensor(argument, [&](const at::Tensor& tensor) {
      const Operand& operand = call.operands[k++];
      if (operand.written && operand.storage >= 0) tensors.push_back(tensor);
    });
  }
  return tensors;
}

// How far two ways to compute the same may lie apart, relative to the largest value.
double RewriteTolerance(at::ScalarType dtype) {
  switch (c10::toRealValueType(dtype)) {
    case at::kDouble:
      return 1e-11;
    case at::kHalf:
      return 1e-2;
    case at::kBFloat16:
      return 5e-2;
    default:
      return 1e-4;
  }
}

// The largest difference over the largest magnitude; infinite where one is finite or NaN and the other is not.
double RelativeDifference(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return 0;
  if (!b.is_floating_point() && !b.is_complex()) return a.equal(b) ? 0 : std::numeric_limits<double>::infinity();
  const bool half = b.scalar_type() == at::kHalf || b.scalar_type() == at::kBFloat16;
  const at::Tensor x = half ? a.to(at::kFloat) : a;
  const at::Tensor y = half ? b.to(at::kFloat) : b;
  const at::Tensor finite = y.isfinite();
  const at::Tensor same = x.eq(y).logical_or_(x.isnan().logical_and_(y.isnan())).logical_or_(finite);
  if (!same.all().item<bool>()) return std::numeric_limits<double>::infinity();
  const double largest = y.abs().masked_fill_(finite.logical_not(), 0).max().item<double>();
  const double difference = (x - y).abs().masked_fill_(finite.logical_not(), 0).max().item<double>();
  return largest > 0 ? difference / largest : difference;
}

// Whether memory comes from the operators that the one being expanded consists of.
bool MadeInside(const Program& program, int storage) {
  for (size_t c = program.calls.size(); c-- > 0 && program.calls[c].depth > 0;) {
    if (program.calls[c].is_view) continue;
    for (const Operand& output : program.calls[c].outputs) {
      if (output.storage == storage) return true;
    }
  }
  return false;
}

}  // namespace

const Kept& TracedRun::At(const Operand& operand) const {
  for (const Kept& kept : storages[operand.storage]) {
    if (kept.version == operand.version) return kept;
  }
  throw Internal(absl::StrCat("version ", operand.version, " of storage ", operand.storage, " was not kept"));
}

at::Tensor TracedRun::Value(const Operand& operand) const {
  if (operand.storage < 0) return {};
  return ViewOf(At(operand).value, operand);
}

at::Tensor TracedRun::Reference(const Operand& operand) const {
  if (operand.storage < 0) return {};
  const Kept& kept = At(operand);
  return ViewOf(kept.reference.defined() ? kept.reference : kept.value, operand);
}

at::Tensor TracedRun::Labels(const Operand& operand) const {
  if (operand.storage < 0) return {};
  const Kept& kept = At(operand);
  return kept.labels.defined() ? ViewOf(kept.labels, operand.geometry) : at::Tensor();
}

bool TracedRun::ReferenceIsFinite(const Operand& operand) const {
  return operand.storage < 0 || At(operand).reference_is_finite || AllFinite(Reference(operand));
}

Tracer::Tracer(const Registry* registry, const Policy* policy, int64_t numc, bool differentiable)
    : registry_(registry), policy_(policy), recorder_(this) {
  trace_.numc = numc;
  trace_.differentiable = differentiable;
  KeepFreedMemory();
}

void Tracer::UseReferences(std::shared_ptr<ReferenceCache> cache) {
  if (cache == nullptr || trace_.differentiable) return;
  cache_ = std::move(cache);
  last_run_ = cache_->Last();
  this_run_ = std::make_shared<RunReferences>();
}

// The reference of an input: kept, and compared with the last run's.
void Tracer::KnowInput(const Operand& operand) {
  if (this_run_ == nullptr) return;
  State& state = StateOf(operand.storage);
  const size_t k = this_run_->inputs.size();
  this_run_->inputs.push_back({operand, state.reference});
  state.reference_shared = true;
  if (last_run_ == nullptr || k >= last_run_->inputs.size()) return;
  const RunReferences::Input& last = last_run_->inputs[k];
  const bool same_place = last.operand.SamePlace(operand) && last.operand.version == operand.version;
  state.reference_known = same_place && last.reference.device() == state.reference.device() &&
                          last.reference.scalar_type() == state.reference.scalar_type() &&
                          last.reference.equal(state.reference);
}

void Tracer::AddFloatInput(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& labels) {
  const Operand operand = recorder_.Describe(value);
  State& state = StateOf(operand.storage);
  state.decomposed = true;
  state.reference = reference.flatten();
  Start start;
  start.operand = operand;
  start.labels = labels.flatten();
  trace_.starts.push_back(std::move(start));
  KnowInput(operand);
  Keep(operand, value);
}

void Tracer::AddParts(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& parts,
                      const at::Tensor& leftover, uint32_t marks, int64_t depth) {
  const Operand operand = recorder_.Describe(value);
  State& state = StateOf(operand.storage);
  state.decomposed = true;
  state.reference = reference.flatten();
  Start start;
  start.operand = operand;
  start.parts = parts.reshape({parts.size(0), value.numel()});
  if (leftover.defined()) start.leftover = leftover.flatten();
  start.marks = marks;
  start.depth = depth;
  trace_.starts.push_back(std::move(start));
  KnowInput(operand);
  Keep(operand, value);
}

void Tracer::AddIds(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& labels) {
  const Operand operand = recorder_.Describe(value);
  State& state = StateOf(operand.storage);
  state.labelled = true;
  state.reference = reference.flatten();
  state.labels = labels.flatten();
  KnowInput(operand);
}

void Tracer::AddInside(const InsidePlace& place, const at::Tensor& reference, const at::Tensor& labels) {
  inside_.push_back({place, reference, labels, trace_.starts.size(), false});
  trace_.starts.emplace_back();
}

// Rows begin in what a call gave, in memory that had none.
void Tracer::StartInside(Call& call, const std::vector<at::Tensor>& outputs) {
  for (Inside& inside : inside_) {
    if (inside.started || inside.place.call != call.program_call) continue;
    const auto refuse = [&](const std::string& why) {
      throw Error(absl::StatusCode::kFailedPrecondition, absl::StrCat("a split cannot start inside the model: ", why),
                  call.position);
    };
    if (call.Traced() || call.depth > 0) refuse("the tensor depends on another split already");
    const size_t k = inside.place.output;
    if (FullName(call.op.schema()) != inside.place.op || k >= outputs.size() ||
        outputs[k].sizes() != inside.labels.sizes()) {
      refuse("it called other operators when it ran again");
    }
    Operand& output = call.outputs[k];
    const StorageInfo& storage = recorder_.program().storages[output.storage];
    State& state = StateOf(output.storage);
    if (state.decomposed) refuse("the tensor is in memory that another split is in");
    if (output.dtype != storage.dtype || output.conjugated || output.negated) {
      refuse("the tensor is a view of numbers of another kind");
    }
    const TracingPause pause;
    const at::Tensor flat = Flat(outputs[k], storage, /*differentiable=*/false);
    const at::Tensor value = ViewOf(flat, output);
    const at::Tensor labels = inside.labels.to(value.device());
    state.reference = flat.clone();
    Start& start = trace_.starts[inside.start];
    start.labels = at::full({storage.numel}, -1, labels.options());
    try {
      ViewOf(state.reference, output).copy_(at::where(labels.lt(0), value, inside.reference.to(value.device())));
      ViewOf(start.labels, output.geometry).copy_(labels);
    } catch (const c10::Error&) {
      refuse("elements of the tensor share memory");
    }
    output.decomposed = true;
    start.inside = output;
    start.operand = output;
    start.operand.geometry = {{storage.numel}, {1}, 0};
    state.decomposed = true;
    Keep(output, outputs[k]);
    state.kept.back().reference = state.reference;
    inside.started = true;
  }
}

Tracer::State& Tracer::StateOf(int storage) {
  if (storage >= static_cast<int>(states_.size())) states_.resize(storage + 1);
  return states_[storage];
}

const Tracer::Role& Tracer::RoleOf(const Operator& op) {
  const auto [it, is_new] = roles_.try_emplace(&op.schema());
  if (is_new) {
    const std::string name = RuleName(op.schema().name());
    Role& role = it->second;
    role.rule = RuleOrFused(*registry_, name, FullName(op.schema()));
    role.resizes = name == "aten::resize" || name == "aten::resize_as";
    role.allocates = name == "aten::empty" || name == "aten::empty_like" || name == "aten::empty_strided" ||
                     absl::StartsWith(name, "aten::new_empty");
    role.random = DrawsRandomNumbers(name);
    role.keeps_labels = KeepsLabels(name);
    role.embedding = name == "aten::embedding";
    role.reads_number = name == "aten::_local_scalar_dense";
  }
  return it->second;
}

bool Tracer::HasRule(const std::string& rule_name, const std::string& full_name) {
  return registry_->Find(rule_name, full_name) != nullptr;
}

bool Tracer::IsDecomposed(int storage) { return StateOf(storage).decomposed; }
bool Tracer::IsLabelled(int storage) { return StateOf(storage).labelled; }

void Tracer::Refuse(const Call& call, const std::string& why) const {
  throw Error(absl::StatusCode::kUnimplemented, absl::StrCat(FullName(call.op.schema()), " ", why), call.position);
}

void Tracer::Keep(const Operand& operand, const at::Tensor& tensor) {
  if (operand.storage < 0) return;
  State& state = StateOf(operand.storage);
  if (!state.kept.empty() && state.kept.back().version == operand.version) return;
  Kept kept;
  kept.version = operand.version;
  kept.value = Flat(tensor, recorder_.program().storages[operand.storage], trace_.differentiable);
  if (state.decomposed || state.labelled) kept.reference = state.reference;
  if (state.labelled) kept.labels = state.labels;
  state.kept.push_back(std::move(kept));
  state.newest_is_live = true;
}

// See Note [Versions].
void Tracer::PrepareWrite(const Operand& operand, const at::Tensor& tensor, bool traced) {
  State& state = StateOf(operand.storage);
  if (state.newest_is_live && state.kept.back().version == operand.version) {
    Kept& kept = state.kept.back();
    kept.value = kept.value.clone();
    // Before it is written, if it is at all; under autograd at once, where copies are steps too.
    state.reference_shared = true;
    if (trace_.differentiable && kept.reference.defined()) {
      kept.reference = kept.reference.clone();
      state.reference_shared = false;
    }
    state.newest_is_live = false;
  }
  if (!traced || !Continuous(operand.dtype) || state.decomposed) return;
  // A plain storage becomes decomposed by this write: until now its reference is its value.
  state.reference = Flat(tensor, recorder_.program().storages[operand.storage], trace_.differentiable).clone();
  state.reference_shared = state.reference_known = false;
}

void Tracer::OwnReference(State& state) {
  if (!state.reference_shared) return;
  state.reference = state.reference.clone();
  state.reference_shared = false;
}

// Whether an operator reads the reference of an operand in the place of its value.
bool Tracer::Moves(const Role& role, const Operand& operand) {
  return operand.decomposed || (operand.labelled && (role.embedding || role.keeps_labels));
}

// What a call reads, before it may write it.
RunReferences::Known Tracer::SeenBefore(const Call& call, const std::vector<c10::IValue>& arguments) {
  const Role& role = RoleOf(call.op);
  RunReferences::Known seen;
  seen.op = FullName(call.op.schema());
  seen.arguments = call.arguments;
  seen.operands.assign(call.operands.begin(), call.operands.end());
  size_t k = 0;
  for (const c10::IValue& argument : arguments) {
    ForEachTensor(argument, [&](const at::Tensor& tensor) {
      const Operand& operand = call.operands[k++];
      if (operand.storage < 0 || Moves(role, operand)) return;
      const bool written = operand.written || recorder_.program().storages[operand.storage].versions > 1;
      seen.plain.push_back(PlainSeen(tensor, written));
    });
  }
  return seen;
}

// Whether a call gives on the baseline what it gave in the last run.
bool Tracer::IsKnown(const Call& call, const RunReferences::Known& last, const RunReferences::Known& now) {
  const Role& role = RoleOf(call.op);
  if (role.random || !SameCall(last, now)) return false;
  for (const Operand& operand : call.operands) {
    if (Moves(role, operand) && !StateOf(operand.storage).reference_known) return false;
  }
  return last.plain.size() == now.plain.size() &&
         std::equal(last.plain.begin(), last.plain.end(), now.plain.begin(), SamePlain);
}

const RunReferences::Known* Tracer::FindKnown(const Call& call, const RunReferences::Known& now, Runs runs) {
  if (last_run_ == nullptr) return nullptr;
  const auto& known = (*last_run_).*runs;
  const auto last = known.find(call.index);
  return last != known.end() && IsKnown(call, last->second, now) ? &last->second : nullptr;
}

// After a call: its references are this run's, and known where the last run's were taken.
void Tracer::KeepReferences(const Call& call) {
  if (this_run_ == nullptr) return;
  for (const Operand& output : call.outputs) {
    const bool decomposed = output.storage >= 0 && output.decomposed;
    seen_.references.push_back(decomposed ? StateOf(output.storage).reference : at::Tensor());
    seen_.finite.push_back(decomposed && StateOf(output.storage).kept.back().reference_is_finite);
    if (!decomposed) continue;
    StateOf(output.storage).reference_shared = true;
    StateOf(output.storage).reference_known = found_ != nullptr;
  }
  this_run_->calls[call.index] = std::move(seen_);
}

namespace {

// From which operators on a device draw that are given no generator: the CPU's, where the device has none of its own.
at::Generator DefaultGenerator(const at::Device& device) {
  try {
    return at::globalContext().defaultGenerator(device);
  } catch (const c10::Error& none) {
    // LibTorch has no other way to say so.
    return at::globalContext().defaultGenerator(at::kCPU);
  }
}

}  // namespace

void Tracer::BeforeRun(const Call& call, const std::vector<c10::IValue>& arguments) {
  try {
    const NormalMode normal;
    const Role& role = RoleOf(call.op);
    const bool traced = call.Traced();
    if (traced && UnderAutocast()) Refuse(call, "runs under autocast, which casts behind the operators; turn it off");
    if (traced && role.rule != nullptr && role.rule->precondition) {
      try {
        role.rule->precondition(arguments);
      } catch (const Error& e) {
        throw Error(e.code(), e.what(), call.position);
      }
    }
    found_ = nullptr;
    if (this_run_ != nullptr && traced) {
      seen_ = SeenBefore(call, arguments);
      found_ = FindKnown(call, seen_, &RunReferences::calls);
    }
    size_t k = 0;
    for (const c10::IValue& argument : arguments) {
      ForEachTensor(argument, [&](const at::Tensor& tensor) {
        const Operand& operand = call.operands[k++];
        if (operand.storage < 0) return;
        // What the call reads is kept before it may be overwritten.
        if (traced) Keep(operand, tensor);
        if (!operand.written) return;
        PrepareWrite(operand, tensor, traced);
        if (!role.resizes) StateOf(operand.storage).uninitialized = false;  // more room is no content yet
      });
    }
    generators_.clear();
    if (traced && role.random) {
      for (const c10::IValue& argument : arguments) {
        if (!argument.isGenerator()) continue;
        const at::Generator generator = argument.toGenerator();
        generators_.emplace_back(generator, generator.get_state());
      }
      for (const c10::IValue& argument : arguments) {
        ForEachTensor(argument, [&](const at::Tensor& tensor) {
          if (!tensor.defined() || !generators_.empty()) return;
          const at::Generator generator = DefaultGenerator(tensor.device());
          generators_.emplace_back(generator, generator.get_state());
        });
      }
    }
  } catch (...) {
    if (!error_) error_ = std::current_exception();
    throw;
  }
}

bool Tracer::ReadsDerived(const Call& call) const {
  return std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand& operand) {
    return operand.storage >= 0 && operand.storage < static_cast<int>(states_.size()) &&
           states_[operand.storage].derived;
  });
}

// Whether an operator inside a composite one computes from nothing but memory of the composite's own whose content
// nobody has seen written. It may be a constant of the composite as well, so it counts only where it ends up as a
// result; see AfterExpand.
bool Tracer::GivesUnseen(const Call& call) const {
  if (call.depth == 0) return false;
  bool unseen = false;
  for (const Operand& operand : call.operands) {
    if (operand.decomposed) return false;
    if (operand.written || operand.storage < 0 || operand.storage >= static_cast<int>(states_.size())) continue;
    unseen = unseen || (states_[operand.storage].uninitialized && MadeInside(recorder_.program(), operand.storage));
  }
  return unseen;
}

void Tracer::AfterRun(Call& call, const std::vector<c10::IValue>& arguments, const std::vector<c10::IValue>& results) {
  try {
    const NormalMode normal;
    const bool reads_derived = ReadsDerived(call);
    if (call.Traced()) {
      TraceCall(call, arguments, results);
      if (reads_derived && !call.is_view) trace_.conditions.push_back(call.position);
    } else if (RoleOf(call.op).allocates || GivesUnseen(call)) {
      for (const Operand& output : call.outputs) {
        if (output.storage >= 0) StateOf(output.storage).uninitialized = true;
      }
    }
    if (!inside_.empty()) StartInside(call, TensorsOfOutputs(call, arguments, results));
    const bool decomposed = std::any_of(call.operands.begin(), call.operands.end(),
                                        [](const Operand& operand) { return operand.decomposed; });
    if (!decomposed && !reads_derived) return;
    for (const Operand& output : call.outputs) {
      if (output.storage >= 0 && !Continuous(output.dtype)) StateOf(output.storage).derived = true;
    }
  } catch (...) {
    if (!error_) error_ = std::current_exception();
    throw;
  }
}

// Composite operators with kernels of their own write results by pointer, unseen: those would look like constants. What
// the model itself handed over to be read has its content, whoever wrote it: torch.tensor() does that by pointer, too.
void Tracer::AfterExpand(const Operator& op, const std::vector<c10::IValue>& results) {
  try {
    const auto& returns = op.schema().returns();
    const bool writes = std::any_of(returns.begin(), returns.end(), [](const c10::Argument& result) {
      return result.alias_info() != nullptr && result.alias_info()->isWrite();
    });
    bool unseen = false;
    for (const c10::IValue& result : results) {
      ForEachTensor(result, [&](const at::Tensor& tensor) {
        if (!tensor.defined() || tensor.numel() == 0 || !Continuous(tensor.scalar_type())) return;
        const int storage = recorder_.FindStorage(tensor);
        unseen = unseen || storage < 0 ||
                 (StateOf(storage).uninitialized && (writes || MadeInside(recorder_.program(), storage)));
      });
    }
    if (unseen) {
      throw Error(absl::StatusCode::kUnimplemented,
                  absl::StrCat("no composition rule for ", FullName(op.schema()),
                               ", which computes outside LibTorch's dispatcher"),
                  recorder_.PositionOf(Call(op)), "see docs/extending.md");
    }
  } catch (...) {
    if (!error_) error_ = std::current_exception();
    throw;
  }
}

bool Tracer::HasRewrite(const std::string& rule_name, const std::string& full_name) {
  return registry_->FindRewrite(rule_name, full_name) != nullptr;
}

// The operator itself on the values or on the references, untraced; it writes copies.
std::vector<c10::IValue> Tracer::RunAside(const Call& call, const std::vector<c10::IValue>& arguments,
                                          bool on_reference, const std::vector<int>& updates) {
  const TracingPause pause;
  const c10::AutoGradMode no_grad(false);
  size_t k = 0;
  Stack stack;
  for (size_t a = 0; a < arguments.size(); ++a) {
    const bool is_out = call.op.schema().arguments()[a].is_out();
    const bool updated = std::count(updates.begin(), updates.end(), static_cast<int>(a)) > 0;
    stack.push_back(ReplaceTensors(arguments[a], [&](const at::Tensor& tensor) {
      const Operand& operand = call.operands[k++];
      if (operand.storage < 0) return tensor;
      if (is_out) return at::empty({0}, tensor.options());
      const bool moves = on_reference && (operand.decomposed || operand.labelled);
      const at::Tensor used = moves ? ViewOf(StateOf(operand.storage).reference, operand) : tensor;
      return operand.written || (updated && on_reference) ? used.clone() : used;
    }));
  }
  try {
    call.op.Run(&stack);
  } catch (const std::exception&) {
    if (!on_reference) throw;
    return {};  // the baseline lies outside of its domain
  }
  return stack;
}

// Whether a result of a rewrite is told by one of the calls since `first`, has its storage for itself, and is not read
// by the rewrite's other calls.
bool Tracer::IsLastWord(const at::Tensor& result, const Call& call, size_t first) const {
  const int storage = recorder_.FindStorage(result);
  if (storage < 0) return false;
  for (const Operand& operand : call.operands) {
    if (operand.storage == storage) return false;
  }
  const std::vector<Call>& calls = recorder_.program().calls;
  for (size_t c = calls.size(); c-- > first;) {
    if (calls[c].is_view) continue;
    for (const Operand& output : calls[c].outputs) {
      if (output.storage == storage) return true;
    }
    for (const Operand& operand : calls[c].operands) {
      if (operand.storage == storage) return false;
    }
  }
  return false;
}

// Puts the operator's own numbers in the place of those that its rewrite gave.
void Tracer::Adopt(const Call& call, const at::Tensor& result, const at::Tensor& value, const at::Tensor& reference,
                   size_t first, bool known) {
  const TracingPause pause;
  const c10::AutoGradMode no_grad(false);
  const double tolerance = RewriteTolerance(value.scalar_type());
  const double difference = RelativeDifference(result, value);
  if (!(difference <= tolerance)) {
    throw Error(absl::StatusCode::kInternal,
                absl::StrCat("the rewrite of ", FullName(call.op.schema()), " differs from the operator by ",
                             difference, " of its largest value, tolerance ", tolerance),
                call.position);
  }
  // Not known to autograd: what it saved of the result is the same but for rounding.
  result.variable_data().copy_(value);
  const Operand operand = recorder_.Describe(result);
  if (!operand.decomposed) return;
  State& state = StateOf(operand.storage);
  OwnReference(state);
  state.reference_known = state.reference_known && known;
  Kept& kept = state.kept.back();
  kept.reference = state.reference;
  const at::Tensor own = ViewOf(state.reference, operand);
  // A rewrite may take conditions from the value, as every program does. Then the reference is still the operator's,
  // and what that makes of a difference is leftover.
  const bool same = !reference.defined() || RelativeDifference(own, reference) <= tolerance;
  if (reference.defined()) {
    own.variable_data().copy_(reference);
    kept.reference_is_finite = false;
  }
  std::vector<Call>& calls = recorder_.program().calls;
  for (size_t c = calls.size(); c-- > first;) {
    if (calls[c].is_view) continue;
    for (const Operand& output : calls[c].outputs) {
      if (output.storage != operand.storage) continue;
      const double adopted = same ? 2 * tolerance : std::numeric_limits<double>::infinity();
      calls[c].adopted = std::max(calls[c].adopted, adopted);
      return;
    }
  }
}

bool Tracer::IsFused(const Call& call, const std::vector<c10::IValue>& arguments,
                     const addend::Rewrite& rewrite) const {
  const FusedRewrite* fused = FusedOf(&rewrite);
  if (fused == nullptr || trace_.differentiable || !AllowsFused(*policy_)) return false;
  const TracingPause pause;
  std::vector<bool> moves(arguments.size(), false);
  for (const Operand& operand : call.operands) {
    if (!operand.decomposed) continue;
    moves[operand.argument] = true;
    // Infinities pass each operator in a way of its own.
    if (!AllFinite(ViewOf(states_[operand.storage].reference, operand))) return false;
  }
  return fused->covers(DescribeForRewrite(call, arguments), moves);
}

std::vector<c10::IValue> Tracer::RunRewrite(const Call& call, const std::vector<c10::IValue>& arguments) {
  const c10::FunctionSchema& schema = call.op.schema();
  const addend::Rewrite& rewrite = *registry_->FindRewrite(RuleName(schema.name()), FullName(schema));
  if (IsFused(call, arguments, rewrite)) return {};
  // Outside of what follows: arguments that the operator itself refuses are no failure of its rewrite.
  const std::vector<c10::IValue> own = RunAside(call, arguments, /*on_reference=*/false, rewrite.updates);
  try {
    return Rewritten(call, arguments, rewrite, own);
  } catch (const Error& e) {
    if (!error_) {
      error_ = e.position().op.empty()
                   ? std::make_exception_ptr(Error(e.code(), e.what(), call.position, "see docs/extending.md"))
                   : std::current_exception();
    }
  } catch (const c10::Error& e) {
    if (!error_) {
      error_ = std::make_exception_ptr(
          Error(absl::StatusCode::kInternal,
                absl::StrCat("the rewrite of ", FullName(call.op.schema()), " fails: ", e.what_without_backtrace()),
                call.position));
    }
  } catch (...) {
    if (!error_) error_ = std::current_exception();
  }
  std::rethrow_exception(error_);
}

// See Note [Rewrites] in core/rules/rewrite.h.
std::vector<c10::IValue> Tracer::Rewritten(const Call& call, const std::vector<c10::IValue>& arguments,
                                           const addend::Rewrite& rewrite, const std::vector<c10::IValue>& own) {
  const c10::FunctionSchema& schema = call.op.schema();
  const std::vector<at::Tensor> values = TensorsIn(own);
  RunReferences::Known seen;
  const RunReferences::Known* found = nullptr;
  if (this_run_ != nullptr) {
    seen = SeenBefore(call, arguments);
    found = FindKnown(call, seen, &RunReferences::rewrites);
  }
  const bool known = found != nullptr;
  std::vector<at::Tensor> references =
      known ? found->references : TensorsIn(RunAside(call, arguments, /*on_reference=*/true, rewrite.updates));
  if (references.empty()) references.resize(values.size());
  if (this_run_ != nullptr) {
    seen.references = references;
    this_run_->rewrites[call.index] = std::move(seen);
  }

  const size_t first = recorder_.program().calls.size();
  std::vector<at::Tensor> results = rewrite.run(DescribeForRewrite(call, arguments));
  // What the model gets: its own tensors where the operator writes.
  std::vector<at::Tensor> targets;
  bool is_out = false;
  for (size_t a = 0; a < arguments.size(); ++a) {
    const auto& argument = schema.arguments()[a];
    if (argument.alias_info() == nullptr || !argument.alias_info()->isWrite()) continue;
    is_out |= argument.is_out();
    ForEachTensor(arguments[a], [&](const at::Tensor& tensor) { targets.push_back(tensor); });
  }
  if (results.size() != values.size() || references.size() != values.size() ||
      (!targets.empty() && targets.size() != values.size())) {
    throw Internal(
        absl::StrCat("the rewrite of ", FullName(schema), " gives ", results.size(), " tensors, not ", values.size()));
  }
  for (size_t k = 0; k < results.size(); ++k) {
    at::Tensor& result = results[k];
    const at::Tensor& value = values[k];
    if (!value.defined()) {
      result = targets.empty() ? value : targets[k];
      continue;
    }
    if (value.numel() == 0 || (!result.defined() && !Continuous(value.scalar_type()))) {
      result = value;
      if (targets.empty()) continue;
    }
    if (!result.defined() || result.scalar_type() != value.scalar_type() || result.sizes() != value.sizes()) {
      throw Internal(absl::StrCat("the rewrite of ", FullName(schema), " gives another shape or dtype for result ", k));
    }
    if (!targets.empty()) {
      is_out ? at::copy_out(targets[k], result, result) : targets[k].copy_(result);
      result = targets[k];
    } else if (result.strides() != value.strides() || !IsLastWord(result, call, first)) {
      const at::Tensor copy = value.is_non_overlapping_and_dense()
                                  ? at::empty_strided(value.sizes(), value.strides(), value.options())
                                  : at::empty(value.sizes(), value.options());
      copy.copy_(result);
      result = copy;
    }
  }
  for (size_t k = 0; k < results.size(); ++k) {
    if (values[k].defined() && results[k].defined() && !results[k].is_same(values[k])) {
      Adopt(call, results[k], values[k], references[k], first, known);
    }
  }
  size_t next = 0;
  std::vector<c10::IValue> given;
  for (const c10::IValue& value : own) {
    given.push_back(ReplaceTensors(value, [&](const at::Tensor&) { return results[next++]; }));
  }
  return given;
}

std::vector<c10::IValue> Tracer::ReferenceResults(const Call& call, const Role& role,
                                                  const std::vector<c10::IValue>& arguments,
                                                  const std::vector<c10::IValue>& results) {
  for (const Operand& operand : call.operands) {
    if (!operand.written || operand.storage < 0) continue;
    State& state = StateOf(operand.storage);
    if (state.reference.defined()) OwnReference(state);
    state.reference_known = false;
  }
  size_t k = 0;
  Stack stack;
  for (const c10::IValue& argument : arguments) {
    stack.push_back(ReplaceTensors(argument, [&](const at::Tensor& tensor) {
      const Operand& operand = call.operands[k++];
      if (operand.storage < 0) return tensor;
      State& state = StateOf(operand.storage);
      if (operand.written && call.resized_output) return at::empty({0}, tensor.options());
      const bool moves = Moves(role, operand) || (operand.written && Continuous(operand.dtype));
      if (moves) return ViewOf(state.reference, operand);
      return WritesUnseen(call.op.schema().arguments()[operand.argument]) ? tensor.clone() : tensor;
    }));
  }
  for (auto& [generator, state] : generators_) generator.set_state(state);
  c10::AutoGradMode grad(trace_.differentiable);
  try {
    call.op.Run(&stack);
    return stack;
  } catch (const c10::Error& e) {
    // Rows of ids begin here: there is nothing behind it to stand in for.
    if (role.embedding) {
      throw Error(absl::StatusCode::kFailedPrecondition,
                  absl::StrCat(FullName(call.op.schema()), " fails on the baseline: ", e.what_without_backtrace()),
                  call.position, "choose another baseline");
    }
    // The baseline lies outside of the operator's domain (a matrix without inverse, say). Without numbers there is a
    // stand-in: see Note [Stand-ins].
    stack.clear();
    for (const c10::IValue& result : results) {
      stack.push_back(ReplaceTensors(result, [](const at::Tensor& tensor) {
        const bool numbers = tensor.defined() && (tensor.is_floating_point() || tensor.is_complex());
        return numbers ? at::full_like(tensor, std::numeric_limits<double>::quiet_NaN()) : tensor;
      }));
    }
    for (const Operand& operand : call.operands) {
      if (!operand.written || operand.storage < 0 || !Continuous(operand.dtype) || call.resized_output) continue;
      ViewOf(StateOf(operand.storage).reference, operand).fill_(std::numeric_limits<double>::quiet_NaN());
    }
    return stack;
  }
}

void Tracer::AdoptReference(const Operand& output, const at::Tensor& value, const at::Tensor& reference) {
  if (!reference.defined() || reference.sizes() != value.sizes()) {
    throw Error(absl::StatusCode::kFailedPrecondition, "an operator gives another shape on the baseline");
  }
  State& state = StateOf(output.storage);
  state.reference_shared = state.reference_known = false;
  const StorageInfo& storage = recorder_.program().storages[output.storage];
  const bool same_layout = reference.scalar_type() == value.scalar_type() && reference.is_conj() == value.is_conj() &&
                           reference.is_neg() == value.is_neg() && reference.strides() == value.strides() &&
                           reference.storage_offset() == value.storage_offset() &&
                           static_cast<int64_t>(reference.storage().nbytes()) >=
                               storage.numel * static_cast<int64_t>(c10::elementSize(storage.dtype));
  if (same_layout) {
    state.reference = Flat(reference, storage, trace_.differentiable);
  } else {
    state.reference = at::zeros({storage.numel}, value.options().dtype(storage.dtype));
    ViewOf(state.reference, output).copy_(reference);
  }
}

void Tracer::TraceCall(Call& call, const std::vector<c10::IValue>& arguments, const std::vector<c10::IValue>& results) {
  const Role& role = RoleOf(call.op);
  bool decomposed = false;
  for (const Operand& operand : call.operands) decomposed |= operand.decomposed;
  const std::vector<at::Tensor> tensors = TensorsOfOutputs(call, arguments, results);
  for (size_t k = 0; k < tensors.size(); ++k) {
    const Operand& output = call.outputs[k];
    if (!tensors[k].defined()) continue;
    if (decomposed && !tensors[k].has_storage()) Refuse(call, "gives a tensor that is not dense");
    if (output.storage < 0) continue;
    const at::ScalarType stored = recorder_.program().storages[output.storage].dtype;
    if (!decomposed || SameNumbers(stored, output.dtype)) continue;
    if (call.is_view) Refuse(call, "reads the bytes of a decomposed tensor as another dtype");
    if (Continuous(output.dtype)) Refuse(call, "writes decomposed numbers as the bytes of another dtype");
  }
  if (call.is_view) {
    for (size_t k = 0; k < tensors.size(); ++k) {
      Operand& output = call.outputs[k];
      if (output.storage < 0) continue;
      output.decomposed = Continuous(output.dtype) && StateOf(output.storage).decomposed;
      output.labelled = StateOf(output.storage).labelled;
      Keep(output, tensors[k]);
    }
    return;
  }
  if (role.reads_number) {
    if (decomposed) trace_.guards.push_back(call.position);
    return;
  }
  if (role.rule != nullptr && role.rule->plain_output) return;

  // Integer and boolean results are plain: they are taken from the value for every row. Labels go along with ids that
  // are only copied.
  bool floating = false;
  for (const Operand& output : call.outputs) floating |= output.storage >= 0 && Continuous(output.dtype);
  if (!decomposed && !(role.embedding && call.operands.size() > 1 && call.operands[1].labelled)) {
    if (role.keeps_labels && !floating) {
      const Operand& ids = call.operands[0];
      const std::vector<c10::IValue> copies = ReferenceResults(call, role, arguments, results);
      for (size_t k = 0; k < tensors.size(); ++k) {
        State& state = StateOf(call.outputs[k].storage);
        AdoptReference(call.outputs[k], tensors[k], copies[k].toTensor());
        state.labels = at::zeros({state.reference.numel()}, state.reference.options().dtype(at::kLong));
        ViewOf(state.labels, call.outputs[k].geometry)
            .copy_(ViewOf(StateOf(ids.storage).labels, ids.geometry).expand(tensors[k].sizes()));
        state.labelled = true;
        call.outputs[k].labelled = true;
      }
      return;
    }
    const bool condition = std::all_of(call.outputs.begin(), call.outputs.end(),
                                       [](const Operand& output) { return output.dtype == at::kBool; });
    if (!condition) trace_.unattributed.push_back(call.position);
    // What was written over ids is no longer what the labels say.
    for (const Operand& output : call.outputs) {
      if (output.written && output.storage >= 0) StateOf(output.storage).labelled = false;
    }
    return;
  }
  if (!floating) return;

  const auto missing_rule = [&] {
    if (policy_->overrides.empty()) return policy_->missing_rule;
    return policy_->For(FullName(call.op.schema()), call.position.module_path).missing_rule;
  };
  if (role.rule == nullptr && missing_rule() == MissingRule::kError) {
    throw Error(absl::StatusCode::kUnimplemented, absl::StrCat("no composition rule for ", FullName(call.op.schema())),
                call.position, "see docs/extending.md");
  }
  const auto carries = [&](size_t k) {
    const bool carried = role.rule == nullptr || role.rule->carried < 0 || static_cast<int>(k) < role.rule->carried;
    return call.outputs[k].storage >= 0 && Continuous(call.outputs[k].dtype) && carried;
  };
  // Another registry may let other results carry rows.
  for (size_t k = 0; found_ != nullptr && k < call.outputs.size(); ++k) {
    if (carries(k) && (k >= found_->references.size() || !found_->references[k].defined())) found_ = nullptr;
  }
  std::vector<c10::IValue> references;
  if (found_ == nullptr) references = ReferenceResults(call, role, arguments, results);
  std::vector<at::Tensor> flat;
  for (const c10::IValue& result : references) {
    ForEachTensor(result, [&](const at::Tensor& tensor) { flat.push_back(tensor); });
  }
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    Operand& output = call.outputs[k];
    if (output.storage < 0) continue;
    if (carries(k)) {
      const bool in_place = output.written && !call.resized_output;
      if (found_ != nullptr) {
        StateOf(output.storage).reference = found_->references[k];
      } else if (!in_place) {
        try {
          at::Tensor reference = k < flat.size() ? flat[k] : at::Tensor();
          // Another shape on the baseline (residuals of a system that has full rank at the value only) is no reference.
          if (reference.defined() && reference.sizes() != tensors[k].sizes()) {
            reference = at::full_like(tensors[k], std::numeric_limits<double>::quiet_NaN());
          }
          AdoptReference(output, tensors[k], reference);
        } catch (const Error& e) {
          throw Error(e.code(), e.what(), call.position, "choose another baseline");
        }
      }
      StateOf(output.storage).decomposed = true;
      output.decomposed = true;
    }
    Keep(output, tensors[k]);
    Kept& kept = StateOf(output.storage).kept.back();
    if (found_ != nullptr) {
      kept.reference_is_finite = found_->finite[k];
    } else if (output.decomposed && CoversWhole(output, recorder_.program().storages[output.storage])) {
      kept.reference_is_finite = AllFinite(kept.reference);
    }
  }
  KeepReferences(call);
}

Operand Tracer::Output(const at::Tensor& tensor) {
  Operand operand = recorder_.Describe(tensor);
  if (operand.storage >= 0) Keep(operand, tensor);
  return operand;
}

TracedRun Tracer::Finish() {
  for (const Inside& inside : inside_) {
    if (inside.started) continue;
    throw FailedPrecondition(absl::StrCat("a split cannot start inside the model: ", inside.place.op, " (op #",
                                          inside.place.call, ") was not called when it ran again"));
  }
  trace_.program = std::move(recorder_.program());
  trace_.storages.resize(trace_.program.storages.size());
  for (size_t s = 0; s < states_.size(); ++s) trace_.storages[s] = std::move(states_[s].kept);
  if (cache_ != nullptr) cache_->Store(std::move(this_run_));
  return std::move(trace_);
}

}  // namespace addend
