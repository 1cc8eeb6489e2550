// From a traced run to the rows of its probes, or to the contributions to chosen numbers: linearize and sweep, forward
// or backward, piece by piece of the line where the policy asks so.
//
// Note [Segments]
// With K segments the line from baseline b to input x is cut at b + k / K (x - b). The recorded operators run on each
// of these points; piece k is linearized between two of them, as if the run had them for reference and value, and gets
// components of 1 / K of the input's. What the pieces give is added up: what the components of all pieces come to is
// the way from the first reference to the value, so recovery is exact for every K, and for K -> infinity the components
// are integrated gradients. Conditions, masks and indices are those of the recorded run in every piece.
#ifndef ADDEND_CORE_LINEARIZE_SEGMENTS_H_
#define ADDEND_CORE_LINEARIZE_SEGMENTS_H_

#include <memory>
#include <vector>

#include "core/base/progress.h"
#include "core/linearize/adjoint.h"
#include "core/linearize/direction.h"
#include "core/linearize/linearization.h"
#include "core/linearize/sweep.h"

namespace addend {

// What both directions give.
struct Pieces {
  // Of the first piece; stand_ins are those of all pieces.
  Linearization linearization;
  double linearize_seconds = 0;
  double sweep_seconds = 0;
};

struct Explained : Pieces {
  // Of all pieces together: for each operator the worst of its checks.
  SweepResult sweep;
};

struct Attributed : Pieces {
  // Of all pieces together.
  AdjointResult adjoint;
};

// Tells the progress of the stages "linearize" and "sweep". Throws what Linearize and SweepEitherWay throw.
Explained LinearizeAndSweep(const std::shared_ptr<const TracedRun>& trace, const Registry& registry,
                            const Policy& policy, const std::vector<Probe>& probes, bool everything,
                            const StageProgress& progress = nullptr, const SweepOptions& options = {});

// The same backward. Throws what Linearize and SweepBackward throw. `cotangents` and `nodes`: as SweepBackward takes
// them.
Attributed LinearizeAndTranspose(const std::shared_ptr<const TracedRun>& trace, const Registry& registry,
                                 const Policy& policy, const std::vector<Probe>& probes,
                                 const std::vector<at::Tensor>& cotangents, bool nodes = false,
                                 const StageProgress& progress = nullptr);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_SEGMENTS_H_
