// The forward sweep in chunks: some components at a time, so that rows take no more memory than they may.
//
// Note [Chunks]
// Rows do not meet each other on their way through a linearization, so that components may move one group after the
// other, without running the model again. The first chunk is a sweep like any other, with one component more: the sum
// of all that are not in it. So brackets are found and every operator is checked as in a single sweep. The other chunks
// carry nothing but their components. At the probes, what those come to is compared with what their sum became in the
// first chunk.
#ifndef ADDEND_CORE_LINEARIZE_CHUNKS_H_
#define ADDEND_CORE_LINEARIZE_CHUNKS_H_

#include <cstdint>

#include "core/linearize/linearization.h"
#include "core/linearize/sweep.h"

namespace addend {

struct ChunkOptions {
  // Components that move at once; 0: as many as `memory_bytes` allows.
  int64_t components = 0;
  // What the parts of the probes and the rows on their way to them may take together, beside the model and its recorded
  // run; 0: any amount.
  int64_t memory_bytes = 0;
};

// Peak bytes of a sweep per row: all rows that are alive at the same node, and the copies that its map makes.
int64_t PeakBytesPerRow(const Linearization& linearization);

// As SweepForward, the same to rounding however many chunks there are. Throws also FailedPrecondition, with the
// operator's position, where more than one chunk is needed but the policy's choice looks at all components together,
// and InvalidArgument where not even one component fits into the memory.
SweepResult SweepInChunks(const Linearization& linearization, const ChunkOptions& options,
                          const Progress& progress = nullptr);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_CHUNKS_H_
