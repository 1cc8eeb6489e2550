// Decomposes a model: its inputs are split into components, and every tensor that it computes becomes a composition.
#ifndef ADDEND_CORE_EXPLAIN_DECOMPOSE_H_
#define ADDEND_CORE_EXPLAIN_DECOMPOSE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/composition/composition.h"
#include "core/explain/input.h"
#include "core/explain/recorded_model.h"
#include "core/explain/report.h"
#include "core/explain/run_options.h"
#include "core/linearize/sweep.h"
#include "core/model/model.h"

namespace addend {

// See Note [Directions] in core/linearize/direction.h; with `everything`, Direction::kAuto is forward.
struct DecomposeOptions : RunOptions {
  // Inner tensors whose compositions are wanted, each told by one of
  //   "layers.0.attention"   what a module returned, and others read or the model returns; where nobody told what it
  //                          returned, what it gave and they read,
  //   "encoder@1"            the same of one of several calls, counted from 0,
  //   "attention:1"          one of several tensors, in the order in which they were returned; an error where that is
  //                          not told, unless one operator of the module gives them all, as of recurrent layers,
  //   "encoder@*"            all calls, each a result of its own; "attention:*" all tensors,
  //   "#28"                  what operator 28 of the recorded program gave; "#28:1" the second of several tensors,
  //   "aten::gelu"           what the only call of an operator gave; "aten::gelu:2" the third of several,
  //   "logits"               what the last softmax or sigmoid reads, through casts, clamps and scaling; the output
  //                          itself where there is none, unless it is squashed otherwise.
  std::vector<std::string> probes;
  // How many components move through the model at once; 0: as many as `memory_bytes` allows. The model still runs once,
  // and the results are the same to rounding.
  int64_t chunk = 0;
};

struct Decomposed {
  std::string name;         // "output", "output.1" or the probe's
  at::Tensor value;         // what the model computed, in its dtype
  Composition composition;  // rows of half types are float32
  // The place where components ended, in the words of an error; empty if some reach the tensor, or there are none.
  std::string unreached = {};
};

struct Decomposition {
  int64_t numc = 0;
  std::vector<Decomposed> outputs;  // the floating-point tensors among the model's results, in order
  std::vector<PlainOutput> plain;   // its other tensors, in order
  std::vector<Decomposed> probes;   // as asked for
  // The values of the tensors that are split inside the model, in the order of those inputs.
  std::vector<at::Tensor> inside;
  Report report;
};

// Linearizes and sweeps a recorded run. The policy is that of the run; that of the options is as asked for. Throws what
// TracedModel::Decompose throws.
Decomposition DecomposeRun(RecordedRun run, const DecomposeOptions& options);

// Makes the composition of a probe, with its origin. `marks`: bits of Freeze.
Composition MakeComposition(const ProbeRows& rows, uint32_t marks);

// A model (a C++ module, a TorchScript file, a function; see model.h) that can be decomposed. The model itself is
// unchanged.
class TracedModel {
 public:
  // Throws InvalidArgument if there is no model.
  explicit TracedModel(std::shared_ptr<Model> model);

  // Throws Error: InvalidArgument for inputs that do not fit, Unimplemented with the position of an operator that no
  // rule covers, Internal with that of a tracing failure.
  Decomposition Decompose(const std::vector<Input>& inputs, const DecomposeOptions& options = {}) const;
  // The plain model: no tracing scope is open, the results are those of the model alone.
  c10::IValue Run(const std::vector<at::Tensor>& inputs) const;
  const std::shared_ptr<Model>& model() const { return model_; }

 private:
  std::shared_ptr<Model> model_;
};

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_DECOMPOSE_H_
