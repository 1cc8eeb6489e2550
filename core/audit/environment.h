// Environment of a computation: everything beside the model, the input and the request that may change bits.
#ifndef ADDEND_CORE_AUDIT_ENVIRONMENT_H_
#define ADDEND_CORE_AUDIT_ENVIRONMENT_H_

#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/document/report_json.h"

namespace addend {

// {"blas", "cpu", "device", "threads", "version"}: LibTorch and what it computes with. `device`: "cpu", "cuda".
Json LibTorchJson(const Writer& writer, const std::string& device);

// The library that LibTorch takes its matrix products from: its file's name, which tells the version, and what OpenBLAS
// and MKL say of themselves; empty where none is found.
std::string BlasText();
// The instructions that LibTorch's kernels use: "AVX2"; empty where LibTorch does not say.
std::string CpuText();

// Differences between the environments of two records, one line each: "threads: 2 then, 1 now". `then`, `now`: objects
// with the keys "addend" and "libtorch" of a record.
std::vector<std::string> Differences(const Json& then, const Json& now);

}  // namespace addend

#endif  // ADDEND_CORE_AUDIT_ENVIRONMENT_H_
