#include "core/explain/probe.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/explain/notes.h"
#include "core/intercept/own_operators.h"
#include "core/program/view.h"

namespace addend {
namespace {

constexpr int64_t kEvery = -2;

struct Selector {
  enum class Kind { kLogits, kCall, kOperator, kModule };
  Kind kind = Kind::kModule;
  std::string name;  // of the operator or the module
  // The number of the call; of an operator: which of its calls; of a module: which of the tensors that leave it, or
  // kEvery; -1: the only one.
  int64_t number = -1;
  int64_t run = -1;     // of a module: which of its calls, or kEvery; -1: the only one
  int64_t output = -1;  // of a call: which of its outputs; -1: the first that is floating-point
};

// "logits", "#28", "#28:1", "aten::gelu" or "aten::gelu:2"; anything else is the path of a module: "encoder",
// "encoder@1", "attention:0", "encoder@1:0", "encoder@*", "attention:*".
Selector ParseSelector(const std::string& text) {
  if (text == kLogits) return {Selector::Kind::kLogits, text};
  int64_t number = 0;
  if (absl::StartsWith(text, "#")) {
    const size_t colon = text.find(':');
    int64_t output = -1;
    const bool fits = colon == std::string::npos || (absl::SimpleAtoi(text.substr(colon + 1), &output) && output >= 0);
    if (fits && absl::SimpleAtoi(text.substr(1, colon - 1), &number)) {
      return {Selector::Kind::kCall, text, number, -1, output};
    }
  }
  if (!absl::StrContains(text, "::")) {
    Selector module{Selector::Kind::kModule, text};
    const auto cut = [&](char mark, int64_t* to) {
      const size_t place = module.name.rfind(mark);
      if (place == std::string::npos) return;
      const std::string which = module.name.substr(place + 1);
      if (which == "*") {
        number = kEvery;
      } else if (!absl::SimpleAtoi(which, &number) || number < 0) {
        return;
      }
      *to = number;
      module.name.resize(place);
    };
    cut(':', &module.number);
    cut('@', &module.run);
    return module;
  }
  const size_t colon = text.rfind(':');
  if (text[colon - 1] != ':' && absl::SimpleAtoi(text.substr(colon + 1), &number)) {
    return {Selector::Kind::kOperator, text.substr(0, colon), number};
  }
  return {Selector::Kind::kOperator, text};
}

bool IsFloating(const Operand& operand) { return operand.storage >= 0 && Continuous(operand.dtype); }

Probe FirstOutput(const TracedRun& trace, int64_t call) {
  const std::vector<Probe> probes = OutputsOf(trace, call);
  if (!probes.empty()) return probes.front();
  throw InvalidArgument(absl::StrCat("operator #", call, " (", FullName(trace.calls[call].op.schema()),
                                     ") gives no floating-point tensor to probe"));
}

// Sizes without those of 1.
std::vector<int64_t> Squeezed(const Operand& operand) {
  std::vector<int64_t> sizes;
  std::copy_if(operand.geometry.sizes.begin(), operand.geometry.sizes.end(), std::back_inserter(sizes),
               [](int64_t size) { return size != 1; });
  return sizes;
}

// Whether the operand is all elements that a call gave, in their order.
bool IsWhole(const Operand& operand, const Operand& given) {
  if (operand.SameLayout(given)) return true;
  const auto dense = [](const Operand& own) {
    int64_t stride = 1;
    for (size_t d = own.geometry.sizes.size(); d-- > 0;) {
      if (own.geometry.sizes[d] != 1 && own.geometry.strides[d] != stride) return false;
      stride *= own.geometry.sizes[d];
    }
    return true;
  };
  return operand.dtype == given.dtype && operand.geometry.offset == given.geometry.offset && dense(operand) &&
         dense(given) && Squeezed(operand) == Squeezed(given);
}

// Kinds of operators, by what they make of a score.
enum class ToScore {
  kProbability,  // it reads scores and gives probabilities, or their logarithms
  kScaling,      // the same numbers in another dtype, range or scale, where it reads rows in one place only
  kSquashing,    // the same, but of logarithms or probabilities only: of a score it makes none
  kNothing,      // what it gives is neither a score nor a probability that comes from one
  kMixing,       // it gives scores of its own, whatever it reads: products with weights
  kOther,        // elements of what it reads, in other places, or several of them in one
};

ToScore ToScoreOf(const std::string& rule_name) {
  static const auto& known = *[] {
    auto* all = new absl::flat_hash_map<std::string, ToScore>();
    const auto add = [&](ToScore to_score, std::initializer_list<const char*> names) {
      for (const char* name : names) all->emplace(std::string("aten::") + name, to_score);
    };
    add(ToScore::kProbability, {"_log_softmax", "_safe_softmax", "_softmax", "hardsigmoid", "log_sigmoid",
                                "log_sigmoid_forward", "log_softmax", "sigmoid", "softmax"});
    add(ToScore::kScaling,
        {"_reshape_copy", "_to_copy",   "_unsafe_view", "add", "clamp",          "clamp_max", "clamp_min",
         "clone",         "contiguous", "copy",         "div", "maximum",        "minimum",   "mul",
         "nan_to_num",    "neg",        "rsub",         "sub", "unsqueeze_copy", "view_copy"});
    add(ToScore::kSquashing, {"exp", "log", "log1p", "log2", "log10", "sqrt"});
    add(ToScore::kNothing, {"atan",
                            "binary_cross_entropy",
                            "binary_cross_entropy_with_logits",
                            "cos",
                            "cross_entropy_loss",
                            "erf",
                            "exp2",
                            "expm1",
                            "hardtanh",
                            "huber_loss",
                            "kl_div",
                            "l1_loss",
                            "logsumexp",
                            "mse_loss",
                            "nll_loss",
                            "nll_loss2d",
                            "nll_loss2d_forward",
                            "nll_loss_forward",
                            "nll_loss_nd",
                            "pow",
                            "reciprocal",
                            "sin",
                            "smooth_l1_loss",
                            "softplus",
                            "tanh"});
    add(ToScore::kMixing, {"_convolution",
                           "_embedding_bag",
                           "_native_multi_head_attention",
                           "_scaled_dot_product_flash_attention",
                           "_scaled_dot_product_flash_attention_for_cpu",
                           "addbmm",
                           "addmm",
                           "addmv",
                           "baddbmm",
                           "bilinear",
                           "bmm",
                           "conv1d",
                           "conv2d",
                           "conv3d",
                           "conv_transpose1d",
                           "conv_transpose2d",
                           "conv_transpose3d",
                           "convolution",
                           "cudnn_convolution",
                           "dot",
                           "embedding",
                           "embedding_bag",
                           "gru",
                           "linear",
                           "lstm",
                           "matmul",
                           "mkldnn_convolution",
                           "mm",
                           "mv",
                           "rnn_relu",
                           "rnn_tanh",
                           "scaled_dot_product_attention"});
    all->emplace(kAttention, ToScore::kMixing);
    return all;
  }();
  const auto found = known.find(rule_name);
  return found == known.end() ? ToScore::kOther : found->second;
}

// The storages that the model is given. Where nobody told which they are, as of live models of which nothing is split,
// all that come from outside and are no parameters or buffers.
std::vector<bool> GivenStorages(const TracedRun& trace) {
  const std::vector<StorageInfo>& storages = trace.storages;
  std::vector<bool> outside(storages.size(), true);
  for (const Call& call : trace.calls) {
    for (const Operand& output : call.outputs) {
      if (output.storage >= 0 && !output.written && !call.is_view) outside[output.storage] = false;
    }
  }
  std::vector<bool> given(storages.size());
  for (size_t s = 0; s < storages.size(); ++s) given[s] = outside[s] && storages[s].inner;
  if (std::find(given.begin(), given.end(), true) != given.end()) return given;
  for (size_t s = 0; s < storages.size(); ++s) given[s] = outside[s] && storages[s].name.empty();
  return given;
}

// The storages that depend on what the model is given. Where something is split, those that carry parts of it.
std::vector<bool> MovingStorages(const TracedRun& trace) {
  const std::vector<Call>& calls = trace.calls;
  std::vector<bool> moving(trace.storages.size());
  for (const Call& call : calls) {
    for (const Operand& operand : call.operands) {
      if (operand.decomposed) moving[operand.storage] = true;
    }
    for (const Operand& output : call.outputs) {
      if (output.decomposed) moving[output.storage] = true;
    }
  }
  if (std::find(moving.begin(), moving.end(), true) != moving.end()) return moving;
  const std::vector<bool> given = GivenStorages(trace);
  for (const Call& call : calls) {
    bool moves = false;
    for (const Operand& operand : call.operands) {
      if (operand.storage < 0) continue;
      if (given[operand.storage]) moving[operand.storage] = true;
      moves = moves || moving[operand.storage];
    }
    for (const Operand& output : call.outputs) {
      if (output.storage < 0) continue;
      if (moves) moving[output.storage] = true;
    }
  }
  return moving;
}

// Finds what the last softmax or sigmoid reads, through casts, clamps and scaling. A softmax that is met in any other
// way is no answer, and neither is the output then.
class ScoreSearch {
 public:
  explicit ScoreSearch(const TracedRun& trace)
      : trace_(trace), calls_(trace.calls), moving_(MovingStorages(trace)), met_(calls_.size()) {}

