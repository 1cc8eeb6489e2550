// Outputs that another runtime computed for the same inputs, beside those of the model.
#ifndef ADDEND_TOOLS_ADDEND_EXPECTED_H_
#define ADDEND_TOOLS_ADDEND_EXPECTED_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/explain/decompose.h"
#include "tools/addend/commands.h"
#include "tools/addend/inputs.h"

namespace addend::cli {

// A tensor that --expect names.
struct ExpectedOutput {
  std::string path;
  std::string sha256;  // of its file
  std::string tensor;  // its name there; may be empty
  at::Tensor value;
  bool by_name = false;  // it has to have the name of an output; else it is the next in order where it has none
};

// An output of the model beside what is expected of it.
struct ComparedOutput {
  std::string output;  // "output", "output.1", "output.logits"
  std::string path;
  std::string sha256;
  std::string tensor;
  double difference = 0;       // the largest; infinite where one number is NaN and the other is not
  double relative = 0;         // to the largest finite number that is expected
  double allowed = 0;          // the relative difference that passes; 0 for integers and booleans
  std::vector<int64_t> index;  // of the largest difference

  bool ok() const { return relative <= allowed; }
};

// Files of --expect: one with several tensors, of which none is named, holds them by the names of outputs.
std::vector<ExpectedOutput> LoadExpected(const CheckArguments& arguments);
// Throws InvalidArgument where an output or its shape is another. `within`: the relative difference that passes;
// without, 1e-4, of half types 1e-2.
std::vector<ComparedOutput> CompareOutputs(const std::vector<ExpectedOutput>& expected,
                                           const Decomposition& decomposition, std::optional<int64_t> row,
                                           std::optional<double> within);

Json ComparedJson(const std::vector<ComparedOutput>& compared);
std::string ComparedText(const std::vector<ComparedOutput>& compared, int width);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_EXPECTED_H_
