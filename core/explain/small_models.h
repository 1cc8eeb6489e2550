// Small models for tests: they write in place, alias, branch, mask, resize and draw.
#ifndef ADDEND_CORE_EXPLAIN_SMALL_MODELS_H_
#define ADDEND_CORE_EXPLAIN_SMALL_MODELS_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace addend {

struct SmallModel {
  std::string name;
  std::function<at::Tensor(const at::Tensor&)> run;
};

inline void PrintTo(const SmallModel& model, std::ostream* out) { *out << model.name; }

// The float64 [6, 6] that many of them read.
const at::Tensor& SmallModelWeight();

// Every model takes a float64 [2, 6] and gives some tensor.
std::vector<SmallModel> SmallModels();

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_SMALL_MODELS_H_