  // The output itself where it comes from no probability, and is no other squashed number.
  Probe Find(const Probe& output) {
    Follow(output.operand, /*whole=*/true);
    const bool fits = scores_ && whole_ && Squeezed(scores_->operand) == Squeezed(output.operand);
    if (fits) return *scores_;
    if (!scores_ && !squashed_) return output;
    throw InvalidArgument(
        scores_
            ? "the output has parts of what a softmax or sigmoid gives, or turns it, so that its elements are not "
              "those of the scores; name the operator or the module that gives the scores"
            : "no softmax or sigmoid gives the output, and it is no score either; name the operator or the module that "
              "gives the scores");
  }

 private:
  // whole: all elements on the way are those of the output, in their order, and what is large stays large.
  void Follow(const Operand& operand, bool whole) {
    for (int64_t c = static_cast<int64_t>(calls_.size()) - 1; c >= 0; --c) {
      const Call& call = calls_[c];
      if (call.is_view) continue;
      for (const Operand& given : call.outputs) {
        if (given.storage != operand.storage || given.version > operand.version) continue;
        const bool all = IsWhole(operand, given);
        FollowCall(c, whole && all);
        // A part that was written, or a part of what was: others wrote the rest, or may have.
        if (all || !given.written) return;
        break;
      }
    }
  }

