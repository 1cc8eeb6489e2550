// Attributions of many examples of one model, each with a baseline and a target of its own, in batches.
//
// Note [Examples in batches]
// Examples are put one behind the other along the first dimension, and a batch of them is attributed in one sweep
// (AttributeOptions::each_example). That gives what each would have alone only if no example influences another. So the
// first and the last example of the first batch are attributed alone, too, and compared: where they differ by more than
// rounding, the batch is refused. A model that does not take batches, because a size is fixed in it or the explained
// tensor does not count examples, is run on one example at a time, and a note says so. So is a model that reads numbers
// of its input, which in a batch would be those of all examples together.
#ifndef ADDEND_CORE_EXPLAIN_EXAMPLES_H_
#define ADDEND_CORE_EXPLAIN_EXAMPLES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/explain/attribute.h"
#include "core/explain/note_counts.h"
#include "core/program/random_state.h"

namespace addend {

// Returns one of the examples that a batch counts, [1, *row], or the whole input if there is one, [*S].
at::Tensor CutExample(const at::Tensor& whole, bool each_example, int64_t example, int64_t examples);

// Inputs and target of one example; tensors by input of the model, each of the shape that one example has.
struct Example {
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> baselines;  // undefined for plain inputs
  std::vector<at::Tensor> labels;     // int64, counted on the axis of all inputs; undefined for plain ones
  Target target;                      // complete, in the explained tensor of this example alone
};

struct ExampleAttribution {
  Contributions numbers;             // as many contributions as the whole has components
  std::vector<at::Tensor> elements;  // by input: of the shape of the example's; undefined for plain inputs
};

class Examples {
 public:
  // prepared: of inputs that the examples are cut from. Throws InvalidArgument for inputs that are given as explicit
  // parts or start inside the model, and where operators are asked for. at_once: how many examples at most; 0: as many
  // as seems reasonable. `one`: what notes call the run of an example: "with a later baseline". Refers to the model.
  Examples(const TracedModel& model, const std::vector<Input>& inputs, const PreparedInputs& prepared,
           const AttributeOptions& options, std::string one, int64_t at_once = 0);
  // Finishes where nobody has, and says nothing of what fails there: another error is on its way.
  ~Examples();
  Examples(const Examples&) = delete;
  Examples& operator=(const Examples&) = delete;

  // Attributes the whole that examples are cut from. All runs begin in the state that the model has when this is made,
  // and draw the same random numbers.
  Attribution First(const std::vector<Input>& inputs);
  // How many examples there are in one batch.
  int64_t at_once() const { return at_once_; }
  // Makes batches of multiples of `count` examples, where that many fit: baselines that repeat are then kept.
  void Align(int64_t count);
  // Attributes `count` examples in their order, and hands each over. Throws what Attribute() throws, and
  // FailedPrecondition where examples influence each other.
  void Run(int64_t count, const std::function<Example(int64_t)>& example,
           const std::function<void(int64_t, ExampleAttribution)>& take);
  // Leaves the model, and the generators of random numbers, as the run of First() left them.
  void Finish();
  // Adds what is to be known of all examples to the report of one run: warnings of other runs, each with how many have
  // it, and whether all references are the model on the baseline.
  void AddTo(Report& report) const;

 private:
  std::vector<Input> InputsOf(const std::vector<Example>& examples) const;
  // Both attribute in one run each, and set `report` to the report of that run.
  ExampleAttribution Alone(const Example& example, Report& report);
  std::vector<ExampleAttribution> Together(const std::vector<Example>& examples, Report& report);
  void Begin();
  void TakeNotes(const Report& report);
  bool CanBatch(const Example& example) const;
  AttributeOptions OptionsFor(std::vector<Target> targets, bool each_example) const;

  const TracedModel& model_;
  std::vector<std::string> names_;  // of inputs
  int64_t numc_;
  AttributeOptions options_;
  int64_t at_once_ = 1;
  bool exact_ = true;  // float64
  std::shared_ptr<KnownInfluence> influence_ = std::make_shared<KnownInfluence>();
  std::vector<std::string> notes_;
  const std::string one_;
  NoteCounts warnings_;
  int64_t taken_ = 0;                // runs that were looked at
  std::string on_baseline_ = "yes";  // Report::reference_is_model_on_baseline of all runs so far
  std::string reason_;
  std::vector<at::Tensor> values_;  // of the whole, by input
  std::shared_ptr<ModelState> before_;
  RandomState drawn_before_;
  std::shared_ptr<ModelState> after_;
  std::optional<RandomState> drawn_after_;
};

// Throws FailedPrecondition where an example that was attributed among others has other numbers than alone, beyond what
// rounding may do, so that examples influence each other. exact: all inputs are float64 or ids.
void RequireNoInfluence(const Contributions& among, const Contributions& alone, bool exact);

// A target of any example of a batch as that of an example alone, which is the first of its batch.
Target OfFirstExample(Target target);
// A target without the first dimension of its indices, which counts examples.
Target WithoutExample(Target target);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_EXAMPLES_H_
