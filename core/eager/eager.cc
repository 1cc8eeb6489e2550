#include "core/eager/eager.h"

#include <ATen/TensorIndexing.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/eager/differentiable.h"
#include "core/explain/decompose.h"
#include "core/intercept/tracing_scope.h"
#include "core/linearize/linearization.h"
#include "core/linearize/sweep.h"
#include "core/model/run_model.h"
#include "core/program/written_aside.h"
#include "core/run/trace.h"

namespace addend {
namespace {

bool InGraph(const Composition& composition) {
  return composition.requires_grad() ||
         (composition.origin().value.defined() && composition.origin().value.requires_grad());
}

// A value to which nothing of any component belongs.
Composition PlainComposition(const at::Tensor& value, int64_t numc) {
  at::DimVector shape = {numc};
  shape.append(value.sizes().begin(), value.sizes().end());
  const bool is_half = value.scalar_type() == at::kHalf || value.scalar_type() == at::kBFloat16;
  const at::Tensor reference = is_half ? value.to(at::kFloat) : value;
  Origin origin;
  origin.value = value;
  origin.plain = true;
  return Composition::FromOperator(at::zeros(shape, reference.options().requires_grad(false)), reference, at::Tensor(),
                                   std::move(origin));
}

// Whoever takes part in a call: they have to agree with each other.
class Partners {
 public:
  void Add(const Composition& composition) {
    in_graph_ = in_graph_ || InGraph(composition);
    traced_ = traced_ || !composition.origin().plain;
    if (numc_ < 0) {
      numc_ = composition.numc();
      device_ = composition.device();
      return;
    }
    agree_ = agree_ && composition.numc() == numc_ && composition.device() == device_;
  }

  bool agree() const { return agree_; }
  // How many components there are, or -1 where there is no composition.
  int64_t numc() const { return numc_; }
  // Some composition is more than a constant.
  bool traced() const { return traced_; }
  bool differentiable() const { return in_graph_ && c10::GradMode::is_enabled(); }

 private:
  int64_t numc_ = -1;
  at::Device device_ = at::kCPU;
  bool agree_ = true;
  bool traced_ = false;
  bool in_graph_ = false;
};

// A composition that takes part in a call, and what it is called in messages.
using NamedPartner = std::pair<std::string, const Composition*>;

// Throws for the first that does not agree with those before it.
[[noreturn]] void RefusePartners(const std::vector<NamedPartner>& all) {
  const auto& [first, known] = all.front();
  for (const auto& [what, own] : all) {
    if (own->numc() != known->numc()) {
      throw InvalidArgument(
          absl::StrCat(what, " has ", own->numc(), " components, but ", first, " has ", known->numc()));
    }
    if (own->device() != known->device()) {
      throw InvalidArgument(
          absl::StrCat(what, " is on ", own->device().str(), ", but ", first, " on ", known->device().str()));
    }
  }
  throw Internal("compositions agree");
}

class EagerRun {
 public:
  EagerRun(const CallOptions& options, const Partners& partners)
      : policy_(options.policy.Resolved(/*baseline_given=*/true)),
        registry_(options.registry != nullptr ? *options.registry : Registry::Default()),
        numc_(partners.numc()),
        traced_(partners.traced()),
        differentiable_(partners.differentiable()),
        tracer_(&registry_, &policy_, std::max<int64_t>(numc_, 0), differentiable_) {
    if (traced_ && policy_.segments != 1) {
      throw Unimplemented(
          "segments cut the line from the baseline of a whole model; one operator called by name has "
          "none: trace the model, or use Compute for several operators with segments=1");
    }
    if (differentiable_) RequireDifferentiable(policy_);
  }

  // The tensor that stands for a composition while the operators run. Equal compositions get one tensor.
  at::Tensor Admit(const Composition& composition) {
    c10::AutoGradMode grad(differentiable_);
    const std::array<const void*, 4> key = {
        composition.components().unsafeGetTensorImpl(), composition.reference().unsafeGetTensorImpl(),
        composition.leftover().unsafeGetTensorImpl(),
        composition.origin().value.defined() ? composition.origin().value.unsafeGetTensorImpl() : nullptr};
    at::Tensor& known = admitted_[key];
    if (known.defined()) return known;
    // The operators may write their operands; a composition stays as it is.
    known = Own(composition.value());
    if (composition.origin().plain) return known;
    const bool residual = policy_.anchor == Anchor::kResidual;
    const at::Tensor reference = Own((residual ? composition.residual() : composition.reference()).to(known.dtype()));
    tracer_.AddParts(known, reference, InMode(composition.components()),
                     residual ? at::Tensor() : InMode(composition.leftover()), composition.origin().marks,
                     composition.origin().depth, composition.origin().single);
    return known;
  }

  // `call` runs the operators; what it throws is told as a failure of what `what` says.
  template <typename What, typename Function>
  auto Run(const What& what, Function call) {
    c10::AutoGradMode grad(differentiable_);
    try {
      if (!traced_) return call(nullptr);
      const TracingScope scope(&tracer_);
      return call(&tracer_);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      if (tracer_.error()) std::rethrow_exception(tracer_.error());
      throw InvalidArgument(absl::StrCat(what(), ": ", SentenceOf(e)));
    }
  }

