// Forward sweeps in chunks: some components at a time, so that rows fit into a memory limit.
//
// Note [Chunks]
// Rows do not depend on each other on their way through a linearization, so components may move in groups, without
// running the model again. The first chunk is a normal sweep with one more component, the sum of all components outside
// the chunk; it finds brackets and checks every operator. The other chunks carry components only. At the probes, their
// sum is compared with what that one component became.
#ifndef ADDEND_CORE_LINEARIZE_CHUNKS_H_
#define ADDEND_CORE_LINEARIZE_CHUNKS_H_

#include <cstdint>

#include "core/linearize/linearization.h"
#include "core/linearize/sweep.h"

namespace addend {

struct ChunkOptions {
  // How many components move at once; 0: as many as `memory_bytes` allows.
  int64_t components = 0;
  // The memory limit in bytes for the parts of the probes and the rows on their way to them, beside the model and its
  // recorded run; 0: none.
  int64_t memory_bytes = 0;
};

// Peak bytes of a sweep per row: all rows that are alive at the same node, and the copies that its map makes.
int64_t PeakBytesPerRow(const Linearization& linearization);

// Sweeps forward in chunks, with the result of SweepForward to rounding. Throws what SweepForward throws;
// FailedPrecondition, with the operator's position, if more than one chunk is needed but a policy choice depends on all
// components together; and InvalidArgument if not even one component fits into the memory.
SweepResult SweepInChunks(const Linearization& linearization, const ChunkOptions& options,
                          const Progress& progress = nullptr);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_CHUNKS_H_
