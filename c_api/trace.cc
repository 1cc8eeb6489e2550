// Traces: live models.
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "c_api/attribution.h"
#include "c_api/program.h"
#include "c_api/run.h"
#include "c_api/structure.h"
#include "core/explain/live.h"
#include "core/intercept/tracing_scope.h"
#include "core/recording/check_trace.h"
#include "core/recording/learn_sizes.h"
#include "core/recording/live_program.h"

namespace addend::c_api {

// What a frame provider is given lives in a slot as well; see addend_rule_call.
constexpr int32_t kFramesKind = kNumKinds + 2;

struct FramesBody {
  std::vector<SourceFrame> frames;
};

template <>
struct Traits<addend_frames> {
  using Body = FramesBody;
  static constexpr int32_t kKind = kFramesKind;
  static constexpr char kName[] = "addend_frames";
};

struct TraceBody {
  ContextBody context;               // whose rules the trace refers to
  std::vector<RequestInput> inputs;  // what is inside the model behind the others
  // One of the two.
  std::unique_ptr<LiveTrace> trace;
  std::optional<AttributeOptions> attribution;  // where the trace is begun for one
  std::unique_ptr<LiveProgram> program;
  std::vector<at::Tensor> outputs;          // of the program
  std::vector<std::string> module_paths;    // that it was told
  std::shared_ptr<std::atomic<bool>> open;  // what the thread knows of it

