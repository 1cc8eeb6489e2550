// Small models that write in place, alias, branch, mask and resize: what is found of them must hold whichever way it is
// found.
#ifndef ADDEND_CORE_LINEARIZE_SMALL_MODELS_H_
#define ADDEND_CORE_LINEARIZE_SMALL_MODELS_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "core/program/random_testing.h"

namespace addend {

struct SmallModel {
  std::string name;
  std::function<at::Tensor(const at::Tensor&)> run;
};

void PrintTo(const SmallModel& model, std::ostream* out);

// A float64 [6, 6] that all of them share.
const at::Tensor& Weight();

// Every model takes a float64 [2, 6] and gives some tensor. The one with dropout draws from the default generator.
std::vector<SmallModel> SmallModels();

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_SMALL_MODELS_H_
