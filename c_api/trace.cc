// Traces: live models.
#include <ATen/core/ivalue.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "c_api/attribution.h"
#include "c_api/plan.h"
#include "c_api/program.h"
#include "c_api/run.h"
#include "c_api/structure.h"
#include "core/explain/live.h"
#include "core/model/live_run.h"
#include "core/recording/check_trace.h"
#include "core/recording/learn_sizes.h"
#include "core/recording/live_program.h"

namespace addend::c_api {

// Kind of the handle that a frame provider is given; it lives in a slot as well, see addend_rule_call.
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
  std::unique_ptr<LiveRun> run;
  std::optional<AttributeOptions> attribution;  // where the trace is begun for one
  std::shared_ptr<std::atomic<bool>> open;      // what the thread knows of it

  TraceBody() = default;
  TraceBody(TraceBody&&) = default;
  TraceBody& operator=(TraceBody&&) = default;
  ~TraceBody() {
    run.reset();
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

// Wraps the caller's function for source lines; null if there is none. `callback` is filled in when all else has
// succeeded; see OwnPayload().
std::function<std::vector<SourceFrame>()> ProviderOf(addend_frames_fn frames,
                                                     const std::shared_ptr<FramesCallback>& callback) {
  if (frames == nullptr) return nullptr;
  return [callback] { return AskFor(*callback); };
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

// Begins what `run` makes of the request: from then on it records this thread.
template <typename MakeRun>
void Begin(const addend_request* request, addend_trace** out_trace, const MakeRun& run) {
  const RequestBody& asked = Get(request, "request");
  RequireOut(out_trace, "out_trace");
  RequireReadyForOne(asked);
  TraceBody body;
  run(asked, &body);
  const auto open = body.open = std::make_shared<std::atomic<bool>>(true);
  Give(out_trace, std::move(body));
  OpenTrace() = open;
}

// Begins a run for results or, with `attributes`, for an attribution.
addend_status* BeginTrace(const addend_context* context, const addend_request* request, bool attributes,
                          addend_trace** out_trace) noexcept {
  return Guard(DetailOf(context), [&] {
    Begin(request, out_trace, [&](const RequestBody& asked, TraceBody* body) {
      if (asked.verify_reference) {
        throw InvalidArgument(
            "a trace does not run the model; run it on addend_trace_baseline to verify the reference");
      }
      body->context = ContextOf(context);
      body->inputs = asked.inputs;
      body->inputs.insert(body->inputs.end(), asked.inside.begin(), asked.inside.end());
      RequireOneBaseline(body->inputs);
      for (size_t k = 0; k < body->inputs.size(); ++k) ReadBaselineFile(body->inputs[k].input, k);
      auto named = asked.parameters;
      named.insert(named.end(), asked.buffers.begin(), asked.buffers.end());
      if (attributes) {
        body->attribution = AttributeOptionsOf(body->context, asked);
        body->run = std::make_unique<LiveTrace>(InputsOf(body->inputs), named, *body->attribution);
      } else {
        body->run = std::make_unique<LiveTrace>(InputsOf(body->inputs), named, OptionsOf(body->context, asked));
      }
      // Copies are kept, since runs may write their inputs.
      KeepInputs([&] { return named; }, body->inputs);
    });
  });
}

// Begins a run that becomes a program.
std::unique_ptr<LiveProgram> BeginProgram(const RequestBody& asked, const RecordOptions& options) {
  auto program = std::make_unique<LiveProgram>(options);
  if (const std::shared_ptr<const RequestStructure> structure = StructureOfExample(asked)) {
    // The live tensors themselves.
    std::vector<at::Tensor> tensors;
    for (const RequestInput& input : asked.inputs) tensors.push_back(input.input.value);
    const std::vector<c10::IValue> arguments = PutTogether(*structure, {}, tensors);
    for (size_t k = 0; k < arguments.size(); ++k) {
      program->AddInput(structure->arguments[k].name, arguments[k]);
    }
  } else {
    for (const RequestInput& input : asked.inputs) {
      program->AddInput(input.named ? input.input.name : "", input.input.value);
    }
  }
  for (const auto& [name, tensor] : asked.parameters) program->NameTensor(name, tensor, true);
  for (const auto& [name, tensor] : asked.buffers) program->NameTensor(name, tensor, false);
  return program;
}

// The run as what it was begun as.
LiveTrace& DecomposedBy(const TraceBody& body) {
  auto* trace = dynamic_cast<LiveTrace*>(body.run.get());
  if (trace == nullptr) throw FailedPrecondition("this trace records a program; end it as one");
  return *trace;
}
LiveProgram& ProgramBy(const TraceBody& body) {
  auto* program = dynamic_cast<LiveProgram*>(body.run.get());
  if (program == nullptr) throw FailedPrecondition("this trace decomposes; begin one that records a program");
  return *program;
}

// Ends the recording, whatever comes of it: the thread is free.
void Stop(const TraceBody& body) {
  SetCallbackNumber(0);
  body.run->Stop();
  *body.open = false;
}

// A request to end the trace: `end` gives what it becomes.
template <typename Out, typename End>
addend_status* EndTrace(addend_trace* trace, const char* name, Out** out, const End& end) noexcept {
  const TraceBody* peeked = Peek(trace);
  return Guard(peeked != nullptr && peeked->context.detail, [&] {
    const TraceBody& body = Get(trace, "trace");
    RequireOut(out, name);
    Give(out, end(body));
  });
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
    const auto callback = std::make_shared<FramesCallback>();
    RecordOptions options;
    options.frames = ProviderOf(frames, callback);
    Begin(request, out_trace,
          [&](const RequestBody& asked, TraceBody* body) { body->run = BeginProgram(asked, options); });
    *callback = MakeCallback(frames, payload, release);
  });
}

ADDEND_API addend_status* addend_trace_set_frames(addend_trace* trace, addend_frames_fn frames, void* payload,
                                                  addend_release_fn release) noexcept {
  return Guard([&] {
    LiveTrace& run = DecomposedBy(Get(trace, "trace"));
    const auto callback = std::make_shared<FramesCallback>();
    run.SetFrames(ProviderOf(frames, callback));
    *callback = MakeCallback(frames, payload, release);
  });
}

ADDEND_API addend_status* addend_trace_show_code(addend_trace* trace, const char* options, addend_log_fn log,
                                                 void* payload, addend_release_fn release) noexcept {
  return Guard([&] {
    const auto& body = Get(trace, "trace");
    if (log == nullptr) throw InvalidArgument("log is NULL");
    const auto callback = std::make_shared<LogCallback>();
    ProgramBy(body).ShowCode(CodeOptionsOf(options), [callback](const std::string& lines) {
      callback->function(callback->payload.get(), ADDEND_LOG_INFO, lines.c_str());
    });
    *callback = MakeCallback(log, payload, release);
  });
}

ADDEND_API addend_status* addend_trace_set_module(addend_trace* trace, const char* module_path) noexcept {
  return Guard([&] {
    const TraceBody& body = Get(trace, "trace");
    body.run->SetModule(Text(module_path, "module_path"));
  });
}

ADDEND_API addend_status* addend_trace_add_module_output(addend_trace* trace, const char* module_path, int64_t index,
                                                         const addend_tensor* tensor) noexcept {
  return Guard([&] {
    const TraceBody& body = Get(trace, "trace");
    const std::string path = Text(module_path, "module_path");
    body.run->AddModuleOutput(path, index, tensor == nullptr ? at::Tensor() : TensorOf(tensor, "tensor"));
  });
}

ADDEND_API addend_status* addend_trace_add_output(addend_trace* trace, const char* name,
                                                  const addend_tensor* tensor) noexcept {
  return Guard([&] {
    const TraceBody& body = Get(trace, "trace");
    const std::string own = Text(name, "name");
    body.run->AddOutput(own, TensorOf(tensor, "tensor"));
  });
}

ADDEND_API addend_status* addend_trace_end(addend_trace* trace, addend_results** out_results) noexcept {
  return EndTrace(trace, "out_results", out_results, [](const TraceBody& body) {
    LiveTrace& run = DecomposedBy(body);
    Stop(body);
    ResultsBody results = ResultsOf(run.Finish(), body.inputs, body.context.policy.preset, "");
    LogNotes(body.context, results.run->report);
    return results;
  });
}

ADDEND_API addend_status* addend_trace_end_attribution(addend_trace* trace,
                                                       addend_attribution** out_attribution) noexcept {
  return EndTrace(trace, "out_attribution", out_attribution, [](const TraceBody& body) {
    LiveTrace& run = DecomposedBy(body);
    Stop(body);
    return AttributionOf(run.FinishAttribution(), *body.attribution, body.inputs, body.context, "");
  });
}

ADDEND_API addend_status* addend_trace_end_plan(addend_trace* trace, addend_plan** out_plan) noexcept {
  return EndTrace(trace, "out_plan", out_plan, [](const TraceBody& body) {
    LiveTrace& run = DecomposedBy(body);
    Stop(body);
    PlanBody made;
    made.plan = run.FinishPlan();
    made.asked = *body.attribution;
    made.asked.progress = nullptr;
    made.inputs = body.inputs;
    made.context = body.context;
    for (const RequestInput& input : body.inputs) made.input_names.push_back(input.input.name);
    return made;
  });
}

ADDEND_API addend_status* addend_trace_end_program(addend_trace* trace, addend_program** out_program) noexcept {
  return EndTrace(trace, "out_program", out_program, [](const TraceBody& body) {
    LiveProgram& run = ProgramBy(body);
    Stop(body);
    const Recording recording = run.Finish();
    ProgramBody made = ProgramOf(recording.program, "");
    made.output = recording.output;
    return made;
  });
}

ADDEND_API addend_status* addend_trace_again(addend_trace* trace) noexcept {
  const TraceBody* peeked = Peek(trace);
  return Guard(peeked != nullptr && peeked->context.detail, [&] { DecomposedBy(Get(trace, "trace")).SecondRun(); });
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

namespace {

// Records the caller's live model, as often as it is asked to.
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
