// Bodies of the handles that several sections use.
#ifndef ADDEND_C_API_BODIES_H_
#define ADDEND_C_API_BODIES_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "c_api/guard.h"
#include "core/audit/model_source.h"
#include "core/base/policy.h"
#include "core/composition/composition.h"
#include "core/document/explanation.h"
#include "core/explain/input.h"
#include "core/explain/report.h"
#include "core/explain/request_options.h"
#include "core/explain/several_baselines.h"
#include "core/explain/target.h"
#include "core/model/model.h"
#include "core/program/recorded_program.h"
#include "core/program/structure.h"
#include "core/rules/registry.h"
#include "core/run/reference_cache.h"

namespace addend::c_api {

struct StringBody {
  std::string text;
};

struct CancellationBody {
  std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
};

// A function of the caller's with its payload, which is released with the last copy.
template <typename Function>
struct Callback {
  Function function = nullptr;
  std::shared_ptr<void> payload;
};
// Releases the payload with the last copy. Nothing is released unless everything succeeds: until then the payload is
// the caller's.
std::shared_ptr<void> OwnPayload(void* payload, addend_release_fn release);
template <typename Function>
Callback<Function> MakeCallback(Function function, void* payload, addend_release_fn release) {
  return {function, OwnPayload(payload, release)};
}
using LogCallback = Callback<addend_log_fn>;
using ProgressCallback = Callback<addend_progress_fn>;

struct ContextBody {
  Policy policy;
  std::shared_ptr<const Registry> rules;  // null: the default ones
  LogCallback log;
  ProgressCallback progress;
  bool detail = false;
};

struct ContextOptionsBody {
  ContextBody context;
};

struct RulesBody {
  Registry registry = Registry::Default();
};

struct TensorBody {
  explicit TensorBody(at::Tensor t, bool is_lent = false)
      : tensor(std::move(t)), device(tensor.device().str()), lent(is_lent) {}
  at::Tensor tensor;
  std::string device;
  bool lent;  // over memory of the caller's, who may see it written
};

struct CompositionBody {
  explicit CompositionBody(Composition c, std::shared_ptr<const ExplainedRun> of = nullptr)
      : composition(std::move(c)), device(composition.device().str()), run(std::move(of)) {}
  Composition composition;
  std::string device;
  std::shared_ptr<const ExplainedRun> run;  // that gave it, whose policy and notes its explanations have; null: none
};

struct ModelBody {
  std::shared_ptr<Model> model;
  std::vector<std::string> input_names;
  std::string path;
  std::shared_ptr<const RecordedProgram> program;                                   // that it stands for, if it does
  std::shared_ptr<ReferenceCache> references = std::make_shared<ReferenceCache>();  // for requests that ask for it
  std::shared_ptr<const ModelSource> source = std::make_shared<ModelSource>();      // for records of decisions
};

struct RequestInput {
  Input input;
  bool named = false;
  std::vector<std::string> names;  // of its components
  SeveralBaselines several;        // in place of the input's baseline
};

struct RequestArgument {
  std::string name;     // where the request names them
  Structure structure;  // whose tensors are inputs of the example
};

struct RequestStructure {
  std::vector<RequestArgument> arguments;
  bool named = false;
};

struct RequestBody : RequestOptions {
  std::vector<RequestInput> inputs;                // of the first example
  std::vector<std::vector<RequestInput>> further;  // examples
  std::vector<RequestInput> inside;                // no arguments but tensors inside the model
  bool adding_inside = false;                      // the last of these is the input that was added last
  // Structures by example, the first one's first; null or missing: every input is an argument.
  std::vector<std::shared_ptr<const RequestStructure>> structures;
  std::vector<std::string> probes;
  std::vector<std::string> outputs;
  std::vector<Target> targets;
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  std::vector<std::pair<std::string, at::Tensor>> buffers;
  std::shared_ptr<std::atomic<bool>> cancelled;
};

struct ResultEntry {
  std::string name;
  std::optional<Composition> composition;
  at::Tensor tensor;  // where there is no composition
  std::optional<at::Scalar> number;
  // Why an explanation of it would be one of zeros: where components ended that should have reached it.
  std::string unreached = {};
};

struct ResultsBody {
  std::vector<ResultEntry> entries;
  std::shared_ptr<const ExplainedRun> run;  // null: nothing was decomposed
  std::vector<std::string> notes = {};      // where there is no run, whose report has them otherwise
};

// The context of a parameter that may be NULL.
const ContextBody& ContextOf(const addend_context* context);
// Whether its statuses have details; false for what is no context.
bool DetailOf(const addend_context* context) noexcept;
// Tells the log what readers have to know of a run.
void LogNotes(const ContextBody& context, const Report& report);

// A tensor of a parameter; undefined for NULL where that is allowed.
const at::Tensor& TensorOf(const addend_tensor* tensor, const char* name);
at::Tensor TensorOrNone(const addend_tensor* tensor, const char* name);

// addend_dtype to LibTorch's and back; the first throws InvalidArgument, the second gives 0 for what DLPack lacks.
at::ScalarType DtypeOf(int32_t dtype);
int32_t DtypeNumber(at::ScalarType dtype);

// The dims of a parameter, checked to be a shape.
std::vector<int64_t> ShapeOf(const int64_t* dims, size_t num_dims);
// How many bytes a contiguous tensor takes. Throws InvalidArgument where no number is large enough.
size_t BytesOf(const std::vector<int64_t>& shape, at::ScalarType dtype);

}  // namespace addend::c_api

#endif  // ADDEND_C_API_BODIES_H_
