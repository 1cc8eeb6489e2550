#include "bindings/python/native/callbacks.h"

#include <chrono>

#include "bindings/python/native/error.h"
#include "bindings/python/native/python_lock.h"

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
