#include "bindings/python/native/error.h"

#include <cstring>

namespace addend_python {
namespace {

// Callbacks come on the thread that called, and calls do not nest beyond them: one slot per thread is enough.
struct CallbackException {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
};
thread_local CallbackException kept;

PyObject* Text(const char* text) { return PyUnicode_DecodeUTF8(text, std::strlen(text), "replace"); }

// A new dict, or null with an exception set.
PyObject* Payload(const addend_status* status) {
  PyObject* payload = PyDict_New();
  for (size_t k = 0; payload != nullptr; ++k) {
    const char* const key = addend_status_payload_key(status, k);
    if (key == nullptr) break;
    PyObject* const text = Text(addend_status_payload(status, key));
    if (text == nullptr || PyDict_SetItemString(payload, key, text) != 0) Py_CLEAR(payload);
    Py_XDECREF(text);
  }
  return payload;
}

}  // namespace

void SetException(addend_status* status) {
  if (kept.type != nullptr && addend_status_payload(status, "callback") != nullptr) {
    PyErr_Restore(kept.type, kept.value, kept.traceback);
    kept = CallbackException();
    addend_status_release(status);
    return;
  }
  PyObject* const errors = PyImport_ImportModule("addend._errors");
  PyObject* const payload = errors == nullptr ? nullptr : Payload(status);
  if (payload != nullptr) {
    PyObject* const exception =
        PyObject_CallMethod(errors, "from_status", "iNNN", static_cast<int>(addend_status_code(status)),
                            Text(addend_status_message(status)), Text(addend_status_detail(status)), payload);
    if (exception != nullptr) {
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
      Py_DECREF(exception);
    }
  }
  Py_XDECREF(errors);
  addend_status_release(status);
}

void KeepCallbackException() {
  Py_XDECREF(kept.type);
  Py_XDECREF(kept.value);
  Py_XDECREF(kept.traceback);
  PyErr_Fetch(&kept.type, &kept.value, &kept.traceback);
}

}  // namespace addend_python
