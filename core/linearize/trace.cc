#include "core/linearize/trace.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"
#include "core/intercept/own_operators.h"
#include "core/intercept/thread_modes.h"
#include "core/linearize/freed_memory.h"
#include "core/linearize/replace_tensors.h"
#include "core/linearize/rerun.h"
#include "core/linearize/view.h"
#include "core/program/random_state.h"
#include "core/program/written_aside.h"
#include "core/rules/bags.h"
#include "core/rules/fused.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

// The weights of what a bag adds up, one for each id; undefined where there are none.
at::Tensor WeightsOfIds(const TracedRun& trace, const Call& call) {
  const auto argument = call.op.schema().argumentIndexWithName("per_sample_weights");
  for (const Operand& operand : call.operands) {
    if (argument && operand.argument == *argument && operand.storage >= 0) return trace.Value(operand);
  }
  return {};
}

// Whether two numbers that a program read are the same; NaN is the same as NaN.
bool SameNumber(const c10::IValue& a, const c10::IValue& b) {
  const auto number = [](const c10::IValue& value) {
    if (value.isBool()) return c10::complex<double>(value.toBool() ? 1 : 0);
    return value.isScalar() ? value.toScalar().toComplexDouble() : c10::complex<double>(0);
  };
  const c10::complex<double> x = number(a);
  const c10::complex<double> y = number(b);
  const auto same = [](double u, double v) { return u == v || (std::isnan(u) && std::isnan(v)); };
  return same(x.real(), y.real()) && same(x.imag(), y.imag());
}

RewriteCall DescribeForRewrite(const Call& call, const std::vector<c10::IValue>& arguments) {
  return {ArgumentsOf(call, arguments)};
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

at::Tensor TracedRun::OnBaseline(const Operand& operand) const {
  return operand.decomposed || baseline_conditions ? Reference(operand) : Value(operand);
}

bool TracedRun::StartsRows(const Call& call) const {
  if (call.outputs.empty() || !CarriesRows(call.outputs[0]) || call.outputs[0].written) return false;
  bool ids = false;
  for (const Operand& operand : call.operands) {
    if (CarriesRows(operand)) return false;
    ids = ids || operand.labelled;
  }
  if (!ids) return false;
  if (At(call.outputs[0]).labels.defined()) return true;
  return IdReadingOf(call.op.schema(), call.arguments) != IdReading::kNone && call.operands[1].labelled &&
         At(call.operands[1]).labels.defined();
}

RowStart TracedRun::StartOf(const Call& call) const {
  const Operand& output = call.outputs[0];
  const at::ScalarType dtype = RowDtype(output.dtype);
  const c10::FunctionSchema& schema = call.op.schema();
  const IdReading reading = IdReadingOf(schema, call.arguments);
  if (reading != IdReading::kSums) {
    const at::Tensor moves = MoveOf(Value(output).to(dtype), Reference(output).to(dtype));
    const Operand& labelled = reading == IdReading::kVectors ? call.operands[1] : output;
    return {moves, Labels(labelled).to(moves.device()), {}};
  }
  const at::Tensor ids = Value(call.operands[1]).to(at::kLong);
  const int64_t rows = output.geometry.sizes[0];
  const at::Tensor bags = BagsOf(Value(call.operands[2]), ids.size(0), rows);
  const at::Tensor table = Value(call.operands[0]);
  const at::Tensor weights = WeightsOfIds(*this, call);
  const auto terms = [&](const at::Tensor& own) {
    return TermsOfBags(schema, call.arguments, table, own, bags, rows, weights).to(dtype);
  };
  const at::Tensor moves = terms(ids) - terms(Reference(call.operands[1]).to(at::kLong));
  return {moves, Labels(call.operands[1]).to(moves.device()), bags.clamp_min(0)};
}

bool TracedRun::StepsOfConditions(const Call& call) const {
  if (!baseline_conditions) return false;
  return std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand& operand) {
    return operand.storage >= 0 && operand.labelled && !Value(operand).equal(Reference(operand));
  });
}

bool TracedRun::ReferenceIsFinite(const Operand& operand) const {
  return operand.storage < 0 || At(operand).reference_is_finite || AllFinite(Reference(operand));
}

