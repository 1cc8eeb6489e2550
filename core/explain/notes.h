// The sentences of a report: what a reader has to know of how a run was linearized, and of what the model does with its
// inputs.
#ifndef ADDEND_CORE_EXPLAIN_NOTES_H_
#define ADDEND_CORE_EXPLAIN_NOTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/explain/note_kinds.h"
#include "core/linearize/linearization.h"
#include "core/linearize/sweep.h"
#include "core/run/trace.h"

namespace addend {

// A note of a kind: the words that it begins with, and the rest.
std::string NoteOf(NoteKind kind, const std::string& rest);

// The notes of a linearized and swept run, for Report::notes. auto_preset: the caller left the preset open.
std::vector<std::string> NotesOf(const Linearization& linearization, const SweepResult& sweep, bool auto_preset);

// Note on a run with a LibTorch that this library was not built for, as the user may allow: LibTorch's classes may lie
// otherwise in memory, and what comes of that need not look wrong. Empty if both are of the same minor version, or
// LibTorch does not tell its own.
std::string NoteOnLibTorch(const std::string& running, const std::string& built);

// "1200", "0.034": not 1.2e+03.
std::string TwoDigits(double number);

// Position of a call; -1: "the model", which nothing more is known of.
Position PositionOf(const TracedRun& trace, int64_t call);

// "aten::relu (op #3, model.py:12), aten::mul (op #7), aten::add (op #8), and 2 more"
std::string FirstPositions(const std::vector<Position>& positions);

// Says which tensor was taken for the one that `selector` names, a module of which nobody told what it returned: that
// which the operator at `giver` gave.
std::string TakenFor(const std::string& selector, const Position& giver);

// Says which operators read what `selector`, a module, returned in other ways than from it; see ReadBeside.
std::string ReadInOtherWays(const std::string& selector, bool given, const std::vector<Position>& readers);

// The operators that derived conditions, each once, in their order. only_other: of conditions that are others on the
// baseline.
std::vector<Position> OriginsOf(const std::vector<Condition>& conditions, bool only_other);

// The calls that used ids in a way in which no component follows, where ids moved.
std::vector<Position> UnattributedOf(const TracedRun& trace);

// Says where components ended that should have reached the tensor that is called `name`.
std::string Unreached(const TracedRun& trace, const std::string& name);
// Throws the sentence of Unreached() as FailedPrecondition: a table of zeros would look like an answer.
[[noreturn]] void ThrowUnreached(const TracedRun& trace, const std::string& name);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_NOTES_H_
