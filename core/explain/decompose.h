// The main job: a model, its inputs split into components, and the compositions of what it computes.
#ifndef ADDEND_CORE_EXPLAIN_DECOMPOSE_H_
#define ADDEND_CORE_EXPLAIN_DECOMPOSE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/policy.h"
#include "core/composition/composition.h"
#include "core/explain/input.h"
#include "core/explain/report.h"
#include "core/linearize/direction.h"
#include "core/model/model.h"
#include "core/rules/registry.h"

namespace addend {

class ReferenceCache;

struct DecomposeOptions {
  Policy policy;
  // Inner tensors whose compositions are wanted, each told by one of
  //   "layers.0.attention"   what a module gave when it was called last,
  //   "#28"                  what operator 28 of the recorded program gave,
  //   "aten::gelu"           what the only call of an operator gave; "aten::gelu:2" the third of several,
  //   "logits"               what a final softmax or log_softmax reads; the output itself where there is none.
  std::vector<std::string> probes;
  // Those of the model's results that are decomposed, "output.1"; the others are left out. Empty: all.
  std::vector<std::string> outputs;
  // Sweeps every operator, not only those that outputs and probes depend on.
  bool everything = false;
  // Whether components go forward through the model, or come back from what is asked for: the same to rounding. See
  // Note [Directions] in core/linearize/direction.h. With `everything`, kAuto is forward.
  Direction direction = Direction::kAuto;
  // Components that move through the model at once; 0: as many as `memory_bytes` allows. The model runs once all the
  // same, and the result is the same to rounding.
  int64_t chunk = 0;
  // What the parts of outputs and probes and all rows on their way there may take together, beside the model and its
  // recorded run; 0: any amount.
  int64_t memory_bytes = 0;
  // Keeps what the model gives on the baseline from one run to the next, so that a baseline which stays the same costs
  // no run of its own; null: nothing is kept. One for each model; see Note [Kept references] in
  // core/linearize/reference_cache.h for what is noticed when it changes.
  std::shared_ptr<ReferenceCache> references;
  // Runs the plain model once more, on the baseline, and compares what it gives with the reference; see
  // Report::reference_error. Not where a split starts inside the model.
  bool verify_reference = false;
  // Rules other than Addend's own; null: Registry::Default(). Must outlive the call.
  const Registry* registry = nullptr;
  // Called with the stage ("trace", "linearize", "sweep") and how many of its steps are done.
  std::function<void(const std::string& stage, int64_t done, int64_t total)> progress;
};

struct Decomposed {
  std::string name;         // "output", "output.1" or the probe's
  at::Tensor value;         // what the model computed, in its dtype
  Composition composition;  // rows of half types are float32
  // Where components ended, in the words of an error; empty where some reach it, or there are none.
  std::string unreached = {};
};

// A result of the model that has no parts: integers, bools.
struct PlainOutput {
  size_t position = 0;  // among all tensors that the model gives
  std::string name;
  at::Tensor value;
};

struct Decomposition {
  int64_t numc = 0;
  std::vector<Decomposed> outputs;  // the floating-point tensors among the model's results, in order
  std::vector<PlainOutput> plain;   // its other tensors, in order
  std::vector<Decomposed> probes;   // as asked for
  // What the model computed where a split starts inside it, in the order of those inputs.
  std::vector<at::Tensor> inside;
  Report report;
};

// What a model's result is called by its position among the tensors that it gives: "output", "output.1", ...
std::string OutputName(size_t position);

// The composition of a probe, with what it knows of the operator that gave it. `marks`: bits of Freeze.
Composition MakeComposition(const ProbeRows& rows, uint32_t marks);

class TracedModel {
 public:
  explicit TracedModel(std::shared_ptr<Model> model) : model_(std::move(model)) {}

  // Throws Error: InvalidArgument for inputs that do not fit, Unimplemented with the position of an operator that no
  // rule covers, Internal with that of a tracing failure.
  Decomposition Decompose(const std::vector<Input>& inputs, const DecomposeOptions& options = {}) const;
  // The plain model: no tracing scope is open, the results are those of the model alone.
  c10::IValue Run(const std::vector<at::Tensor>& inputs) const;
  // With tracing off, operator() runs the plain model and gives its values without components.
  void trace(bool on) { tracing_ = on; }
  bool tracing() const { return tracing_; }
  const std::shared_ptr<Model>& model() const { return model_; }
  Decomposition operator()(const std::vector<Input>& inputs, const DecomposeOptions& options = {}) const;

 private:
  std::shared_ptr<Model> model_;
  bool tracing_ = true;
};

// A C++ module, a TorchScript file or a function (see model.h), ready to be decomposed. The model itself is unchanged.
TracedModel Trace(std::shared_ptr<Model> model);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_DECOMPOSE_H_