  void FollowCall(int64_t c, bool whole) {
    if (met_[c]) return;
    met_[c] = true;
    const Call& call = calls_[c];
    const std::string name = RuleName(call.op.schema().name());
    const ToScore to_score = ToScoreOf(name);
    if (to_score == ToScore::kMixing) return;
    std::vector<const Operand*> read;
    for (const Operand& own : call.operands) {
      const bool moves = own.storage >= 0 && moving_[own.storage] && at::isFloatingType(own.dtype);
      if (moves && !(own.written && name == "aten::copy")) read.push_back(&own);
    }
    if (to_score == ToScore::kProbability && !read.empty()) {
      whole_ = !scores_ && whole;
      scores_ = Probe{c - 1, *read[0]};
      return;
    }
    squashed_ = squashed_ || to_score == ToScore::kNothing || to_score == ToScore::kSquashing ||
                (name == "aten::div" && read.size() > 1);
    if (to_score == ToScore::kNothing) return;
    const bool same = to_score != ToScore::kOther && read.size() == 1 && !Turns(call, name, *read[0]);
    for (const Operand* own : read) Follow(*own, whole && same);
  }

  // Whether what is large in the operand is small, or may be, in what the call gives.
  bool Turns(const Call& call, const std::string& name, const Operand& score) const {
    if (name == "aten::neg" || name == "aten::rsub" || name == "aten::sub") return true;
    const bool first = score.argument == 0;
    // add(self, other, *, alpha): alpha is of the other.
    if (name == "aten::add") return !first && call.arguments.size() > 2 && IsNegative(call.arguments[2]);
    if (name != "aten::mul" && name != "aten::div") return false;
    if (name == "aten::div" && !first) return true;
    if (std::any_of(call.arguments.begin(), call.arguments.end(), IsNegative)) return true;
    return std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand& operand) {
      if (operand.storage < 0 || &operand == &score || moving_[operand.storage]) return false;
      const at::Tensor value = trace_.At(operand).value.defined() ? trace_.Value(operand) : at::Tensor();
      return value.defined() && !value.is_complex() && value.lt(0).any().item<bool>();
    });
  }

  static bool IsNegative(const c10::IValue& argument) {
    return argument.isScalar() && !argument.toScalar().isComplex() && argument.toScalar().toDouble() < 0;
  }

  const TracedRun& trace_;
  const std::vector<Call>& calls_;
  const std::vector<bool> moving_;  // by storage
  std::vector<bool> met_;           // by call
  std::optional<Probe> scores_;
  bool whole_ = false;
  bool squashed_ = false;  // by exp and the like, which alone make no score
};

Probe FindLogits(const TracedRun& trace, const Probe& output) { return ScoreSearch(trace).Find(output); }

