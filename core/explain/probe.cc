#include "core/explain/probe.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/linearize/view.h"

namespace addend {
namespace {

struct Selector {
  enum class Kind { kLogits, kCall, kOperator, kModule };
  Kind kind = Kind::kModule;
  std::string name;     // of the operator or the module
  int64_t number = -1;  // of the call; of an operator: which of its calls, -1: the only one
};

// "logits", "#28", "aten::gelu" or "aten::gelu:2"; anything else is the path of a module.
Selector ParseSelector(const std::string& text) {
  if (text == kLogits) return {Selector::Kind::kLogits, text};
  int64_t number = 0;
  if (absl::StartsWith(text, "#") && absl::SimpleAtoi(text.substr(1), &number)) {
    return {Selector::Kind::kCall, text, number};
  }
  if (!absl::StrContains(text, "::")) return {Selector::Kind::kModule, text};
  const size_t colon = text.rfind(':');
  if (text[colon - 1] != ':' && absl::SimpleAtoi(text.substr(colon + 1), &number)) {
    return {Selector::Kind::kOperator, text.substr(0, colon), number};
  }
  return {Selector::Kind::kOperator, text};
}

Probe FirstOutput(const TracedRun& trace, int64_t call) {
  const std::vector<Probe> probes = OutputsOf(trace, call);
  if (!probes.empty()) return probes.front();
  throw InvalidArgument(absl::StrCat("operator #", call, " (", FullName(trace.program.calls[call].op.schema()),
                                     ") gives no floating-point tensor to probe"));
}

// What a final softmax reads; the output itself where there is none.
Probe FindLogits(const TracedRun& trace, const Probe& output) {
  const std::vector<Call>& calls = trace.program.calls;
  // The output may be a view of what softmax gave: what counts is which call wrote its storage last.
  for (int64_t c = static_cast<int64_t>(calls.size()) - 1; c >= 0; --c) {
    const Call& call = calls[c];
    if (call.is_view || call.outputs.empty() || call.outputs[0].storage != output.operand.storage) continue;
    const std::string name = RuleName(call.op.schema().name());
    const bool softmax = name == "aten::softmax" || name == "aten::_softmax" || name == "aten::log_softmax" ||
                         name == "aten::_log_softmax";
    return softmax ? Probe{c - 1, call.operands[0]} : output;
  }
  return output;
}

Probe FindCall(const TracedRun& trace, const Selector& selector) {
  const auto calls = static_cast<int64_t>(trace.program.calls.size());
  if (selector.number < 0 || selector.number >= calls) {
    throw InvalidArgument(absl::StrCat("there is no operator ", selector.name, "; the model calls ", calls,
                                       " operators, counted from #0"));
  }
  return FirstOutput(trace, selector.number);
}

Probe FindOperator(const TracedRun& trace, const Selector& selector) {
  const std::string& name = selector.name;
  std::vector<int64_t> found;
  for (size_t c = 0; c < trace.program.calls.size(); ++c) {
    const auto& schema = trace.program.calls[c].AsMade().op.schema();
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

// What the module, or one inside it, gave when it was called last.
Probe FindModule(const TracedRun& trace, const Selector& selector) {
  const std::vector<Call>& calls = trace.program.calls;
  for (int64_t c = static_cast<int64_t>(calls.size()) - 1; c >= 0; --c) {
    const std::string& path = calls[c].position.module_path;
    if (path != selector.name && !absl::StartsWith(path, selector.name + ".")) continue;
    const std::vector<Probe> probes = OutputsOf(trace, c);
    if (!probes.empty()) return probes.front();
  }
  throw InvalidArgument(absl::StrCat("nothing inside the model is called ", selector.name, "; choose a module path (",
                                     SomeModules(calls), "), an operator (#0 to #",
                                     static_cast<int64_t>(calls.size()) - 1, ", aten::name) or logits"));
}

}  // namespace

bool SameTensor(const Probe& a, const Probe& b) {
  return a.operand.SamePlace(b.operand) && a.operand.version == b.operand.version;
}

Probe FindProbe(const TracedRun& trace, const std::string& selector, const Probe& output) {
  const Selector parsed = ParseSelector(selector);
  switch (parsed.kind) {
    case Selector::Kind::kLogits:
      return FindLogits(trace, output);
    case Selector::Kind::kCall:
      return FindCall(trace, parsed);
    case Selector::Kind::kOperator:
      return FindOperator(trace, parsed);
    case Selector::Kind::kModule:
      return FindModule(trace, parsed);
  }
  return output;
}

void RequireReached(const TracedRun& trace, const std::string& selector, const Probe& probe) {
  if (probe.operand.storage < 0) return;
  const std::vector<Kept>& versions = trace.storages[probe.operand.storage];
  const bool kept = std::any_of(versions.begin(), versions.end(),
                                [&](const Kept& one) { return one.version == probe.operand.version; });
  if (kept) return;
  throw InvalidArgument(absl::StrCat(selector, " does not depend on what is split, so that it has no components"));
}

}  // namespace addend
