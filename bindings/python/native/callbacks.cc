#include "bindings/python/native/callbacks.h"

#include <chrono>

#include "bindings/python/native/error.h"
#include "bindings/python/native/handle.h"
#include "bindings/python/native/python_lock.h"
#include "bindings/python/native/sequence.h"

namespace {

using addend_python::PythonLock;

void Log(void* payload, int32_t level, const char* message) {
  const PythonLock lock;
  PyObject* const callable = static_cast<PyObject*>(payload);
  PyObject* const result = PyObject_CallFunction(callable, "is", static_cast<int>(level), message);
  if (result == nullptr) PyErr_WriteUnraisable(callable);
  Py_XDECREF(result);
}

// 0, or 1 where an exception is set, which it keeps.
int32_t GoOn() {
  if (!PyErr_Occurred() && PyErr_CheckSignals() == 0) return 0;
  addend_python::KeepCallbackException();
  return 1;
}

int32_t Progress(void* payload, const char* stage, int64_t done, int64_t total) {
  const PythonLock lock;
  PyObject* const result = PyObject_CallFunction(static_cast<PyObject*>(payload), "sLL", stage,
                                                 static_cast<long long>(done), static_cast<long long>(total));
  Py_XDECREF(result);
  return GoOn();
}

// Each look at the signals waits for the interpreter's lock, so there are few of them.
int32_t ListenToSignals(void*, const char*, int64_t, int64_t) {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point last = Clock::now();
  const Clock::time_point now = Clock::now();
  if (now - last < std::chrono::milliseconds(50)) return 0;
  last = now;
  const PythonLock lock;
  return GoOn();
}

// Takes a line that the provider gave, (file, line, function, text, column, length), or sets an exception.
void AddFrame(addend_frames* frames, PyObject* frame) {
  const char* file = nullptr;
  const char* function = nullptr;
  const char* text = nullptr;
  long long line = 0;
  long long column = 0;
  long long length = 0;
  if (!PyArg_ParseTuple(frame, "sLssLL", &file, &line, &function, &text, &column, &length)) return;
  addend_status* const status = addend_frames_add(frames, file, line, function, text, column, length);
  if (status != nullptr) addend_python::SetException(status);
}

int32_t Frames(void* payload, addend_frames* frames) {
  const PythonLock lock;
  PyObject* const given = PyObject_CallNoArgs(static_cast<PyObject*>(payload));
  const bool taken =
      given != nullptr &&
      addend_python::VisitItems(given, "expected source lines", [frames](PyObject* frame) { AddFrame(frames, frame); });
  Py_XDECREF(given);
  if (taken) return 0;
  addend_python::KeepCallbackException();
  return 1;
}

// A callable that records, and the program that it gave last.
struct LiveRecorder {
  explicit LiveRecorder(PyObject* given) : callable(given) {}
  ~LiveRecorder() { Py_XDECREF(program); }
  LiveRecorder(const LiveRecorder&) = delete;
  LiveRecorder& operator=(const LiveRecorder&) = delete;

  PyObject* const callable;
  PyObject* program = nullptr;
};

// The inputs are handed on as capsules of their own: the callable may keep them.
PyObject* Capsules(const addend_tensor* const* inputs, size_t num_inputs) {
  PyObject* const list = PyList_New(0);
  for (size_t k = 0; list != nullptr && k < num_inputs; ++k) {
    addend_tensor* own = nullptr;
    addend_status* const status = addend_tensor_to(inputs[k], addend_tensor_dtype(inputs[k]), nullptr, &own);
    PyObject* const capsule =
        status == nullptr ? addend_python::NewCapsule<addend_tensor, &addend_tensor_release>(own, "addend_tensor")
                          : nullptr;
    if (status != nullptr) addend_python::SetException(status);
    const bool added = capsule != nullptr && PyList_Append(list, capsule) == 0;
    Py_XDECREF(capsule);
    if (added) continue;
    Py_DECREF(list);
    return nullptr;
  }
  return list;
}

int32_t RecordLive(void* payload, size_t example, const addend_tensor* const* inputs, size_t num_inputs,
                   addend_program** out_program) {
  const PythonLock lock;
  auto* const recorder = static_cast<LiveRecorder*>(payload);
  PyObject* const given = Capsules(inputs, num_inputs);
  PyObject* const program =
      given == nullptr ? nullptr
                       : PyObject_CallFunction(recorder->callable, "nO", static_cast<Py_ssize_t>(example), given);
  Py_XDECREF(given);
  Py_XDECREF(recorder->program);
  recorder->program = program;
  if (program != nullptr && addend_python::GetHandle(program, "addend_program", out_program)) return 0;
  addend_python::KeepCallbackException();
  return 1;
}

}  // namespace

addend_status* options_set_log(addend_context_options* options, PyObject* log) {
  Py_INCREF(log);
  addend_status* const status = addend_context_options_set_log(options, &Log, log, &addend_python::ReleaseObject);
  if (status != nullptr) Py_DECREF(log);
  return status;
}

addend_status* options_set_progress(addend_context_options* options, PyObject* progress) {
  if (progress == Py_None) return addend_context_options_set_progress(options, &ListenToSignals, nullptr, nullptr);
  Py_INCREF(progress);
  addend_status* const status =
      addend_context_options_set_progress(options, &Progress, progress, &addend_python::ReleaseObject);
  if (status != nullptr) Py_DECREF(progress);
  return status;
}

addend_status* trace_record(const addend_request* request, PyObject* frames, addend_trace** out_trace) {
  if (frames == Py_None) return addend_trace_record(request, nullptr, nullptr, nullptr, out_trace);
  Py_INCREF(frames);
  addend_status* const status = addend_trace_record(request, &Frames, frames, &addend_python::ReleaseObject, out_trace);
  if (status != nullptr) Py_DECREF(frames);
  return status;
}

addend_status* trace_set_frames(addend_trace* trace, PyObject* frames) {
  if (frames == Py_None) return addend_trace_set_frames(trace, nullptr, nullptr, nullptr);
  Py_INCREF(frames);
  addend_status* const status = addend_trace_set_frames(trace, &Frames, frames, &addend_python::ReleaseObject);
  if (status != nullptr) Py_DECREF(frames);
  return status;
}

addend_status* trace_show_code(addend_trace* trace, const char* options, PyObject* show) {
  Py_INCREF(show);
  addend_status* const status = addend_trace_show_code(trace, options, &Log, show, &addend_python::ReleaseObject);
  if (status != nullptr) Py_DECREF(show);
  return status;
}

addend_status* live_record(const addend_request* request, PyObject* record, addend_program** out_program) {
  LiveRecorder recorder(record);
  return addend_live_record(request, &RecordLive, &recorder, out_program);
}

addend_status* live_check_trace(const addend_request* request, const char* options, PyObject* record,
                                addend_string** out_json) {
  LiveRecorder recorder(record);
  return addend_live_check_trace(request, options, &RecordLive, &recorder, out_json);
}
