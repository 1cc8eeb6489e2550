// Recorded programs in files: the graph as JSON, the weights as .safetensors.
//
// Note [Trust]
// Reading a file runs nothing, and whatever it holds, it is taken or refused with an Error. Running a program runs the
// operators that the file names: like a TorchScript file it is code, run only what you trust.
#ifndef ADDEND_CORE_PROGRAM_PROGRAM_FILE_H_
#define ADDEND_CORE_PROGRAM_PROGRAM_FILE_H_

#include <string>

#include "core/program/recorded_program.h"

namespace addend {

// The version that is written. Files of other versions are refused.
inline constexpr int kProgramFileVersion = 1;

struct EncodedProgram {
  std::string graph;    // JSON
  std::string weights;  // .safetensors: parameters, buffers and constants, as the recording met them
};

// Throws Unimplemented, with the position, for arguments that no file can hold (generators, objects).
EncodedProgram EncodeProgram(const RecordedProgram& program);
// `name` stands for the file in messages. Throws InvalidArgument for whatever is malformed, of another version or
// inconsistent, and NotFound for operators that this LibTorch does not have.
RecordedProgram DecodeProgram(const EncodedProgram& encoded, const std::string& name);

// A folder, made if there is none, with program.json and weights.safetensors.
void SaveProgram(const RecordedProgram& program, const std::string& folder);
// Throws NotFound where there is no such folder, and what DecodeProgram() throws.
RecordedProgram LoadProgram(const std::string& folder);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_PROGRAM_FILE_H_
