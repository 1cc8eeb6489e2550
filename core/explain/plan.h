// Plans: an attribution made ready for many inputs of one kind. Model, sizes, split, baseline, targets and policy are
// fixed; the model runs once, when the plan is made, and later rows go through the operators that it called.
//
// Note [Plans]
// A plan gives what Attribute() gives, bit for bit, or refuses. The recorded run is repeated on each input (Note
// [Repeated runs] in core/run/repeated_run.h); references, rules, policies and marks of all calls are those of
// the first run. Everything behind it is the code that attributes any run. Whether the record tells all that the model
// does is asked when the plan is made: the plain model runs on the baseline and on a point near the plan's own input,
// and a repetition has to give the same there, to rounding. This finds what bypasses LibTorch's dispatcher: numbers
// that a program reads through NumPy or a pointer.
//
// A plan holds the model's parameters as they were. Those that were written in place since are noticed, as autograd
// counts writes; a parameter that was replaced by another tensor is not.
#ifndef ADDEND_CORE_EXPLAIN_PLAN_H_
#define ADDEND_CORE_EXPLAIN_PLAN_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/explain/attribute.h"
#include "core/explain/input.h"
#include "core/explain/recorded_model.h"
#include "core/model/model.h"

namespace addend {

class AttributionPlan {
 public:
  // Plans attributions of inputs like these. With AttributeOptions::each_example, a later batch may have another number
  // of examples, for which the model runs once more; everything else keeps its size. Throws what Attribute() throws,
  // and FailedPrecondition, with an operator's position, where the model cannot be planned: it draws random numbers,
  // writes its own memory, gives sizes that depend on elements, or computes something that no operator shows. Refused
  // are also a memory limit, explicit parts and splits inside the model.
  static std::shared_ptr<const AttributionPlan> Make(std::shared_ptr<Model> model, const std::vector<Input>& example,
                                                     const AttributeOptions& options);
  // Plans repetitions of a run that the caller's own program made, as Attribute() of it would be recorded. `inputs`: of
  // the run; `held`: the model's parameters and buffers. Its outputs tell what they are on the baseline, where that is
  // known; without it, what bypasses the dispatcher is not found. Batches keep their size.
  static std::shared_ptr<const AttributionPlan> Of(RecordedRun run, const std::vector<Input>& inputs,
                                                   const AttributeOptions& options,
                                                   const std::vector<std::pair<std::string, at::Tensor>>& held = {});
  ~AttributionPlan();

  // Attributes the targets for other inputs, in the order of the plan's. Plain inputs are as they were: undefined, or
  // equal to the plan's. Any number of threads may do so at once. Throws InvalidArgument for inputs of another number,
  // size, dtype or device, plain ones that differ, and elements that are not finite; FailedPrecondition where the model
  // would go another way, or parameters were written since; and what Attribute() throws of targets and failures.
  Attribution Attribute(const std::vector<at::Tensor>& values, const StageProgress& progress = nullptr) const;

  const AttributeOptions& options() const;
  // The inputs that the plan was made of.
  const std::vector<Input>& inputs() const;

 private:
  class Sized;
  struct Parts;
  explicit AttributionPlan(std::unique_ptr<Parts> parts);
  std::shared_ptr<const Sized> For(const std::vector<at::Tensor>& values, const StageProgress& progress) const;

  std::unique_ptr<Parts> parts_;
};

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_PLAN_H_
