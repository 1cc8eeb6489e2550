// The numbers that targets are in a tensor and on its reference, and what they weigh the elements with: of all targets
// together, for a batch has thousands of them.
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
#ifndef ADDEND_CORE_EXPLAIN_TARGET_NUMBERS_H_
#define ADDEND_CORE_EXPLAIN_TARGET_NUMBERS_H_

#include <ATen/core/Tensor.h>
#include <c10/util/DimVector.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/explain/target.h"

namespace addend {

struct TargetNumbers {
  // Weight of one element in a target.
  struct ElementWeight {
    int64_t target = 0;
    int64_t row = 0;    // of the tensor as a matrix [rows, classes]
    int64_t place = 0;  // in the row
    double number = 1;
  };
  // Weights of a whole row in some targets.
  struct RowWeights {
    std::vector<int64_t> targets;
    std::vector<int64_t> rows;
    at::Tensor weights;  // [targets, classes], float64, rounded to the dtype of rows
  };

  // The weights of the elements in the targets, in the dtype of rows: [targets / together, *S], where each is the sum
  // of `together` targets that follow one another.
  at::Tensor Cotangent(int64_t together) const;
  // The contributions of rows [R, *S] to a single target, without its bracket: [R], float64.
  at::Tensor Weigh(const at::Tensor& rows) const;

  // Each by target.
  std::vector<double> values;
  std::vector<double> references;
  std::vector<double> brackets;  // what the mean gradient misses; zero for elements
  // The magnitudes that a target is summed from: weight times value and reference; zero for elements, whose own are
  // known otherwise.
  std::vector<double> terms;
  std::vector<bool> of_probabilities;  // what it takes a softmax of are probabilities already

  std::vector<ElementWeight> elements;
  std::vector<RowWeights> rows;
  at::DimVector sizes;        // of the tensor
  at::TensorOptions options;  // of its rows
};

// value, reference: [*S]. targets: as FindElements gives them. Throws InvalidArgument where a row is not finite, unless
// it is -inf at the same places in both, or asks for the logarithm of such a place; Unimplemented where a row moves
// farther than can be followed.
TargetNumbers ReadTargets(const at::Tensor& value, const at::Tensor& reference, const std::vector<Target>& targets);

// Whether the numbers along the last dimension that an element is one of are probabilities. index: complete.
bool AreProbabilities(const at::Tensor& value, const std::vector<int64_t>& index);
// Notes for a reader of the targets: that the tensor is made of probabilities already, and that a continuation is not
// what an input ends with. Each thing is said once, of the first target. targets: as FindElements gives them;
// `of_probabilities`: of TargetNumbers. `inputs`: values of the model's inputs.
std::vector<std::string> NotesOfTargets(const at::Tensor& value, const std::vector<Target>& targets,
                                        const std::vector<bool>& of_probabilities,
                                        const std::vector<at::Tensor>& inputs);
// Notes for a reader of one target.
std::vector<std::string> NotesOfTarget(const at::Tensor& value, const Target& target,
                                       const std::vector<at::Tensor>& inputs);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_TARGET_NUMBERS_H_