Tracer::Tracer(const Registry* registry, const Policy* policy, int64_t numc, bool differentiable)
    : registry_(registry), policy_(policy), recorder_(this) {
  trace_.numc = numc;
  trace_.differentiable = differentiable;
  trace_.baseline_conditions = policy->conditions == Conditions::kBaseline;
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
  state.decomposed = state.given = true;
  state.reference = reference.flatten();
  state.labels = labels.flatten();
  Start start;
  start.operand = operand;
  start.labels = state.labels;
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
  state.tracked = state.given = true;
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
    role.traits = std::make_unique<OperatorTraits>(op.schema());
    role.sizes_only = (role.rule != nullptr && role.rule->plain_output) || role.traits->Uninitialized();
    role.flow = IdFlowOf(name);
  }
  return it->second;
}

bool Tracer::HasRule(const std::string& rule_name, const std::string& full_name) {
  // Of one_hot's own steps each would see a whole vector depend on its id.
  return registry_->Find(rule_name, full_name) != nullptr || IdFlowOf(rule_name) == IdFlow::kOneHot;
}

bool Tracer::IsDecomposed(int storage) { return StateOf(storage).decomposed; }
bool Tracer::IsLabelled(int storage) { return StateOf(storage).tracked; }

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
  if (state.decomposed || state.tracked) kept.reference = state.reference;
  if (state.tracked) kept.labels = state.labels;
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
  state.given = false;
  if (!traced || state.decomposed || state.tracked) return;
  // A plain storage becomes decomposed, or ids that are tracked, by this write: until now its reference is its value.
  state.reference = Flat(tensor, recorder_.program().storages[operand.storage], trace_.differentiable).clone();
  state.reference_shared = state.reference_known = false;
}

void Tracer::OwnReference(State& state) {
  if (!state.reference_shared) return;
  state.reference = state.reference.clone();
  state.reference_shared = false;
}

bool Tracer::IsId(const Operand& operand) const {
  if (operand.storage < 0 || !operand.labelled) return false;
  const State& state = states_[operand.storage];
  return state.labels.defined() && !state.condition && !state.unknown;
}

// Whether rows will begin in what a call gives, if that is continuous: ids become numbers there.
bool Tracer::StartsRows(const Role& role, const Call& call) const {
  bool ids = false;
  for (const Operand& operand : call.operands) {
    if (operand.decomposed || operand.written) return false;
    ids = ids || IsId(operand);
  }
  if (IdReadingOf(call.op.schema(), call.arguments) != IdReading::kNone) {
    return call.operands.size() > 1 && IsId(call.operands[1]);
  }
  return ids && role.flow == IdFlow::kElementwise;
}

// Whether the reference of an operand is read in the place of its value by a call that gives continuous numbers.
bool Tracer::Moves(const Role& role, const Call& call, const Operand& operand) const {
  if (operand.decomposed) return true;
  if (operand.storage < 0 || !operand.labelled) return false;
  return trace_.baseline_conditions || (IsId(operand) && StartsRows(role, call));
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
      if (operand.storage < 0 || Moves(role, call, operand)) return;
      const bool written = operand.written || recorder_.program().storages[operand.storage].versions > 1;
      seen.plain.push_back(PlainSeen(tensor, written));
    });
  }
  return seen;
}

// Whether a call gives on the baseline what it gave in the last run.
bool Tracer::IsKnown(const Call& call, const RunReferences::Known& last, const RunReferences::Known& now) {
  const Role& role = RoleOf(call.op);
  if (role.traits->Draws(call.arguments) || !SameCall(last, now)) return false;
  for (const Operand& operand : call.operands) {
    if (Moves(role, call, operand) && !StateOf(operand.storage).reference_known) return false;
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
    const bool moves = output.storage >= 0 && (output.decomposed || output.labelled);
    seen_.references.push_back(moves ? StateOf(output.storage).reference : at::Tensor());
    seen_.finite.push_back(moves && StateOf(output.storage).kept.back().reference_is_finite);
    if (!moves) continue;
    StateOf(output.storage).reference_shared = true;
    StateOf(output.storage).reference_known = found_ != nullptr;
  }
  this_run_->calls[call.index] = std::move(seen_);
}

