// Sequences of Python as arrays.
#ifndef ADDEND_BINDINGS_PYTHON_NATIVE_SEQUENCE_H_
#define ADDEND_BINDINGS_PYTHON_NATIVE_SEQUENCE_H_

#include <Python.h>

#include <cstdint>
#include <vector>

namespace addend_python {

// The integers of any iterable; false with an exception set where it holds something else.
inline bool GetIntegers(PyObject* iterable, std::vector<int64_t>* out_numbers) {
  PyObject* const items = PySequence_Fast(iterable, "expected integers");
  if (items == nullptr) return false;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(items);
  for (Py_ssize_t k = 0; k < size && PyErr_Occurred() == nullptr; ++k) {
    // By way of __index__, so that integers of NumPy are welcome and 1.5 is not.
    PyObject* const number = PyNumber_Index(PySequence_Fast_GET_ITEM(items, k));
    if (number != nullptr) out_numbers->push_back(PyLong_AsLongLong(number));
    Py_XDECREF(number);
  }
  Py_DECREF(items);
  return PyErr_Occurred() == nullptr;
}

}  // namespace addend_python

#endif  // ADDEND_BINDINGS_PYTHON_NATIVE_SEQUENCE_H_
