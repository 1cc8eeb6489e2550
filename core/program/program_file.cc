#include "core/program/program_file.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

constexpr char kGraph[] = "/program.json";
constexpr char kWeights[] = "/weights.safetensors";

}  // namespace

void SaveProgram(const RecordedProgram& program, const std::string& folder) {
  const EncodedProgram encoded = EncodeProgram(program);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw InvalidArgument(absl::StrCat("cannot make the folder ", folder, ": ", error.message()));
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
