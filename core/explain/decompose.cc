#include "core/explain/decompose.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/explain/baselines.h"
#include "core/explain/finish.h"
#include "core/explain/outcome.h"
#include "core/explain/verify.h"
#include "core/intercept/tracing_scope.h"
#include "core/linearize/linearization.h"
#include "core/linearize/segments.h"
#include "core/linearize/sweep.h"
#include "core/linearize/trace.h"
#include "core/linearize/view.h"
#include "core/model/run_model.h"
#include "core/program/operator_traits.h"
#include "core/program/random_state.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string DescribeInputs(const PreparedInputs& prepared) {
  return absl::StrJoin(prepared.inputs, ", ", [](std::string* out, const PreparedInput& input) {
    absl::StrAppend(out, DtypeName(input.value.scalar_type()), "[", absl::StrJoin(input.value.sizes(), ", "), "]");
  });
}

std::string FirstPositions(const std::vector<Position>& positions) {
  std::vector<std::string> texts;
  for (size_t k = 0; k < positions.size() && k < 3; ++k) {
    texts.push_back(absl::StrCat(positions[k].op, " (", positions[k].Describe(), ")"));
  }
  if (positions.size() > 3) texts.push_back(absl::StrCat("and ", positions.size() - 3, " more"));
  return absl::StrJoin(texts, ", ");
}

// Each operator once, in their order.
std::vector<Position> Origins(const std::vector<Condition>& conditions,
                              const std::function<bool(const Condition&)>& of) {
  std::map<int64_t, Position> origins;
  for (const Condition& condition : conditions) {
    if (of(condition)) origins.emplace(condition.origin.op_index, condition.origin);
  }
  std::vector<Position> positions;
  for (auto& [index, position] : origins) positions.push_back(std::move(position));
  return positions;
}

bool Any(const Condition& /*condition*/) { return true; }
bool Differs(const Condition& condition) { return !condition.same; }

// Whether the reference is what the model computes on the baseline, from what is known of the run.
void JudgeReference(const TracedRun& trace, const Linearization& linearization, Report& report) {
  const auto set = [&](const char* answer, const std::string& reason) {
    report.reference_is_model_on_baseline = answer;
    report.reference_reason = reason;
  };
  if (linearization.policy.anchor == Anchor::kResidual) {
    return set("no", "policy anchor=residual lets the leftover join the reference");
  }
  if (!linearization.stand_ins.empty())
    return set("no", "operators that are not finite on the baseline have stand-ins");
  const std::vector<Position> conditions = Origins(trace.conditions, Differs);
  if (!conditions.empty() && !trace.baseline_conditions) {
    return set("no", "conditions or indices are others on the baseline: " + FirstPositions(conditions));
  }
  const std::vector<Position> guards = Origins(trace.guards, Differs);
  if (!guards.empty()) {
    return set("unknown", "the model reads numbers that are others on the baseline: " + FirstPositions(guards));
  }
  set("yes", "");
}

}  // namespace

