#include "core/explain/attribute.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/explain/finish.h"
#include "core/explain/outcome.h"
#include "core/explain/verify.h"
#include "core/linearize/segments.h"
#include "core/linearize/row_sums.h"
#include "core/linearize/view.h"

namespace addend {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string ShapeOf(const at::Tensor& tensor) { return absl::StrCat("[", absl::StrJoin(tensor.sizes(), ", "), "]"); }

std::vector<double> Numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kCPU, at::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

at::Tensor ElementAt(at::Tensor tensor, const std::vector<int64_t>& index) {
  for (const int64_t i : index) tensor = tensor.select(0, i);
  return tensor;
}

double NumberOf(const at::Tensor& tensor, const TargetElements& target) {
  const double first = ElementAt(tensor, target.index).item<double>();
  return target.subtract.empty() ? first : first - ElementAt(tensor, target.subtract).item<double>();
}

// The elements of each target in the whole tensor.
std::vector<TargetElements> FindTargets(const at::Tensor& value, const AttributeOptions& options) {
  std::vector<TargetElements> found;
  if (options.targets.empty()) throw InvalidArgument("there is no target; give an element, or top1");
  if (!options.each_example) {
    for (const Target& target : options.targets) found.push_back(FindElements(value, target));
    return found;
  }
  const int64_t examples = value.dim() == 0 ? 0 : value.size(0);
  const int64_t given = static_cast<int64_t>(options.targets.size());
  if (given != 1 && given != examples) {
    throw InvalidArgument(absl::StrCat("there are ", given, " targets for an output of shape ", ShapeOf(value),
                                       "; give one for each of its ", examples, " rows, or one for all"));
  }
  for (int64_t i = 0; i < examples; ++i) {
    const Target& target = options.targets[given == 1 ? 0 : i];
    // Of an example of a sequence the last position counts, as it would alone.
    const bool sequence = target.top1 && value.dim() > 2;
    TargetElements own = FindElements(sequence ? value.narrow(0, i, 1) : value.select(0, i), target);
    if (sequence) own.index.erase(own.index.begin());
    own.index.insert(own.index.begin(), i);
    if (!own.subtract.empty()) own.subtract.insert(own.subtract.begin(), i);
    found.push_back(std::move(own));
  }
  return found;
}

void CheckExamples(const PreparedInputs& prepared, const at::Tensor& value) {
  for (size_t k = 0; k < prepared.inputs.size(); ++k) {
    const PreparedInput& input = prepared.inputs[k];
    if (input.kind == Split::Kind::kPlain) continue;
    if (input.parts.defined()) {
      throw InvalidArgument(absl::StrCat("input ", k,
                                         " is given as explicit parts, which belong to no example; ask for ",
                                         "each example's target by its whole index"));
    }
    if (value.dim() > 0 && input.value.dim() > 0 && input.value.size(0) == value.size(0)) continue;
    throw InvalidArgument(absl::StrCat("each example has a target, but input ", k, " of shape ", ShapeOf(input.value),
                                       " and the output of shape ", ShapeOf(value),
                                       " do not hold equally many examples in their first dimension"));
  }
}

// [targets, *S]; for examples all in one, [1, *S].
at::Tensor CotangentOf(const std::vector<TargetElements>& targets, const at::Tensor& value, bool together) {
  at::DimVector sizes = {together ? 1 : static_cast<int64_t>(targets.size())};
  sizes.append(value.sizes().begin(), value.sizes().end());
  const at::Tensor cotangent = at::zeros(sizes, value.options().dtype(RowDtype(value.scalar_type())));
  for (size_t t = 0; t < targets.size(); ++t) {
    const at::Tensor own = cotangent.select(0, together ? 0 : static_cast<int64_t>(t));
    ElementAt(own, targets[t].index).add_(1);
    if (!targets[t].subtract.empty()) ElementAt(own, targets[t].subtract).sub_(1);
  }
  return cotangent;
}

// products [targets, *S] and labels [*S] -> [targets, numc]
void AddByLabel(const at::Tensor& products, const at::Tensor& labels, at::Tensor& sums) {
  const at::Tensor flat = labels.reshape({-1}).to(products.device());
  const at::Tensor taken = products.reshape({products.size(0), -1}).to(at::kDouble).masked_fill(flat.lt(0), 0);
  sums.index_add_(1, flat.clamp_min(0), taken);
}

// The same where labels and products fall into examples: products [*S], sums [examples, numc].
void AddByExampleAndLabel(const at::Tensor& products, const at::Tensor& labels, at::Tensor& sums) {
  const int64_t examples = sums.size(0);
  const at::Tensor own = labels.reshape({examples, -1}).to(products.device());
  const at::Tensor taken = products.reshape({examples, -1}).to(at::kDouble).masked_fill(own.lt(0), 0);
  sums.scatter_add_(1, own.clamp_min(0), taken);
}

// The tensor that is asked for: an output by its name, or a probe.
RecordedOutput FindExplained(const std::vector<RecordedOutput>& outputs, const TracedRun& trace,
                             const std::string& at) {
  if (at.empty()) return outputs[0];
  for (const RecordedOutput& output : outputs) {
    if (output.name == at) return output;
  }
  if (at == "output" || absl::StartsWith(at, "output.")) {
    throw InvalidArgument(absl::StrCat(
        "the model has no ", at, " that is floating-point; it has ",
        absl::StrJoin(outputs, ", ", [](std::string* out, const auto& output) { out->append(output.name); })));
  }
  const Probe probe = FindReached(trace, at, outputs[0].probe);
  return {at, trace.Value(probe.operand), probe, {}};
}

}  // namespace

