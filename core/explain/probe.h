// Finds the inner tensors of a recorded run that are asked for by a selector: a module, an operator or "logits".
#ifndef ADDEND_CORE_EXPLAIN_PROBE_H_
#define ADDEND_CORE_EXPLAIN_PROBE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/linearize/linearization.h"
#include "core/run/trace.h"

namespace addend {

// The tensor of a selector, which is written as DecomposeOptions::probes describes. `chosen`: the results that the
// question is about, at least one; `outputs`: all results, which leave the module that gives them. Throws
// InvalidArgument where the run has no such tensor, or several.
Probe FindProbe(const TracedRun& trace, const std::string& selector, const std::vector<Probe>& chosen,
                const std::vector<Probe>& outputs);

// Whether a selector names a module of a run in which nobody told what modules return, so that FindProbe() takes the
// tensor that its operators gave and others read for it.
bool IsUntold(const TracedRun& trace, const std::string& selector);

// The selectors of which one with a star stands for all: "encoder@*" for "encoder@0" and "encoder@1", the calls of a
// module; "attention:*" for the tensors that left it. Of another selector itself. Throws InvalidArgument where the run
// has no such tensor.
std::vector<std::string> EachOf(const TracedRun& trace, const std::string& selector, const std::vector<Probe>& outputs);

// The operators that read a tensor which a module returned, but do not have it from that module.
struct ReadBeside {
  bool given = false;  // the module gives back what it was given, so that nobody knows who read it there
  std::vector<Position>
      readers;  // if given, all that read it, of which there are several; else those within the module
};
// No readers where the selector names no module that told what it returned.
ReadBeside ReadBesideModule(const TracedRun& trace, const std::string& selector, const Probe& probe);

// Whether a module of this path ran.
bool RunsModule(const TracedRun& trace, const std::string& path);

// Whether a module of this path gave other numbers than those of `output`.
bool GivesAnother(const TracedRun& trace, const std::string& path, const Probe& output,
                  const std::vector<Probe>& outputs);

// For each module whose name means several tensors, the selectors that mean one: "encoder gives several tensors; name
// one: encoder@0 (aten::tanh (op #1) gives f32[2, 3]), encoder@1 (...)".
std::vector<std::string> ModulesOfSeveral(const TracedRun& trace, const std::vector<Probe>& outputs);

// The call that gave a tensor as it is at a probe.
struct Giver {
  size_t call = 0;
  size_t output = 0;  // among the call's outputs
};
// None where it is what the model was given.
std::optional<Giver> GiverOf(const TracedRun& trace, const Probe& probe);

// Whether both are the same elements of one tensor, as one operator left them.
bool SameTensor(const Probe& a, const Probe& b);

// The selector of what a final softmax reads.
inline constexpr char kLogits[] = "logits";

// Throws InvalidArgument for a tensor of a run whose rows have begun that no row can reach and whose value, therefore,
// was not kept.
void RequireReached(const TracedRun& trace, const std::string& selector, const Probe& probe);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_PROBE_H_
