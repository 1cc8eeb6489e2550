#include "core/program/code_trace.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/text.h"
#include "core/program/call_arguments.h"

namespace addend {
namespace {

constexpr char kBar[] = "\xe2\x94\x82 ";               // a vertical line
constexpr char kArrow[] = "\xe2\xac\x87\xef\xb8\x8f";  // an arrow downwards, as a pictogram
constexpr char kDim[] = "\033[2m";
constexpr char kCyan[] = "\033[36m";
constexpr char kReset[] = "\033[0m";

bool MatchesGlob(const std::string& pattern, const std::string& text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string::npos;  // the last one seen, and where in the text it was tried to end
  size_t end = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      end = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool Shown(const SourceFrame& frame, const CodeTraceOptions& options) {
  const auto matches = [&](const std::string& pattern) { return MatchesGlob(pattern, frame.file); };
  const bool included = options.include.empty() || std::any_of(options.include.begin(), options.include.end(), matches);
  return included && std::none_of(options.exclude.begin(), options.exclude.end(), matches);
}

CodePlace Filtered(const CodePlace& place, const CodeTraceOptions& options) {
  CodePlace filtered;
  filtered.module_path = place.module_path;
  for (const SourceFrame& frame : place.frames) {
    if (Shown(frame, options)) filtered.frames.push_back(frame);
  }
  return filtered;
}

// Source lines that the call stands under. A module's path is a frame without file.
std::vector<SourceFrame> FramesOf(const RecordedProgram& program, int call, const CodeTraceOptions& options) {
  const int number = program.calls.at(call).place;
  if (number < 0) return {};
  CodePlace place = Filtered(program.places[number], options);
  if (!place.frames.empty() || place.module_path.empty()) return std::move(place.frames);
  SourceFrame module;
  module.text = place.module_path;
  return {module};
}

bool SameFrame(const SourceFrame& a, const SourceFrame& b, bool succinct) {
  if (a.file != b.file || a.line != b.line || a.function != b.function) return false;
  if (a.file.empty()) return a.text == b.text;
  return succinct || (a.column == b.column && a.length == b.length);
}

bool BetweenCharacters(const std::string& text, size_t at) {
  return at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
}

std::string SourceText(const SourceFrame& frame, bool color) {
  const std::string& text = frame.text;
  const auto begin = static_cast<size_t>(std::max<int64_t>(frame.column, 0));
  const size_t end = begin + static_cast<size_t>(std::max<int64_t>(frame.length, 0));
  const bool marked = color && frame.column >= 0 && begin < end && end <= text.size() &&
                      BetweenCharacters(text, begin) && BetweenCharacters(text, end);
  if (!marked) return OneLine(text);
  return absl::StrCat(OneLine(text.substr(0, begin)), kCyan, OneLine(text.substr(begin, end - begin)), kReset,
                      OneLine(text.substr(end)));
}

// Name of a file without the folders around installed packages: "site-packages/transformers/utils/generic.py".
std::string ShownFile(const std::string& file) {
  for (const char* packages : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = file.rfind(packages);
    if (at != std::string::npos) return file.substr(at + 1);
  }
  return file;
}

std::string PlaceText(const SourceFrame& frame) {
  if (frame.file.empty() && frame.line < 0) {
    return frame.function.empty() ? "# module:" : absl::StrCat("# in ", OneLine(frame.function), ":");
  }
  const std::string line = frame.line < 0 ? "" : absl::StrCat(":", frame.line);
  return absl::StrCat("# ", OneLine(ShownFile(frame.file)), line, " in ", OneLine(frame.function), ":");
}

std::string Bars(size_t depth) {
  std::string bars;
  for (size_t d = 0; d < depth; ++d) bars += kBar;
  return bars;
}

// How the tensors of one call are written.
class TensorText {
 public:
  TensorText(const RecordedProgram& program, int call, const CodeTraceOptions& options)
      : program_(program), call_(call), options_(options) {
    if (!options.marks) return;
    const RecordedCall& recorded = program.calls[call];
    std::vector<int> values;
    for (const TensorUse& use : recorded.uses) {
      if (use.value < 0) continue;
      values.push_back(use.value);
      if (use.written) shared_.push_back(program.values[use.value].storage);
    }
    values.insert(values.end(), recorded.results.begin(), recorded.results.end());
    // Two different tensors of one storage, not one tensor that is used twice.
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::vector<int> storages;
    for (const int value : values) {
      if (value >= 0) storages.push_back(program.values[value].storage);
    }
    std::sort(storages.begin(), storages.end());
    for (size_t k = 1; k < storages.size(); ++k) {
      if (storages[k] == storages[k - 1]) shared_.push_back(storages[k]);
    }
  }

  std::string OfUse(const TensorUse& use) const { return Of(use.value, use.version, use.written); }
  std::string OfResult(int value) const {
    if (value < 0) return "None";
    const auto& writers = program_.storages[program_.values[value].storage].writers;
    const auto past = std::upper_bound(writers.begin(), writers.end(), call_);
    return Of(value, static_cast<int>(past - writers.begin()), false);
  }

 private:
  std::string Of(int number, int version, bool written) const {
    if (number < 0) return "None";
    const RecordedValue& value = program_.values[number];
    std::string text = DescribeValue(value);
    if (options_.names) text = absl::StrCat(OneLine(value.name), ": ", text);
    if (!options_.marks || value.storage < 0) return text;
    const bool shared = version > 0 || program_.storages[value.storage].value != number ||
                        std::find(shared_.begin(), shared_.end(), value.storage) != shared_.end();
    if (shared) absl::StrAppend(&text, "@", value.storage);
    if (version > 0) absl::StrAppend(&text, ".", version);
    if (written) text += "!";
    return text;
  }

  const RecordedProgram& program_;
  int call_;
  const CodeTraceOptions& options_;
  std::vector<int> shared_;  // storages
};

std::string ArgumentText(const CallArgument& argument, const TensorText& tensors) {
  if (!argument.is_tensor) return PlainText(argument.value, argument.meaning);
  std::vector<std::string> parts;
  for (const TensorUse& use : argument.uses) parts.push_back(tensors.OfUse(use));
  if (argument.is_list) return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
  return parts.empty() ? "None" : parts.front();
}

std::string ResultText(const RecordedProgram& program, const RecordedCall& call, const TensorText& tensors) {
  std::vector<std::string> parts;
  for (const int value : call.results) parts.push_back(tensors.OfResult(value));
  const auto& returns = call.op.schema().returns();
  if (parts.empty() && returns.empty() && !call.written.empty()) {
    for (const int value : call.written) parts.push_back(tensors.OfResult(value));
    return parts.size() == 1 ? parts[0] : absl::StrCat("(", absl::StrJoin(parts, ", "), ")");
  }
  if (parts.empty() && call.guard >= 0) return PlainText(program.guards[call.guard].value);
  if (returns.empty()) return "None";
  const bool list = returns[0].type()->kind() == c10::TypeKind::ListType;
  if (returns.size() == 1 && !list && parts.size() == 1) return parts[0];
  return absl::StrCat("(", absl::StrJoin(parts, ", "), ")");
}

Json ResultsJson(const RecordedProgram& program, c10::ArrayRef<int> values) {
  Json list = Json::array();
  for (const int value : values) {
    list.push_back(value < 0 ? Json(nullptr) : ValueJson(program.values[value], program.values[value].version));
  }
  return list;
}

}  // namespace

std::string CodeTraceLine(const RecordedProgram& program, int call, const CodeTraceOptions& options) {
  const RecordedCall& recorded = program.calls.at(call);
  const TensorText tensors(program, call, options);
  const std::vector<CallArgument> arguments = ArgumentsOf(recorded);
  // How many arguments by position there are once those at the end are left out.
  size_t given = 0;
  for (size_t a = 0; a < arguments.size(); ++a) {
    if (!arguments[a].keyword_only && !arguments[a].is_default) given = a + 1;
  }
  std::vector<std::string> parts;
  for (size_t a = 0; a < arguments.size(); ++a) {
    const CallArgument& argument = arguments[a];
    if (!argument.keyword_only && a < given) parts.push_back(ArgumentText(argument, tensors));
    if (argument.keyword_only && !argument.is_default) {
      parts.push_back(absl::StrCat(argument.name, "=", ArgumentText(argument, tensors)));
    }
  }
  std::string name = FullName(recorded.op.schema());
  if (absl::StartsWith(name, "aten::")) name = name.substr(6);
  return absl::StrCat(OneLine(name), "(", absl::StrJoin(parts, ", "), ") -> ", ResultText(program, recorded, tensors));
}

CodeTraceWriter::CodeTraceWriter(CodeTraceOptions options, std::function<void(const std::string&)> show)
    : options_(std::move(options)), show_(std::move(show)) {}

void CodeTraceWriter::Add(const RecordedProgram& program, int call) {
  std::vector<SourceFrame> frames = FramesOf(program, call, options_);
  size_t common = 0;
  while (common < std::min(frames.size(), before_.size()) &&
         SameFrame(frames[common], before_[common], options_.succinct)) {
    ++common;
  }
  const char* dim = options_.color ? kDim : "";
  const char* reset = options_.color ? kReset : "";
  std::string lines;
  for (size_t depth = common; depth < frames.size(); ++depth) {
    const std::string source = SourceText(frames[depth], options_.color);
    absl::StrAppend(&lines, Bars(depth), source, source.empty() ? "" : "  ", dim, PlaceText(frames[depth]), reset,
                    "\n");
    if (depth + 1 < frames.size()) absl::StrAppend(&lines, Bars(depth + 1), dim, kArrow, reset, "\n");
  }
  std::vector<std::string> numbers;
  for (const CallNumbers& list : options_.numbers) {
    // A program that is still growing may have more calls than numbers.
    const std::string text = static_cast<size_t>(call) < list.values.size() ? NumberText(list, call) : "";
    if (!text.empty()) numbers.push_back(absl::StrCat(OneLine(list.name), " ", text));
  }
  absl::StrAppend(&lines, Bars(frames.size()), dim, "# ", CodeTraceLine(program, call, options_), ";");
  if (!numbers.empty()) absl::StrAppend(&lines, "  [", absl::StrJoin(numbers, " | "), "]");
  absl::StrAppend(&lines, reset, "\n");
  before_ = std::move(frames);
  text_ += lines;
  if (show_ != nullptr && !options_.quiet) show_(lines);
}

std::string CodeTrace(const RecordedProgram& program, const CodeTraceOptions& options) {
  CheckNumbers(options.numbers, program.calls.size());
  CodeTraceWriter writer(options);
  for (size_t c = 0; c < program.calls.size(); ++c) writer.Add(program, static_cast<int>(c));
  return writer.text();
}

Json CodeTraceRecord(const RecordedProgram& program, const CodeTraceOptions& options) {
  CheckNumbers(options.numbers, program.calls.size());
  Json record = {{"format", "addend.code_trace"}, {"version", 2}, {"numbers", NumbersHeadJson(options.numbers)}};
  Json& places = record["places"] = Json::array();
  for (const CodePlace& place : program.places) {
    places.push_back({{"module_path", place.module_path}, {"frames", FramesJson(Filtered(place, options))}});
  }
  Json calls = Json::array();
  for (size_t c = 0; c < program.calls.size(); ++c) {
    const RecordedCall& call = program.calls[c];
    const int index = static_cast<int>(c);
    Json arguments = Json::array();
    for (const CallArgument& argument : ArgumentsOf(call)) arguments.push_back(ArgumentJson(program, argument));
    calls.push_back({{"index", index},
                     {"operator", call.op.schema().name()},
                     {"overload", call.op.schema().overload_name()},
                     {"line", CodeTraceLine(program, index, options)},
                     {"place", call.place < 0 ? Json(nullptr) : Json(call.place)},
                     {"arguments", std::move(arguments)},
                     {"results", ResultsJson(program, call.results)},
                     {"written", ResultsJson(program, call.written)},
                     {"view", call.is_view},
                     {"random", call.random},
                     {"guard", GuardJson(program, call)},
                     {"numbers", NumbersJson(options.numbers, index)}});
  }
  record["calls"] = std::move(calls);
  return record;
}

}  // namespace addend
