// Which number of an output is explained: an element, the difference of two, or what a distribution over the last
// dimension says.
#ifndef ADDEND_CORE_EXPLAIN_TARGET_H_
#define ADDEND_CORE_EXPLAIN_TARGET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/composition/composition.h"

namespace addend {

struct Report;

struct Target {
  enum class Quantity {
    kElement,         // an element, or the difference of two
    kProbability,     // of an element under softmax over the last dimension
    kLogProbability,  // its logarithm
    kEntropy,         // of such a distribution, in nats
    kContinuation,    // the log-probability of the ids that an input ends with
    kSum,             // of other targets
    kRegion,          // all elements of a region, added up: a part of a sum only
  };
  // Part of one dimension that a region takes: one index, or those from `begin` on before `end`. Negative ones count
  // from the end.
  struct Span {
    int64_t begin = 0;
    std::optional<int64_t> end = std::nullopt;  // none: to the last
    bool one = false;                           // `begin` alone
  };
  Quantity quantity = Quantity::kElement;
  // For elements and their probabilities: whether the largest element is meant; of [1, positions, classes], what models
  // of sequences give, that of the last position.
  bool top1 = true;
  // Else this element, or the position of an entropy; negative numbers count from the end. See FindElements for what
  // may be left out.
  std::vector<int64_t> index;
  std::vector<int64_t> subtract;  // of an element: minus this one, where it is not empty
  std::vector<int64_t> ids;       // of a continuation
  std::vector<Target> parts;      // of a sum: no sums themselves
  std::vector<Span> region;       // by dimension; leading ones of size 1 may be left out
};

bool operator==(const Target::Span& a, const Target::Span& b);
bool operator==(const Target& a, const Target& b);

// The quantity's word in a target's text: "log_probability"; "" for elements.
const char* QuantityWord(Target::Quantity quantity);

// Whether the text of a part of a sum is that of a region.
bool IsRegionText(const std::string& text);
// A target from its text. Throws InvalidArgument that lists the forms.
//   top1                        the largest element
//   3     0,3     0,-1,3        an element
//   ()                          the only one of a tensor without dimensions
//   3-5   0,3-0,5               the first minus the second
//   probability:3               of an element, also of top1, under softmax over the last dimension
//   log_probability:3           its logarithm
//   entropy   entropy:5         of the distribution over the last dimension, at a position
//   continuation:12,55,7        the log-probability of the last ids of the input, each given those before it
//   sum:3+5+entropy             of such targets
//   sum:0,2,:,10:20             of all elements of a region: each dimension has an index, a range, or all (:)
Target ParseTarget(const std::string& text);
// The text that ParseTarget reads as this target.
std::string TargetText(const Target& target);

// Finds which elements of a value a target asks for: the same target with a complete index, without top1. The index of
// an entropy tells the row, that of a continuation the sequence.
//
// An index may leave out leading dimensions of size 1. A class alone, and an entropy without a position, are those of
// the last position of [1, positions, classes], as top1 is. Throws InvalidArgument where an index does not fit the
// value, where one of several rows has to be named, and where the value is complex or empty.
Target FindElements(const at::Tensor& value, const Target& target);
// Finds the elements in each example; the first dimension counts examples, and indices leave it out. `targets`: one for
// all, or one for each.
std::vector<Target> FindElementsOfEach(const at::Tensor& value, const std::vector<Target>& targets);

// One element as a view without dimensions. index: complete.
at::Tensor ElementAt(at::Tensor tensor, const std::vector<int64_t>& index);

// One number and its parts. contributions: [numc]; their sum plus reference and leftover is the recovery.
struct Contributions {
  Target target;  // as FindElements gives it
  double value = 0;
  double reference = 0;
  double leftover = 0;
  double recovery = 0;
  double conditioning = 1;  // see ConditioningOf: 1 where nothing cancels
  double mass = 0;          // sum |c| + |leftover| + |reference|: what rounding is measured against
  double terms = 0;         // see TargetNumbers
  double scale = 0;         // of the row that the target is a number of; see OutputScales
  double rounding = 0;      // what rounding may do to terms of this size; see RoundingAllowance
  double tolerance = 0;     // how far recovery and value may be apart; see RecoveryAllowance
  bool single = false;      // the parts are rounded as single precision is
  std::vector<double> contributions;
};

// Fills what follows from value, reference, leftover and contributions: recovery, conditioning and mass.
void AddUp(Contributions& contributions);

// Conditioning, of sums of magnitudes: the largest of parts (components and leftover) and reference, over the value and
// over the move. 1 where there are no parts.
double ConditioningOf(double parts, double reference, double value, double move);
// The magnitudes of the parts over that of the move alone: how much of them cancels. 1 where nothing does. From
// kIllConditioned on no single part means much.
double Cancelling(const Contributions& contributions);
constexpr double kIllConditioned = 1e3;
// The leftover over the move from which on it is told of.
constexpr double kMuchLeftover = 0.2;

// The error that rounding in this dtype makes in terms as large as these on their way through `operators`. `tolerance`:
// Policy::tolerance.
double RoundingAllowance(const Contributions& contributions, at::ScalarType dtype, int64_t operators,
                         std::optional<double> tolerance);
// How far recovery and value may be apart: the same, but no more than the value's own scale allows (RecoveryLimits).
double RecoveryAllowance(const Contributions& contributions, at::ScalarType dtype, int64_t operators,
                         std::optional<double> tolerance);

// `report`: of the run that gave the composition; its operators and its policy tell what rounding may do. Null: the
// operators are those that the composition itself knows of. Throws what FindElements and ReadTargets throw.
Contributions Contribute(const at::Tensor& value, const Composition& composition, const Target& target,
                         const Report* report = nullptr);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_TARGET_H_