void Tracer::BeforeRun(const Call& call, const std::vector<c10::IValue>& arguments) {
  try {
    const NormalMode normal;
    const Role& role = RoleOf(call.op);
    const bool traced = call.Traced();
    if (traced && UnderAutocast()) Refuse(call, "runs under autocast, which casts behind the operators; turn it off");
    if (traced && role.rule != nullptr && role.rule->precondition) {
      try {
        role.rule->precondition(ArgumentsOf(call, arguments));
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
        if (!role.traits->resizes) StateOf(operand.storage).uninitialized = false;  // more room is no content yet
      });
    }
    generators_.clear();
    if (traced && role.traits->Draws(call.arguments)) {
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
    if (call.Traced()) {
      TraceCall(call, arguments, results);
    } else if (RoleOf(call.op).traits->Uninitialized() || GivesUnseen(call)) {
      for (const Operand& output : call.outputs) {
        if (output.storage >= 0) StateOf(output.storage).uninitialized = true;
      }
    }
    if (!inside_.empty()) StartInside(call, TensorsOfOutputs(call, arguments, results));
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
      const bool moves = on_reference && Moves(RoleOf(call.op), call, operand);
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
  const FusedRule* fused = FusedOf(&rewrite);
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
                                                  const std::vector<c10::IValue>& results, bool ids) {
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
      const bool moves = operand.written || Moves(role, call, operand) || (ids && operand.labelled);
      if (moves) return ViewOf(state.reference, operand);
      return MayBeWrittenAside(call.op.schema().arguments()[operand.argument]) ? tensor.clone() : tensor;
    }));
  }
  for (auto& [generator, state] : generators_) generator.set_state(state);
  c10::AutoGradMode grad(trace_.differentiable);
  try {
    call.op.Run(&stack);
    return stack;
  } catch (const c10::Error& e) {
    if (ids) return {};
    // Rows of ids begin here: there is nothing behind it to stand in for.
    if (IdReadingOf(call.op.schema(), call.arguments) == IdReading::kVectors) {
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

// The operator that derived what a call reads of ids and conditions.
Position Tracer::OriginOf(const Call& call) const {
  for (const Operand& operand : call.operands) {
    if (operand.storage < 0 || !operand.labelled) continue;
    const State& state = states_[operand.storage];
    if (state.origin) return *state.origin;
  }
  return call.position;
}

// Where an operand of integers or booleans is another on the baseline; undefined: nowhere.
at::Tensor Tracer::MovesOf(const Operand& operand, const at::Tensor& value) const {
  if (operand.storage < 0 || !operand.labelled) return {};
  const State& state = states_[operand.storage];
  if (state.unknown) return at::ones(value.sizes(), value.options().dtype(at::kBool));
  const at::Tensor moves = value.ne(ViewOf(state.reference, operand));
  return moves.any().item<bool>() ? moves : at::Tensor();
}

bool Tracer::SameOnBaseline(const Call& call, const std::vector<c10::IValue>& arguments) const {
  size_t k = 0;
  bool same = true;
  for (const c10::IValue& argument : arguments) {
    ForEachTensor(argument, [&](const at::Tensor& tensor) {
      const Operand& operand = call.operands[k++];
      same = same && !MovesOf(operand, tensor).defined();
    });
  }
  return same;
}

void Tracer::NoteGuard(const Call& call, const std::vector<c10::IValue>& arguments,
                       const std::vector<c10::IValue>& results) {
  const Role& role = RoleOf(call.op);
  const bool unknown = std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand& operand) {
    return operand.storage >= 0 && operand.labelled && StateOf(operand.storage).unknown;
  });
  bool same = false;
  if (!unknown) {
    const std::vector<c10::IValue> references = ReferenceResults(call, role, arguments, results, /*ids=*/true);
    same = !references.empty() && SameNumber(results[0], references[0]);
  }
  trace_.guards.push_back({OriginOf(call), call.position, same});
}

// The reference cannot have the baseline's conditions where those have another shape, or none.
void Tracer::RequireKnown(const Call& call) const {
  for (const Operand& operand : call.operands) {
    if (operand.storage < 0 || !operand.labelled || !states_[operand.storage].unknown) continue;
    throw Error(absl::StatusCode::kFailedPrecondition,
                absl::StrCat(FullName(call.op.schema()), " reads what ", OriginOf(call).op,
                             " gives with other sizes on the baseline, so the reference cannot have the baseline's "
                             "conditions"),
                call.position, "choose policy conditions=value, or another baseline");
  }
}

