// Runs a model that is being recorded.
#ifndef ADDEND_CORE_MODEL_RUN_MODEL_H_
#define ADDEND_CORE_MODEL_RUN_MODEL_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <exception>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/model.h"

namespace addend {

// An error's message in one line. LibTorch's messages are pages: the sentence is the first line of its own errors and
// the last of its interpreter's.
std::string SentenceOf(const std::exception& error);

// Text that stands for inputs in messages.
std::string DescribeInputs(const std::vector<at::Tensor>& inputs);
// InvalidArgument with one line about what a model threw.
Error FailsOn(const std::string& described, const std::exception& error);

// Runs the model without gradients. What it throws becomes what FailsOn() gives, in which `described` stands for the
// inputs; errors of Addend's own pass through.
c10::IValue RunModel(Model& model, const std::vector<c10::IValue>& inputs, const std::string& described);

}  // namespace addend

#endif  // ADDEND_CORE_MODEL_RUN_MODEL_H_