Probe FindProbe(const TracedRun& trace, const std::string& selector, const Probe& output) {
  const std::vector<Call>& calls = trace.program.calls;
  const auto first_output = [&](int64_t call) {
    const std::vector<Probe> probes = OutputsOf(trace, call);
    if (probes.empty()) {
      throw InvalidArgument(absl::StrCat("operator #", call, " (", FullName(calls[call].op.schema()),
                                         ") gives no floating-point tensor to probe"));
    }
    return probes.front();
  };
  if (selector == "logits") {
    // The output may be a view of what softmax gave: what counts is who wrote its storage last.
    for (int64_t c = static_cast<int64_t>(calls.size()) - 1; c >= 0; --c) {
      const Call& call = calls[c];
      if (call.is_view || call.outputs.empty() || call.outputs[0].storage != output.operand.storage) continue;
      const std::string name = RuleName(call.op.schema().name());
      const bool softmax = name == "aten::softmax" || name == "aten::_softmax" || name == "aten::log_softmax" ||
                           name == "aten::_log_softmax";
      if (softmax) return {c - 1, call.operands[0]};
      break;
    }
    return output;
  }
  int64_t index = 0;
  if (absl::StartsWith(selector, "#") && absl::SimpleAtoi(selector.substr(1), &index)) {
    if (index < 0 || index >= static_cast<int64_t>(calls.size())) {
      throw InvalidArgument(absl::StrCat("there is no operator ", selector, "; the model calls ", calls.size(),
                                         " operators, counted from #0"));
    }
    return first_output(index);
  }
  if (absl::StrContains(selector, "::")) {
    std::string name = selector;
    int64_t which = -1;
    const size_t colon = selector.rfind(':');
    if (colon > 0 && selector[colon - 1] != ':' && absl::SimpleAtoi(selector.substr(colon + 1), &which)) {
      name = selector.substr(0, colon);
    }
    std::vector<int64_t> found;
    for (size_t c = 0; c < calls.size(); ++c) {
      const auto& schema = calls[c].op.schema();
      if (schema.name() == name || FullName(schema) == name || RuleName(schema.name()) == name) found.push_back(c);
    }
    if (found.empty()) throw InvalidArgument(absl::StrCat("the model does not call ", name));
    if (which < 0 && found.size() > 1) {
      throw InvalidArgument(absl::StrCat("the model calls ", name, " ", found.size(), " times; say which, from ", name,
                                         ":0 to ", name, ":", found.size() - 1));
    }
    if (which >= static_cast<int64_t>(found.size())) {
      throw InvalidArgument(absl::StrCat("the model calls ", name, " only ", found.size(), " times"));
    }
    return first_output(found[std::max<int64_t>(which, 0)]);
  }
  for (int64_t c = static_cast<int64_t>(calls.size()) - 1; c >= 0; --c) {
    const std::string& path = calls[c].position.module_path;
    if (path != selector && !absl::StartsWith(path, selector + ".")) continue;
    const std::vector<Probe> probes = OutputsOf(trace, c);
    if (!probes.empty()) return probes.front();
  }
  std::vector<std::string> known;
  for (const Call& call : calls) {
    const std::string& path = call.position.module_path;
    if (!path.empty() && (known.empty() || known.back() != path)) known.push_back(path);
  }
  if (known.size() > 8) {
    known.resize(8);
    known.push_back("...");
  }
  throw InvalidArgument(absl::StrCat("nothing inside the model is called ", selector, "; choose a module path (",
                                     absl::StrJoin(known, ", "), "), an operator (#0 to #",
                                     static_cast<int64_t>(calls.size()) - 1, ", aten::name) or logits"));
}

Probe FindReached(const TracedRun& trace, const std::string& selector, const Probe& output) {
  const Probe probe = FindProbe(trace, selector, output);
  if (probe.operand.storage < 0) return probe;
  const std::vector<Kept>& versions = trace.storages[probe.operand.storage];
  const bool kept = std::any_of(versions.begin(), versions.end(),
                                [&](const Kept& one) { return one.version == probe.operand.version; });
  if (kept) return probe;
  throw InvalidArgument(absl::StrCat(selector, " does not depend on what is split, so that it has no components"));
}

namespace {

// Where a value is NaN or infinite, and what its parts come to is not the same. undefined: nowhere.
at::Tensor InfiniteAlone(const ProbeRows& rows) {
  if (rows.value.numel() == 0 || AllFinite(rows.value)) return {};
  const at::Tensor value = rows.value.to(rows.components.scalar_type());
  const at::Tensor recovery = rows.components.sum(0) + rows.leftover + rows.reference.to(value.scalar_type());
  const at::Tensor same = recovery.eq(value).logical_or_(at::isnan(recovery).logical_and_(at::isnan(value)));
  const at::Tensor alone = at::isfinite(value).logical_or_(same).logical_not_();
  return alone.any().item<bool>() ? alone : at::Tensor();
}

}  // namespace

Composition MakeComposition(const ProbeRows& rows, uint32_t marks) {
  Origin origin;
  origin.value = rows.value;
  origin.marks = marks;
  origin.depth = rows.depth;
  origin.plain = !rows.decomposed;
  at::Tensor components = rows.components;
  at::Tensor leftover = rows.leftover;
  // Nothing that is finite adds up to infinity: all of such an element is leftover.
  if (const at::Tensor alone = InfiniteAlone(rows); alone.defined()) {
    components = components.masked_fill(alone, 0);
    leftover = at::where(alone, rows.value.to(leftover.scalar_type()), leftover);
  }
  return Composition::FromOperator(std::move(components), rows.reference.to(rows.components.scalar_type()),
                                   std::move(leftover), std::move(origin));
}