at::Tensor Tracer::FlatLabels(const at::Tensor& labels, const Operand& operand) const {
  const StorageInfo& storage = recorder_.program().storages[operand.storage];
  at::Tensor flat = at::full({storage.numel}, -1, labels.defined() ? labels.options() : at::TensorOptions(at::kLong));
  if (labels.defined()) ViewOf(flat, operand.geometry).copy_(labels);
  return flat;
}

// The labels of integers and booleans that a call gave; undefined: no element has one.
void Tracer::SetLabels(const Operand& output, const at::Tensor& labels) {
  State& state = StateOf(output.storage);
  const StorageInfo& storage = recorder_.program().storages[output.storage];
  if (!output.written || !state.labels.defined() || state.labels.numel() != storage.numel) {
    state.labels = labels.defined() ? FlatLabels(labels, output) : at::Tensor();
    return;
  }
  state.labels = state.labels.clone();  // what was kept has them too
  at::Tensor own = ViewOf(state.labels, output.geometry);
  labels.defined() ? own.copy_(labels) : own.fill_(-1);
}

IdLabels Tracer::LabelsOf(const Call& call, const Role& role, const std::vector<c10::IValue>& arguments,
                          at::IntArrayRef sizes) const {
  std::vector<IdOperand> operands;
  size_t k = 0;
  for (const c10::IValue& argument : arguments) {
    ForEachTensor(argument, [&](const at::Tensor& tensor) {
      const Operand& operand = call.operands[k++];
      IdOperand own;
      if (operand.storage >= 0 && (operand.labelled || operand.decomposed)) {
        const State& state = states_[operand.storage];
        const bool has_labels = state.labels.defined() && (operand.labelled || state.given);
        if (has_labels && SameNumbers(recorder_.program().storages[operand.storage].dtype, operand.dtype)) {
          own.labels = ViewOf(state.labels, operand.geometry);
        }
        own.moves =
            operand.labelled ? MovesOf(operand, tensor) : at::ones(tensor.sizes(), tensor.options().dtype(at::kBool));
      }
      operands.push_back(std::move(own));
    });
  }
  return CarryLabels(role.flow, call.op, arguments, operands, sizes);
}

// Integers or booleans that a call gave, on the baseline; undefined, or of other sizes: not known. Those that were
// written in place are there already.
void Tracer::AdoptIds(Operand& output, const at::Tensor& value, const at::Tensor& reference, const Call& call) {
  State& state = StateOf(output.storage);
  state.tracked = output.labelled = true;
  const bool in_place = output.written && !call.resized_output;
  if (!in_place) {
    state.unknown = !reference.defined() || reference.sizes() != value.sizes();
    if (state.unknown) {
      state.reference = Flat(value, recorder_.program().storages[output.storage], trace_.differentiable).clone();
    } else {
      AdoptReference(output, value, reference);
    }
    state.condition = false;
    state.origin.reset();
  }
  state.reference_shared = state.reference_known = false;
  for (const Operand& operand : call.operands) {
    if (operand.storage < 0 || !(operand.labelled || operand.decomposed)) continue;
    const State& from = states_[operand.storage];
    state.condition = state.condition || from.condition;
    state.unknown = state.unknown || from.unknown;
    if (!state.origin && from.origin) state.origin = from.origin;
  }
  if (!state.origin) state.origin = call.position;
}

