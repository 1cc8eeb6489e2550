// A recorded program as text for reading: every operator under the source lines that called it.
//
//   return self.head(self.body(x))  # model.py:24 in forward:
//   | (arrow)
//   | return self.fc(x).relu()  # model.py:11 in forward:
//   | | # linear(f32[2, 3], f32[4, 3], f32[4]) -> f32[2, 4];
//   | | # relu(f32[2, 4]) -> f32[2, 4];
//
// Frames are outermost first; those that a call shares with the one before are not repeated. An arrow stands where a
// deeper line follows. Arguments are written as Python code would give them: those that can only be given by name with
// their name, and without those at the end that have their defaults. A call without source lines stands under the path
// of its module ("encoder.layers.0  # module:") or, where that is not known, under nothing.
#ifndef ADDEND_CORE_PROGRAM_CODE_TRACE_H_
#define ADDEND_CORE_PROGRAM_CODE_TRACE_H_

#include <functional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/program/call_numbers.h"
#include "core/program/recorded_program.h"

namespace addend {

struct CodeTraceOptions {
  // Lines are the same frame where file, line and function are; else the expression on the line has to be the same
  // too, so that a line is repeated for each of its expressions.
  bool succinct = true;
  // Do not show calls as they come; see CodeTraceWriter.
  bool quiet = false;
  // ANSI escapes: the expression that runs in cyan, places and operators dimmed.
  bool color = false;
  // Tensors with their names: "linear(x: f32[2, 3], fc.weight: f32[4, 3]) -> linear: f32[2, 4]".
  bool names = false;
  // Tensors whose memory is not theirs alone, as far as the run has come, with the number of the storage and of its
  // version (0 is left out), and "!" on what the call writes: "add_.Tensor(f32[6]@0!, 1) -> f32[6]@0.1".
  bool marks = false;
  // Source lines by their files. `*` stands for anything, slashes included, `?` for one byte; the whole path has to
  // match. Shown is what some pattern of `include` matches (or where there is none anything) and none of `exclude`.
  // Calls are shown whatever becomes of their lines.
  std::vector<std::string> include;
  std::vector<std::string> exclude = {"*/site-packages/torch/*", "*/dist-packages/torch/*"};
  // Behind each operator: "[time 13.4 us | recovery error 1.2e-07]".
  std::vector<CallNumbers> numbers;
};

// All calls; every line ends with '\n'.
std::string CodeTrace(const RecordedProgram& program, const CodeTraceOptions& options = {});
// One call: "mul.Tensor(f32[2, 3], 2.0) -> f32[2, 3]", with names and marks as `options` ask.
std::string CodeTraceLine(const RecordedProgram& program, int call, const CodeTraceOptions& options = {});
// For programs:
//   {"format": "addend.code_trace", "version": 2, "numbers": [{"name", "unit"}],
//    "places": [{"module_path", "frames": [{"file", "line", "column", "length", "function", "text"}]}],
//    "calls": [{"index", "operator", "overload", "line", "place", "arguments", "results", "written", "view", "random",
//               "guard", "numbers"}]}
// `frames`: without those that are filtered. `line`: as CodeTraceLine. `place`: in places, or null. The rest is as in
// the record of a graph; see page/README.md.
Json CodeTraceRecord(const RecordedProgram& program, const CodeTraceOptions& options = {});

// Writes the trace call by call, so that a front end can show each operator as it finishes.
class CodeTraceWriter {
 public:
  // `show` gets the lines of each call as it is added; never if `options.quiet`. It may be null.
  explicit CodeTraceWriter(CodeTraceOptions options, std::function<void(const std::string&)> show = nullptr);
  // The next call; `program` may have grown since the last.
  void Add(const RecordedProgram& program, int call);
  // Everything so far.
  const std::string& text() const { return text_; }

 private:
  CodeTraceOptions options_;
  std::function<void(const std::string&)> show_;
  std::vector<SourceFrame> before_;
  std::string text_;
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_CODE_TRACE_H_
