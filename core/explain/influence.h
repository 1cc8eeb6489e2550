// Whether the examples of a batch influence each other, where each of them has targets of its own
// (AttributeOptions::each_example).
//
// Note [Influence between examples]
// All examples' targets of a kind are summed in one sweep. Examples that influence each other then take what they give
// to the others' targets for their own, and what they get from others is leftover. Three things tell that they do:
// - an operator that normalizes by the numbers of the batch;
// - a leftover of an example, where no operator left anything over; a second sweep tells it from rounding, by what
//   passes between that example and the others;
// - a second sweep in which the targets of examples have different weights. An example that contributes to its own
//   target alone comes back as in the first sweep, times its own weight. Weights are powers of two, so that nothing is
//   rounded but where terms cancel; another sweep for the example that differs most tells influence from that.
//   Leftovers cannot: operators may leave something over, and examples may get from the others just what they give to
//   them (x @ x.T from zero, examples that are equal).
#ifndef ADDEND_CORE_EXPLAIN_INFLUENCE_H_
#define ADDEND_CORE_EXPLAIN_INFLUENCE_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/explain/target.h"
#include "core/linearize/adjoint.h"

namespace addend {

// Result of a second sweep of one model, kept for the runs that repeat the first. Thread-safe.
class KnownInfluence {
 public:
  // Returns the result that was found before, or else what `find` gives, which is then kept.
  std::string Find(const std::function<std::string()>& find);

 private:
  std::mutex mutex_;
  std::optional<std::string> found_;
};

// Sends cotangents of the explained tensor back, [R, *S], and gives what comes to the elements of each input, [R, *S];
// undefined where that is plain.
using SendBack = std::function<std::vector<at::Tensor>(const at::Tensor& cotangents)>;

// A note that examples influence each other; empty if none was found. targets: of all examples, one kind after the
// other. cotangent: [kinds, examples, ...], of which `result` came. elements: what `result` gives to those of each
// input, kind after kind, example after example; undefined where that is plain. known: null: nothing is kept.
std::string InfluenceOf(const Linearization& linearization, const std::vector<Contributions>& targets,
                        const at::Tensor& cotangent, const AdjointResult& result,
                        const std::vector<at::Tensor>& elements, const SendBack& send_back, KnownInfluence* known);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_INFLUENCE_H_