PreparedInputs LabelEveryId(PreparedInputs prepared) {
  int64_t next = prepared.numc;
  for (PreparedInput& input : prepared.inputs) {
    if (!input.ids || input.kind == Split::Kind::kPlain) continue;
    const at::Tensor own = at::arange(next, next + input.value.numel(), input.labels.options());
    input.labels = at::where(input.labels.lt(0), input.labels, own.view(input.labels.sizes())).contiguous();
    next += input.value.numel();
  }
  for (PreparedInput& input : prepared.inputs) {
    if (!input.parts.defined() || next == prepared.numc) continue;
    at::DimVector sizes(input.parts.sizes());
    sizes[0] = next - prepared.numc;
    input.parts = at::cat({input.parts, at::zeros(sizes, input.parts.options())}, 0);
  }
  prepared.numc = next;
  return prepared;
}

std::vector<std::vector<double>> PassedByCall(const Attribution& attribution, size_t num_calls) {
  std::vector<std::vector<double>> passed(attribution.operators.empty() ? 0 : attribution.operators[0].passed.size(),
                                          std::vector<double>(num_calls, std::nan("")));
  int64_t last = -1;
  for (const OperatorRelevance& one : attribution.operators) {
    if (one.program_call < 0 || one.program_call >= static_cast<int64_t>(num_calls)) {
      throw InvalidArgument(absl::StrCat("operator ", one.call, " is call ", one.program_call,
                                         " of the model, but the ", "program has ", num_calls,
                                         "; record the same model with the same inputs"));
    }
    // The outputs of one operator add up.
    const bool more = one.position.op_index == last;
    last = one.position.op_index;
    for (size_t t = 0; t < passed.size(); ++t) {
      double& own = passed[t][one.program_call];
      own = more ? own + one.passed[t] : one.passed[t];
    }
  }
  return passed;
}

