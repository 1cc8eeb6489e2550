// Handles of the C interface as capsules: the last reference to a capsule releases its handle. A capsule carries the
// type of its handle as its name, so that one cannot stand for another.
#ifndef ADDEND_BINDINGS_PYTHON_NATIVE_HANDLE_H_
#define ADDEND_BINDINGS_PYTHON_NATIVE_HANDLE_H_

#include <Python.h>

namespace addend_python {

// A new capsule that owns the handle; null with an exception set where there is no memory.
template <typename Handle, void (*release)(Handle*) noexcept>
PyObject* NewCapsule(Handle* handle, const char* type) {
  PyObject* const capsule = PyCapsule_New(handle, type, [](PyObject* self) {
    release(static_cast<Handle*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self))));
  });
  if (capsule == nullptr) release(handle);
  return capsule;
}

// The handle in a capsule; null for None. False with an exception set for any other object.
template <typename Handle>
bool GetHandle(PyObject* object, const char* type, Handle** out_handle) {
  if (object == Py_None) {
    *out_handle = nullptr;
    return true;
  }
  if (!PyCapsule_IsValid(object, type)) {
    PyObject* const name = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__");
    if (name != nullptr) PyErr_Format(PyExc_TypeError, "expected an %s, got %S", type, name);
    Py_XDECREF(name);
    return false;
  }
  *out_handle = static_cast<Handle*>(PyCapsule_GetPointer(object, type));
  return true;
}

}  // namespace addend_python

#endif  // ADDEND_BINDINGS_PYTHON_NATIVE_HANDLE_H_
