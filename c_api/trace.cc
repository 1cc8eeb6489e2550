// Traces: live models.
#include <atomic>
#include <memory>
#include <utility>

#include "c_api/run.h"
#include "core/explain/live.h"

namespace addend::c_api {

struct TraceBody {
  ContextBody context;  // whose rules the trace refers to
  std::vector<RequestInput> inputs;
  std::unique_ptr<LiveTrace> trace;
  std::shared_ptr<std::atomic<bool>> open;  // what the thread knows of it

  TraceBody() = default;
  TraceBody(TraceBody&&) = default;
  TraceBody& operator=(TraceBody&&) = default;
  ~TraceBody() {
    trace.reset();
    if (open != nullptr) *open = false;
  }
};

namespace {

std::shared_ptr<std::atomic<bool>>& OpenTrace() {
  thread_local std::shared_ptr<std::atomic<bool>> open;
  return open;
}

}  // namespace

void RequireNoTrace() {
  if (OpenTrace() != nullptr && *OpenTrace()) {
    throw FailedPrecondition("this thread records a trace; end it first, or compute on another thread");
  }
}

extern "C" {

ADDEND_API addend_status* addend_trace_begin(const addend_context* context, const addend_request* request,
                                             addend_trace** out_trace) noexcept {
  return Guard(DetailOf(context), [&] {
    const RequestBody& asked = Get(request, "request");
    RequireOut(out_trace, "out_trace");
    RequireLibTorch();
    RequireNoTrace();
    RequireGoingOn(asked);
    RequireOneExample(asked);
    TraceBody body;
    body.context = ContextOf(context);
    body.inputs = asked.inputs;
    body.open = std::make_shared<std::atomic<bool>>(true);
    body.trace = std::make_unique<LiveTrace>(InputsOf(body.inputs), asked.parameters, OptionsOf(body.context, asked));
    const auto open = body.open;
    Give(out_trace, std::move(body));
    OpenTrace() = open;
  });
}

ADDEND_API addend_status* addend_trace_set_module(addend_trace* trace, const char* module_path) noexcept {
  return Guard([&] {
    const TraceBody& body = Get(trace, "trace");
    body.trace->SetModule(Text(module_path, "module_path"));
  });
}

ADDEND_API addend_status* addend_trace_add_output(addend_trace* trace, const char* name,
                                                  const addend_tensor* tensor) noexcept {
  return Guard([&] {
    const TraceBody& body = Get(trace, "trace");
    const std::string own = Text(name, "name");
    body.trace->AddOutput(own, TensorOf(tensor, "tensor"));
  });
}

ADDEND_API addend_status* addend_trace_end(addend_trace* trace, addend_results** out_results) noexcept {
  const TraceBody* peeked = Peek(trace);
  return Guard(peeked != nullptr && peeked->context.detail, [&] {
    TraceBody& body = Get(trace, "trace");
    RequireOut(out_results, "out_results");
    SetCallbackNumber(0);
    body.trace->Stop();
    *body.open = false;
    ResultsBody results = ResultsOf(body.trace->Finish(), body.inputs, body.context.policy.preset, "");
    LogNotes(body.context, results.run->report);
    Give(out_results, std::move(results));
  });
}

ADDEND_API void addend_trace_release(addend_trace* trace) noexcept { Release(trace); }

}  // extern "C"

}  // namespace addend::c_api