OperatorReport Locate(const TracedRun& trace, const OperatorCheck& check) {
  const Call& call = trace.program.calls[check.call];
  return {check, call.position, DescribeCall(call), call.program_call};
}

namespace {

// A bracket that nobody has to be told of, relative to the operator's output.
constexpr double kNegligible = 1e-6;

// Selectors of overrides that no operator of the model answers to.
std::vector<std::string> UnusedSelectors(const TracedRun& trace, const Policy& policy) {
  std::vector<std::string> unused;
  for (const PolicyOverride& entry : policy.overrides) {
    const bool used = std::any_of(trace.program.calls.begin(), trace.program.calls.end(), [&](const Call& call) {
      return entry.Selects(FullName(call.op.schema()), call.position.module_path);
    });
    const bool known = std::find(unused.begin(), unused.end(), entry.selector) != unused.end();
    if (!used && !known) unused.push_back(entry.selector);
  }
  return unused;
}

}  // namespace

void FillReport(const Linearization& linearization, const SweepResult& sweep, bool auto_preset, Report& report) {
  const TracedRun& trace = *linearization.trace;
  report.policy = linearization.policy;
  report.operators = static_cast<int64_t>(trace.program.calls.size());
  report.nodes = static_cast<int64_t>(linearization.nodes.size());
  for (const Node& node : linearization.nodes) ++report.operators_by_kind[KindName(node.kind)];
  for (const OperatorCheck& check : sweep.checks) {
    report.checks.push_back(Locate(trace, check));
    const bool worse = check.bracket_bound >= 0 && !(check.bracket <= report.worst_bracket);
    if (worse && !std::isnan(report.worst_bracket)) report.worst_bracket = check.bracket;
  }
  std::vector<Position> failed;
  for (const OperatorCheck& failure : sweep.failures) {
    report.failures.push_back(Locate(trace, failure));
    report.absorbed_failures += failure.absorbed;
    failed.push_back(report.failures.back().position);
  }
  report.worst_recovery_error = sweep.worst_recovery_error;
  report.backward = sweep.backward;
  report.absorbed = CountOf(linearization, Kind::kAbsorbed);
  report.path_ruled = CountOf(linearization, Kind::kPath);
  report.stand_in_references = static_cast<int64_t>(linearization.stand_ins.size());
  if (auto_preset) {
    report.notes.push_back(report.policy.preset == Preset::kFast
                               ? "preset auto: fast, because no baseline was given"
                               : "preset auto: faithful, because a baseline was given");
  }
  if (report.absorbed > 0) {
    std::vector<Position> positions;
    for (const Node& node : linearization.nodes) {
      if (node.kind == Kind::kAbsorbed) positions.push_back(trace.program.calls[node.call].position);
    }
    report.notes.push_back("no rule, absorbed into the leftover: " + FirstPositions(positions));
  }
  if (sweep.turned) {
    report.notes.push_back(
        "components that were found backward did not come to what their sum became, so they were sent forward");
  }
  std::vector<Position> ruleless;
  std::vector<Position> constant;
  for (const Node& node : linearization.nodes) {
    if (!node.ruleless || node.kind == Kind::kAbsorbed) continue;
    (node.map ? ruleless : constant).push_back(trace.program.calls[node.call].position);
  }
  if (!ruleless.empty()) {
    report.notes.push_back("no rule, linearized through the operator's derivative: " + FirstPositions(ruleless));
  }
  if (!constant.empty()) {
    report.notes.push_back("no rule and no derivative, all of it is leftover: " + FirstPositions(constant));
  }
  if (report.absorbed_failures > 0) {
    report.notes.push_back("tracing failures, absorbed into the leftover: " + FirstPositions(failed));
  } else if (!failed.empty() && report.policy.on_failure != OnFailure::kIgnore) {
    report.notes.push_back("tracing failures, from here on the parts do not add up: " + FirstPositions(failed));
  }
  JudgeReference(trace, linearization, report);
  if (!trace.guards.empty()) {
    const bool same = Origins(trace.guards, Differs).empty();
    report.notes.push_back(absl::StrCat(
        "the model reads numbers that depend on the input, and may branch on them; the reference is that of "
        "the branch taken",
        same ? ", and on the baseline they are the same: " : ": ", FirstPositions(Origins(trace.guards, Any))));
  }
  std::vector<Position> random;
  std::map<const c10::FunctionSchema*, OperatorTraits> traits;
  for (const Call& call : trace.program.calls) {
    const c10::FunctionSchema& schema = call.op.schema();
    if (traits.try_emplace(&schema, schema).first->second.Draws(call.arguments)) random.push_back(call.position);
  }
  if (!random.empty()) {
    report.notes.push_back("random numbers are drawn by " + FirstPositions(random) +
                           "; value and baseline see the same draws");
  }
  if (!trace.conditions.empty()) {
    const std::vector<Position> others = Origins(trace.conditions, Differs);
    const char* whose = trace.baseline_conditions
                            ? "the reference has those of the baseline, and the step between both is leftover"
                            : "they are the value's for the reference too";
    report.notes.push_back(
        absl::StrCat("conditions or indices depend on the input; ", whose,
                     others.empty() ? "; on the baseline they are the same: " : "; on the baseline some are others: ",
                     FirstPositions(others.empty() ? Origins(trace.conditions, Any) : others)));
  }
  for (const std::string& selector : UnusedSelectors(trace, linearization.policy)) {
    report.notes.push_back("the policy names " + selector + ", which nothing in the model is called");
  }
  report.unattributed = static_cast<int64_t>(trace.unattributed.size());
  if (!trace.unattributed.empty()) {
    report.notes.push_back("ids are used in ways in which no component follows: " + FirstPositions(trace.unattributed));
  }
  const auto note_calls = [&](const char* what, const std::vector<int64_t>& calls) {
    if (calls.empty()) return;
    std::vector<Position> positions;
    for (const int64_t c : calls) positions.push_back(trace.program.calls[c].position);
    report.notes.push_back(what + FirstPositions(positions));
  };
  note_calls("not finite on the baseline or on the way from it, linearized at the value: ", linearization.stand_ins);
  for (const Start& start : trace.starts) {
    const at::Tensor value = start.inside ? at::Tensor() : trace.Value(start.operand);
    if (!value.defined() || value.numel() == 0 || AllFinite(value)) continue;
    const at::Tensor first = at::isfinite(value).logical_not_().nonzero().select(0, 0).to(at::kCPU).contiguous();
    const at::IntArrayRef place(first.data_ptr<int64_t>(), first.numel());
    report.notes.push_back(absl::StrCat("an input holds NaN or infinity, first at [", absl::StrJoin(place, ", "),
                                        "]; such elements are in no component, and the same in the reference"));
  }
  // What NaN or infinity in the value alone becomes is bracket, which is kept there and has no bound.
  std::vector<int64_t> from_infinity;
  for (const Node& node : linearization.nodes) {
    if (!node.keeps_bracket || node.bracket_bound >= 0) continue;
    const auto& operands = trace.program.calls[node.call].operands;
    const bool reads = std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
      return CarriesRows(operand) && !AllFinite(trace.Value(operand)) && trace.ReferenceIsFinite(operand);
    });
    const auto check = std::find_if(sweep.checks.begin(), sweep.checks.end(),
                                    [&](const OperatorCheck& own) { return own.call == node.call; });
    const bool negligible = check != sweep.checks.end() && check->bracket <= kNegligible;
    if (reads && !negligible) from_infinity.push_back(node.call);
  }
  note_calls("reads NaN or infinity where the reference is finite, what it makes of that is leftover: ", from_infinity);
}

