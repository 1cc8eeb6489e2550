#include "core/program/replay_notes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace addend {

std::vector<std::string> NotesOnReplay(const RecordedProgram& program) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> drawing;
  for (size_t c = 0; c < program.calls.size(); ++c) {
    if (!program.calls[c].random) continue;
    const Position position = PositionOf(program, static_cast<int>(c));
    drawing.push_back(absl::StrCat(position.op, " (", position.Describe(), ")"));
  }
  if (drawing.empty()) return {};
  const size_t more = drawing.size() - std::min(drawing.size(), kNamed);
  drawing.resize(drawing.size() - more);
  return {absl::StrCat("random numbers are drawn by ", absl::StrJoin(drawing, ", "),
                       more == 0 ? "" : absl::StrCat(" and ", more, more == 1 ? " other" : " others"),
                       "; a replay draws its own, which are not those of the recorded run unless the generator is in "
                       "the state that it was in then")};
}

}  // namespace addend
