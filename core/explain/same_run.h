// Whether a second run of a model is its first.
//
// Note [Two runs]
// Some questions take more than one run of the model: a split that starts inside it, a reference that is verified, a
// plan that is compared with the model. What a run leaves for the next one is put back between them as far as anybody
// knows of it (Model::KeepState, random numbers). A list or a counter that the model's own code keeps is not known. So
// the runs are compared where an answer depends on both, and a difference is an error: there is no telling which of the
// two runs the answer would be about.
#ifndef ADDEND_CORE_EXPLAIN_SAME_RUN_H_
#define ADDEND_CORE_EXPLAIN_SAME_RUN_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/policy.h"
#include "core/explain/input.h"
#include "core/model/model.h"

namespace addend {

// The largest difference of two tensors of one shape over the largest magnitude of `expected` (over 1 where that is
// zero); infinite where the shapes differ, NaN where the one is NaN and the other is not.
double RelativeDifference(const at::Tensor& found, const at::Tensor& expected);

// Whether such a difference counts as rounding: within 1000 times the precision of the dtype.
bool IsRounding(double difference, const at::Tensor& expected);

// Runs the plain model on copies of `values`, in place of the prepared inputs', and computes in the dtype in which a
// traced run of that policy does. Returns copies of the floating-point and complex tensors that it gives, in their
// order. `which` run that is, says the error where the model fails: ", once more". Throws what RunModel() throws.
std::vector<at::Tensor> RunPlain(Model& model, const PreparedInputs& inputs, const std::vector<at::Tensor>& values,
                                 ComputeDtype compute, const std::string& which);

// The name of the first tensor that differs by more than rounding between two runs; empty where none does.
std::string FirstApart(const std::vector<std::pair<std::string, at::Tensor>>& first,
                       const std::vector<at::Tensor>& second);

// FailedPrecondition about an output at which two runs of one model differ. `where`: the operator at which they part,
// as CheckTrace() says it; empty where that is not known.
Error RunsApart(const std::string& output, const std::string& where);

// Runs the model twice more on these inputs, one run after the other, and says at which operator the two runs part;
// empty where they do not. The model's state is as it was, afterwards.
std::string WhereRunsPart(Model& model, const std::vector<c10::IValue>& inputs);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_SAME_RUN_H_
