// Recorded programs in files: the graph as JSON, the weights as .safetensors.
//
// Note [Trust]
// Reading a file runs nothing; whatever the file holds, it is read or refused with an Error. Running a program runs the
// operators that the file names. So a program file is code, like a TorchScript file: run only what you trust.
#ifndef ADDEND_CORE_PROGRAM_PROGRAM_FILE_H_
#define ADDEND_CORE_PROGRAM_PROGRAM_FILE_H_

#include <string>

#include "core/program/recorded_program.h"

namespace addend {

// The version of the format that is written. Files of other versions are refused.
inline constexpr int kProgramFileVersion = 1;

struct EncodedProgram {
  std::string graph;    // JSON
  std::string weights;  // .safetensors: parameters, buffers and constants, as the recording met them
};

// Writes a program. Throws Unimplemented, with the position, for arguments that no file can hold (generators, objects).
EncodedProgram EncodeProgram(const RecordedProgram& program);
// Reads a program; `name` stands for the file in messages. Throws InvalidArgument for whatever is malformed, of another
// version or inconsistent, and NotFound for operators that this LibTorch does not have.
RecordedProgram DecodeProgram(const EncodedProgram& encoded, const std::string& name);

// Writes a program as a folder with program.json and weights.safetensors; makes the folder if there is none.
void SaveProgram(const RecordedProgram& program, const std::string& folder);
// Reads a program from its folder. Throws NotFound if there is no such folder, InvalidArgument where a file is not as
// it was saved, and what DecodeProgram() throws.
RecordedProgram LoadProgram(const std::string& folder);

// Adds checksums of the graph and of the weights to the metadata of `weights`, which has none. Readers that do not know
// them pass over metadata.
std::string WithChecksums(std::string weights, const std::string& graph);
// Throws InvalidArgument where a file is not as it was saved: one flipped bit of a weight would be another model. Files
// from before there were checksums pass.
void RequireChecksums(const EncodedProgram& encoded, const std::string& folder);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_PROGRAM_FILE_H_
