// Linearizes and sweeps a traced run, forward or backward, in one piece or in segments of the line from baseline to
// input.
//
// Note [Segments]
// With K segments the line from baseline b to input x is cut at b + k / K (x - b). The recorded operators run on each
// of these points. Piece k is linearized between two of them, as if they were reference and value of the run, with 1 /
// K of the input's components. The results of the pieces are added. Their components sum to the way from the first
// reference to the value, so recovery is exact for every K, and for K -> infinity the components are integrated
// gradients. Conditions, masks and indices are those of the recorded run in every piece.
#ifndef ADDEND_CORE_LINEARIZE_SEGMENTS_H_
#define ADDEND_CORE_LINEARIZE_SEGMENTS_H_

#include <functional>
#include <memory>
#include <vector>

#include "core/base/progress.h"
#include "core/linearize/adjoint.h"
#include "core/linearize/direction.h"
#include "core/linearize/linearization.h"
#include "core/linearize/sweep.h"

namespace addend {

// The results of both directions.
struct Pieces {
  // The linearization of the first piece, with the stand_ins of all pieces.
  Linearization linearization;
  double linearize_seconds = 0;
  double sweep_seconds = 0;
};

struct Explained : Pieces {
  // The sweeps of all pieces together: for each operator the worst of its checks.
  SweepResult sweep;
};

struct Attributed : Pieces {
  // The sum over all pieces.
  AdjointResult adjoint;
};

// Linearizes and sweeps; reports the progress of the stages "linearize" and "sweep". Throws what Linearize and
// SweepEitherWay throw.
Explained LinearizeAndSweep(const std::shared_ptr<const TracedRun>& trace, const Registry& registry,
                            const Policy& policy, const std::vector<Probe>& probes, bool everything,
                            const StageProgress& progress = nullptr, const SweepOptions& options = {});

// The cotangents of a sweep, as SweepBackward takes them, which may depend on the references of the probes: these are
// known once the first piece is linearized, whose reference is that of the whole line.
using CotangentsFor = std::function<std::vector<at::Tensor>(const Linearization& first)>;

// Linearizes and sweeps backward. All pieces are swept from the same cotangents. A run with stretches is swept stretch
// by stretch: it may lack values afterwards, or, where a stand-in was needed, have no stretches any more. `nodes`: as
// SweepBackward takes it. `prepared`: for a run like this one, with this policy and these probes; null: is made. Throws
// what Linearize, SweepBackward and `cotangents` throw.
Attributed LinearizeAndTranspose(const std::shared_ptr<TracedRun>& trace, const Registry& registry,
                                 const Policy& policy, const std::vector<Probe>& probes,
                                 const CotangentsFor& cotangents, bool nodes = false,
                                 const StageProgress& progress = nullptr,
                                 std::shared_ptr<const Preparation> prepared = nullptr);
// Linearizes and sweeps backward from cotangents that do not depend on the references.
Attributed LinearizeAndTranspose(const std::shared_ptr<TracedRun>& trace, const Registry& registry,
                                 const Policy& policy, const std::vector<Probe>& probes,
                                 const std::vector<at::Tensor>& cotangents, bool nodes = false,
                                 const StageProgress& progress = nullptr);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_SEGMENTS_H_