Probe FindCall(const TracedRun& trace, const Selector& selector) {
  const auto calls = static_cast<int64_t>(trace.calls.size());
  if (selector.number < 0 || selector.number >= calls) {
    throw InvalidArgument(absl::StrCat("there is no operator ", selector.name, "; the model calls ", calls,
                                       " operators, counted from #0"));
  }
  if (selector.output < 0) return FirstOutput(trace, selector.number);
  const Call& call = trace.calls[selector.number];
  const auto outputs = static_cast<int64_t>(call.outputs.size());
  if (selector.output >= outputs || !IsFloating(call.outputs[selector.output])) {
    throw InvalidArgument(absl::StrCat(selector.name, " is no floating-point tensor; operator #", selector.number, " (",
                                       FullName(call.op.schema()), ") gives ", outputs,
                                       outputs == 1 ? " tensor" : " tensors", ", counted from 0"));
  }
  return {selector.number, call.outputs[selector.output]};
}

Probe FindOperator(const TracedRun& trace, const Selector& selector) {
  const std::string& name = selector.name;
  std::vector<int64_t> found;
  for (size_t c = 0; c < trace.calls.size(); ++c) {
    const auto& schema = trace.calls[c].AsMade().op.schema();
    if (schema.name() == name || FullName(schema) == name || RuleName(schema.name()) == name) {
      found.push_back(static_cast<int64_t>(c));
    }
  }
  if (found.empty()) throw InvalidArgument(absl::StrCat("the model does not call ", name));
  if (selector.number < 0 && found.size() > 1) {
    throw InvalidArgument(absl::StrCat("the model calls ", name, " ", found.size(), " times; say which, from ", name,
                                       ":0 to ", name, ":", found.size() - 1));
  }
  if (selector.number >= static_cast<int64_t>(found.size())) {
    throw InvalidArgument(absl::StrCat("the model calls ", name, " only ", found.size(), " times"));
  }
  return FirstOutput(trace, found[std::max<int64_t>(selector.number, 0)]);
}

// "encoder, encoder.0, ...": some of the modules that run.
std::string SomeModules(const std::vector<Call>& calls) {
  std::vector<std::string> known;
  for (const Call& call : calls) {
    const std::string& path = call.position.module_path;
    if (!path.empty() && (known.empty() || known.back() != path)) known.push_back(path);
  }
  if (known.size() > 8) {
    known.resize(8);
    known.emplace_back("...");
  }
  return absl::StrJoin(known, ", ");
}

// The calls of one run of a module: from `first` to before `end`.
struct ModuleRun {
  size_t first = 0;
  size_t end = 0;
};

// How many calls the model made before it returned its outputs: what comes behind is no part of it, such as what puts
// back buffers.
size_t CallsOfModel(const TracedRun& trace, const std::vector<Probe>& outputs) {
  int64_t last = -1;
  for (const Probe& output : outputs) last = std::max(last, output.after_call);
  return outputs.empty() ? trace.calls.size() : static_cast<size_t>(last + 1);
}

// The runs of the module, one for each chain of operators inside it, among the first `count` calls.
std::vector<ModuleRun> RunsOf(const std::vector<Call>& calls, size_t count, const std::string& name) {
  std::vector<ModuleRun> runs;
  for (size_t c = 0; c < count; ++c) {
    const std::string& path = calls[c].position.module_path;
    if (path != name && !absl::StartsWith(path, name + ".")) continue;
    // A module that begins again with the parameters that it began with is called again, or repeats itself.
    const auto begins_again = [&](const Call& first) {
      return first.position.module_path == name && path == name && !first.position.parameters.empty() &&
             first.position.parameters == calls[c].position.parameters &&
             first.op.schema().name() == calls[c].op.schema().name();
    };
    if (runs.empty() || runs.back().end != c || begins_again(calls[runs.back().first])) runs.push_back({c, c});
    runs.back().end = c + 1;
  }
  return runs;
}

// Who reads the tensors of a model, found once for all of its modules.
struct Reading {
  size_t call = 0;  // the number of calls of the model where the model returns it
  const Operand* operand = nullptr;
};
struct Readings {
  size_t calls = 0;                                           // of the model, see CallsOfModel
  absl::flat_hash_map<int, std::vector<Reading>> by_storage;  // in the order of the calls
};

