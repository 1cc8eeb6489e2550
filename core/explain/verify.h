// Verifies the reference: is it what the model computes on the baseline?
//
// Note [Two answers]
// Report::reference_is_model_on_baseline is found without another run: from the places where the model makes
// conditions, indices and numbers of its input. A "no" is certain, but this cannot see what happens outside LibTorch's
// dispatcher. A run of the plain model on the baseline sees everything, and costs a run.
#ifndef ADDEND_CORE_EXPLAIN_VERIFY_H_
#define ADDEND_CORE_EXPLAIN_VERIFY_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "core/explain/input.h"
#include "core/explain/report.h"
#include "core/linearize/linearization.h"

namespace addend {

// Says in the report whether the reference is what the model computes on the baseline, from what the recorded run
// shows.
void FillReference(const Linearization& linearization, Report& report);

// Says so where the reference of an input is not the baseline that was asked for, since elements of its value are NaN
// or infinite: then nobody knows, unless the reference is verified, whether the model gives on that baseline what it
// gives on the reference.
void DoubtReference(const PreparedInputs& prepared, Report& report);

// Adds what the model says of itself (Model::Notes) to a report that is filled otherwise. Where that is that gradients
// read what only the recorded run had, nobody knows whether the reference is the model on the baseline, unless it was
// verified.
void AddModelNotes(const std::vector<std::string>& notes, Report& report);

// Throws InvalidArgument: of a split that starts inside the model no argument can hold the baseline.
[[noreturn]] void RefuseInside();

// Compares the reference of the output `name` with what the model gave on the baseline, and writes the outcome into the
// report. They count as equal within 1000 times the precision of the dtype, relative to the largest magnitude there.
// With several outputs the report has the worst. `require_repeatable`: where they are not equal, is called before
// anything is said; null: nobody can tell whether a second run is the first.
void CompareReference(const std::string& name, const at::Tensor& reference, const at::Tensor& on_baseline,
                      const std::function<void()>& require_repeatable, Report& report);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_VERIFY_H_