std::string Unreached(const TracedRun& trace, const std::string& name) {
  std::map<int64_t, Position> ends;
  for (const Condition& condition : trace.conditions) ends.emplace(condition.origin.op_index, condition.origin);
  for (const Condition& guard : trace.guards) ends.emplace(guard.origin.op_index, guard.origin);
  for (const Position& position : trace.unattributed) ends.emplace(position.op_index, position);
  std::vector<Position> positions;
  for (auto& [index, position] : ends) positions.push_back(std::move(position));
  return absl::StrCat(
      "no component reaches ", name, ": ",
      positions.empty()
          ? "the model computes it without the split inputs, or outside LibTorch's dispatcher"
          : absl::StrCat("they end where the model makes conditions, indices or other integers of them, at ",
                         FirstPositions(positions)),
      "; see docs/concepts.md");
}

void ThrowUnreached(const TracedRun& trace, const std::string& name) {
  throw FailedPrecondition(Unreached(trace, name));
}

const Registry& RulesOf(const DecomposeOptions& options) {
  return options.registry != nullptr ? *options.registry : Registry::Default();
}

void ReportingRecorder::Handle(const Operator& op, Stack* stack) {
  try {
    if (options_->progress) options_->progress("trace", calls_++, 0);
  } catch (...) {
    if (!error_) error_ = std::current_exception();
    throw;
  }
  recorder_->Handle(op, stack);
}