// A call that gives integers and booleans only: rules take them from the value, for every row. What they are on the
// baseline, and whose they are, is followed; see Note [Ids].
void Tracer::TraceIds(Call& call, const std::vector<c10::IValue>& arguments, const std::vector<c10::IValue>& results,
                      const std::vector<at::Tensor>& tensors) {
  if (call.outputs.empty()) return;
  const Role& role = RoleOf(call.op);
  bool unknown = false;
  bool ids = false;
  for (const Operand& operand : call.operands) {
    unknown = unknown || (operand.storage >= 0 && operand.labelled && StateOf(operand.storage).unknown);
    ids = ids || IsId(operand);
  }
  IdLabels own;
  if (!unknown) own = LabelsOf(call, role, arguments, tensors[0].sizes());
  std::vector<at::Tensor> references;
  if (!unknown) {
    for (const c10::IValue& result : ReferenceResults(call, role, arguments, results, /*ids=*/true)) {
      ForEachTensor(result, [&](const at::Tensor& tensor) { references.push_back(tensor); });
    }
  }
  for (size_t k = 0; k < tensors.size(); ++k) {
    Operand& output = call.outputs[k];
    if (output.storage < 0) continue;
    AdoptIds(output, tensors[k], k < references.size() ? references[k] : at::Tensor(), call);
    const bool labelled = k == 0 && own.labels.defined() && own.labels.sizes() == tensors[0].sizes();
    SetLabels(output, labelled ? own.labels : at::Tensor());
    State& state = StateOf(output.storage);
    state.unknown = state.unknown || unknown;
    // What a comparison says is no id, even where it depends on one alone; an id that it was applied to still is.
    const bool id = ids && labelled && !own.mixed && output.dtype != at::kBool;
    state.condition = !id && (state.condition || output.dtype == at::kBool || (!labelled && !ids));
    if (id) state.origin.reset();
    Keep(output, tensors[k]);
  }
  if (ids && own.mixed && call.outputs[0].dtype != at::kBool) trace_.unattributed.push_back(call.position);
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
      output.labelled = StateOf(output.storage).tracked;
      Keep(output, tensors[k]);
    }
    return;
  }
  if (role.traits->reads_number) {
    NoteGuard(call, arguments, results);
    return;
  }
  if (role.sizes_only) return;
  bool floating = false;
  for (const Operand& output : call.outputs) floating |= output.storage >= 0 && Continuous(output.dtype);
  if (!floating) {
    TraceIds(call, arguments, results, tensors);
    return;
  }

  const bool starts = StartsRows(role, call);
  const bool tracked = std::any_of(call.operands.begin(), call.operands.end(),
                                   [](const Operand& operand) { return operand.storage >= 0 && operand.labelled; });
  bool same = true;
  if (tracked && !starts) {
    same = SameOnBaseline(call, arguments);
    trace_.conditions.push_back({OriginOf(call), call.position, same});
    for (const Operand& operand : call.operands) {
      if (!IsId(operand)) continue;
      trace_.unattributed.push_back(call.position);
      break;
    }
  }
  // Computed from conditions alone: plain, unless the reference has the baseline's.
  if (!decomposed && !starts && !(trace_.baseline_conditions && !same)) return;
  if (trace_.baseline_conditions) RequireKnown(call);

  const auto missing_rule = [&] {
    if (policy_->overrides.empty()) return policy_->missing_rule;
    return policy_->For(FullName(call.op.schema()), call.position.module_path).missing_rule;
  };
  if (decomposed && role.rule == nullptr && missing_rule() == MissingRule::kError) {
    throw Error(absl::StatusCode::kUnimplemented, absl::StrCat("no composition rule for ", FullName(call.op.schema())),
                call.position, "see docs/extending.md");
  }
  const auto carries = [&](size_t k) {
    const bool carried = role.rule == nullptr || role.rule->carried < 0 || static_cast<int>(k) < role.rule->carried;
    return call.outputs[k].storage >= 0 && Continuous(call.outputs[k].dtype) && carried;
  };
  const bool lengths_apart = call.outputs.size() == 2 && role.traits->lengths_apart && !call.operands[1].labelled;
  const auto tracks = [&](size_t k) {
    return call.outputs[k].storage >= 0 && !Continuous(call.outputs[k].dtype) && !(lengths_apart && k == 1);
  };
  // Another registry may let other results carry rows.
  for (size_t k = 0; found_ != nullptr && k < call.outputs.size(); ++k) {
    if ((carries(k) || tracks(k)) && (k >= found_->references.size() || !found_->references[k].defined()))
      found_ = nullptr;
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
    if (tracks(k)) {
      AdoptIds(output, tensors[k],
               found_ != nullptr ? found_->references[k]
               : k < flat.size() ? flat[k]
                                 : at::Tensor(),
               call);
      SetLabels(output, at::Tensor());
    }
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
    if (starts && carries(k) && IdReadingOf(call.op.schema(), call.arguments) == IdReading::kNone) {
      const IdLabels own = LabelsOf(call, role, arguments, tensors[k].sizes());
      StateOf(output.storage).kept.back().labels = FlatLabels(own.labels, output);
      if (own.mixed) trace_.unattributed.push_back(call.position);
    }
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