Attribution FinishAttribution(Tracer& tracer, const std::vector<RecordedOutput>& outputs, const PreparedInputs& asked,
                              const std::vector<size_t>& declared, const Policy& policy,
                              const AttributeOptions& options, double trace_seconds, const CallLines& lines) {
  const auto start = Clock::now();
  const Registry& registry = options.registry != nullptr ? *options.registry : Registry::Default();
  const auto trace = std::make_shared<TracedRun>(FinishedRun(tracer, lines));
  if (options.progress) options.progress("trace", 1, 1);

  Attribution result;
  result.numc = asked.numc;
  result.inside = InsideValues(*trace);
  const RecordedOutput explained = FindExplained(outputs, *trace, options.at);
  result.name = explained.name;
  result.value = explained.value;
  if (!CarriesRows(explained.probe.operand) && result.value.numel() > 0) ThrowUnreached(*trace, result.name);
  const std::vector<TargetElements> targets = FindTargets(result.value, options);
  if (options.each_example) CheckExamples(asked, result.value);
  const at::Tensor cotangent = CotangentOf(targets, result.value, options.each_example);
  result.report.trace_seconds = trace_seconds + SecondsSince(start);

  Attributed swept = LinearizeAndTranspose(trace, registry, policy, {explained.probe}, {cotangent}, options.operators,
                                           [&](const char* stage, int64_t done, int64_t total) {
                                             if (options.progress) options.progress(stage, done, total);
                                           });
  AdjointResult& adjoint = swept.adjoint;
  result.report.linearize_seconds = swept.linearize_seconds;
  result.report.sweep_seconds = swept.sweep_seconds;

  Outcome outcome = JudgeRecovery(swept.linearization, result.name, result.value, cotangent, adjoint);

  // By element.
  const int64_t rows = cotangent.size(0);
  const int64_t examples = static_cast<int64_t>(targets.size());
  at::Tensor components = options.each_example ? at::zeros({examples, asked.numc}, adjoint.components.options())
                                               : adjoint.components.narrow(1, 0, asked.numc).clone();
  // What each input gives, undefined where no target depends on it: rows begin in the order of the declarations.
  std::vector<at::Tensor> given(asked.inputs.size());
  size_t next_start = 0;
  for (const size_t k : declared) {
    if (asked.inputs[k].kind == Split::Kind::kPlain || asked.inputs[k].ids) continue;
    given[k] = adjoint.starts[next_start++];
  }
  int64_t next_id = asked.numc;
  for (size_t k = 0; k < asked.inputs.size(); ++k) {
    const PreparedInput& input = asked.inputs[k];
    result.inputs.emplace_back();
    if (input.kind == Split::Kind::kPlain) continue;
    at::DimVector sizes = {rows};
    sizes.append(input.value.sizes().begin(), input.value.sizes().end());
    at::Tensor elements;
    if (input.ids) {
      elements = adjoint.components.narrow(1, next_id, input.value.numel()).reshape(sizes);
      next_id += input.value.numel();
    } else {
      elements = given[k];
      if (!elements.defined()) {
        elements = at::zeros(sizes, input.value.options().dtype(RealDtype(RowDtype(input.value.scalar_type()))));
      }
    }
    if (options.each_example) {
      elements = elements.select(0, 0);
      AddByExampleAndLabel(elements, input.labels, components);
    } else if (input.ids) {
      AddByLabel(elements, input.labels, components);
    }
    result.inputs.back() = elements;
  }

  // By target. A stand-in may have taken the place of a reference, so that is read behind the sweep.
  const at::Tensor reference = swept.linearization.trace->Reference(explained.probe.operand);
  const std::vector<double> leftover = Numbers(adjoint.leftover);
  const double scale = LargestFinite(result.value);
  for (size_t t = 0; t < targets.size(); ++t) {
    Contributions own;
    own.index = targets[t].index;
    own.subtract = targets[t].subtract;
    own.contributions = Numbers(components.select(0, static_cast<int64_t>(t)));
    own.value = NumberOf(result.value, targets[t]);
    own.scale = scale;
    own.reference = NumberOf(reference, targets[t]);
    if (options.each_example) {
      double sum = 0;
      for (const double part : own.contributions) sum += part;
      own.leftover = own.value - own.reference - sum;
    } else {
      own.leftover = leftover[t];
    }
    if (!std::isfinite(own.value) && std::isfinite(own.reference)) {
      // Nothing that is finite adds up to infinity.
      std::fill(own.contributions.begin(), own.contributions.end(), 0.0);
      own.leftover = own.value;
      result.report.notes.push_back(
          absl::StrCat("the explained number of ", result.name,
                       " is NaN or infinite where its reference is not; all of that is leftover"));
    }
    AddUp(own);
    result.targets.push_back(std::move(own));
  }

  for (const NodeRelevance& node : adjoint.nodes) {
    const Call& call = trace->program.calls[node.call];
    result.operators.push_back({call.position, DescribeCall(call), call.program_call, node.output, Numbers(node.passed),
                                Numbers(node.leftover)});
  }
  SweepResult judged;
  judged.failures = adjoint.failures;
  judged.worst_recovery_error = adjoint.recovery_error;
  FillReport(swept.linearization, judged, options.policy.preset == Preset::kAuto, result.report);
  JudgeTargets(swept.linearization, result.name, result.targets, cotangent, outcome);
  SayFirst(outcome, asked, swept.linearization, result.report);
  CompareReference(result.name, reference, explained.on_baseline, result.report);
  return result;
}

Attribution Attribute(const TracedModel& model, const std::vector<Input>& inputs, const AttributeOptions& options) {
  const auto start = Clock::now();
  DecomposeOptions run_options;
  run_options.registry = options.registry;
  run_options.progress = options.progress;
  run_options.verify_reference = options.verify_reference;
  const PreparedInputs asked = PrepareFor(*model.model(), inputs, run_options);
  const PreparedInputs prepared = LabelEveryId(asked);
  const Policy policy = options.policy.Resolved(prepared.baseline_given);
  Tracer tracer(&RulesOf(run_options), &policy, prepared.numc);
  tracer.UseReferences(options.references);
  const RecordedModel recorded = RecordModel(*model.model(), prepared, run_options, tracer);
  std::vector<size_t> declared(asked.inputs.size());
  std::iota(declared.begin(), declared.end(), size_t{0});
  return FinishAttribution(tracer, recorded.outputs, asked, declared, policy, options, SecondsSince(start));
}

}  // namespace addend
