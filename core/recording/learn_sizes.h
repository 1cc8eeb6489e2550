// Records a model with inputs of several sizes, so that the program holds for other sizes too.
//
// Note [Learned sizes]
// A recording holds the sizes of its inputs as numbers: view(x, [2, 15]) where the model said view(x, [n, 3 * t]). From
// several recordings, each such number is fitted as factor * size + offset of one dimension of an input, or of the
// product of two. Two sizes fit any line: a third one verifies it. A number that is on no line is fitted to the size
// divided and rounded down, as 3 * (n // 2) is, where twice as many sizes as the divisor says were tried, one after the
// other. A number that does not follow is refused, with the operator's name. What is learned is confirmed by another
// run of the first example: a number that is another then, as a counter of calls is, is no function of sizes.
//
// Nobody knows what a model does at sizes that were not tried: it may cut off what is longer than 512. So the program
// holds between the sizes that were tried, and refuses others. To reach further than the examples, others are derived
// from the first one: parts of it, and by repetition twice as many elements as the largest has, or nine. Where there is
// one example only, all others are derived, first of one dimension, then of all of which something was learned. Where
// nothing is learned from some sizes, fewer or nearer ones are tried: what is learned of these is compared with the
// model at all that failed before, and ends before a size at which the model does something else.
//
// Sizes in between may be special, too: a model that pads to a multiple of seven pads nothing where all sizes are such.
// Where all sizes that were tried leave the same remainder, their neighbours are tried as well, and where the model
// does something else there, or refuses them, the program holds for sizes of that remainder.
#ifndef ADDEND_CORE_RECORDING_LEARN_SIZES_H_
#define ADDEND_CORE_RECORDING_LEARN_SIZES_H_

#include <ATen/core/ivalue.h>

#include <vector>

#include "core/recording/record_program.h"

namespace addend {

// Records the first example, and learns from the others which dimensions of the inputs may have other sizes and which
// numbers (arguments, elements of constants) follow them. A dimension that has only two sizes is tried with a third,
// for which an input is repeated or cut. Dimensions that had equal sizes in every example must have equal sizes in
// every replay. Every example is replayed and gives what the model gives, bit for bit. Throws InvalidArgument for
// examples that differ in more than sizes; throws FailedPrecondition, with the position, if the model calls other
// operators for other sizes, if a number follows no dimension, several that these examples cannot tell apart, or none
// linearly, and if numbers or constants depend on elements. Derived examples never fail: where the model refuses one,
// or does something else, the program is what it is without.
//
// One example: others are derived from it. A dimension of which nothing can be learned keeps its size, so that the
// program may have no free dimension at all; about ten runs of the model for each dimension.
Recording RecordSizes(Model& model, const std::vector<std::vector<c10::IValue>>& examples,
                      const RecordOptions& options = {});
// Learns sizes from whatever `record` records. It leaves generators that the model draws from and that are not the
// default ones as it found them: replays draw what recordings drew.
Recording RecordSizes(const RecordExample& record, const std::vector<std::vector<c10::IValue>>& examples);

}  // namespace addend

#endif  // ADDEND_CORE_RECORDING_LEARN_SIZES_H_
