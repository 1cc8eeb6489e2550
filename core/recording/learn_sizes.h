// Records a model with inputs of several sizes, so that the program holds for other sizes too.
//
// Note [Learned sizes]
// A recording holds the sizes of its inputs as numbers: view(x, [2, 15]) where the model said view(x, [n, 3 * t]). Of
// several recordings each such number is fitted as factor * size + offset of one dimension of an input. Two sizes fit
// any line: a third one verifies it, and what does not follow is refused, with the operator's name.
#ifndef ADDEND_CORE_RECORDING_LEARN_SIZES_H_
#define ADDEND_CORE_RECORDING_LEARN_SIZES_H_

#include <ATen/core/ivalue.h>

#include <vector>

#include "core/recording/record_program.h"

namespace addend {

// Records the first example, and from the others learns which dimensions of the inputs may have other sizes and which
// numbers follow them: arguments, and elements of constants. A dimension that comes in two sizes only is tried with a
// third, for which inputs are cut off. Dimensions that always had equal sizes must have so in every replay. Every
// example is replayed and gives what the model gives, bit for bit. Throws InvalidArgument for examples that differ in
// more than sizes, and FailedPrecondition, with the position, where the model calls other operators for other sizes,
// where a number follows no dimension, several that these examples do not tell apart, or none linearly, and where
// numbers or constants depend on elements.
Recording RecordSizes(Model& model, const std::vector<std::vector<c10::IValue>>& examples,
                      const RecordOptions& options = {});
// The same of whatever `record` records.
Recording RecordSizes(const RecordExample& record, const std::vector<std::vector<c10::IValue>>& examples);

}  // namespace addend

#endif  // ADDEND_CORE_RECORDING_LEARN_SIZES_H_