  // The results of the call, and the new states of what it wrote.
  Results Finish(const std::vector<c10::IValue>& returned,
                 const std::vector<std::pair<Composition*, at::Tensor>>& written) {
    std::vector<at::Tensor> asked;
    const auto ask = [&](const at::Tensor& tensor) {
      const auto same = [&](const at::Tensor& other) { return other.is_same(tensor); };
      if (!IsFloat(tensor) || std::any_of(asked.begin(), asked.end(), same)) return;
      asked.push_back(tensor);
    };
    for (const c10::IValue& value : returned) ForEachTensor(value, ask);
    for (const auto& [variable, tensor] : written) ask(tensor);

    Report report;
    const std::vector<Composition> compositions = traced_ ? Decompose(asked, report) : Constants(asked);
    const auto find = [&](const at::Tensor& tensor) -> const Composition* {
      for (size_t k = 0; k < compositions.size(); ++k) {
        if (asked[k].is_same(tensor)) return &compositions[k];
      }
      return nullptr;
    };
    std::vector<Result> results;
    for (const c10::IValue& value : returned) {
      bool tensors = false;
      ForEachTensor(value, [&](const at::Tensor& tensor) {
        tensors = true;
        const Composition* own = find(tensor);
        results.push_back(own != nullptr ? Result(*own) : Result(c10::IValue(tensor)));
      });
      if (!tensors) results.emplace_back(value);
    }
    for (const auto& [variable, tensor] : written) {
      const Composition* own = find(tensor);
      if (own == nullptr) throw InvalidArgument("the operator made a composition to something else than numbers");
      *variable = *own;
    }
    return Results(std::move(results), std::move(report));
  }

 private:
  static bool IsFloat(const at::Tensor& tensor) {
    return tensor.defined() && (tensor.is_floating_point() || tensor.is_complex());
  }

  at::Tensor InMode(const at::Tensor& tensor) const { return differentiable_ ? tensor : tensor.detach(); }
  // Contiguous memory of its own.
  at::Tensor Own(const at::Tensor& tensor) const { return InMode(tensor).clone(at::MemoryFormat::Contiguous); }

  std::vector<Composition> Constants(const std::vector<at::Tensor>& tensors) const {
    std::vector<Composition> compositions;
    if (numc_ < 0) return compositions;  // plain tensors in, plain tensors out
    for (const at::Tensor& tensor : tensors) compositions.push_back(PlainComposition(tensor, numc_));
    return compositions;
  }

  std::vector<Composition> Decompose(const std::vector<at::Tensor>& tensors, Report& report) {
    std::vector<Probe> probes;
    for (const at::Tensor& tensor : tensors) probes.push_back({0, tracer_.Output(tensor)});
    auto trace = std::make_shared<TracedRun>(tracer_.Finish());
    for (Probe& probe : probes) probe.after_call = static_cast<int64_t>(trace->calls.size()) - 1;
    if (differentiable_) RequireDifferentiable(*trace);
    const Linearization linearization =
        Linearize(trace, registry_, AtPrecisionOf(*trace, policy_), std::move(probes), /*everything=*/false);
    if (differentiable_ && !linearization.stand_ins.empty()) {
      throw Unimplemented(
          "no gradient passes where an operator is not finite on the reference; detach the composition");
    }
    const SweepResult sweep = SweepForward(linearization);
    std::vector<Composition> compositions;
    for (size_t k = 0; k < sweep.probes.size(); ++k) {
      compositions.push_back(MakeComposition(sweep.probes[k], linearization.probe_marks[k]));
    }
    FillReport(linearization, sweep, /*auto_preset=*/false, report);
    return compositions;
  }

