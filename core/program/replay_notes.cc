#include "core/program/replay_notes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/program/differentiation.h"

namespace addend {

namespace {

// "a, b, c and 4 others"
std::string FirstOf(std::vector<std::string> all) {
  constexpr size_t kNamed = 3;
  const size_t more = all.size() - std::min(all.size(), kNamed);
  all.resize(all.size() - more);
  return absl::StrCat(absl::StrJoin(all, ", "),
                      more == 0 ? "" : absl::StrCat(" and ", more, more == 1 ? " other" : " others"));
}

}  // namespace

std::string NoteOnSaved(const RecordedProgram& program) {
  std::vector<std::string> saved;
  for (const RecordedValue& value : program.values) {
    if (value.kind == ValueKind::kConstant && absl::StartsWith(value.name, kSavedName)) saved.push_back(value.name);
  }
  if (saved.empty()) return "";
  return absl::StrCat(
      kReadsSaved, FirstOf(std::move(saved)),
      ", which the recorded run had computed unseen; on other inputs it may be another, and the program "
      "does not know: compare a replay with the model");
}

std::vector<std::string> NotesOnReplay(const RecordedProgram& program) {
  std::vector<std::string> notes;
  std::vector<std::string> drawing;
  for (size_t c = 0; c < program.calls.size(); ++c) {
    if (!program.calls[c].random) continue;
    const Position position = PositionOf(program, static_cast<int>(c));
    drawing.push_back(absl::StrCat(position.op, " (", position.Describe(), ")"));
  }
  if (!drawing.empty()) {
    notes.push_back(absl::StrCat("random numbers are drawn by ", FirstOf(std::move(drawing)),
                                 "; a replay draws its own, which are not those of the recorded run unless the "
                                 "generator is in the state that it was in then"));
  }
  const std::string saved = NoteOnSaved(program);
  if (!saved.empty()) notes.push_back(saved);
  return notes;
}

}  // namespace addend
