// The explanation document: numbers of a model and what each is made of, for programs (JSON) and for people (a page).
// docs/schemas has the schema of each document that this folder writes.
#ifndef ADDEND_CORE_DOCUMENT_EXPLANATION_H_
#define ADDEND_CORE_DOCUMENT_EXPLANATION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/composition/composition.h"
#include "core/document/components.h"
#include "core/document/report_json.h"
#include "core/explain/attribute.h"
#include "core/explain/several_baselines.h"
#include "core/explain/target.h"

namespace addend {

// Facts about the run that gave a number, as documents tell them.
struct ExplainedRun {
  Report report;
  Preset preset = Preset::kAuto;  // as asked for
  std::string model_path;         // empty: no file
  std::string model_sha256;
  std::vector<ExplainedInput> inputs;
  Components components;
  std::vector<std::string> classes;  // names along the last dimension of the outputs; may be empty
};

struct ExplainedTarget {
  std::string name;    // "output [0, 7]", "German", "German minus Dutch", "log-probability of 42 at position 5"
  bool named = false;  // the name is that of classes and nothing else
  Contributions numbers;
  std::optional<BaselineSpread> spread;  // where the numbers are means over several baselines
  std::optional<double> probability;     // where the number is a probability, its logarithm, or the score of one

  double recovery_error() const { return numbers.recovery - numbers.value; }
};

// One of the examples of a batch, each of which has a target of its own.
struct BatchExample {
  size_t number = 0;
  size_t count = 1;
};

struct Explanation {
  std::shared_ptr<const ExplainedRun> run;                  // null: nothing is known but the numbers
  std::string at;                                           // the tensor that is explained; empty: the first output
  std::optional<BatchExample> example;                      // that the numbers are of; none: of the whole inputs
  std::vector<ExplainedTarget> targets;                     // the one asked for first; all of one tensor
  std::optional<std::vector<OperatorRelevance>> operators;  // what passed through them, where that was asked for
  std::vector<std::string> notes;                           // further ones, behind those of the report
  std::string stored;                                       // the JSON that it was read from; empty: it was not
};

// Name of a target of the tensor `at`; see ExplainedTarget::name. target: as FindElements gives it.
std::string NameTarget(const at::Tensor& value, const std::string& at, const std::vector<std::string>& classes,
                       const Target& target);
// One target of the tensor `at` of a run. `classes`: see ExplainedRun.
ExplainedTarget DescribeTarget(const at::Tensor& value, const std::string& at, const std::vector<std::string>& classes,
                               Contributions numbers);
// Whether the last dimension of a result has one element for each class.
bool HasClasses(const at::Tensor& value, const std::string& at, const std::vector<std::string>& classes);

// One number of a composition. Throws what FindElements() throws.
Explanation Explain(const Composition& composition, const Target& target, const std::string& at,
                    std::shared_ptr<const ExplainedRun> run);
// All targets of an attribution, with its operators where they were `asked` for.
Explanation Explain(const Attribution& attribution, bool asked, const std::string& at,
                    std::shared_ptr<const ExplainedRun> run);

// "[0, 7]", "[0, 7] minus [0, 2]" of a difference, "log-probability of [0, 5, 42]", "entropy of [0, 5]".
std::string DescribeElements(const Target& target);
// The values of a run's inputs.
std::vector<at::Tensor> InputsOf(const ExplainedRun& run);
// Name of a component: that of the run, or ComponentName() if the run has other components.
std::string NameOf(const Explanation& explanation, int64_t component);

// A sentence for readers where the parts cancel nearly all of each other; empty where they do not.
std::string DescribeCancelling(const Contributions& numbers);

// {"format": "addend.explanation", "version": 1, ...}
Json ExplanationJson(const Explanation& explanation, const Writer& writer);
// The page that shows it: it needs nothing else; see page/README.md.
std::string ExplanationHtml(const Explanation& explanation, const Writer& writer);
// An explanation from its JSON, also from one that was written before documents had a version: numbers of all targets,
// names, and the text itself, which holds the rest. Throws InvalidArgument.
Explanation ReadExplanation(const std::string& json);

}  // namespace addend

#endif  // ADDEND_CORE_DOCUMENT_EXPLANATION_H_
