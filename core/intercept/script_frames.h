// The source lines that called the operator which runs now, where TorchScript's interpreter runs it.
#ifndef ADDEND_CORE_INTERCEPT_SCRIPT_FRAMES_H_
#define ADDEND_CORE_INTERCEPT_SCRIPT_FRAMES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace addend {

// One line of the source of a model.
struct SourceFrame {
  std::string file;
  int64_t line = -1;     // 1-based
  int64_t column = -1;   // of the expression that runs, 0-based, in `text`; -1: not known
  int64_t length = 0;    // of the part of the expression that stands on this line
  std::string function;  // "forward"
  std::string text;      // the line without its indentation; empty where the model does not carry it
  bool operator==(const SourceFrame& other) const {
    return line == other.line && column == other.column && length == other.length && file == other.file &&
           function == other.function && text == other.text;
  }
};

// The place at which an operator is called: module and source lines.
struct CodePlace {
  std::string module_path;          // "layers.0.linear1"; empty: the root, or not known
  std::vector<SourceFrame> frames;  // outermost first; empty where the front end has none
  bool operator==(const CodePlace& other) const { return module_path == other.module_path && frames == other.frames; }
};

// Returns the place's module and the innermost frame that is in the model's own source.
Position PositionAt(const CodePlace& place);

// RAII: operators of this thread count as called at `place`, which must outlive the scope. A replay needs this, since
// it calls operators elsewhere than the recorded model did. The scopes of a thread nest.
class PlaceScope {
 public:
  explicit PlaceScope(const CodePlace* place);
  ~PlaceScope();
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;
  // The place of the innermost scope; null if there is none.
  static const CodePlace* Current();

 private:
  const CodePlace* before_;
};

// Reads places from the interpreter's stack. A place is worked out once and then known by its number, because working
// it out takes microseconds and a model calls the operators of a loop at the same place again and again.
class ScriptPlaces {
 public:
  ScriptPlaces();
  ~ScriptPlaces();
  ScriptPlaces(const ScriptPlaces&) = delete;
  ScriptPlaces& operator=(const ScriptPlaces&) = delete;

  // The place of the operator that runs now, an index into places(); -1 outside interpreter and PlaceScope.
  int Current();
  const std::vector<CodePlace>& places() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_SCRIPT_FRAMES_H_
