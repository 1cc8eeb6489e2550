#include "core/program/program_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/crc32.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/program/tensor_io.h"
#include "core/program/tensor_layout.h"

namespace addend {
namespace {

constexpr char kGraph[] = "/program.json";
constexpr char kWeights[] = "/weights.safetensors";
constexpr char kGraphChecksum[] = "program.json crc32";
constexpr char kWeightsChecksum[] = "weights crc32";

std::string ChecksumText(uint32_t checksum) { return absl::StrFormat("%08x", checksum); }

// Finds where the elements begin.
size_t BeginOf(const TensorLayout& layout, const std::string& bytes) {
  return layout.tensors.empty() ? bytes.size() : layout.tensors.front().begin;
}

// Takes the file as it would be without metadata.
std::string ChecksumOfWeights(TensorLayout layout, const std::string& bytes) {
  const size_t begin = BeginOf(layout, bytes);
  layout.metadata.clear();
  const std::string head = EncodeSafetensorsHead(layout);
  return ChecksumText(Crc32(bytes.data() + begin, bytes.size() - begin, Crc32(head.data(), head.size())));
}

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
  // A file without a format was never a program, and decoding it says so.
  if (encoded.graph.find("\"format\"") != std::string::npos) RequireChecksums(encoded, folder);
  return DecodeProgram(encoded, folder);
}

std::string WithChecksums(std::string weights, const std::string& graph) {
  TensorLayout layout = ReadTensorLayout(weights, weights.size(), "weights");
  const size_t begin = BeginOf(layout, weights);
  layout.metadata = {{kGraphChecksum, ChecksumText(Crc32(graph.data(), graph.size()))},
                     {kWeightsChecksum, ChecksumOfWeights(layout, weights)}};
  return weights.replace(0, begin, EncodeSafetensorsHead(layout));
}

void RequireChecksums(const EncodedProgram& encoded, const std::string& folder) {
  const TensorLayout layout = ReadTensorLayout(encoded.weights, encoded.weights.size(), folder + kWeights);
  const auto require = [&](const char* key, const char* file, const std::string& checksum) {
    const auto saved = layout.metadata.find(key);
    if (saved == layout.metadata.end() || saved->second == checksum) return;
    throw InvalidArgument(absl::StrCat(folder, file, " is not as it was saved: its checksum differs; save the program ",
                                       "again, or copy its folder again (docs/tracing.md says how a program is ",
                                       "edited)"));
  };
  require(kGraphChecksum, kGraph, ChecksumText(Crc32(encoded.graph.data(), encoded.graph.size())));
  require(kWeightsChecksum, kWeights, ChecksumOfWeights(layout, encoded.weights));
}

}  // namespace addend
