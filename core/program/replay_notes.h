// Notes for the reader of a replay.
#ifndef ADDEND_CORE_PROGRAM_REPLAY_NOTES_H_
#define ADDEND_CORE_PROGRAM_REPLAY_NOTES_H_

#include <string>
#include <vector>

#include "core/program/recorded_program.h"

namespace addend {

// Says that a program holds what an operator saved for its gradient in the recorded run; empty where it does not.
std::string NoteOnSaved(const RecordedProgram& program);

// Notes on every replay of a program, one line each: that its random numbers are others than those of the recorded run,
// and that of NoteOnSaved().
std::vector<std::string> NotesOnReplay(const RecordedProgram& program);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_REPLAY_NOTES_H_
