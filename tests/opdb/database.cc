#include "tests/opdb/database.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace addend {

Database::Database(const std::string& path) : path_(path) {
  std::ifstream file(path, std::ios::binary);
  uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::string text(length, '\0');
  file.read(&text[0], static_cast<std::streamsize>(length));
  start_ = static_cast<int64_t>(sizeof length + length);
  const nlohmann::json index = nlohmann::json::parse(text);
  version_ = index["version"];
  for (const auto& entry : index["entries"]) {
    Entry own;
    own.name = entry["name"];
    own.random = entry["random"];
    for (const auto& problem : entry["problems"]) own.problems.push_back(problem);
    for (const auto& call : entry["calls"]) {
      own.samples.push_back(
          {call["kind"], call["sample"], call["offset"], call["size"], call["inputs"], call["outputs"]});
    }
    entries_.push_back(std::move(own));
  }
}

Sample Database::Load(const SampleInfo& info) const {
  std::ifstream file(path_, std::ios::binary);
  file.seekg(start_ + info.offset);
  std::string blob(info.size, '\0');
  file.read(&blob[0], info.size);
  Sample sample;
  sample.name = info.kind + " " + std::to_string(info.number);
  std::istringstream archive(blob);
  const torch::jit::Module module = torch::jit::load(archive);
  for (int64_t k = 0; k < info.inputs; ++k) {
    sample.inputs.push_back(module.attr("in" + std::to_string(k)).toTensor());
  }
  for (int64_t k = 0; k < info.outputs; ++k) {
    sample.outputs.push_back(module.attr("out" + std::to_string(k)).toTensor());
  }
  // The sample is loaded as a user would: through a file, which other runs do not share.
  const std::string path = testing::TempDir() + "/sample" + std::to_string(getpid()) + ".pt";
  std::ofstream(path, std::ios::binary) << blob;
  sample.model = LoadTorchScript(path);
  return sample;
}

const Database& TheDatabase() {
  static const Database& database = *[] {
    const char* path = std::getenv("ADDEND_SAMPLES");
    if (path == nullptr) throw std::runtime_error("ADDEND_SAMPLES names no file");
    return new Database(path);
  }();
  return database;
}

}  // namespace addend
