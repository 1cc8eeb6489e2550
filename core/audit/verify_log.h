// Verifies a log of decisions: whether every bit of the chain is as it was written, and whether the records come out
// again with the same bits.
#ifndef ADDEND_CORE_AUDIT_VERIFY_LOG_H_
#define ADDEND_CORE_AUDIT_VERIFY_LOG_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/progress.h"
#include "core/document/report_json.h"
#include "core/program/tensor_io.h"

namespace addend {

struct VerifyOptions {
  // Files of models, exported programs and folders of recorded programs. Where there are some, the records of these
  // models are computed again.
  std::vector<std::string> models;
  std::vector<std::string> inputs;  // .safetensors and .npy files, in which inputs are found that records do not hold
  std::function<TensorFile(const std::string& path)> read = nullptr;  // how these are read; null: as such files
  std::optional<int64_t> sample;  // how many records are computed again, drawn at random; unset: all
  std::optional<uint64_t> seed;   // of the draw; unset: drawn itself
  std::string expect;             // a hash that a record has to have; empty: none
  StageProgress progress;         // called with "verify" or "compute", and how many records are done
};

// Verifies a log and returns {"format": "addend.audit", "version": 1, ...}, see docs/schemas. Reads the log and
// changes nothing; a log that grows meanwhile is verified as far as it went at the beginning. Throws NotFound if
// there is no such file, and InvalidArgument if options do not fit or a file of `models` or `inputs` cannot be read.
Json VerifyLog(const std::string& path, const VerifyOptions& options, const Writer& writer);

// Whether nothing is wrong with the log, and whatever was to be computed again has the same bits.
bool IsVerified(const Json& verified);

}  // namespace addend

#endif  // ADDEND_CORE_AUDIT_VERIFY_LOG_H_
