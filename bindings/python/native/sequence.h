// Sequences of Python as arrays.
#ifndef ADDEND_BINDINGS_PYTHON_NATIVE_SEQUENCE_H_
#define ADDEND_BINDINGS_PYTHON_NATIVE_SEQUENCE_H_

#include <Python.h>

#include <cstdint>
#include <vector>

namespace addend_python {

// Calls `visit` with each item of any iterable until an exception is set; false then, and where `iterable` is none:
// that is a TypeError with the words `expected`.
template <typename Visit>
bool VisitItems(PyObject* iterable, const char* expected, const Visit& visit) {
  PyObject* const items = PySequence_Fast(iterable, expected);
  if (items == nullptr) return false;
  const Py_ssize_t size = PySequence_Size(items);
  for (Py_ssize_t k = 0; k < size && PyErr_Occurred() == nullptr; ++k) {
    PyObject* const item = PySequence_GetItem(items, k);
    if (item != nullptr) visit(item);
    Py_XDECREF(item);
  }
  Py_DECREF(items);
  return PyErr_Occurred() == nullptr;
}

// The integers of any iterable; false with an exception set where it holds something else.
inline bool GetIntegers(PyObject* iterable, std::vector<int64_t>* out_numbers) {
  return VisitItems(iterable, "expected integers", [out_numbers](PyObject* item) {
    // PyNumber_Index goes by __index__, so that it takes integers of NumPy and refuses 1.5.
    PyObject* const number = PyNumber_Index(item);
    if (number != nullptr) out_numbers->push_back(PyLong_AsLongLong(number));
    Py_XDECREF(number);
  });
}

}  // namespace addend_python

#endif  // ADDEND_BINDINGS_PYTHON_NATIVE_SEQUENCE_H_
