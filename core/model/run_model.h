// Running a model for whoever records it.
#ifndef ADDEND_CORE_MODEL_RUN_MODEL_H_
#define ADDEND_CORE_MODEL_RUN_MODEL_H_

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "core/model/model.h"

namespace addend {

// Runs the model without gradients. What it throws becomes InvalidArgument with one line, in which `described` stands
// for the inputs; errors of Addend's own pass through.
c10::IValue RunModel(Model& model, const std::vector<c10::IValue>& inputs, const std::string& described);

}  // namespace addend

#endif  // ADDEND_CORE_MODEL_RUN_MODEL_H_
