#include "tests/opdb/laws.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/explain/decompose.h"
#include "core/rules/kinds.h"
#include "core/rules/registry.h"

namespace addend {
namespace {

constexpr int64_t kNumc = 3;

// Whether a sample's input can have components.
bool CanMove(const at::Tensor& t) { return t.layout() == at::kStrided && t.is_floating_point(); }

bool IsNumeric(const at::Tensor& t) { return t.is_floating_point() || t.is_complex(); }

at::Tensor Wide(const at::Tensor& t) { return t.is_complex() ? t.to(at::kComplexDouble) : t.to(at::kDouble); }

// The largest magnitude of what is finite; 0 for none.
double Largest(const at::Tensor& t) {
  if (t.numel() == 0) return 0;
  const at::Tensor size = Wide(t).abs();
  return size.masked_fill(at::isfinite(size).logical_not(), 0).max().item<double>();
}

// Relative error that is allowed for rounding in a tensor's dtype.
double Rounding(const at::Tensor& t) {
  switch (t.scalar_type()) {
    case at::kBFloat16:
      return 2e-2;
    case at::kHalf:
    case at::kComplexHalf:
      return 2e-3;
    case at::kFloat:
    case at::kComplexFloat:
      return 1e-5;
    default:
      return 1e-10;
  }
}

// Largest such error of all tensors that go in and come out of a sample.
double Rounding(const Sample& sample) {
  double rounding = 0;
  for (const at::Tensor& t : sample.inputs) {
    if (IsNumeric(t)) rounding = std::max(rounding, Rounding(t));
  }
  for (const at::Tensor& t : sample.outputs) {
    if (IsNumeric(t)) rounding = std::max(rounding, Rounding(t));
  }
  return rounding;
}

// The largest |a - b|; infinite where one is NaN or an infinity that the other is not.
double Apart(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return INFINITY;
  if (a.numel() == 0) return 0;
  const at::Tensor x = Wide(a);
  const at::Tensor y = Wide(b);
  const at::Tensor same = x.eq(y).logical_or(at::isnan(x).logical_and(at::isnan(y)));
  const at::Tensor apart = (x - y).abs().masked_fill(same, 0);
  return at::isfinite(apart).all().item<bool>() ? apart.max().item<double>() : INFINITY;
}

double RealInner(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor product = at::mul(a.is_complex() ? a.conj() : a, b).sum();
  return (product.is_complex() ? at::real(product) : product).item<double>();
}

// The default rules, each with its map shown to `look` where it is built.
using Look = std::function<void(const std::string& rule, const RuleCall& call, const RuleResult& result)>;
Registry Watched(const Look& look) {
  Registry watched = Registry::Default();
  for (const Rule* rule : Registry::Default().All()) {
    if (!rule->build) continue;
    Rule own = *rule;
    own.build = [look, build = rule->build, name = rule->name](const RuleCall& call) {
      RuleResult result = build(call);
      if (result.map) look(name, call, result);
      return result;
    };
    watched.Register(std::move(own));
  }
  return watched;
}

Rows RandomRows(const RuleCall& call, const RuleResult& result, int64_t count) {
  Rows rows;
  for (const int input : result.inputs) {
    const at::Tensor& value = call.operands[input].value;
    rows.push_back(at::randn(WithRows(count, value.sizes()), value.options()));
  }
  return rows;
}

// How far <g, L r> and <L' g, r> are apart, over what is summed up; in units of rounding.
double AdjointMisses(const RuleCall& call, const RuleResult& result) {
  const Rows rows = RandomRows(call, result, 1);
  const Rows forward = result.map->Forward(rows);
  for (const at::Tensor& output : forward) {
    if (output.defined() && !at::isfinite(output).all().item<bool>()) return 0;  // 0/0 in the model itself
  }
  Rows cotangents;
  double difference = 0;
  double mass = 0;
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const bool carried = k < forward.size() && forward[k].defined();
    cotangents.push_back(carried ? at::randn_like(forward[k].select(0, 0)) : at::Tensor());
    if (!carried) continue;
    difference += RealInner(cotangents[k], forward[k].select(0, 0));
    mass += RealInner(cotangents[k].abs(), forward[k].select(0, 0).abs());
  }
  const Rows back = result.map->Transpose(cotangents);
  for (size_t k = 0; k < back.size(); ++k) {
    difference -= RealInner(back[k], rows[k].select(0, 0));
    mass += RealInner(back[k].abs(), rows[k].select(0, 0).abs());
  }
  return std::abs(difference) / (1 + mass) / Rounding(call.outputs[0].value);
}

// Whether all that an operator leaves over is what the nodes of a quadrature miss: not the step of a jump, which no
// number of nodes attributes.
bool LeftByQuadrature(const OperatorReport& report) {
  const OperatorCheck& check = report.check;
  return check.leftover <= 1e-8 ||
         (check.kind == Kind::kPath && check.bracket_bound >= 0 && check.bracket_bound < 1e-2);
}

// How one sample is run.
struct Setup {
  bool every = false;  // compositions on every floating-point input; else on the first only
  Style style = Style::kZero;
  std::string name;
};

struct Prepared {
  std::vector<at::Tensor> references;               // of every input
  std::vector<std::vector<at::Tensor>> components;  // of every input; empty where it is plain
  std::vector<Input> inputs;
};

at::Tensor ReferenceOf(const at::Tensor& x, Style style) {
  switch (style) {
    case Style::kZero:
      return at::zeros_like(x);
    case Style::kSmall:
      return x * (at::rand_like(x) * 0.02 + 0.01);
    case Style::kLarge:
      // The elements in another order: as large as the input, and within whatever range the input keeps to.
      return x.reshape({-1}).index_select(0, at::randperm(x.numel())).view(x.sizes());
  }
  return {};
}

std::vector<Input> InputsOf(const std::vector<at::Tensor>& values, const std::vector<at::Tensor>& references,
                            const std::vector<std::vector<at::Tensor>>& components) {
  std::vector<Input> inputs;
  for (size_t k = 0; k < values.size(); ++k) {
    if (components[k].empty()) {
      inputs.push_back(Input::Plain(values[k]));
    } else {
      inputs.push_back(Input::Of(Composition::FromParts(components[k], references[k])));
      inputs.back().value = values[k];  // to the last bit: targets are compared with 1
      inputs.back().first_component = 0;
    }
  }
  return inputs;
}

Prepared Prepare(const Sample& sample, const Setup& setup) {
  Prepared prepared;
  bool first = true;
  for (const at::Tensor& x : sample.inputs) {
    const bool moves = CanMove(x) && (setup.every || first);
    prepared.references.push_back(moves ? ReferenceOf(x, setup.style) : x);
    prepared.components.emplace_back();
    if (!moves) continue;
    first = false;
    // Numbers that are not finite have no parts, nor have those so large that their parts would not be.
    const at::Tensor split = at::isfinite(x * 64);
    at::Tensor& reference = prepared.references.back();
    reference = at::where(split, at::where(at::isfinite(reference * 64), reference, at::zeros_like(x)), x);
    const at::Tensor move = (x - reference).masked_fill(split.logical_not(), 0);
    const at::Tensor a = at::randn_like(x) * 0.5;
    const at::Tensor b = at::randn_like(x) * 0.5;
    prepared.components.back() = {move * a, move * b, move * (1 - a - b)};
  }
  prepared.inputs = InputsOf(sample.inputs, prepared.references, prepared.components);
  return prepared;
}

std::vector<at::Tensor> Run(const Sample& sample, const std::vector<at::Tensor>& inputs) {
  std::vector<c10::IValue> arguments;
  for (const at::Tensor& input : inputs) arguments.emplace_back(input.clone());
  at::manual_seed(7);
  const c10::IValue result = sample.model->Run(arguments);
  std::vector<at::Tensor> all;
  if (result.isTensor()) {
    all.push_back(result.toTensor());
  } else {
    for (const c10::IValue& element : result.toTupleRef().elements()) {
      if (element.isTensor()) all.push_back(element.toTensor());
    }
  }
  std::vector<at::Tensor> numeric;
  for (const at::Tensor& t : all) {
    if (IsNumeric(t)) numeric.push_back(t.resolve_conj().resolve_neg());
  }
  return numeric;
}

std::vector<at::Tensor> Moved(const Sample& sample, const Prepared& prepared,
                              const std::function<at::Tensor(size_t)>& at) {
  std::vector<at::Tensor> inputs;
  for (size_t k = 0; k < sample.inputs.size(); ++k) {
    inputs.push_back(prepared.components[k].empty() ? sample.inputs[k] : at(k));
  }
  return inputs;
}

// Whether the operator gives the same to the last bit wherever the inputs go: on the references, along each component
// and between. Then there is nothing that a component could have.
bool IsConstant(const Sample& sample, const Prepared& prepared) {
  try {
    const auto value = Run(sample, sample.inputs);
    std::vector<std::vector<at::Tensor>> others = {Run(sample, prepared.references)};
    for (int64_t i = 0; i < kNumc; ++i) {
      others.push_back(Run(sample, Moved(sample, prepared, [&](size_t k) { return prepared.components[k][i]; })));
      others.push_back(Run(sample, Moved(sample, prepared, [&](size_t k) {
                             return prepared.references[k] + prepared.components[k][i] * 0.37;
                           })));
    }
    for (const auto& other : others) {
      for (size_t o = 0; o < value.size(); ++o) {
        if (Apart(value[o], other[o]) != 0) return false;
      }
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Whether PyTorch itself has a derivative, by output.
std::vector<bool> Differentiated(const Sample& sample, const Prepared& prepared) {
  const c10::AutoGradMode grad(true);
  std::vector<bool> differentiated;
  for (const at::Tensor& output : Run(sample, Moved(sample, prepared, [&](size_t k) {
                                        return sample.inputs[k].detach().clone().requires_grad_(true);
                                      }))) {
    differentiated.push_back(output.requires_grad());
  }
  return differentiated;
}

// Whether the operator is linear in what moves, up to a constant, as far as its own results tell; gives
// f(component i) - f(0) for each component and output.
std::optional<std::vector<std::vector<at::Tensor>>> LinearParts(const Sample& sample, const Prepared& prepared) {
  try {
    const auto zero = Run(sample, Moved(sample, prepared, [&](size_t k) { return at::zeros_like(sample.inputs[k]); }));
    const auto value = Run(sample, sample.inputs);
    const auto reference = Run(sample, prepared.references);
    const auto twice = Run(sample, Moved(sample, prepared, [&](size_t k) { return sample.inputs[k] * -2.5; }));
    std::vector<std::vector<at::Tensor>> parts;
    for (int64_t i = 0; i < kNumc; ++i) {
      parts.push_back(Run(sample, Moved(sample, prepared, [&](size_t k) { return prepared.components[k][i]; })));
    }
    // One multiple and one sum may fit by chance: trunc(2.3 * -2.5) is -5, and a permuted median is the same.
    const auto mixed = Run(sample, Moved(sample, prepared, [&](size_t k) {
                             return sample.inputs[k] * 0.37 - prepared.components[k][0] * 1.3;
                           }));
    // All inputs move at once in these: a loss whose target is a label is zero wherever that is none. What each input
    // does alone adds up too.
    std::vector<std::vector<at::Tensor>> alone;
    for (size_t moved = 0; moved < sample.inputs.size(); ++moved) {
      if (prepared.components[moved].empty()) continue;
      alone.push_back(Run(sample, Moved(sample, prepared, [&](size_t k) {
                            return k == moved ? at::zeros_like(sample.inputs[k]) : sample.inputs[k];
                          })));
    }
    for (size_t o = 0; o < value.size(); ++o) {
      at::Tensor sum = reference[o] - zero[o];
      for (int64_t i = 0; i < kNumc; ++i) {
        parts[i][o] = parts[i][o] - zero[o];
        sum = sum + parts[i][o];
      }
      const at::Tensor own = value[o] - zero[o];
      const double size = 1e-9 * (1 + Largest(own));
      if (!(Apart(sum, own) <= size) || !(Apart(twice[o] - zero[o], own * -2.5) <= size)) return std::nullopt;
      if (!(Apart(mixed[o] - zero[o], own * 0.37 - parts[0][o] * 1.3) <= size)) return std::nullopt;
      at::Tensor by_input = at::zeros_like(own);
      for (const auto& run : alone) by_input = by_input + (value[o] - run[o]);
      if (!(Apart(by_input, own) <= size)) return std::nullopt;
      if (!at::isfinite(own).all().item<bool>()) return std::nullopt;
    }
    return parts;
  } catch (const std::exception&) {
    return std::nullopt;  // zeros may be outside of its domain
  }
}

// The operator's change along component i by differences, at the point t of the line from the references to the inputs;
// undefined where two step widths disagree.
std::vector<at::Tensor> Derivative(const Sample& sample, const Prepared& prepared, int64_t i, double t) {
  const auto point = [&](size_t k) {
    return t == 1 ? sample.inputs[k] : prepared.references[k] + t * (sample.inputs[k] - prepared.references[k]);
  };
  const auto along = [&](double h) {
    const auto up =
        Run(sample, Moved(sample, prepared, [&](size_t k) { return point(k) + h * prepared.components[k][i]; }));
    const auto down =
        Run(sample, Moved(sample, prepared, [&](size_t k) { return point(k) - h * prepared.components[k][i]; }));
    std::vector<at::Tensor> slopes;
    for (size_t o = 0; o < up.size(); ++o) slopes.push_back((Wide(up[o]) - Wide(down[o])) / (2 * h));
    return slopes;
  };
  const auto coarse = along(1e-4);
  const auto fine = along(1e-5);
  std::vector<at::Tensor> slopes;
  for (size_t o = 0; o < fine.size(); ++o) {
    const bool agree = Apart(coarse[o], fine[o]) <= 1e-2 * Largest(fine[o]);
    slopes.push_back(agree ? fine[o] : at::Tensor());
  }
  return slopes;
}

std::string OneLine(const std::string& text) { return text.substr(0, std::min<size_t>(text.find('\n'), 300)); }

// How many times as large as the value the parts of an element have to be, so that a tracing failure is their rounding.
constexpr double kCancels = 1e6;

double LargestRatio(const at::Tensor& mass, const at::Tensor& value) {
  return Largest(mass.to(at::kDouble) / value.abs().to(at::kDouble).clamp_min(1e-300));
}

void JudgeOne(const Sample& sample, bool random, Preset preset, const Setup& setup, Outcome& outcome) {
  const std::string where = sample.name + ", " + setup.name;
  const auto wrong = [&](const std::string& what) { outcome.wrong.push_back(where + ": " + what); };
  const double rounding = Rounding(sample);
  at::manual_seed(11);
  const Prepared prepared = Prepare(sample, setup);
  const bool any = std::any_of(prepared.components.begin(), prepared.components.end(),
                               [](const auto& parts) { return !parts.empty(); });
  if (!any) return;
  ++outcome.runs;
  DecomposeOptions options;
  options.policy.preset = preset;
  const Registry watched = Watched([&](const std::string& rule, const RuleCall& call, const RuleResult& result) {
    const double misses = AdjointMisses(call, result);
    if (!(misses <= 1)) wrong(absl::StrCat(rule, ": apply and transpose differ by ", misses, " times what is allowed"));
  });
  if (setup.every) options.registry = &watched;
  const TracedModel model(sample.model);
  Decomposition all;
  bool cancels = false;
  try {
    at::manual_seed(7);
    try {
      all = model.Decompose(prepared.inputs, options);
    } catch (const Error& error) {
      // Near a pole, say, where reference and parts are so much larger than the value that their rounding is, too.
      cancels = absl::StartsWith(error.what(), "tracing failure: the parts of output");
      if (!cancels) throw;
      options.policy.on_failure = OnFailure::kWarn;
      at::manual_seed(7);
      all = model.Decompose(prepared.inputs, options);
    }
  } catch (const std::exception& error) {
    const bool unreached = OneLine(error.what()).rfind("no component reaches output", 0) == 0;
    if (unreached && !random && IsConstant(sample, prepared)) return;  // and that is what it says
    outcome.refused.push_back(where + ": " + OneLine(error.what()));
    return;
  }
  for (const auto& kind : all.report.operators_by_kind) outcome.kinds.insert(kind.first);
  for (const OperatorReport& check : all.report.checks) outcome.operators.insert(check.position.op);
  const bool stand_in = all.report.stand_in_references > 0;
  outcome.stand_ins += stand_in;

  std::vector<at::Tensor> expected;
  for (const at::Tensor& t : sample.outputs) {
    if (IsNumeric(t)) expected.push_back(t);
  }
  if (expected.size() != all.outputs.size()) {
    wrong(std::to_string(all.outputs.size()) + " results instead of " + std::to_string(expected.size()));
    return;
  }
  // Gauge freedom and memory order aside, the run is PyTorch's.
  bool finite = true;
  for (size_t o = 0; o < expected.size(); ++o) {
    const Decomposed& out = all.outputs[o];
    if (out.value.scalar_type() != expected[o].scalar_type()) wrong("another dtype");
    if (out.value.sizes() != expected[o].sizes() || out.composition.sizes() != expected[o].sizes()) {
      wrong("another shape");
      return;
    }
    if (!random && !(Apart(out.value, expected[o]) <= rounding * (1 + Largest(expected[o])))) {
      wrong("the traced run gives another value than PyTorch");
    }
    const at::Tensor mass = out.composition.components().abs().sum(0) + out.composition.reference().abs() +
                            out.composition.leftover().abs();
    const double size = std::max({Largest(mass), Largest(out.value), 1e-300});
    const double error = Apart(out.composition.recovery(), random ? out.value : expected[o]);
    if (cancels && o == 0 && !(LargestRatio(mass, out.value) > kCancels)) {
      wrong("a tracing failure, although nothing is much larger than the value");
    }
    // Every element, NaN and infinity included: what has no parts is reference or leftover.
    if (!(error <= rounding * size)) wrong(absl::StrCat("recovery misses by ", error / size));
    outcome.worst_recovery = std::max(outcome.worst_recovery, error / size);
    if (out.value.numel() > 0 && at::isfinite(out.value).all().item<bool>()) {
      if (!stand_in && preset == Preset::kFaithful) {
        const double leftover = Largest(out.composition.leftover()) / std::max(Largest(out.value), 1e-300);
        const double move = Largest(out.value - out.composition.reference());
        if (move > 0) outcome.worst_leftover = std::max(outcome.worst_leftover, leftover);
      }
    } else {
      finite = false;
    }
  }
  if (random) return;

  // Truth 2: without a stand-in the reference is what the operator gives on the baseline.
  const bool branches = std::any_of(all.report.notes.begin(), all.report.notes.end(), [](const std::string& note) {
    return note.find("depend on the input") != std::string::npos;
  });
  if (!stand_in && !branches) {
    try {
      const auto reference = Run(sample, prepared.references);
      for (size_t o = 0; o < reference.size(); ++o) {
        const double size = rounding * (1 + Largest(reference[o]));
        if (!(Apart(all.outputs[o].composition.reference(), reference[o]) <= size)) {
          wrong("the reference is not what the operator gives on the baseline");
        }
      }
    } catch (const std::exception&) {
      wrong("a reference where the operator itself fails");
    }
  }
  if (const auto parts = LinearParts(sample, prepared)) {
    for (size_t o = 0; o < expected.size(); ++o) {
      for (int64_t i = 0; i < kNumc; ++i) {
        const double size = rounding * 10 * (1 + Largest((*parts)[i][o]));
        if (!(Apart(all.outputs[o].composition.component(i), (*parts)[i][o]) <= size)) {
          wrong("a linear operator, and component " + std::to_string(i) + " is not the operator of the component");
        }
      }
    }
    outcome.linear.insert("linear");
  }
  // A stand-in is the derivative at the value, which may well be zero where differences are not.
  if (preset == Preset::kFaithful && finite && !stand_in) {
    try {
      const auto slopes = Derivative(sample, prepared, 0, 1);
      const auto differentiated = Differentiated(sample, prepared);
      // Coefficients are means along the line. On one that ends where it started (two elements that change places),
      // what is even in them has a derivative at either end and none on the whole.
      std::vector<at::Tensor> mean;
      for (const auto& [t, weight] : {std::pair(0.1127016653792583, 5 / 18.0), std::pair(0.5, 8 / 18.0),
                                      std::pair(0.8872983346207417, 5 / 18.0)}) {
        const auto here = Derivative(sample, prepared, 0, t);
        mean.resize(here.size(), at::zeros({}, at::kDouble));
        for (size_t o = 0; o < here.size(); ++o) {
          mean[o] = mean[o].defined() && here[o].defined() ? mean[o] + here[o] * weight : at::Tensor();
        }
      }
      for (size_t o = 0; o < slopes.size(); ++o) {
        const double least = 1e-3 * (1e-3 + Largest(expected[o]));
        if (!differentiated[o] || !slopes[o].defined() || Largest(slopes[o]) < least) continue;
        if (mean[o].defined() && Largest(mean[o]) < least) continue;
        if (Largest(all.outputs[o].composition.component(0)) == 0) wrong("component 0 is lost");
      }
    } catch (const std::exception&) {
      // Steps may leave the domain: nothing to compare with.
    }
  }

  options.registry = nullptr;
  // With twice as many nodes on the same line it is less, but for what another place of a kink between them makes.
  if (preset == Preset::kFaithful && finite && !stand_in &&
      std::all_of(all.report.checks.begin(), all.report.checks.end(), LeftByQuadrature)) {
    options.policy.segments = 2;
    const OnFailure on_failure = options.policy.on_failure;
    options.policy.on_failure = OnFailure::kWarn;  // a piece may be all rounding; what is left over is judged below
    const Decomposition twice = model.Decompose(prepared.inputs, options);
    options.policy.segments = 1;
    options.policy.on_failure = on_failure;
    for (size_t o = 0; o < all.outputs.size(); ++o) {
      const double before = Largest(all.outputs[o].composition.leftover());
      const double after = Largest(twice.outputs[o].composition.leftover());
      const double least = std::max(1e-8, rounding) *
                           std::max(Largest(all.outputs[o].value), Largest(all.outputs[o].composition.reference()));
      if (before > least && after > before * 1.5) {
        wrong(absl::StrCat("two segments leave ", after, " over, one left ", before));
      }
    }
  }

  // Merging two components before is merging them after; their order does not matter.
  std::vector<std::vector<at::Tensor>> merged(prepared.components.size());
  std::vector<std::vector<at::Tensor>> turned(prepared.components.size());
  for (size_t k = 0; k < prepared.components.size(); ++k) {
    const auto& parts = prepared.components[k];
    if (parts.empty()) continue;
    merged[k] = {parts[0] + parts[1], parts[2]};
    turned[k] = {parts[2], parts[1], parts[0]};
  }
  const Decomposition fewer = model.Decompose(InputsOf(sample.inputs, prepared.references, merged), options);
  const Decomposition other = model.Decompose(InputsOf(sample.inputs, prepared.references, turned), options);
  for (size_t o = 0; o < all.outputs.size(); ++o) {
    const at::Tensor& c = all.outputs[o].composition.components();
    if (c.numel() == 0 || !at::isfinite(c).all().item<bool>()) continue;
    // Components that cancel to nothing (x over its own size) are rounding of what they were made from.
    const double noise = rounding * 0.1 * Largest(all.outputs[o].value);
    const double size = rounding * (1e-300 + Largest(c.abs().sum(0))) + noise;
    const at::Tensor sum = at::stack({c[0] + c[1], c[2]});
    const auto judge = [&](const char* what, const Decomposition& result, const at::Tensor& asked) {
      const double apart = Apart(result.outputs[o].composition.components(), asked);
      if (!(apart <= size)) wrong(absl::StrCat(what, " components changes them by ", apart, ", allowed ", size));
    };
    judge("merging", fewer, sum);
    judge("reordering", other, c.flip({0}));
  }
}

thread_local int64_t calls_seen = 0;
thread_local int64_t call_depth = 0;

struct NothingToRemember : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> BeginCall(const at::RecordFunction&) {
  calls_seen += call_depth++ == 0;
  return std::make_unique<NothingToRemember>();
}

void EndCall(const at::RecordFunction&, at::ObserverContext*) { --call_depth; }

int64_t CallsOf(const LinearMap& map, const Rows& rows) {
  calls_seen = call_depth = 0;
  const at::CallbackHandle handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(&BeginCall, &EndCall).scopes({at::RecordScope::FUNCTION}));
  map.Forward(rows);
  at::removeCallback(handle);
  return calls_seen;
}

}  // namespace

void Judge(const Sample& sample, bool random, Preset preset, Outcome& outcome) {
  const char* names[] = {"zero", "small", "large"};
  int64_t movable = 0;
  for (const at::Tensor& x : sample.inputs) movable += CanMove(x);
  for (const bool every : {true, false}) {
    if (!every && movable < 2) continue;  // the first is all
    for (const Style style : {Style::kZero, Style::kSmall, Style::kLarge}) {
      const std::string name =
          std::string(every ? "every input" : "first input") + ", reference " + names[static_cast<int>(style)];
      try {
        JudgeOne(sample, random, preset, {every, style, name}, outcome);
      } catch (const std::exception& error) {
        outcome.wrong.push_back(sample.name + ", " + name + ": " + OneLine(error.what()));
      }
    }
  }
}

std::pair<int64_t, int64_t> CountCalls(const Sample& sample, Preset preset) {
  std::pair<int64_t, int64_t> counts;
  const Registry counting = Watched([&](const std::string&, const RuleCall& call, const RuleResult& result) {
    counts.first += CallsOf(*result.map, RandomRows(call, result, 2 + 2));
    counts.second += CallsOf(*result.map, RandomRows(call, result, 64 + 2));
  });
  DecomposeOptions options;
  options.policy.preset = preset;
  options.registry = &counting;
  try {
    at::manual_seed(13);
    const Prepared prepared = Prepare(sample, {true, Style::kSmall, ""});
    at::manual_seed(7);
    TracedModel(sample.model).Decompose(prepared.inputs, options);
  } catch (const std::exception&) {
    return {0, 0};
  }
  return counts;
}

}  // namespace addend
