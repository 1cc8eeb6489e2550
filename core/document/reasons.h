// Reasons: what people are told of a decision, in order: the concepts whose contributions speak against whom it is
// about (or for them), with what the sum leaves open beside them.
//
// Note [What counts as a reason]
// The contribution of a concept is the sum of its components' contributions to the target. A concept is a reason where
// that sum has the sign that was asked for and a magnitude of at least the threshold, which is the larger one of the
// two that the description gives: an absolute one, and a share of |value - reference|. Reasons come in the order of
// magnitudes; equal ones in the order of the description, behind them components that stand for themselves in theirs.
// Where nothing passes, there is no principal reason, and none is made up. Nothing is rounded before it is compared.
#ifndef ADDEND_CORE_DOCUMENT_REASONS_H_
#define ADDEND_CORE_DOCUMENT_REASONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/document/concepts.h"
#include "core/document/explanation.h"
#include "core/document/report_json.h"
#include "core/explain/attribute.h"

namespace addend {

struct Reason {
  size_t concept_number = 0;  // among the concepts of its Reasons
  double contribution = 0;
  std::optional<std::string> value;     // as the text shows it; none: the concept's elements have no numbers
  std::optional<std::string> baseline;  // likewise
  std::string text;
};

// One explained number and its reasons. Reference, reasons, others and leftover add up to the recovery.
struct Decision {
  enum class Outcome {
    kReasons,
    kNoPrincipalReason,  // nothing passes the threshold
    kNotFinite,          // numbers are not finite, so that nothing can be said
  };
  Outcome outcome = Outcome::kReasons;
  std::string name;    // as ExplainedTarget::name
  std::string target;  // as text
  double value = 0;
  double reference = 0;
  double leftover = 0;
  double recovery_error = 0;
  double conditioning = 1;
  double threshold = 0;  // that reasons had to pass here
  int64_t passing = 0;   // how many concepts passed, given or not
  double others = 0;     // the sum of all concepts that are not given as reasons
  std::vector<Reason> reasons;
  std::vector<std::string> notes;
};

struct Reasons {
  struct NamedConcept {
    std::string name;
    std::string code;
    std::optional<std::string> unit;
    std::vector<std::string> components;  // names
  };
  // How they were chosen.
  bool adverse_is_negative = true;
  Concepts::Side side = Concepts::Side::kAdverse;
  int64_t at_most = 0;
  double threshold = 0;
  double threshold_share = 0;

  std::string at;             // the tensor that is explained; empty: the first output
  bool each_example = false;  // whether there is a decision for each example; else for each target
  std::vector<NamedConcept> concepts;
  std::vector<Decision> decisions;
  std::vector<std::string> notes;                          // of the run
  std::string reference_is_model_on_baseline = "unknown";  // as of Report
  Json origin;                                             // what the document says of model, inputs and policy
};

// The reasons of all targets of an attribution, or of all its examples, in their order. Costs a pass over contributions
// and elements. Throws InvalidArgument where BindConcepts does, and where a text asks for a value that is no number of
// an input's elements.
Reasons FindReasons(const Attribution& attribution, bool each_example, const std::string& at, const ExplainedRun& run,
                    const Concepts& concepts, const Writer& writer);
// Reasons of an explanation, also of one that was read: its document tells values of components that are one number.
Reasons FindReasons(const Explanation& explanation, const Concepts& concepts, const Writer& writer);

// {"format": "addend.reasons", "version": 1, ...}
Json ReasonsJson(const Reasons& reasons);
// The page that shows them, from the text of their document; it needs nothing else. Throws InvalidArgument for any
// other text.
std::string ReasonsHtml(const std::string& json);

// A number as texts show it: whole ones whole, others with six significant digits, or with `decimals`.
std::string ShownNumber(double number, std::optional<int> decimals);

}  // namespace addend

#endif  // ADDEND_CORE_DOCUMENT_REASONS_H_
