// Recorded programs as TorchScript files, which plain LibTorch runs.
//
// Note [What a TorchScript file cannot say]
// A program compares the numbers that left the tensors with those of the recording, and stops if they differ. A
// TorchScript file would silently go the recorded way, so a program with such guards is not exported. Sizes follow the
// inputs where the program has learned how. Where it has not, a number in it may be a size: the file then begins with a
// comparison of the sizes of the inputs, and stops where they are not those of the recording.
#ifndef ADDEND_CORE_RECORDING_EXPORT_TORCHSCRIPT_H_
#define ADDEND_CORE_RECORDING_EXPORT_TORCHSCRIPT_H_

#include <string>

#include "core/program/recorded_program.h"

namespace addend {

// Writes a module with a method `forward` of the program's inputs, with the submodules of the recorded model and, by
// their names, the parameters and buffers that it read. A name that TorchScript cannot read, such as "in" or "class",
// ends in an underscore there: "in_", or in as many as make it unlike its neighbours'; characters that the file cannot
// quote become underscores. Each run begins with these as they were when recorded. Throws
// FailedPrecondition, with the position, for guards that depend on elements, Unimplemented for what TorchScript does
// not have (plain values among the inputs, models on the meta device), and what WriteFileWhole throws where the file
// cannot be written.
void ExportTorchScript(const RecordedProgram& program, const std::string& path);

}  // namespace addend

#endif  // ADDEND_CORE_RECORDING_EXPORT_TORCHSCRIPT_H_
