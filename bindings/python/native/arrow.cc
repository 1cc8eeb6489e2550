#include "bindings/python/native/arrow.h"

namespace {

constexpr char kStream[] = "arrow_array_stream";

// The struct of Arrow's C stream interface; null as `release`: its content was taken, or is gone.
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, void*);
  int (*get_next)(ArrowArrayStream*, void*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

void Release(PyObject* capsule) {
  // Consumers that fail drop the capsule with their exception set, and release() may be Python.
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  auto* const stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kStream));
  auto* const owner = static_cast<PyObject*>(PyCapsule_GetContext(capsule));
  if (stream != nullptr && stream->release != nullptr) stream->release(stream);
  Py_XDECREF(owner);
  PyErr_Restore(type, value, traceback);
}

}  // namespace

PyObject* arrow_stream_capsule(PyObject* stream) {
  Py_buffer memory = {};
  const bool readable = PyObject_GetBuffer(stream, &memory, PyBUF_WRITABLE) == 0;
  void* const address = memory.buf;
  const bool fits = readable && memory.len == static_cast<Py_ssize_t>(sizeof(ArrowArrayStream));
  // The object stays, and with it its memory, which is of one size.
  if (readable) PyBuffer_Release(&memory);
  if (!fits) {
    PyErr_SetString(PyExc_TypeError, "expected an ArrowArrayStream");
    return nullptr;
  }
  PyObject* const capsule = PyCapsule_New(address, kStream, &Release);
  if (capsule == nullptr) return nullptr;
  Py_INCREF(stream);
  if (PyCapsule_SetContext(capsule, stream) != 0) {
    Py_DECREF(stream);
    Py_DECREF(capsule);
    return nullptr;
  }
  return capsule;
}
