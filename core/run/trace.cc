#include "core/run/trace.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/intercept/thread_modes.h"
#include "core/program/differentiation.h"
#include "core/program/invoke.h"
#include "core/program/structure.h"
#include "core/program/view.h"
#include "core/rules/id_flow.h"
#include "core/rules/kinds.h"
#include "core/rules/path.h"
#include "core/run/compute_dtype.h"
#include "core/run/freed_memory.h"

namespace addend {
namespace {

[[noreturn]] void Refuse(const CallAtHand& own, const std::string& why) {
  throw Error(absl::StatusCode::kUnimplemented, absl::StrCat(own.role.full_name, " ", why), own.call.position);
}

// Parts are of elements that lie in memory one by one.
void RequireDense(const CallAtHand& own, const std::vector<c10::IValue>& values, const char* verb) {
  for (const c10::IValue& value : values) {
    ForEachTensor(value, [&](const at::Tensor& tensor) {
      if (!tensor.defined() || (tensor.has_storage() && !tensor.is_nested())) return;
      Refuse(own, absl::StrCat(verb,
                               " a tensor that is not dense (sparse, nested), whose parts cannot be found; use a dense "
                               "one (to_dense())"));
    });
  }
}

// Results of a transformed function have no memory, by which rows are found.
void RequireNoTransform(const CallAtHand& own) {
  if (!own.call.Traced() || !UnderTransform()) return;
  Refuse(own,
         "reads decomposed tensors inside of a function that torch.func or functorch transforms (vmap, grad), where "
         "parts cannot be followed: call the function on the whole batch, or write out what it computes");
}

// Whether an output has rows, once its call reads some.
bool Carries(const CallAtHand& own, size_t k) {
  const Operand& output = own.call.outputs[k];
  return output.storage >= 0 && Continuous(output.dtype) && own.role.CarriesRows(k);
}

// Whether LibTorch differentiates a call: its operator is called once more, on operands that want gradients.
bool HasDerivative(const CallAtHand& own) {
  c10::InferenceMode no_inference(false);
  c10::AutoGradMode grad(true);
  try {
    std::vector<at::Tensor> operands;
    own.ForEachOperand([&](const at::Tensor& tensor, const Operand&) {
      operands.push_back(tensor.defined() && Continuous(tensor.scalar_type())
                             ? tensor.detach().clone().set_requires_grad(true)
                             : tensor);
    });
    for (const at::Tensor& result : Invoke(own.call, operands)) {
      if (result.defined() && Differentiable(result)) return true;
    }
  } catch (const std::exception&) {
    // An operator that refuses operands of its own has no derivative that a rule could ask for.
  }
  return false;
}

// Whether an output is integers or booleans that depend on what its call reads of rows and ids.
bool Tracks(const CallAtHand& own, size_t k) {
  const Operand& output = own.call.outputs[k];
  const bool apart =
      k == 1 && own.call.outputs.size() == 2 && own.role.traits.lengths_apart && !own.call.operands[1].labelled;
  return output.storage >= 0 && !Continuous(output.dtype) && !apart;
}

}  // namespace

Tracer::Tracer(const Registry* registry, const Policy* policy, int64_t numc, bool differentiable)
    : policy_(policy),
      roles_(registry),
      states_(&recorder_, differentiable),
      ids_(&states_, policy->conditions == Conditions::kBaseline),
      unseen_(&recorder_),
      kept_(&states_, &ids_),
      reference_run_(&states_, &ids_, differentiable),
      rewriting_(policy, differentiable, &recorder_, &states_, &reference_run_, &kept_),
      wide_inputs_(DtypeOf(policy->compute_dtype)),
      starts_(&states_, &kept_),
      checkpoints_(&recorder_, &states_),
      read_back_(&states_),
      written_attention_(policy, &states_) {
  trace_.numc = numc;
  trace_.differentiable = differentiable;
  trace_.baseline_conditions = policy->conditions == Conditions::kBaseline;
  KeepFreedMemory();
}

void Tracer::UseReferences(std::shared_ptr<ReferenceCache> cache) {
  if (cache != nullptr && !trace_.differentiable) kept_.Use(std::move(cache));
}

void Tracer::AddParts(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& parts,
                      const at::Tensor& leftover, uint32_t marks, int64_t depth, bool single) {
  const at::Tensor wide = wide_inputs_.Add(value);
  const at::Tensor wide_reference = wide_inputs_.Wide(reference);
  const at::Tensor wide_parts = wide_inputs_.Wide(parts);
  at::Tensor rest = wide_inputs_.Wide(leftover);
  if (wide.scalar_type() != value.scalar_type()) {
    const TracingPause pause;
    const at::Tensor known = rest.defined() ? wide_parts.sum(0) + rest : wide_parts.sum(0);
    const at::Tensor missing = wide - wide_reference - known;
    const at::Tensor rounding = missing.masked_fill(at::isfinite(missing).logical_not_(), 0);
    rest = rest.defined() ? rest + rounding : rounding;
  }
  starts_.AddParts(wide, wide_reference, wide_parts, rest, marks, depth, single);
}

at::ScalarType Tracer::computed_in() const { return DtypeOf(policy_->compute_dtype); }

void Tracer::Handle(const Operator& op, Stack* stack) {
  if (checkpoints_.on()) checkpoints_.BetweenCalls();
  const Operator own_op = op.ComputedIn(computed_in());
  own_op.AskForItsDtype(stack);
  wide_inputs_.See(own_op, stack);
  const Role& role = roles_.Of(own_op);
  if (IsTakenApart(own_op, role, *stack)) return RunExpanded(own_op, stack, /*counts=*/true);
  const size_t known = recorder_.traced().storages.size();
  Call call = recorder_.Begin(own_op, *stack);
  unseen_.Meet(own_op, *stack, known);
  for (Operand& operand : call.operands) states_.Mark(operand);
  if (role.expands && call.Traced()) return RunExpanded(own_op, stack, /*counts=*/false);
  CallAtHand own = {role, call};
  own.arguments = recorder_.Place(*stack, call);
  call.draws = role.traits.Draws(call.arguments);
  first_error_.In([&] { RequireNoTransform(own); });
  NotePrecision(role, call);
  if (role.rewrite != nullptr && call.Traced()) {
    std::vector<c10::IValue> results = RunRewrite(own);
    if (!results.empty()) {
      stack->resize(stack->size() - own.arguments.size());
      stack->insert(stack->end(), std::make_move_iterator(results.begin()), std::make_move_iterator(results.end()));
      return;
    }
  }
  RunWhole(own, stack);
  recorder_.End(std::move(call));
}

bool Tracer::IsTakenApart(const Operator& op, const Role& role, const Stack& stack) {
  differentiates_ = differentiates_ || Differentiates(op, stack, [&](const at::Tensor& tensor) {
                      const int storage = recorder_.FindStorage(tensor);
                      return storage >= 0 && states_.Info(storage).inner;
                    });
  return differentiates_ && addend::IsTakenApart(op, role.traits);
}

// counts: the operators inside are calls of the model.
void Tracer::RunExpanded(const Operator& op, Stack* stack, bool counts) {
  std::vector<at::Tensor> given;
  if (counts) {
    ForEachArgument(op, *stack, [&](const at::Tensor& tensor) {
      if (tensor.defined() && tensor.has_storage()) given.push_back(tensor);
    });
  }
  {
    const Recorder::Deeper deeper(&recorder_, counts);
    op.Expand(stack);
  }
  first_error_.In([&] { unseen_.RequireSeen(op, ResultsOf(op, *stack), given); });
}

// None where the call is to be recorded whole after all: the rule that stands in for the rewrite covers it.
std::vector<c10::IValue> Tracer::RunRewrite(CallAtHand& own) {
  const Recorder::Deeper deeper(&recorder_);
  if (rewriting_.IsFused(own)) return {};
  // Arguments that the operator itself refuses are no failure of its rewrite.
  const std::vector<c10::IValue> given = rewriting_.RunItself(own);
  return first_error_.In([&] {
    try {
      return rewriting_.Run(own, given);
    } catch (const Error& e) {
      if (!e.position().op.empty()) throw;
      throw Error(e.code(), e.what(), own.call.position, "see docs/extending.md");
    } catch (const c10::Error& e) {
      throw Error(absl::StatusCode::kInternal,
                  absl::StrCat("the rewrite of ", own.role.full_name, " fails: ", e.what_without_backtrace()),
                  own.call.position);
    }
  });
}

// Notes the lowest precision in which an operand of a product is multiplied.
void Tracer::NotePrecision(const Role& role, const Call& call) {
  const Products products = role.rewrite != nullptr ? role.rewrite->products
                            : role.rule != nullptr  ? role.rule->products
                                                    : Products::kNone;
  if (products == Products::kNone || !ReadsRows(call)) return;
  for (const Operand& operand : call.operands) {
    if (operand.storage < 0) continue;
    const auto found = PrecisionOf(products, states_.Info(operand.storage).device, operand.dtype);
    if (found) trace_.precision = std::max(trace_.precision.value_or(*found), *found);
  }
}

void Tracer::RunWhole(CallAtHand& own, Stack* stack) {
  const auto start = checkpoints_.on() ? Clock::now() : Clock::time_point();
  if (!own.arguments.empty()) {
    const TracingPause pause;
    first_error_.In([&] { BeforeRun(own); });
  }
  // No pause here: what the model calls inside of a transformed function is transformed.
  {
    // Autograd would hold for the model what the model itself lets go of. Between operators its mode stays as it is,
    // for models look at it; within them it is that in which they run again. Below autograd they would not be the same:
    // views of what requires derivatives do not say so there.
    std::optional<c10::AutoGradMode> no_grad;
    if (checkpoints_.on()) no_grad.emplace(false);
    own.call.op.Run(stack);
  }
  const TracingPause pause;
  own.results = ResultsOf(own.call.op, *stack);
  if (own.call.Traced()) first_error_.In([&] { RequireDense(own, own.results, "gives"); });
  recorder_.AddOutputs(own.arguments, own.results, own.call);
  for (Operand& output : own.call.outputs) states_.Mark(output);
  first_error_.In([&] { AfterRun(own); });
  if (checkpoints_.on() && own.call.Traced()) {
    const bool starts = !trace_.row_starts.empty() && trace_.row_starts.back() == own.call.index;
    checkpoints_.AfterCall(own, starts, SecondsSince(start));
  }
}

void Tracer::BeforeRun(CallAtHand& own) {
  const NormalMode normal;
  const bool traced = own.call.Traced();
  if (traced) {
    RequireDense(own, own.arguments, "cannot read");
    if (UnderAutocast()) Refuse(own, "runs under autocast, which casts behind the operators; turn it off");
    try {
      if (own.role.rule != nullptr && own.role.rule->precondition) {
        own.role.rule->precondition(ArgumentsOf(own.call, own.arguments));
      }
    } catch (const Error& e) {
      throw Error(e.code(), e.what(), own.call.position);
    }
    kept_.LookUp(own);
  }
  own.ForEachOperand([&](const at::Tensor& tensor, const Operand& operand) {
    if (operand.storage < 0) return;
    // Keep each operand before the call may overwrite it.
    if (traced) states_.Keep(operand, tensor);
    if (operand.written) states_.PrepareWrite(operand, tensor, traced);
  });
  unseen_.BeforeRun(own.role, own.call);
  if (traced) ReferenceRun::SaveGenerators(own);
}

void Tracer::AfterRun(CallAtHand& own) {
  const NormalMode normal;
  own.call.Traced() ? TraceCall(own) : unseen_.AfterRun(own.role, own.call);
  if (starts_.AnyInside()) {
    starts_.BeginInside(own.Outputs(), own.call);
  } else if (own.call.Traced()) {
    written_attention_.AfterCall(own);
  }
}

void Tracer::TraceCall(CallAtHand& own) {
  const std::vector<at::Tensor> tensors = own.Outputs();
  RefuseBytes(own, tensors);
  const bool numbers = GivesNumbers(own.call);
  ids_.MarkOnBaseline(own.role, numbers, own.call);
  if (own.call.is_view) return TraceView(own, tensors);
  if (own.role.traits.reads_number) TraceGuard(own);
  if (own.role.sizes_only || own.call.outputs.empty()) return;
  numbers ? TraceNumbers(own, tensors) : TraceIds(own, tensors);
}

// The bytes of numbers that have rows mean nothing in another dtype.
void Tracer::RefuseBytes(const CallAtHand& own, const std::vector<at::Tensor>& tensors) const {
  if (!ReadsRows(own.call)) return;
  for (size_t k = 0; k < tensors.size(); ++k) {
    const Operand& output = own.call.outputs[k];
    if (!tensors[k].defined()) continue;
    if (!tensors[k].has_storage()) Refuse(own, "gives a tensor that is not dense");
    if (output.storage < 0 || SameNumbers(states_.Info(output.storage).dtype, output.dtype)) continue;
    if (own.call.is_view) Refuse(own, "reads the bytes of a decomposed tensor as another dtype");
    if (Continuous(output.dtype)) Refuse(own, "writes decomposed numbers as the bytes of another dtype");
  }
}

void Tracer::TraceView(CallAtHand& own, const std::vector<at::Tensor>& tensors) {
  for (size_t k = 0; k < tensors.size(); ++k) {
    Operand& output = own.call.outputs[k];
    if (output.storage < 0) continue;
    output.labelled = states_.Of(output.storage).tracked;
    states_.Keep(output, tensors[k]);
  }
}

// A number that the call hands to the program around it.
void Tracer::TraceGuard(const CallAtHand& own) {
  bool same = false;
  // Skip calls that also return tensors: they may write operands, and run on the baseline later.
  if (own.call.outputs.empty() && !ids_.ReadsUnknown(own.call)) {
    const std::vector<c10::IValue> references = reference_run_.RunForIds(own);
    same = std::equal(own.results.begin(), own.results.end(), references.begin(), references.end(), SamePlain);
  }
  trace_.guards.push_back({ids_.OriginOf(own.call), own.call.position, same, own.call.index});
}

// A call that gives integers and booleans only: rules take them from the value, for every row. What they are on the
// baseline, and whose they are, is followed; see Note [Ids].
void Tracer::TraceIds(CallAtHand& own, const std::vector<at::Tensor>& tensors) {
  IdLabels labels;
  std::vector<at::Tensor> references;
  if (!ids_.ReadsUnknown(own.call)) {
    labels = ids_.LabelsOf(own, tensors[0].sizes());
    references = TensorsIn(reference_run_.RunForIds(own));
  }
  // A size is a number that the program around may read.
  if (own.role.traits.SizesFromData(own.call.arguments)) {
    const bool same = std::equal(
        tensors.begin(), tensors.end(), references.begin(), references.end(),
        [](const at::Tensor& a, const at::Tensor& b) { return a.defined() && b.defined() && a.sizes() == b.sizes(); });
    trace_.guards.push_back({ids_.OriginOf(own.call), own.call.position, same, own.call.index});
  }
  const bool ids = ids_.ReadsIds(own.call) || labels.labels.defined();
  ids_.AdoptAll(own.call, tensors, references, labels);
  read_back_.AfterIntegers(own);
  if (ids && labels.mixed && own.call.outputs[0].dtype != at::kBool) {
    trace_.mixed_ids.push_back({own.call.position, !labels.moves});
  }
}

// A call that gives floating-point or complex numbers.
void Tracer::TraceNumbers(CallAtHand& own, const std::vector<at::Tensor>& tensors) {
  const bool starts = ids_.StartsRows(own.role, own.call);
  if (TraceReadBack(own, tensors, starts)) return;
  const bool same_conditions = starts || NoteConditions(own);
  // Computed from conditions alone: plain, unless the reference has the baseline's.
  if (!ReadsRows(own.call) && !starts && (same_conditions || !trace_.baseline_conditions)) return;
  if (trace_.baseline_conditions) ids_.RequireKnown(own.call);
  RequireRule(own);
  if (ReadsRows(own.call) && unseen_.ReadsSaved(own.call)) trace_.saved.push_back(own.call.position);
  SetOutputs(own, tensors, starts);
  kept_.Keep(own);
  if (starts && CarriesRows(own.call.outputs[0])) trace_.row_starts.push_back(own.call.index);
}

bool Tracer::TraceReadBack(CallAtHand& own, const std::vector<at::Tensor>& tensors, bool starts) {
  const auto found = read_back_.StandIn(own);
  if (found == nullptr || (starts && !ids_.LabelsOf(own, tensors[0].sizes()).mixed)) return false;
  CallAtHand stand_in = {roles_.Of(found->call.op), found->call};
  stand_in.arguments = {found->argument};
  ids_.MarkOnBaseline(stand_in.role, /*gives_numbers=*/true, stand_in.call);
  const Operand& output = found->call.outputs[0];
  RunReferences::Known known;
  known.references = {
      FlatReference(output, states_.Info(output.storage), tensors[0], found->reference, trace_.differentiable)};
  known.finite = {AllFinite(found->reference)};
  stand_in.known = &known;
  SetOutputs(stand_in, tensors, /*starts=*/false);
  own.call = std::move(found->call);
  return true;
}

bool Tracer::NoteConditions(const CallAtHand& own) {
  const bool tracked = std::any_of(own.call.operands.begin(), own.call.operands.end(),
                                   [](const Operand& operand) { return operand.storage >= 0 && operand.labelled; });
  if (!tracked) return true;
  const bool same = ids_.SameOnBaseline(own);
  trace_.conditions.push_back({ids_.OriginOf(own.call), own.call.position, same, own.call.index});
  if (ids_.ReadsIds(own.call)) trace_.mixed_ids.push_back({own.call.position, same});
  return same;
}

void Tracer::RequireRule(const CallAtHand& own) const {
  if (own.role.rule != nullptr || !ReadsRows(own.call)) return;
  if (unseen_.ReadsSaved(own.call)) {
    Refuse(own,
           "has no rule and reads what an operator saved for its gradient, of which nobody knows what it is on the "
           "baseline");
  }
  const MissingRule missing = policy_->overrides.empty()
                                  ? policy_->missing_rule
                                  : policy_->For(own.role.full_name, own.call.position.module_path).missing_rule;
  if (missing != MissingRule::kError) return;
  const bool path = HasDerivative(own);
  throw Error(absl::StatusCode::kUnimplemented, absl::StrCat("no composition rule for ", own.role.full_name),
              own.call.position,
              absl::StrCat("see docs/extending.md, or choose policy ",
                           path ? "missing_rule=path, which finds the parts by the operator's derivative, or " : "",
                           "missing_rule=absorb, which leaves over all that the operator gives",
                           path ? "" : " (it has no derivative, by which missing_rule=path would find parts)"));
}

// Whether the last run has references for all outputs that get some. Another registry may let other results carry rows.
bool Tracer::KnowsOutputs(const CallAtHand& own) const {
  for (size_t k = 0; k < own.call.outputs.size(); ++k) {
    if (!Carries(own, k) && !Tracks(own, k)) continue;
    if (k >= own.known->references.size() || !own.known->references[k].defined()) return false;
    if (own.known->references[k].numel() != states_.Info(own.call.outputs[k].storage).numel) return false;
  }
  return true;
}

void Tracer::SetOutputs(CallAtHand& own, const std::vector<at::Tensor>& tensors, bool starts) {
  Call& call = own.call;
  if (own.known != nullptr && !KnowsOutputs(own)) own.known = nullptr;
  std::vector<at::Tensor> references;
  if (own.known == nullptr) references = TensorsIn(reference_run_.Run(own));
  references.resize(std::max(references.size(), call.outputs.size()));
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    Operand& output = call.outputs[k];
    if (output.storage < 0) continue;
    const at::Tensor known = own.known != nullptr ? own.known->references[k] : at::Tensor();
    if (Tracks(own, k)) {
      ids_.Adopt(call, tensors[k], known.defined() ? ViewOf(known, output) : references[k], {}, output);
    }
    if (Carries(own, k)) {
      if (!known.defined()) SetReference(own, k, tensors[k], references[k]);
      states_.Of(output.storage).decomposed = output.decomposed = true;
      ids_.FollowSteps(own, output);
    }
    if (known.defined()) states_.Of(output.storage).reference = known;
    states_.Keep(output, tensors[k]);
    Version& kept = states_.Of(output.storage).kept.back();
    if (starts && Carries(own, k) && IdReadingOf(call.op.schema(), call.arguments) == IdReading::kNone) {
      const IdLabels labels = ids_.LabelsOf(own, tensors[k].sizes());
      kept.labels = ids_.FlatLabels(labels.labels, output);
      if (labels.mixed) trace_.mixed_ids.push_back({call.position, !labels.moves});
    }
    if (own.known != nullptr) {
      kept.reference_is_finite = own.known->finite[k];
    } else if (output.decomposed && kept.reference.device().is_cpu() &&
               CoversWhole(output, states_.Info(output.storage))) {
      kept.reference_is_finite = AllFinite(kept.reference);
    }
  }
}

