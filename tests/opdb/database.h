// PyTorch's operator database, as generate.py wrote it.
#ifndef ADDEND_TESTS_OPDB_DATABASE_H_
#define ADDEND_TESTS_OPDB_DATABASE_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/model/model.h"

namespace addend {

// One call of an operator, ready to run.
struct Sample {
  std::string name;  // "functional 0"
  std::shared_ptr<Model> model;
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> outputs;  // what PyTorch computed; empty where that is sparse
};

// Place of a sample in the file.
struct SampleInfo {
  std::string kind;  // "functional", "inplace", "out"
  int64_t number = 0;
  int64_t offset = 0;
  int64_t size = 0;
  int64_t inputs = 0;
  int64_t outputs = 0;
};

struct Entry {
  std::string name;
  bool random = false;  // what it gives depends on more than its arguments
  std::vector<SampleInfo> samples;
  std::vector<std::string> problems;  // what PyTorch itself could not trace
};

class Database {
 public:
  explicit Database(const std::string& path);
  const std::string& version() const { return version_; }  // of PyTorch: "1.13"
  const std::vector<Entry>& entries() const { return entries_; }
  Sample Load(const SampleInfo& info) const;

 private:
  std::string path_;
  std::string version_;
  int64_t start_ = 0;  // of the first archive
  std::vector<Entry> entries_;
};

// The one that the environment variable ADDEND_SAMPLES names.
const Database& TheDatabase();

}  // namespace addend

#endif  // ADDEND_TESTS_OPDB_DATABASE_H_