Readings ReadingsOf(const TracedRun& trace, const std::vector<Probe>& outputs) {
  const std::vector<Call>& calls = trace.calls;
  Readings readings;
  readings.calls = CallsOfModel(trace, outputs);
  for (size_t c = 0; c < readings.calls; ++c) {
    for (const Operand& operand : calls[c].operands) readings.by_storage[operand.storage].push_back({c, &operand});
  }
  for (const Probe& output : outputs) {
    readings.by_storage[output.operand.storage].push_back({readings.calls, &output.operand});
  }
  return readings;
}

// Whether somebody reads the tensor behind the call number `end`, or the model returns it.
bool IsReadBehind(const Readings& readings, const Probe& probe, size_t end) {
  const auto readers = readings.by_storage.find(probe.operand.storage);
  return readers != readings.by_storage.end() &&
         std::any_of(readers->second.rbegin(), readers->second.rend(), [&](const Reading& reading) {
           return reading.call >= end && reading.operand->version == probe.operand.version &&
                  reading.operand->SamePlace(probe.operand);
         });
}

// The tensors that leave a run of a module: those that it gives, and that others read behind it or the model returns.
// In the order in which they were made, each once. Where nobody reads any, what its last operator gives.
std::vector<Probe> LeavingOf(const TracedRun& trace, const ModuleRun& run, const Readings& readings) {
  std::vector<Probe> leaving;
  std::vector<Probe> last;
  for (size_t c = run.first; c < run.end; ++c) {
    const std::vector<Probe> given = OutputsOf(trace, static_cast<int64_t>(c));
    if (!given.empty()) last = given;
    for (const Probe& probe : given) {
      const bool known =
          std::any_of(leaving.begin(), leaving.end(), [&](const Probe& other) { return SameTensor(other, probe); });
      if (!known && IsReadBehind(readings, probe, run.end)) leaving.push_back(probe);
    }
  }
  if (leaving.empty() && !last.empty()) leaving.push_back(last.front());
  return leaving;
}

// "aten::add (op #7) gives f32[2, 3]".
std::string DescribeProbe(const TracedRun& trace, const Probe& probe) {
  const std::optional<Giver> giver = GiverOf(trace, probe);
  const std::string tensor =
      absl::StrCat(DtypeName(probe.operand.dtype), ShapeText(at::IntArrayRef(probe.operand.geometry.sizes)));
  if (!giver) return absl::StrCat(tensor, ", which the model is given");
  return absl::StrCat(FirstPositions({trace.calls[giver->call].position}), " gives ", tensor);
}

// A tensor that left a module.
struct Leaving {
  std::optional<int64_t> number;  // its place among what the module returned; none: nobody knows
  Probe probe;
  bool read = true;  // by others, behind the module
};

// The numbers of tensors that left a module of which nobody told what it returned. Where they are the outputs of one
// operator of the module's own, as of recurrent layers, they are taken to be returned in its order.
std::vector<Leaving> Numbered(const TracedRun& trace, const std::string& name, const std::vector<Probe>& given) {
  std::vector<Leaving> leaving;
  std::optional<size_t> only;
  bool one_operator = true;
  for (const Probe& probe : given) {
    const std::optional<Giver> giver = GiverOf(trace, probe);
    one_operator = one_operator && giver && only.value_or(giver->call) == giver->call &&
                   trace.calls[giver->call].position.module_path == name;
    if (giver) only = giver->call;
    leaving.push_back({std::nullopt, probe});
    if (giver) leaving.back().number = static_cast<int64_t>(giver->output);
  }
  for (Leaving& one : leaving) {
    if (!one_operator) one.number.reset();
  }
  return leaving;
}

// The floating-point tensors that left the module, by its calls. What somebody told is so; a run in which nobody told
// anything leaves it to the operators.
std::vector<std::vector<Leaving>> LeavingOfEach(const TracedRun& trace, const std::string& name,
                                                const Readings& readings) {
  std::vector<std::vector<Leaving>> runs;
  for (const ModuleReturn& returned : trace.returns) {
    if (returned.module_path != name) continue;
    std::vector<Leaving>& leaving = runs.emplace_back();
    for (size_t k = 0; k < returned.tensors.size(); ++k) {
      const Operand& tensor = returned.tensors[k];
      if (!IsFloating(tensor)) continue;
      const Probe probe{returned.end - 1, tensor};
      // A tensor that was told twice has no number: a file tells so of the only one that it kept of several.
      const auto known = std::find_if(leaving.begin(), leaving.end(),
                                      [&](const Leaving& other) { return SameTensor(other.probe, probe); });
      if (known != leaving.end()) {
        known->number.reset();
        continue;
      }
      leaving.push_back({static_cast<int64_t>(k), probe, IsReadBehind(readings, probe, returned.end)});
    }
  }
  // A module that is not told, where others are, was not called, or nobody knows what it returned.
  if (!trace.returns.empty()) return runs;
  for (const ModuleRun& run : RunsOf(trace.calls, readings.calls, name)) {
    runs.push_back(Numbered(trace, name, LeavingOf(trace, run, readings)));
  }
  return runs;
}