// `reference`: what the call gave on the baseline as output `k`.
void Tracer::SetReference(const CallAtHand& own, size_t k, const at::Tensor& value, const at::Tensor& reference) {
  const Operand& output = own.call.outputs[k];
  if (output.written && !own.call.resized_output) return;  // it was written in place
  // Another shape on the baseline (residuals of a system that has full rank at the value only) is no reference.
  const bool other_shape = reference.defined() && reference.sizes() != value.sizes();
  if (other_shape) ids_.RequireSameSizes(own.call);
  try {
    states_.SetReference(output, value,
                         other_shape ? at::full_like(value, std::numeric_limits<double>::quiet_NaN()) : reference);
  } catch (const Error& e) {
    throw Error(e.code(), e.what(), own.call.position, "choose another baseline");
  }
}

Operand Tracer::Output(const at::Tensor& given) {
  const at::Tensor tensor = Seen(given);
  Operand operand = states_.Describe(tensor);
  states_.Keep(operand, tensor);
  return operand;
}

void Tracer::AddModuleOutput(const std::string& module_path, int64_t index, const at::Tensor& tensor) {
  const TracingPause pause;
  const bool met = tensor.defined() && tensor.has_storage() && StorageOf(tensor) >= 0;
  recorder_.AddModuleOutput(module_path, index, met ? states_.Describe(Seen(tensor)) : Operand());
}

TracedRun Tracer::Finish() {
  trace_.starts = starts_.Take();
  trace_.stretches = checkpoints_.Take();
  trace_.memory_limit = checkpoints_.limit();
  trace_.dropped = checkpoints_.dropped();
  trace_.versions = states_.Take();
  static_cast<TracedCalls&>(trace_) = std::move(recorder_.traced());
  LookAtNumbers(trace_);
  kept_.Store();
  return std::move(trace_);
}

}  // namespace addend