void AddInput(const PreparedInput& input, const at::Tensor& value, Tracer& tracer) {
  if (input.kind == Split::Kind::kPlain) return;
  const at::Tensor reference = input.reference.clone();
  if (input.inside.call >= 0) {
    tracer.AddInside(input.inside, reference, input.labels);
  } else if (input.ids) {
    tracer.AddIds(value, reference, input.labels);
  } else if (input.parts.defined()) {
    tracer.AddParts(value, reference, input.parts);
  } else {
    tracer.AddFloatInput(value, reference, input.labels);
  }
}

std::vector<at::Tensor> InsideValues(const TracedRun& trace) {
  std::vector<at::Tensor> values;
  for (const Start& start : trace.starts) {
    if (start.inside) values.push_back(trace.Value(*start.inside).detach().clone(at::MemoryFormat::Contiguous));
  }
  return values;
}

TracedRun FinishedRun(Tracer& tracer, const CallLines& lines) {
  TracedRun trace = tracer.Finish();
  if (lines.empty()) return trace;
  const auto add = [&](Position& position) {
    const auto found = lines.find(position.op_index);
    if (found == lines.end() || !position.file.empty()) return;
    position.file = found->second.file;
    position.line = found->second.line;
    position.function = found->second.function;
  };
  for (Call& call : trace.program.calls) add(call.position);
  for (Condition& condition : trace.conditions) add(condition.origin);
  for (Condition& guard : trace.guards) add(guard.origin);
  for (Position& position : trace.unattributed) add(position);
  return trace;
}

