// Logs of decisions: verifies and shows them.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/audit/canonical_json.h"
#include "core/audit/chain.h"
#include "core/audit/verify_log.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "tools/addend/commands.h"
#include "tools/addend/describe.h"
#include "tools/addend/files.h"
#include "tools/addend/input_file.h"
#include "tools/addend/inputs.h"
#include "tools/addend/progress.h"
#include "tools/addend/text.h"

namespace addend::cli {
namespace {

// How many records are told of one by one.
constexpr size_t kMostTold = 20;
constexpr int kLabel = 11;

std::string Labelled(const std::string& label, const std::string& text, const Terminal& terminal) {
  return Hanging(PadRight(label, kLabel), text, terminal);
}

std::string TextOf(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

std::string ChainText(const Json& found) {
  const size_t problems = found["problems"].size();
  if (problems == 0) return "whole: every bit is as it was written";
  return absl::StrCat(Plural(problems, "problem"), ", named below");
}

std::string LogText(const std::string& path, const Json& found) {
  const int64_t bytes = found["bytes"].get<int64_t>();
  std::string text = absl::StrCat(path, ", ", Plural(static_cast<size_t>(bytes), "byte"), ", ",
                                  Plural(found["records"].get<size_t>(), "record"));
  if (!found["first_time"].is_null()) {
    absl::StrAppend(&text, " from ", TextOf(found["first_time"]), " to ", TextOf(found["last_time"]));
  }
  if (found["in_use"].get<bool>()) absl::StrAppend(&text, "; somebody writes to it now");
  return text;
}

std::string ComputedText(const Json& computed, const Terminal& terminal) {
  std::string how = absl::StrCat(computed["chosen"].dump(), " of ", Plural(computed["of"].get<size_t>(), "record"),
                                 " of the given models");
  if (!computed["seed"].is_null()) absl::StrAppend(&how, ", drawn with seed ", computed["seed"].dump());
  absl::StrAppend(&how, ": ", computed["same"].dump(), " with the same bits, ", computed["different"].dump(),
                  " different, ", computed["not_computed"].dump(), " not computed");
  std::string text = Labelled("Computed", how, terminal);
  if (computed["other_models"] != 0) {
    text += Labelled("", absl::StrCat(Plural(computed["other_models"].get<size_t>(), "record"), " of other models"),
                     terminal);
  }
  size_t told = 0;
  size_t untold = 0;
  std::map<std::string, size_t> environments;  // of those with the same bits
  for (const Json& record : computed["records"]) {
    std::string differences;
    for (const Json& line : record["differences"]) {
      absl::StrAppend(&differences, differences.empty() ? "" : "; ", TextOf(line));
    }
    if (record["result"] == "same") {
      if (!differences.empty()) ++environments[differences];
      continue;
    }
    if (++told > kMostTold) {
      ++untold;
      continue;
    }
    std::string what = absl::StrCat("record ", record["record"].dump(), " (line ", record["line"].dump(), "): ");
    if (record["result"] == "different") {
      absl::StrAppend(&what, "other bits: numbers differ by at most ", Small(NumberOf(record["largest_difference"])),
                      ", ", Small(NumberOf(record["relative_difference"])), " of the largest");
    } else {
      absl::StrAppend(&what, "not computed: ", TextOf(record["reason"]));
    }
    if (!differences.empty()) absl::StrAppend(&what, " (", differences, ")");
    text += Hanging("  ", what, terminal);
  }
  if (untold > 0) text += absl::StrCat("  and ", untold, " more; --json has all\n");
  for (const auto& [differences, count] : environments) {
    text +=
        Labelled("", absl::StrCat("the same bits although, in ", Plural(count, "record"), ", ", differences), terminal);
  }
  return text;
}

std::string ReportText(const std::string& path, const Json& found, const Terminal& terminal) {
  std::string text = Labelled("Log", LogText(path, found), terminal);
  text += Labelled("Chain", ChainText(found), terminal);
  for (const Json& problem : found["problems"]) {
    text += Hanging("  ", TextOf(problem["message"]), terminal);
  }
  if (!found["last_hash"].is_null()) text += Labelled("Last hash", TextOf(found["last_hash"]), terminal);
  if (!found["expected"].is_null() && !found["expected"]["record"].is_null()) {
    text += Labelled("Expected", absl::StrCat("is the hash of record ", found["expected"]["record"].dump()), terminal);
  }
  for (const Json& torn : found["set_aside"]) {
    text +=
        Labelled("Set aside",
                 absl::StrCat(torn.value("bytes", Json()).dump(), " bytes of a record that was never acknowledged, ",
                              "before record ", torn["record"].dump()),
                 terminal);
  }
  if (!found["computed"].is_null()) text += ComputedText(found["computed"], terminal);
  return text;
}

// Texts of reasons that Addend told, one decision behind the other; any other reasons as canonical JSON.
std::string ReasonsText(const Json& reasons) {
  if (!reasons.is_object() || reasons.value("format", Json()) != "addend.reasons") return CanonicalJson(reasons);
  std::string text;
  for (const Json& decision : reasons.at("decisions")) {
    absl::StrAppend(&text, text.empty() ? "" : ". ", TextOf(decision.at("name")), ": ");
    const Json& told = decision.at("reasons");
    for (size_t k = 0; k < told.size(); ++k) absl::StrAppend(&text, k == 0 ? "" : "; ", TextOf(told[k].at("text")));
    if (told.empty()) absl::StrAppend(&text, "none");
  }
  return text;
}

// The number of a record with six digits that matter, or what it is instead.
std::string Shown(const Json& recorded) {
  return recorded.is_number() ? Number(recorded.get<double>(), 6) : Clean(TextOf(recorded));
}

// The components by magnitude, the largest first.
std::vector<size_t> Ranked(const Json& target) {
  std::vector<double> sizes;
  for (const Json& part : target["contributions"]) sizes.push_back(std::abs(NumberOf(part)));
  std::vector<size_t> order(sizes.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  return order;
}

std::string NameOf(const Json& record, size_t component) {
  const Json& names = record["components"];
  return component < names.size() ? Clean(TextOf(names[component])) : "";
}

// One line for each target: number, time, target, value, strongest component.
std::string ListText(const std::vector<PlacedRecord>& records, const Terminal& terminal) {
  constexpr int kNumber = 8;
  constexpr int kTime = 21;
  constexpr int kValue = 12;
  const int rest = terminal.width - kNumber - kTime - kValue - 2;
  const int name = rest / 2;
  const auto line = [&](const std::string& number, const std::string& time, const std::string& target,
                        const std::string& value, const std::string& reason) {
    return absl::StrCat(PadLeft(number, kNumber - 2), "  ", PadRight(time, kTime),
                        PadRight(CutEnd(target, name - 1, terminal), name), PadLeft(value, kValue), "  ",
                        CutEnd(reason, rest - name, terminal), "\n");
  };
  std::string text = line("number", "time (UTC)", "target", "value", "strongest");
  for (const PlacedRecord& placed : records) {
    const Json& record = placed.read.record;
    for (const Json& target : record["targets"]) {
      const std::vector<size_t> order = Ranked(target);
      const std::string time = TextOf(record["time"]).substr(0, 19);
      text += line(absl::StrCat(placed.read.number), time, Clean(TextOf(target["name"])), Shown(target["value"]),
                   order.empty() ? "" : NameOf(record, order[0]));
    }
  }
  return text;
}

std::string RecordText(const PlacedRecord& placed, size_t top, const Terminal& terminal) {
  const Json& record = placed.read.record;
  std::string text = Labelled("Record", absl::StrCat(placed.read.number, ", line ", placed.line), terminal);
  const auto add = [&](const char* label, const std::string& value) {
    if (!value.empty()) text += Labelled(label, value, terminal);
  };
  const Json& libtorch = record["libtorch"];
  add("Time", TextOf(record["time"]));
  add("Hash", placed.read.hash);
  add("Previous", placed.read.previous.empty() ? "none, it is the first" : placed.read.previous);
  add("Model", record["model"]["sha256"].is_null() ? "a live model" : TextOf(record["model"]["sha256"]));
  add("Request", TextOf(record["request"]["sha256"]));
  const Json& inputs = record["inputs"];
  const bool kept = !inputs["tensors"].empty() && inputs["tensors"][0].contains("data");
  add("Inputs", TextOf(inputs["sha256"]) + (kept ? ", kept" : ""));
  add("Computed",
      absl::StrCat("Addend ", TextOf(record["addend"]["version"]), ", LibTorch ", TextOf(libtorch["version"]), ", ",
                   TextOf(libtorch["device"]), " (", TextOf(libtorch["cpu"]), "), ",
                   Plural(libtorch["threads"].get<size_t>(), "thread"), ", ", TextOf(libtorch["blas"])));
  if (record.contains("context")) add("Context", CanonicalJson(record["context"]));
  if (record.contains("reasons")) add("Reasons", ReasonsText(record["reasons"]));
  for (const Json& note : record["notes"]) add("Note", TextOf(note));
  for (const Json& target : record["targets"]) {
    absl::StrAppend(&text, "\n", Labelled("Target", TextOf(target["name"]), terminal));
    const auto row = [&](const std::string& name, const Json& number) {
      text += absl::StrCat("  ", PadLeft(Shown(number), 14), "  ", CutEnd(name, terminal.width - 18, terminal), "\n");
    };
    row("value", target["value"]);
    row("reference", target["reference"]);
    const std::vector<size_t> order = Ranked(target);
    for (size_t k = 0; k < std::min(top, order.size()); ++k) {
      row(NameOf(record, order[k]), target["contributions"][order[k]]);
    }
    if (order.size() > top) {
      double others = 0;
      for (size_t k = top; k < order.size(); ++k) others += NumberOf(target["contributions"][order[k]]);
      row(absl::StrCat(Plural(order.size() - top, "other component")), RecordedNumber(others));
    }
    row("leftover", target["leftover"]);
    row("recovery error", target["recovery_error"]);
  }
  return text;
}

}  // namespace

int RunAuditVerify(const AuditVerifyArguments& arguments) {
  const Terminal terminal = StdoutTerminal();
  std::vector<std::string> sources = {arguments.log};
  for (const std::string& input : arguments.inputs) sources.push_back(input);
  for (const std::string& model : arguments.models) AddModelFiles(model, &sources);
  CheckOutputs({}, sources);
  VerifyOptions options;
  options.models = arguments.models;
  options.inputs = arguments.inputs;
  // Inputs have the dtype of the record; all of a text's digits are read.
  RunArguments read;
  read.mapping = arguments.mapping;
  read.dtype = "float64";
  options.read = [format = ReadFormat(read)](const std::string& path) { return ReadInputFile(path, format); };
  options.sample = arguments.sample;
  options.seed = arguments.seed;
  options.expect = arguments.expect;
  Progress progress;
  options.progress = [&](const std::string& stage, int64_t done, int64_t total) { progress.Show(stage, done, total); };
  const Json found = VerifyLog(arguments.log, options, ThisProgram());
  progress.Clear();
  WriteStdout(arguments.json ? Dump(found, 1) + "\n" : ReportText(arguments.log, found, terminal));
  return found["verified"].get<bool>() ? kSuccess : kDoesNotAddUp;
}

int RunAuditShow(const AuditShowArguments& arguments) {
  const Terminal terminal = StdoutTerminal();
  if (arguments.last < 0 || arguments.top < 0) throw InvalidArgument("--last and --top are numbers, not negative ones");
  CheckOutputs({}, {arguments.log});
  std::vector<PlacedRecord> shown;
  const auto last = static_cast<size_t>(arguments.last);
  const ChainResult chain = ReadChain(arguments.log, [&](const PlacedRecord& placed) {
    if (arguments.record) {
      if (placed.read.number == *arguments.record) shown.push_back(placed);
      return;
    }
    shown.push_back(placed);
    if (shown.size() > last) shown.erase(shown.begin());
  });
  if (arguments.record && shown.empty()) {
    throw NotFound(absl::StrCat(arguments.log, " has no whole record ", *arguments.record, "; it has ",
                                Plural(static_cast<size_t>(chain.records), "record")));
  }
  std::string text;
  if (arguments.json) {
    for (const PlacedRecord& placed : shown) absl::StrAppend(&text, CanonicalJson(placed.read.record), "\n");
    // Hashes are of these bytes, which a terminal need not show.
    if (::isatty(STDOUT_FILENO) != 1) {
      WriteStdoutAsIs(text);
      return kSuccess;
    }
  } else {
    try {
      text = arguments.record ? RecordText(shown[0], static_cast<size_t>(arguments.top), terminal)
                              : ListText(shown, terminal);
    } catch (const Json::exception&) {
      throw InvalidArgument(absl::StrCat(arguments.log, " holds records that this version cannot show; --json can"));
    }
    if (!chain.problems.empty()) {
      absl::StrAppend(&text, "\n", Plural(chain.problems.size(), "problem"), " in the log: addend audit verify\n");
    }
  }
  WriteStdout(text);
  return kSuccess;
}

}  // namespace addend::cli