struct NamedProbe {
  std::string selector;
  Probe probe;
};

// "#28", "#28:1": the selector of what operators gave, as LeavingOf() finds it.
std::string OperatorOf(const TracedRun& trace, const Probe& probe) {
  const Giver giver = GiverOf(trace, probe).value_or(Giver{static_cast<size_t>(probe.after_call), 0});
  const bool several = trace.calls[giver.call].outputs.size() > 1;
  return absl::StrCat("#", giver.call, several ? absl::StrCat(":", giver.output) : "");
}

// The tensors that left a call of a module, `name`, each with the selector that chooses it alone: of a tensor whose
// number nobody knows that of the operator which gave it.
std::vector<NamedProbe> SpelledIn(const TracedRun& trace, const std::string& name,
                                  const std::vector<Leaving>& leaving) {
  std::vector<NamedProbe> spelled;
  // The bare name would mean a result of the model.
  const bool taken = name == kLogits || name == "output" || absl::StartsWith(name, "output.");
  for (const Leaving& one : leaving) {
    std::string selector = taken ? absl::StrCat(name, "@0") : name;
    if (leaving.size() > 1 && one.number) {
      absl::StrAppend(&selector, ":", *one.number);
    } else if (leaving.size() > 1) {
      selector = OperatorOf(trace, one.probe);
    }
    spelled.push_back({std::move(selector), one.probe});
  }
  return spelled;
}

// "encoder@0 (aten::tanh (op #1) gives f32[2, 3]), encoder@1 (...)".
std::string Spellings(const TracedRun& trace, const std::vector<NamedProbe>& fit) {
  std::vector<std::string> spellings;
  for (const NamedProbe& one : fit) {
    spellings.push_back(absl::StrCat(one.selector, " (", DescribeProbe(trace, one.probe), ")"));
  }
  constexpr size_t kShown = 8;
  const std::string more = spellings.size() > kShown ? absl::StrCat(" and ", spellings.size() - kShown, " more") : "";
  spellings.resize(std::min(spellings.size(), kShown));
  return absl::StrCat(absl::StrJoin(spellings, ", "), more);
}

// The tensors that operators of a module gave and others read behind it, each with the operator's selector.
std::vector<NamedProbe> GivenInside(const TracedRun& trace, const std::string& name, const Readings& readings) {
  std::vector<NamedProbe> given;
  for (const ModuleRun& run : RunsOf(trace.calls, readings.calls, name)) {
    for (const Probe& probe : LeavingOf(trace, run, readings)) given.push_back({OperatorOf(trace, probe), probe});
  }
  return given;
}

// The tensors that left a module and that the selector leaves open, at least one, each with the selector that chooses
// it alone.
std::vector<NamedProbe> FindInModule(const TracedRun& trace, const Selector& selector, const Readings& readings) {
  const std::vector<Call>& calls = trace.calls;
  const std::vector<std::vector<Leaving>> runs = LeavingOfEach(trace, selector.name, readings);
  const auto given = [&] { return GivenInside(trace, selector.name, readings); };
  if (runs.empty() && given().empty()) {
    throw InvalidArgument(absl::StrCat("nothing inside the model is called ", selector.name, "; choose a module path (",
                                       SomeModules(calls), "), an operator (#0 to #",
                                       static_cast<int64_t>(calls.size()) - 1, ", aten::name) or logits"));
  }
  const auto count = static_cast<int64_t>(runs.size());
  if (count > 0 && selector.run >= count) {
    throw InvalidArgument(
        absl::StrCat(selector.name, " is called ", count, count == 1 ? " time" : " times", ", counted from 0"));
  }
  std::vector<NamedProbe> fit;
  for (int64_t r = 0; r < count; ++r) {
    if (selector.run >= 0 && selector.run != r) continue;
    const std::string name = count == 1 ? selector.name : absl::StrCat(selector.name, "@", r);
    std::vector<Leaving> own = runs[r];
    const auto keep = [&](const auto& wanted) {
      own.erase(std::remove_if(own.begin(), own.end(), [&](const Leaving& one) { return !wanted(one); }), own.end());
    };
    const auto is_read = [](const Leaving& one) { return one.read; };
    if (selector.number >= 0) {
      if (std::any_of(own.begin(), own.end(), [](const Leaving& one) { return !one.number; })) {
        throw InvalidArgument(absl::StrCat("the order in which ", selector.name,
                                           " returns its tensors is not known; name one without that number: ",
                                           Spellings(trace, SpelledIn(trace, name, own))));
      }
      keep([&](const Leaving& one) { return one.number == selector.number; });
    }
    // Leave out tensors that nobody reads, unless the selector has a number.
    const bool open = selector.number == -1;
    if (open && std::any_of(own.begin(), own.end(), is_read)) keep(is_read);
    std::vector<NamedProbe> spelled = SpelledIn(trace, name, own);
    // A number that was given stays, unless the module gives one tensor only.
    if (!open && own.size() == 1 && runs[r].size() > 1) spelled[0].selector = absl::StrCat(name, ":", *own[0].number);
    std::move(spelled.begin(), spelled.end(), std::back_inserter(fit));
  }
  if (!fit.empty()) return fit;
  const std::string operators = Spellings(trace, given());
  throw InvalidArgument(absl::StrCat(
      "no floating-point tensor ", selector.number < 0 ? "" : absl::StrCat("number ", selector.number, " "),
      "is known to leave ", selector.name, operators.empty() ? "" : absl::StrCat("; its operators give ", operators)));
}