Decomposition FinishDecomposition(Tracer& tracer, std::vector<RecordedOutput> outputs, const PreparedInputs& prepared,
                                  const Policy& policy, const DecomposeOptions& options, double trace_seconds,
                                  const CallLines& lines) {
  const auto start = Clock::now();
  auto trace = std::make_shared<TracedRun>(FinishedRun(tracer, lines));
  std::vector<Probe> probes;
  for (const RecordedOutput& output : outputs) probes.push_back(output.probe);
  for (const std::string& selector : options.probes) probes.push_back(FindReached(*trace, selector, probes[0]));
  Decomposition decomposition;
  decomposition.numc = prepared.numc;
  decomposition.inside = InsideValues(*trace);
  decomposition.report.trace_seconds = trace_seconds + SecondsSince(start);
  const auto progress = [&](const char* stage, int64_t done, int64_t total) {
    if (options.progress) options.progress(stage, done, total);
  };
  progress("trace", 1, 1);

  SweepOptions sweep_options{options.direction, {options.chunk, options.memory_bytes}};
  // Who asks for every operator wants each component to be looked at there.
  if (options.everything && options.direction == Direction::kAuto) sweep_options.direction = Direction::kForward;
  Explained explained = LinearizeAndSweep(trace, RulesOf(options), policy, std::move(probes), options.everything,
                                          progress, sweep_options);
  SweepResult& sweep = explained.sweep;
  std::vector<std::string> names;
  for (const RecordedOutput& output : outputs) names.push_back(output.name);
  names.insert(names.end(), options.probes.begin(), options.probes.end());
  const Outcome outcome = JudgeOutputs(explained.linearization, names, sweep);
  decomposition.report.linearize_seconds = explained.linearize_seconds;
  decomposition.report.sweep_seconds = explained.sweep_seconds;
  for (size_t p = 0; p < sweep.probes.size(); ++p) {
    const ProbeRows& rows = sweep.probes[p];
    const bool output = p < outputs.size();
    const std::string& name = names[p];
    std::vector<Decomposed>& list = output ? decomposition.outputs : decomposition.probes;
    list.push_back(
        {name, output ? outputs[p].value : rows.value, MakeComposition(rows, explained.linearization.probe_marks[p])});
    if (InfiniteAlone(rows).defined()) {
      decomposition.report.notes.push_back(
          absl::StrCat(name, " is NaN or infinite where its reference is not; all of that is leftover"));
    }
    if (rows.single && c10::toRealValueType(rows.value.scalar_type()) == at::kDouble) {
      decomposition.report.notes.push_back(
          absl::StrCat(name, " is in double precision, but went through single precision on its way; its parts add up ",
                       "to it as exactly as that rounds"));
    }
    if (!rows.decomposed) {
      decomposition.report.notes.push_back(
          absl::StrCat(name, " does not depend on the split inputs through operators that tracing sees"));
      if (prepared.numc > 0 && rows.value.numel() > 0) list.back().unreached = Unreached(*trace, name);
    }
  }
  // What is empty has no memory to be known by.
  if (prepared.numc > 0 && std::none_of(sweep.probes.begin(), sweep.probes.end(), [](const ProbeRows& rows) {
        return rows.decomposed || rows.value.numel() == 0;
      })) {
    ThrowUnreached(*trace, outputs.size() == 1 ? outputs[0].name : "any output");
  }
  FillReport(explained.linearization, sweep, options.policy.preset == Preset::kAuto, decomposition.report);
  SayFirst(outcome, prepared, explained.linearization, decomposition.report);
  for (size_t p = 0; p < outputs.size(); ++p) {
    CompareReference(names[p], sweep.probes[p].reference, outputs[p].on_baseline, decomposition.report);
  }
  return decomposition;
}

namespace {

// How often operators have written a tensor, as far as LibTorch counts it.
int64_t VersionOf(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_inference() ? static_cast<int64_t>(tensor._version()) : 0;
}

std::vector<at::Tensor> ValuesOf(const PreparedInputs& prepared) {
  std::vector<at::Tensor> values;
  for (const PreparedInput& input : prepared.inputs) values.push_back(input.value);
  return values;
}

}  // namespace

RecordedModel RecordModel(Model& model, const PreparedInputs& prepared, const DecomposeOptions& options,
                          Tracer& tracer) {
  if (options.progress) options.progress("trace", 0, 1);
  const auto held = model.NamedTensors();
  for (const auto& [name, tensor] : held) tracer.recorder().NameStorage(tensor, name);
  tracer.recorder().SetModulePaths(model.ModulePaths());
  std::vector<c10::IValue> arguments;
  for (const PreparedInput& input : prepared.inputs) {
    // The run may write its inputs; what was prepared stays as it is.
    const at::Tensor value = input.value.clone();
    if (input.inside.call < 0) arguments.emplace_back(value);
    AddInput(input, value, tracer);
  }
  std::optional<RandomState> before;
  std::vector<int64_t> versions;
  if (options.verify_reference) {
    before.emplace(ValuesOf(prepared));
    for (const auto& [name, tensor] : held) versions.push_back(VersionOf(tensor));
  }
  c10::IValue result;
  ReportingRecorder recorder(&tracer.recorder(), &options);
  try {
    const TracingScope scope(&recorder);
    result = RunModel(model, arguments, DescribeInputs(prepared));
  } catch (...) {
    // The interpreter hands on our errors as its own; the first one is the cause.
    if (recorder.error()) std::rethrow_exception(recorder.error());
    if (tracer.error()) std::rethrow_exception(tracer.error());
    throw;
  }
  RecordedModel recorded;
  const int64_t last_call = static_cast<int64_t>(tracer.recorder().program().calls.size()) - 1;
  ForEachTensor(result, [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    const size_t position = recorded.outputs.size() + recorded.plain.size();
    const std::string name = OutputName(position);
    if (Continuous(tensor.scalar_type())) {
      recorded.outputs.push_back({name, tensor, {last_call, tracer.Output(tensor)}, {}});
    } else {
      recorded.plain.push_back({position, name, tensor});
    }
  });
  if (recorded.outputs.empty()) {
    throw InvalidArgument("the model gives no floating-point or complex tensor to decompose");
  }
  if (options.verify_reference) {
    for (size_t k = 0; k < held.size(); ++k) {
      if (VersionOf(held[k].second) != versions[k]) recorded.written.push_back(held[k].second);
    }
    // The same numbers are drawn, and whoever draws behind this run draws what they would have drawn.
    const RandomState after(ValuesOf(prepared));
    before.reset();
    RunOnBaseline(model, prepared, recorded);
  }
  return recorded;
}