  TraceBody() = default;
  TraceBody(TraceBody&&) = default;
  TraceBody& operator=(TraceBody&&) = default;
  ~TraceBody() {
    trace.reset();
    program.reset();
    if (open != nullptr) *open = false;
  }
};

namespace {

using FramesCallback = Callback<addend_frames_fn>;

std::vector<SourceFrame> AskFor(const FramesCallback& callback) {
  const Scoped<addend_frames> frames{FramesBody()};
  const int32_t answer = callback.function(callback.payload.get(), frames.get());
  if (answer != 0) {
    throw CallbackError(absl::StatusCode::kUnknown,
                        absl::StrCat("the callback for source lines returned ", answer, ", which ends the recording"),
                        answer);
  }
  return std::move((*frames).frames);
}

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

namespace {

addend_status* BeginTrace(const addend_context* context, const addend_request* request, bool attributes,
                          addend_trace** out_trace) noexcept {
  return Guard(DetailOf(context), [&] {
    const RequestBody& asked = Get(request, "request");
    RequireOut(out_trace, "out_trace");
    RequireReadyForOne(asked);
    if (asked.verify_reference) {
      throw InvalidArgument("a trace does not run the model; run it on addend_trace_baseline to verify the reference");
    }
    TraceBody body;
    body.context = ContextOf(context);
    body.inputs = asked.inputs;
    body.inputs.insert(body.inputs.end(), asked.inside.begin(), asked.inside.end());
    body.open = std::make_shared<std::atomic<bool>>(true);
    auto named = asked.parameters;
    named.insert(named.end(), asked.buffers.begin(), asked.buffers.end());
    if (attributes) {
      body.attribution = AttributeOptionsOf(body.context, asked);
      body.trace = std::make_unique<LiveTrace>(InputsOf(body.inputs), named, *body.attribution);
    } else {
      body.trace = std::make_unique<LiveTrace>(InputsOf(body.inputs), named, OptionsOf(body.context, asked));
    }
    const auto open = body.open;
    Give(out_trace, std::move(body));
    OpenTrace() = open;
  });
}

// The trace, where it does not become a program.
LiveTrace& DecomposedBy(TraceBody& body) {
  if (body.trace == nullptr) throw FailedPrecondition("this trace records a program; end it as one");
  return *body.trace;
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_trace_begin(const addend_context* context, const addend_request* request,
                                             addend_trace** out_trace) noexcept {
  return BeginTrace(context, request, /*attributes=*/false, out_trace);
}

ADDEND_API addend_status* addend_trace_begin_attribution(const addend_context* context, const addend_request* request,
                                                         addend_trace** out_trace) noexcept {
  return BeginTrace(context, request, /*attributes=*/true, out_trace);
}

ADDEND_API addend_status* addend_frames_add(addend_frames* frames, const char* file, int64_t line, const char* function,
                                            const char* text, int64_t column, int64_t length) noexcept {
  return Guard([&] {
    SourceFrame frame;
    frame.file = Text(file, "file");
    frame.line = line;
    frame.function = TextOrEmpty(function, "function");
    frame.text = TextOrEmpty(text, "text");
    const auto size = static_cast<int64_t>(frame.text.size());
    if (column >= 0 && length >= 0 && column <= size && length <= size - column) {
      frame.column = column;
      frame.length = length;
    } else if (column != -1) {
      throw InvalidArgument(absl::StrCat("column is ", column, " and length ", length, ", but the text has ", size,
                                         " bytes; column -1 stands for what is not known"));
    }
    Get(frames, "frames").frames.push_back(std::move(frame));
  });
}

ADDEND_API addend_status* addend_trace_record(const addend_request* request, addend_frames_fn frames, void* payload,
                                              addend_release_fn release, addend_trace** out_trace) noexcept {
  return Guard([&] {
    const RequestBody& asked = Get(request, "request");
    RequireOut(out_trace, "out_trace");
    RequireReadyForOne(asked);
    TraceBody body;
    body.open = std::make_shared<std::atomic<bool>>(true);
    RecordOptions options;
    const auto callback = std::make_shared<FramesCallback>();
    if (frames != nullptr) options.frames = [callback] { return AskFor(*callback); };
    body.program = std::make_unique<LiveProgram>(options);
    if (!asked.structures.empty() && asked.structures[0] != nullptr) {
      // The live tensors themselves.
      std::vector<at::Tensor> tensors;
      for (const RequestInput& input : asked.inputs) tensors.push_back(input.input.value);
      const std::vector<c10::IValue> arguments = PutTogether(*asked.structures[0], {}, tensors);
      for (size_t k = 0; k < arguments.size(); ++k) {
        body.program->AddInput(asked.structures[0]->arguments[k].name, arguments[k]);
      }
    } else {
      for (const RequestInput& input : asked.inputs) {
        body.program->AddInput(input.named ? input.input.name : "", input.input.value);
      }
    }
    for (const auto& [name, tensor] : asked.parameters) body.program->NameTensor(name, tensor, true);
    for (const auto& [name, tensor] : asked.buffers) body.program->NameTensor(name, tensor, false);
    const auto open = body.open;
    addend_trace* made = nullptr;
    Give(&made, std::move(body));
    *callback = MakeCallback(frames, payload, release);
    *out_trace = made;
    OpenTrace() = open;
  });
}

ADDEND_API addend_status* addend_trace_set_frames(addend_trace* trace, addend_frames_fn frames, void* payload,
                                                  addend_release_fn release) noexcept {
  return Guard([&] {
    TraceBody& body = Get(trace, "trace");
    LiveTrace& trace_of = DecomposedBy(body);
    const auto callback = std::make_shared<FramesCallback>();
    if (frames == nullptr) {
      trace_of.SetFrames(nullptr);
    } else {
      trace_of.SetFrames([callback] { return AskFor(*callback); });
    }
    *callback = MakeCallback(frames, payload, release);
  });
}

ADDEND_API addend_status* addend_trace_set_module(addend_trace* trace, const char* module_path) noexcept {
  return Guard([&] {
    TraceBody& body = Get(trace, "trace");
    const std::string path = Text(module_path, "module_path");
    if (body.trace != nullptr) return body.trace->SetModule(path);
    body.program->SetModule(path);
    const bool known = std::find(body.module_paths.begin(), body.module_paths.end(), path) != body.module_paths.end();
    if (!path.empty() && !known) body.module_paths.push_back(path);
  });
}

ADDEND_API addend_status* addend_trace_add_output(addend_trace* trace, const char* name,
                                                  const addend_tensor* tensor) noexcept {
  return Guard([&] {
    TraceBody& body = Get(trace, "trace");
    const std::string own = Text(name, "name");
    const at::Tensor& output = TensorOf(tensor, "tensor");
    if (body.trace != nullptr) return body.trace->AddOutput(own, output);
    body.outputs.push_back(output);
  });
}

ADDEND_API addend_status* addend_trace_end(addend_trace* trace, addend_results** out_results) noexcept {
  const TraceBody* peeked = Peek(trace);
  return Guard(peeked != nullptr && peeked->context.detail, [&] {
    TraceBody& body = Get(trace, "trace");
    RequireOut(out_results, "out_results");
    LiveTrace& trace_of = DecomposedBy(body);
    SetCallbackNumber(0);
    trace_of.Stop();
    *body.open = false;
    ResultsBody results = ResultsOf(trace_of.Finish(), body.inputs, body.context.policy.preset, "");
    LogNotes(body.context, results.run->report);
    Give(out_results, std::move(results));
  });
}

ADDEND_API addend_status* addend_trace_end_attribution(addend_trace* trace,
                                                       addend_attribution** out_attribution) noexcept {
  const TraceBody* peeked = Peek(trace);
  return Guard(peeked != nullptr && peeked->context.detail, [&] {
    TraceBody& body = Get(trace, "trace");
    RequireOut(out_attribution, "out_attribution");
    LiveTrace& trace_of = DecomposedBy(body);
    SetCallbackNumber(0);
    trace_of.Stop();
    *body.open = false;
    Attribution attribution = trace_of.FinishAttribution();
    Give(out_attribution, AttributionOf(std::move(attribution), *body.attribution, body.inputs, body.context, ""));
  });
}

ADDEND_API addend_status* addend_trace_again(addend_trace* trace) noexcept {
  const TraceBody* peeked = Peek(trace);
  return Guard(peeked != nullptr && peeked->context.detail, [&] { DecomposedBy(Get(trace, "trace")).RunAgain(); });
}

ADDEND_API addend_status* addend_trace_add_note(addend_trace* trace, const char* note) noexcept {
  return Guard([&] {
    TraceBody& body = Get(trace, "trace");
    const std::string own = Text(note, "note");
    DecomposedBy(body).AddNote(own);
  });
}

ADDEND_API addend_status* addend_trace_baseline(addend_trace* trace, size_t input,
                                                addend_tensor** out_baseline) noexcept {
  return Guard([&] {
    TraceBody& body = Get(trace, "trace");
    RequireOut(out_baseline, "out_baseline");
    LiveTrace& trace_of = DecomposedBy(body);
    const at::Tensor baseline = trace_of.BaselineOf(input);
    *body.open = false;
    Give(out_baseline, TensorBody(baseline));
  });
}

ADDEND_API addend_status* addend_trace_add_on_baseline(addend_trace* trace, const char* name,
                                                       const addend_tensor* tensor) noexcept {
  return Guard([&] {
    TraceBody& body = Get(trace, "trace");
    const std::string own = Text(name, "name");
    DecomposedBy(body).AddOnBaseline(own, TensorOf(tensor, "tensor"));
  });
}

ADDEND_API addend_status* addend_trace_end_program(addend_trace* trace, addend_program** out_program) noexcept {
  return Guard([&] {
    TraceBody& body = Get(trace, "trace");
    RequireOut(out_program, "out_program");
    if (body.program == nullptr) throw FailedPrecondition("this trace decomposes; begin one that records a program");
    body.program->Stop();
    *body.open = false;
    const TracingPause pause;
    body.program->SetModulePaths(body.module_paths);
    const std::vector<c10::IValue> several(body.outputs.begin(), body.outputs.end());
    const c10::IValue output = several.size() == 1 ? several[0] : c10::ivalue::Tuple::create(several);
    // An error of the recording comes first.
    const Recording recording = body.program->Finish(output);
    if (several.empty()) throw InvalidArgument("no output of the trace was named");
    ProgramBody made = ProgramOf(recording.program, "");
    made.output = recording.output;
    Give(out_program, std::move(made));
  });
}

namespace {

// What the caller records of a live model, as often as it is asked to.
RecordExample RecordedBy(addend_record_fn record, void* payload) {
  if (record == nullptr) throw InvalidArgument("record is NULL");
  return [record, payload](const std::vector<c10::IValue>& inputs, size_t example) {
    std::vector<std::unique_ptr<Scoped<addend_tensor>>> tensors;
    std::vector<const addend_tensor*> handles;
    for (const c10::IValue& input : inputs) {
      tensors.push_back(std::make_unique<Scoped<addend_tensor>>(TensorBody(input.toTensor())));
      handles.push_back(tensors.back()->get());
    }
    addend_program* program = nullptr;
    const int32_t answer = record(payload, example, handles.data(), handles.size(), &program);
    if (answer != 0) {
      throw CallbackError(absl::StatusCode::kUnknown, absl::StrCat("the recording callback gave ", answer), answer);
    }
    const ProgramBody& body = Get(program, "the program that the callback gave");
    if (body.output.isNone()) throw InvalidArgument("the callback gave a program that no trace recorded");
    Recording recording;
    recording.program = body.program;
    recording.output = body.output;
    return recording;
  };
}

// The tensors of every example, each an input.
std::vector<std::vector<c10::IValue>> TensorsOfExamples(const RequestBody& request) {
  for (const auto& structure : request.structures) {
    if (structure != nullptr) throw InvalidArgument("the inputs of a live model are tensors, without a structure");
  }
  return ExamplesOf({}, request);
}

}  // namespace

ADDEND_API addend_status* addend_live_record(const addend_request* request, addend_record_fn record, void* payload,
                                             addend_program** out_program) noexcept {
  return Guard([&] {
    const RequestBody& asked = Get(request, "request");
    RequireOut(out_program, "out_program");
    RequireReady(asked);
    SetCallbackNumber(0);
    const Recording recording = RecordSizes(RecordedBy(record, payload), TensorsOfExamples(asked));
    Give(out_program, ProgramOf(recording.program, ""));
  });
}

ADDEND_API addend_status* addend_live_check_trace(const addend_request* request, const char* options,
                                                  addend_record_fn record, void* payload,
                                                  addend_string** out_json) noexcept {
  return Guard([&] {
    const RequestBody& asked = Get(request, "request");
    CheckOptions checks = CheckOptionsOf(options);
    RequireOut(out_json, "out_json");
    RequireReady(asked);
    SetCallbackNumber(0);
    checks.inputs = TensorsOfExamples(asked);
    const std::vector<c10::IValue> first = checks.inputs[0];
    checks.inputs.erase(checks.inputs.begin());
    Give(out_json, Dump(FindingsRecord(CheckTrace(RecordedBy(record, payload), first, checks))));
  });
}

ADDEND_API void addend_trace_release(addend_trace* trace) noexcept { Release(trace); }

}  // extern "C"

}  // namespace addend::c_api