// "encoder gives several tensors; name one: encoder@0 (...), encoder@1 (...)".
std::string SeveralText(const TracedRun& trace, const std::string& name, const std::vector<NamedProbe>& fit) {
  return absl::StrCat(name, " gives several tensors; name one: ", Spellings(trace, fit));
}

// The only tensor that left a module when it was called, or the one that the selector chooses.
Probe FindModule(const TracedRun& trace, const Selector& selector, const std::vector<Probe>& outputs) {
  const Readings readings = ReadingsOf(trace, outputs);
  const std::vector<NamedProbe> fit = FindInModule(trace, selector, readings);
  // A bare name stays open where only one of several calls gave a tensor.
  const bool open = selector.run == -1 && LeavingOfEach(trace, selector.name, readings).size() > 1;
  if (fit.size() == 1 && !open) return fit[0].probe;
  throw InvalidArgument(SeveralText(trace, selector.name, fit));
}

// The modules that run, each behind those that hold it.
std::vector<std::string> ModulesOf(const TracedCalls& traced) {
  std::vector<std::string> modules;
  absl::flat_hash_set<std::string> known;
  for (const Call& call : traced.calls) {
    const std::string& path = call.position.module_path;
    for (size_t dot = 0; dot != std::string::npos && !path.empty();) {
      dot = path.find('.', dot + 1);
      if (known.insert(path.substr(0, dot)).second) modules.push_back(path.substr(0, dot));
    }
  }
  for (const ModuleReturn& returned : traced.returns) {
    const std::string& path = returned.module_path;
    if (!path.empty() && known.insert(path).second) modules.push_back(path);
  }
  return modules;
}

// Whether both are all elements of one tensor, in whatever shape.
bool SameElements(const Probe& a, const Probe& b) {
  return a.operand.storage == b.operand.storage && a.operand.version == b.operand.version &&
         a.operand.geometry.numel() == b.operand.geometry.numel();
}

}  // namespace

std::optional<Giver> GiverOf(const TracedRun& trace, const Probe& probe) {
  for (int64_t c = probe.after_call; c >= 0; --c) {
    const Call& call = trace.calls[c];
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      const Operand& output = call.outputs[k];
      if (output.SamePlace(probe.operand) && output.version == probe.operand.version) {
        return Giver{static_cast<size_t>(c), k};
      }
    }
  }
  return std::nullopt;
}

bool SameTensor(const Probe& a, const Probe& b) {
  return a.operand.SamePlace(b.operand) && a.operand.version == b.operand.version;
}

Probe FindProbe(const TracedRun& trace, const std::string& selector, const std::vector<Probe>& chosen,
                const std::vector<Probe>& outputs) {
  const Selector parsed = ParseSelector(selector);
  switch (parsed.kind) {
    case Selector::Kind::kLogits:
      return FindLogits(trace, chosen.at(0));
    case Selector::Kind::kCall:
      return FindCall(trace, parsed);
    case Selector::Kind::kOperator:
      return FindOperator(trace, parsed);
    case Selector::Kind::kModule:
      return FindModule(trace, parsed, outputs);
  }
  return chosen.at(0);
}