  const Policy policy_;
  const Registry& registry_;
  const int64_t numc_;
  const bool traced_;
  const bool differentiable_;
  Tracer tracer_;
  std::map<std::array<const void*, 4>, at::Tensor> admitted_;
};

void AddPartners(const Argument& argument, Partners& partners) {
  if (argument.composition() != nullptr) partners.Add(*argument.composition());
  for (const Argument& item : argument.list()) AddPartners(item, partners);
}

void AddNamed(const std::string& name, const std::string& op, const Argument& argument,
              std::vector<NamedPartner>& all) {
  if (argument.composition() != nullptr) {
    all.emplace_back(absl::StrCat("argument ", name, " of ", op), argument.composition());
  }
  for (size_t i = 0; i < argument.list().size(); ++i) {
    AddNamed(absl::StrCat(name, "[", i, "]"), op, argument.list()[i], all);
  }
}

Partners PartnersOf(const BoundCall& bound) {
  const std::vector<c10::Argument>& declared = bound.op.schema().arguments();
  Partners partners;
  for (const Argument* argument : bound.arguments) {
    if (argument != nullptr) AddPartners(*argument, partners);
  }
  if (partners.agree()) return partners;
  std::vector<NamedPartner> all;
  for (size_t a = 0; a < declared.size(); ++a) {
    if (bound.arguments[a] == nullptr) continue;
    AddNamed(absl::StrCat("\"", declared[a].name(), "\""), FullName(bound.op.schema()), *bound.arguments[a], all);
  }
  RefusePartners(all);
}

bool HasTensors(const Argument& argument) {
  return argument.form() == Argument::Form::kTensor || argument.composition() != nullptr ||
         std::any_of(argument.list().begin(), argument.list().end(), HasTensors);
}

// In-place operators write variables only: a composition is a value, and a tensor has no room for components.
void CheckWrites(const BoundCall& bound, bool composed) {
  const std::vector<c10::Argument>& declared = bound.op.schema().arguments();
  for (size_t a = 0; a < declared.size(); ++a) {
    const Argument* argument = bound.arguments[a];
    const bool written = declared[a].alias_info() != nullptr && declared[a].alias_info()->isWrite() &&
                         !IsWrittenAside(bound.op.schema(), declared[a]);
    if (argument == nullptr || !written || !composed || argument->variable() != nullptr || !HasTensors(*argument)) {
      continue;
    }
    const std::string what =
        absl::StrCat(FullName(bound.op.schema()), " writes its argument \"", declared[a].name(), "\"");
    if (argument->form() == Argument::Form::kComposition) {
      throw InvalidArgument(absl::StrCat(what, ": pass a pointer to the composition, which then holds the new state"));
    }
    throw InvalidArgument(absl::StrCat(what, ", but ", argument->Describe(),
                                       " has no room for components; make it a composition, and pass a pointer to it"));
  }
}

}  // namespace

const Composition& Result::composition() const {
  if (composition_) return *composition_;
  throw InvalidArgument(plain_.isTensor() && !plain_.toTensor().is_floating_point()
                            ? "the result is a plain tensor: integers and bools have no parts"
                            : "the result is no composition: none was among the arguments, or it is no tensor");
}

at::Tensor Result::tensor() const {
  if (composition_) return composition_->value();
  if (plain_.isTensor()) return plain_.toTensor();
  throw InvalidArgument("the result is no tensor");
}

const Result& Results::operator[](size_t index) const {
  if (index < results_.size()) return results_[index];
  throw InvalidArgument(absl::StrCat("result ", index, " is out of range: there are ", results_.size()));
}

std::vector<Composition> Results::compositions() const {
  std::vector<Composition> all;
  for (const Result& result : results_) all.push_back(result.composition());
  return all;
}

Results::operator Composition() const {
  if (results_.size() == 1) return results_[0].composition();
  throw InvalidArgument(absl::StrCat("there are ", results_.size(), " results; say which"));
}

Results CallOperator(const std::string& name, const std::vector<Argument>& arguments, const CallOptions& options) {
  return CallBound(Bind(name, arguments), arguments, options);
}

Results CallBound(const BoundCall& bound, const std::vector<Argument>& arguments, const CallOptions& options) {
  const Partners partners = PartnersOf(bound);
  CheckWrites(bound, partners.numc() >= 0);
  EagerRun run(options, partners);
  std::vector<std::pair<Composition*, at::Tensor>> written;
  Stack stack = MakeStack(bound, [&](const Argument& argument) {
    if (argument.composition() == nullptr) return argument.tensor();
    const at::Tensor tensor = run.Admit(*argument.composition());
    if (argument.variable() != nullptr) written.emplace_back(argument.variable(), tensor);
    return tensor;
  });
  const auto what = [&] {
    std::vector<std::string> given;
    for (const Argument& argument : arguments) given.push_back(argument.Describe());
    return absl::StrCat(FullName(bound.op.schema()), " refuses its arguments (", absl::StrJoin(given, ", "), ")");
  };
  const std::vector<c10::IValue> returned = run.Run(what, [&](Tracer* tracer) {
    tracer != nullptr ? tracer->Handle(bound.op, &stack) : bound.op.Call(&stack);
    return std::vector<c10::IValue>(stack);
  });
  return run.Finish(returned, written);
}

Results Compute(const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function,
                const std::vector<Composition>& inputs, const CallOptions& options) {
  if (!function) throw InvalidArgument("the function is empty");
  Partners partners;
  for (const Composition& input : inputs) partners.Add(input);
  if (!partners.agree()) {
    std::vector<NamedPartner> all;
    for (size_t k = 0; k < inputs.size(); ++k) all.emplace_back(absl::StrCat("input ", k), &inputs[k]);
    RefusePartners(all);
  }
  EagerRun run(options, partners);
  std::vector<at::Tensor> tensors;
  for (const Composition& input : inputs) tensors.push_back(run.Admit(input));
  const at::Tensor result = run.Run([] { return "the function fails"; }, [&](Tracer*) { return function(tensors); });
  return run.Finish({result}, {});
}

Composition Composition::index(at::ArrayRef<at::indexing::TensorIndex> indices, const CallOptions& options) const {
  return Compute([&](const std::vector<at::Tensor>& self) { return self[0].index(indices); }, {*this}, options);
}

}  // namespace addend