namespace {

// The call that gave a tensor as it is at a probe.
InsidePlace PlaceOf(const TracedRun& trace, const Probe& probe, const std::string& selector) {
  for (int64_t c = probe.after_call; c >= 0; --c) {
    const Call& call = trace.program.calls[c];
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      const Operand& output = call.outputs[k];
      if (!output.SamePlace(probe.operand) || output.version != probe.operand.version) continue;
      return {call.program_call, FullName(call.op.schema()), static_cast<int>(k)};
    }
  }
  throw InvalidArgument(absl::StrCat(selector, " is what the model is given; split that argument"));
}

}  // namespace

bool HasInside(const std::vector<Input>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const Input& input) { return !input.inside.empty(); });
}

PreparedInputs ArgumentsOf(const std::vector<Input>& inputs) {
  const auto is_inside = [](const Input& input) { return !input.inside.empty(); };
  PreparedInputs plain;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Input& input = inputs[k];
    const std::string name = input.name.empty() ? absl::StrCat("input ", k) : input.name;
    if (is_inside(input)) {
      if (input.split.kind == Split::Kind::kDims || input.split.kind == Split::Kind::kLabels) continue;
      throw InvalidArgument(absl::StrCat(name, " is inside the model: it is split along dimensions or by labels"));
    }
    if (input.split.kind != Split::Kind::kPlain) {
      throw InvalidArgument(absl::StrCat(name, " is split, and so is ",
                                         std::find_if(inputs.begin(), inputs.end(), is_inside)->inside,
                                         " inside the model; where a split starts inside, the arguments are plain"));
    }
    if (plain.inputs.size() != k) throw InvalidArgument("arguments are listed before what is inside the model");
    if (!input.value.defined()) throw InvalidArgument(absl::StrCat(name, " is no tensor"));
    PreparedInput own;
    own.value = input.value.detach().clone(at::MemoryFormat::Contiguous);
    plain.inputs.push_back(std::move(own));
  }
  return plain;
}

PreparedInputs PlaceInside(const std::vector<Input>& inputs, const TracedRun& trace, const Probe& output,
                           const std::vector<std::pair<std::string, at::Tensor>>& held) {
  std::vector<Input> all = inputs;
  std::vector<InsidePlace> places(inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].inside.empty()) continue;
    const Probe probe = FindProbe(trace, inputs[k].inside, output);
    places[k] = PlaceOf(trace, probe, inputs[k].inside);
    const std::string& word = inputs[k].baseline.word;
    if (NeedsValue(word)) {
      throw InvalidArgument(absl::StrCat(inputs[k].inside, ": the baseline ", word, " is made of the value, which is ",
                                         "known only when the model runs; give a number, a tensor, mean:FILE, ",
                                         "median:FILE or buffer:NAME"));
    }
    // Of its shape; the value is found when the model runs.
    all[k].value = at::zeros(probe.operand.geometry.sizes, at::TensorOptions().dtype(probe.operand.dtype));
    if (all[k].name.empty()) all[k].name = inputs[k].inside;
  }
  PreparedInputs prepared = Prepare(all, held);
  for (size_t k = 0; k < inputs.size(); ++k) prepared.inputs[k].inside = places[k];
  return prepared;
}