bool IsUntold(const TracedRun& trace, const std::string& selector) {
  return trace.returns.empty() && ParseSelector(selector).kind == Selector::Kind::kModule;
}

ReadBeside ReadBesideModule(const TracedRun& trace, const std::string& selector, const Probe& probe) {
  const Selector parsed = ParseSelector(selector);
  const std::vector<Call>& calls = trace.calls;
  const Operand& tensor = probe.operand;
  const auto is_it = [&](const Operand& other) { return other.SamePlace(tensor) && other.version == tensor.version; };
  const auto returned = std::find_if(trace.returns.begin(), trace.returns.end(), [&](const auto& own) {
    return parsed.kind == Selector::Kind::kModule && own.module_path == parsed.name &&
           std::any_of(own.tensors.begin(), own.tensors.end(), is_it);
  });
  if (returned == trace.returns.end()) return {};
  const auto is_within = [&](const Call& call) {
    const std::string& path = call.position.module_path;
    return path == parsed.name || absl::StartsWith(path, absl::StrCat(parsed.name, "."));
  };
  const auto in_its_memory = [&](const Operand& other) { return other.storage == tensor.storage; };
  const auto maker = std::find_if(calls.begin(), calls.end(), [&](const Call& call) {
    return std::any_of(call.outputs.begin(), call.outputs.end(), in_its_memory) &&
           std::none_of(call.operands.begin(), call.operands.end(), in_its_memory);
  });
  ReadBeside found;
  found.given = maker == calls.end() || !is_within(*maker);
  for (size_t c = 0; c < calls.size(); ++c) {
    const Call& call = calls[c];
    const bool reads = std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand& other) {
      return in_its_memory(other) && other.version == tensor.version;
    });
    // An operator that gives nothing but views of it reads none of its numbers.
    const bool views = std::all_of(call.outputs.begin(), call.outputs.end(), in_its_memory);
    const bool beside = found.given ? !is_within(call) : static_cast<int64_t>(c) < returned->end;
    if (reads && !views && beside) found.readers.push_back(call.position);
  }
  if (found.given && found.readers.size() == 1) found.readers.clear();
  return found;
}

bool RunsModule(const TracedRun& trace, const std::string& path) {
  const std::vector<std::string> modules = ModulesOf(trace);
  return std::find(modules.begin(), modules.end(), path) != modules.end();
}

std::vector<std::string> EachOf(const TracedRun& trace, const std::string& selector,
                                const std::vector<Probe>& outputs) {
  const Selector parsed = ParseSelector(selector);
  if (parsed.run != kEvery && parsed.number != kEvery) return {selector};
  std::vector<std::string> selectors;
  for (NamedProbe& one : FindInModule(trace, parsed, ReadingsOf(trace, outputs))) {
    selectors.push_back(std::move(one.selector));
  }
  return selectors;
}

bool GivesAnother(const TracedRun& trace, const std::string& path, const Probe& output,
                  const std::vector<Probe>& outputs) {
  if (!RunsModule(trace, path)) return false;
  try {
    const std::vector<NamedProbe> fit =
        FindInModule(trace, {Selector::Kind::kModule, path}, ReadingsOf(trace, outputs));
    return std::any_of(fit.begin(), fit.end(), [&](const NamedProbe& one) { return !SameElements(one.probe, output); });
  } catch (const Error&) {
    return false;  // it gives no numbers
  }
}

std::vector<std::string> ModulesOfSeveral(const TracedRun& trace, const std::vector<Probe>& outputs) {
  const Readings readings = ReadingsOf(trace, outputs);
  std::vector<std::string> texts;
  for (const std::string& name : ModulesOf(trace)) {
    std::vector<NamedProbe> fit;
    try {
      fit = FindInModule(trace, {Selector::Kind::kModule, name}, readings);
    } catch (const Error&) {
      continue;  // it gives no numbers
    }
    if (fit.size() > 1) texts.push_back(SeveralText(trace, name, fit));
  }
  return texts;
}

void RequireReached(const TracedRun& trace, const std::string& selector, const Probe& probe) {
  if (probe.operand.storage < 0) return;
  const std::vector<Version>& versions = trace.versions[probe.operand.storage];
  const bool kept = std::any_of(versions.begin(), versions.end(),
                                [&](const Version& one) { return one.version == probe.operand.version; });
  if (kept) return;
  throw InvalidArgument(absl::StrCat(selector, " does not depend on what is split, so that it has no components"));
}

}  // namespace addend
