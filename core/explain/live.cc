#include "core/explain/live.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/explain/finish.h"
#include "core/intercept/tracing_scope.h"
#include "core/linearize/trace.h"

namespace addend {
namespace {

using Clock = std::chrono::steady_clock;

const char* Begin(const c10::StorageImpl& storage) { return static_cast<const char*>(storage.data()); }

// A tensor of this geometry in another storage.
at::Tensor In(const c10::Storage& storage, const at::Tensor& like, at::IntArrayRef strides, int64_t offset) {
  return at::empty({0}, like.options().requires_grad(false)).set_(storage, offset, like.sizes(), strides);
}

// How many bytes a tensor reaches from its first element on.
size_t Extent(const at::Tensor& tensor) {
  int64_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  return tensor.numel() == 0 ? 0 : (last + 1) * tensor.itemsize();
}

}  // namespace

class LiveTrace::Recording : public CallHandler {
 public:
  Recording(const std::vector<Input>& inputs, const std::vector<std::pair<std::string, at::Tensor>>& named,
            DecomposeOptions options)
      : options_(std::move(options)),
        prepared_(Prepare(inputs)),
        policy_(options_.policy.Resolved(prepared_.baseline_given)),
        tracer_(&RulesOf(options_), &policy_, prepared_.numc) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      const at::Tensor& value = inputs[k].value;
      const std::string name = inputs[k].name.empty() ? absl::StrCat("input ", k) : inputs[k].name;
      if (!value.is_contiguous()) throw InvalidArgument(absl::StrCat(name, " is not contiguous; trace a copy of it"));
      if (prepared_.inputs[k].kind == Split::Kind::kPlain) continue;
      Waiting& waiting = waiting_[value.data_ptr()];
      if (waiting.input >= 0) throw InvalidArgument(absl::StrCat(name, " shares the memory of another input"));
      waiting.input = static_cast<int64_t>(k);
      waiting.name = name;
    }
    for (const auto& [name, tensor] : named) {
      if (tensor.defined() && tensor.has_storage() && tensor.numel() > 0) {
        waiting_[tensor.data_ptr()].parameter = name;
      }
    }
    if (options_.progress) options_.progress("trace", 0, 1);
    start_ = Clock::now();
    scope_.emplace(this);
  }

  void Handle(const Operator& op, Stack* stack) override {
    if (stopped_ || error_) return op.Run(stack);
    const size_t first = stack->size() - op.schema().arguments().size();
    try {
      {
        const TracingPause pause;
        for (size_t a = first; a < stack->size(); ++a) {
          ForEachTensor((*stack)[a], [&](const at::Tensor& tensor) { See(tensor); });
        }
      }
      recorder_.Handle(op, stack);
    } catch (...) {
      if (!error_) error_ = tracer_.error() ? tracer_.error() : std::current_exception();
      throw;
    }
    for (size_t r = first; r < stack->size(); ++r) {
      ForEachTensor((*stack)[r], [&](const at::Tensor& tensor) { Know(tensor); });
    }
  }

  bool OnOwnThread() const { return std::this_thread::get_id() == thread_; }
  void RequireOwnThread() const {
    if (!OnOwnThread()) throw FailedPrecondition("the trace was begun on another thread; it belongs there");
  }
  void SetModule(const std::string& module_path) {
    RequireOwnThread();
    tracer_.recorder().SetModule(module_path);
  }

  void AddOutput(const std::string& name, const at::Tensor& tensor) {
    RequireOwnThread();
    if (finished_) throw FailedPrecondition("the trace has ended");
    if (error_) std::rethrow_exception(error_);
    if (!tensor.defined() || !Continuous(tensor.scalar_type())) {
      throw InvalidArgument(
          absl::StrCat(name, " is no floating-point or complex tensor; integers and bools have no parts"));
    }
    if (tensor.numel() == 0) throw InvalidArgument(absl::StrCat(name, " is empty"));
    const TracingPause pause;
    // An input that no operator was called with is an output as it is.
    if (waiting_.contains(tensor.storage().data())) See(tensor);
    const at::Tensor live = Find(tensor);
    if (!live.defined()) throw NotFound(absl::StrCat("no operator of the trace has met the memory of ", name));
    const int64_t last_call = static_cast<int64_t>(tracer_.recorder().program().calls.size()) - 1;
    outputs_.push_back({name, live, {last_call, tracer_.Output(live)}});
  }

  void Abandon() { stopped_ = true; }

  void Stop() {
    if (!scope_) return;
    RequireOwnThread();
    stopped_ = true;
    scope_.reset();
    seconds_ = std::chrono::duration<double>(Clock::now() - start_).count();
  }

  Decomposition Finish() {
    if (finished_) throw FailedPrecondition("the trace has ended");
    Stop();
    finished_ = true;
    if (error_) std::rethrow_exception(error_);
    if (outputs_.empty()) throw InvalidArgument("no output of the trace was named");
    return FinishDecomposition(tracer_, std::move(outputs_), prepared_.numc, policy_, options_, seconds_);
  }

 private:
  // Memory that was declared and that no operator has been called with so far.
  struct Waiting {
    int64_t input = -1;
    std::string name;
    std::string parameter;
  };

  // See Note [Live tensors].
  void See(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage() || tensor.storage().unsafeGetStorageImpl() == nullptr) return;
    Know(tensor);
    if (waiting_.empty()) return;
    const auto found = waiting_.find(tensor.storage().data());
    if (found == waiting_.end()) return;
    const Waiting waiting = found->second;
    waiting_.erase(found);
    if (!waiting.parameter.empty()) tracer_.recorder().NameStorage(tensor, waiting.parameter);
    if (waiting.input < 0) return;
    const PreparedInput& input = prepared_.inputs[waiting.input];
    const size_t nbytes = input.value.nbytes();
    if (tensor.storage().nbytes() != nbytes || tensor.scalar_type() != input.value.scalar_type()) {
      throw InvalidArgument(absl::StrCat(waiting.name, " has ", nbytes, " bytes, but the storage that it lies in has ",
                                         tensor.storage().nbytes(), "; trace a contiguous copy of it"));
    }
    AddInput(input, In(tensor.storage(), input.value, input.value.strides(), 0), tracer_);
  }

  void Know(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage()) return;
    c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    if (storage == nullptr) return;
    const auto entry = known_.try_emplace(storage, c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage)).first;
    entry->second.seen = ++sights_;
  }

  at::Tensor Find(const at::Tensor& tensor) const {
    const char* from = static_cast<const char*>(tensor.data_ptr());
    c10::intrusive_ptr<c10::StorageImpl> best;
    int64_t seen = -1;
    for (const auto& [address, known] : known_) {
      const c10::intrusive_ptr<c10::StorageImpl> storage = known.storage.lock();
      if (!storage || storage->data() == nullptr || known.seen < seen) continue;
      if (from < Begin(*storage) || from + Extent(tensor) > Begin(*storage) + storage->nbytes()) continue;
      best = storage;
      seen = known.seen;
    }
    if (!best) return {};
    const auto bytes = from - Begin(*best);
    if (bytes % static_cast<int64_t>(tensor.itemsize()) != 0) return {};
    return In(c10::Storage(best), tensor, tensor.strides(), bytes / static_cast<int64_t>(tensor.itemsize()));
  }

  struct Known {
    explicit Known(const c10::intrusive_ptr<c10::StorageImpl>& seen_storage) : storage(seen_storage) {}
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    int64_t seen = 0;
  };

  const DecomposeOptions options_;
  const PreparedInputs prepared_;
  const Policy policy_;
  Tracer tracer_;
  ReportingRecorder recorder_{&tracer_.recorder(), &options_};
  absl::flat_hash_map<const void*, Waiting> waiting_;
  absl::flat_hash_map<c10::StorageImpl*, Known> known_;
  int64_t sights_ = 0;
  std::vector<RecordedOutput> outputs_;
  std::exception_ptr error_;
  const std::thread::id thread_ = std::this_thread::get_id();
  Clock::time_point start_;
  double seconds_ = 0;
  std::atomic<bool> stopped_{false};
  bool finished_ = false;
  std::optional<TracingScope> scope_;
};

LiveTrace::LiveTrace(const std::vector<Input>& inputs, const std::vector<std::pair<std::string, at::Tensor>>& named,
                     DecomposeOptions options)
    : recording_(std::make_unique<Recording>(inputs, named, std::move(options))) {}

LiveTrace::~LiveTrace() {
  if (recording_->OnOwnThread()) {
    recording_->Stop();
    return;
  }
  // The scope is the other thread's, which alone could close it. What is called there runs as ever from now on.
  recording_->Abandon();
  static auto& abandoned = *new std::vector<std::unique_ptr<Recording>>();
  static auto& mutex = *new std::mutex();
  const std::lock_guard<std::mutex> one_at_a_time(mutex);
  abandoned.push_back(std::move(recording_));
}

void LiveTrace::SetModule(const std::string& module_path) { recording_->SetModule(module_path); }
void LiveTrace::AddOutput(const std::string& name, const at::Tensor& tensor) { recording_->AddOutput(name, tensor); }
void LiveTrace::Stop() { recording_->Stop(); }
Decomposition LiveTrace::Finish() { return recording_->Finish(); }

}  // namespace addend
