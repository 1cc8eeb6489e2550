// The files that tests/exported/write.py writes: exported programs, what they are given, and what they gave there.
#ifndef ADDEND_TESTS_EXPORTED_WRITTEN_H_
#define ADDEND_TESTS_EXPORTED_WRITTEN_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "core/model/model.h"

namespace addend {

// One call of a written model.
struct WrittenCall {
  std::vector<c10::IValue> inputs;  // the tensors, in order
  std::vector<at::Tensor> outputs;  // what the writer's PyTorch gave; complex ones as pairs of numbers
};

// The calls beside a program: one, or two where its sizes may change.
std::vector<WrittenCall> WrittenCalls(const std::string& program_path);

// The paths of the programs in a folder, sorted.
std::vector<std::string> ExportedProgramsIn(const std::string& folder);

// All tensors of a value, in order.
std::vector<at::Tensor> TensorsIn(const c10::IValue& value);

// The largest difference of an element, over the largest magnitude of its tensor; infinite where shapes or dtypes
// differ.
double LargestDifference(const std::vector<at::Tensor>& expected, const c10::IValue& found);

struct WrittenResult {
  std::string refusal;  // empty: the program was loaded and ran
  double difference = 0;
  double load_ms = 0;
  double run_ms = 0;
  std::string note;
};
// Loads a program and makes its calls.
WrittenResult RunWritten(const std::string& program_path);

}  // namespace addend

#endif  // ADDEND_TESTS_EXPORTED_WRITTEN_H_