PreparedInputs PrepareFor(Model& model, const std::vector<Input>& inputs, const DecomposeOptions& options) {
  if (!HasInside(inputs)) return Prepare(inputs, model.NamedTensors());
  if (options.verify_reference) RefuseInside();
  const PreparedInputs plain = ArgumentsOf(inputs);
  DecomposeOptions once = options;
  once.progress = nullptr;
  Tracer tracer(&RulesOf(options), &options.policy, 0);
  const RecordedModel recorded = RecordModel(model, plain, once, tracer);
  return PlaceInside(inputs, tracer.Finish(), recorded.outputs[0].probe, model.NamedTensors());
}

namespace {

// The outputs that the options name; the others have no parts then.
void ChooseOutputs(const std::vector<std::string>& names, RecordedModel& recorded) {
  if (names.empty()) return;
  std::vector<RecordedOutput> chosen;
  for (const std::string& name : names) {
    const auto found = std::find_if(recorded.outputs.begin(), recorded.outputs.end(),
                                    [&](const RecordedOutput& output) { return output.name == name; });
    if (found == recorded.outputs.end()) {
      throw InvalidArgument(absl::StrCat(
          "the model has no ", name, " that is floating-point; it has ",
          absl::StrJoin(recorded.outputs, ", ",
                        [](std::string* out, const RecordedOutput& output) { out->append(output.name); })));
    }
  }
  for (RecordedOutput& output : recorded.outputs) {
    if (std::find(names.begin(), names.end(), output.name) == names.end()) continue;
    chosen.push_back(std::move(output));
  }
  recorded.outputs = std::move(chosen);
}

}  // namespace

Decomposition TracedModel::Decompose(const std::vector<Input>& inputs, const DecomposeOptions& options) const {
  if (options.chunk < 0 || options.memory_bytes < 0) {
    throw InvalidArgument("chunk and memory_bytes count components and bytes; 0 leaves the choice open");
  }
  const auto start = Clock::now();
  const PreparedInputs prepared = PrepareFor(*model_, inputs, options);
  const Policy policy = options.policy.Resolved(prepared.baseline_given);
  Tracer tracer(&RulesOf(options), &policy, prepared.numc);
  tracer.UseReferences(options.references);
  RecordedModel recorded = RecordModel(*model_, prepared, options, tracer);
  ChooseOutputs(options.outputs, recorded);
  Decomposition decomposition =
      FinishDecomposition(tracer, std::move(recorded.outputs), prepared, policy, options, SecondsSince(start));
  decomposition.plain = std::move(recorded.plain);
  return decomposition;
}

c10::IValue TracedModel::Run(const std::vector<at::Tensor>& inputs) const {
  std::vector<c10::IValue> arguments;
  std::vector<std::string> shapes;
  for (const at::Tensor& input : inputs) {
    if (!input.defined()) throw InvalidArgument("an input is no tensor");
    arguments.emplace_back(input);
    shapes.push_back(absl::StrCat(DtypeName(input.scalar_type()), "[", absl::StrJoin(input.sizes(), ", "), "]"));
  }
  return RunModel(*model_, arguments, absl::StrJoin(shapes, ", "));
}

Decomposition TracedModel::operator()(const std::vector<Input>& inputs, const DecomposeOptions& options) const {
  if (tracing_) return Decompose(inputs, options);
  std::vector<at::Tensor> tensors;
  for (const Input& input : inputs) {
    if (input.inside.empty()) tensors.push_back(input.value);
  }
  Decomposition plain;
  const c10::IValue result = Run(tensors);
  size_t position = 0;
  ForEachTensor(result, [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    const std::string name = OutputName(position++);
    if (Continuous(tensor.scalar_type())) {
      plain.outputs.push_back({name, tensor, Composition::FromParts({}, tensor)});
    }
  });
  return plain;
}

std::string OutputName(size_t position) { return position == 0 ? "output" : absl::StrCat("output.", position); }

TracedModel Trace(std::shared_ptr<Model> model) {
  if (model == nullptr) throw InvalidArgument("there is no model");
  return TracedModel(std::move(model));
}

}  // namespace addend
