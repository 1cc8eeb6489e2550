// Which number of an output is explained: an element, the difference of two, or what a distribution over the last
// dimension says.
//
// Note [Targets that are no elements]
// A target is a function F of the explained tensor Y. The parts of Y are given to F by its mean gradient g along the
// straight line from the reference Y' to the value: a component c of Y contributes <g, c>. With p the softmax of a row
// at a point of the line and H its entropy, the gradients are
//   log_probability of c   e_c - p
//   probability of c       p_c (e_c - p)
//   entropy                -p (log p + H)
// and g is their mean, in float64, over the nodes that the path rule of softmax takes: g depends on no policy, as that
// rule does not. What this quadrature and the rounding of g miss, the bracket F(Y) - F(Y') - <g, Y - Y'>, is measured
// and added to the leftover. Elements and differences are linear, and have none.
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
  };
  Quantity quantity = Quantity::kElement;
  // Of elements and their probabilities: the largest element; of [1, positions, classes], what models of sequences
  // give, that of the last position.
  bool top1 = true;
  // Else this element, or the position of an entropy; negative numbers count from the end. See FindElements for what
  // may be left out.
  std::vector<int64_t> index;
  std::vector<int64_t> subtract;  // of an element: minus this one, where it is not empty
  std::vector<int64_t> ids;       // of a continuation
  std::vector<Target> parts;      // of a sum: no sums themselves
};

bool operator==(const Target& a, const Target& b);

// The quantity's word in a target's text: "log_probability"; "" for elements.
const char* QuantityWord(Target::Quantity quantity);

// A target from its text. Throws InvalidArgument that lists the forms.
//   top1                        the largest element
//   3     0,3     0,-1,3        an element
//   3-5   0,3-0,5               the first minus the second
//   probability:3               of an element, also of top1, under softmax over the last dimension
//   log_probability:3           its logarithm
//   entropy   entropy:5         of the distribution over the last dimension, at a position
//   continuation:12,55,7        the log-probability of the last ids of the input, each given those before it
//   sum:3+5+entropy             of such targets
Target ParseTarget(const std::string& text);
// The text that ParseTarget reads as this target.
std::string TargetText(const Target& target);

// Finds which elements of a value a target asks for: the same target with a complete index, without top1. The index of
// an entropy tells the row, that of a continuation the sequence. `example`: the first dimension counts examples, and
// the target, whose index leaves it out, is of this one.
//
// An index may leave out leading dimensions of size 1. A class alone, and an entropy without a position, are those of
// the last position of [1, positions, classes], as top1 is. Throws InvalidArgument where an index does not fit the
// value, where one of several rows has to be named, and where the value is complex or empty.
Target FindElements(const at::Tensor& value, const Target& target, std::optional<int64_t> example = std::nullopt);

// One element as a view without dimensions. index: complete.
at::Tensor ElementAt(at::Tensor tensor, const std::vector<int64_t>& index);
// The number that a target is in a tensor of the value's shape. target: as FindElements gives it.
double NumberAt(const at::Tensor& tensor, const Target& target);

// What a target weighs the elements of a tensor with: an element, or a whole row. See the note above.
struct TargetWeight {
  std::vector<int64_t> index;  // of an element, or of a row: all dimensions but the last
  double number = 1;           // of an element
  at::Tensor row;              // of a row: [classes], float64, rounded to the dtype of rows; undefined: an element
};

// The mean gradient of a target between reference and value. target: as FindElements gives it. Throws InvalidArgument
// where a row is not finite, unless it is -inf at the same places in both, or asks for the logarithm of such a place;
// Unimplemented where a row moves farther than can be followed.
std::vector<TargetWeight> WeightsOf(const at::Tensor& value, const at::Tensor& reference, const Target& target);
// Adds the weights to a cotangent of the value's shape.
void AddWeights(const std::vector<TargetWeight>& weights, const at::Tensor& cotangent);
// What the mean gradient misses; zero for elements.
double BracketOf(const std::vector<TargetWeight>& weights, const at::Tensor& value, const at::Tensor& reference,
                 const Target& target);
// The magnitudes that a target is summed from: weight times value or reference, whichever is larger; zero for elements,
// whose own are known otherwise.
double TermsOf(const std::vector<TargetWeight>& weights, const at::Tensor& value, const at::Tensor& reference);

// Whether the numbers along the last dimension that an element is one of are probabilities. index: complete.
bool AreProbabilities(const at::Tensor& value, const std::vector<int64_t>& index);
// What a reader of a target has to know: that the tensor is made of probabilities already, and that a continuation is
// not what an input ends with. target: as FindElements gives it. `inputs`: values of the model's inputs.
std::vector<std::string> NotesOfTarget(const at::Tensor& value, const Target& target,
                                       const std::vector<at::Tensor>& inputs);

// One number and its parts. contributions: [numc]; their sum plus reference and leftover is the recovery.
struct Contributions {
  Target target;  // as FindElements gives it
  double value = 0;
  double reference = 0;
  double leftover = 0;
  double recovery = 0;
  double conditioning = 1;  // (sum |c| + |leftover|) / |value - reference|: 1 where nothing cancels
  double mass = 0;          // sum |c| + |leftover| + |reference|: what rounding is measured against
  double terms = 0;         // see TermsOf
  double scale = 0;         // the largest magnitude of the value that the target is a number of
  double tolerance = 0;     // how far recovery and value may be apart by rounding; see RecoveryAllowance
  std::vector<double> contributions;
};

// Fills what follows from value, reference, leftover and contributions: recovery, conditioning and mass.
void AddUp(Contributions& contributions);

// How far recovery and value may be apart: what rounding in this dtype makes of terms as large as these on their way
// through `operators`, but no more than the value's own scale allows. `tolerance`: Policy::tolerance.
double RecoveryAllowance(const Contributions& contributions, at::ScalarType dtype, int64_t operators,
                         std::optional<double> tolerance);

// `report`: of the run that gave the composition; its operators and its policy tell what rounding may do. Null: the
// operators are those that the composition itself knows of. Throws what FindElements and WeightsOf throw.
Contributions Contribute(const at::Tensor& value, const Composition& composition, const Target& target,
                         const Report* report = nullptr);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_TARGET_H_
