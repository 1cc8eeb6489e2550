// The part of a model that is computed: outputs that hold no numbers are left out, with all that only they need.
//
// Classifiers end in labels that are texts, and in maps from these to scores. The scores themselves are mostly an
// output too, or on the way, and are what somebody asks about.
#ifndef ADDEND_CORE_ONNX_COMPUTED_PART_H_
#define ADDEND_CORE_ONNX_COMPUTED_PART_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/onnx/graph.h"

namespace addend::onnx {

struct ComputedPart {
  std::vector<int> outputs;            // of the graph, in order: those that are computed
  std::vector<std::string> left_out;   // the names of the others
  absl::flat_hash_set<int> operators;  // that only the others need: indices into the graph's operators
  absl::flat_hash_set<int> values;     // that nothing else reads
};

// Tells the part of the model's graph. An output is left out where the file says that it is a text, a map or a list of
// maps; but one that `ZipMap` makes is kept where that is an operator of the table, which gives the tensor that it
// reads.
ComputedPart ComputedPartOf(const Body& body);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_COMPUTED_PART_H_
