#include "core/program/program_file.h"

#include "core/base/file.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

constexpr char kGraph[] = "/program.json";
constexpr char kWeights[] = "/weights.safetensors";

}  // namespace

void SaveProgram(const RecordedProgram& program, const std::string& folder) {
  const EncodedProgram encoded = EncodeProgram(program);
  MakeFolder(folder);
  WriteFileWhole(folder + kWeights, encoded.weights);
  WriteFileWhole(folder + kGraph, encoded.graph);
}

RecordedProgram LoadProgram(const std::string& folder) {
  EncodedProgram encoded;
  encoded.graph = ReadFileWhole(folder + kGraph);
  encoded.weights = ReadFileWhole(folder + kWeights);
  return DecodeProgram(encoded, folder);
}

}  // namespace addend
