// Collects what a function returns through its out_ parameters: one object, or a list of several.
#ifndef ADDEND_BINDINGS_PYTHON_NATIVE_RESULTS_H_
#define ADDEND_BINDINGS_PYTHON_NATIVE_RESULTS_H_

#include <Python.h>

namespace addend_python {

// Takes both references. Null with an exception set where `value` could not be made, or an earlier one.
// SWIG's own function of this kind has other parameters in each version.
inline PyObject* AddResult(PyObject* results, PyObject* value) {
  if (results == nullptr || value == nullptr) {
    Py_XDECREF(results);
    Py_XDECREF(value);
    return nullptr;
  }
  if (results == Py_None) {
    Py_DECREF(results);
    return value;
  }
  if (!PyList_Check(results)) {
    PyObject* const list = PyList_New(1);
    if (list == nullptr) {
      Py_DECREF(results);
      Py_DECREF(value);
      return nullptr;
    }
    PyList_SetItem(list, 0, results);
    results = list;
  }
  const bool added = PyList_Append(results, value) == 0;
  Py_DECREF(value);
  if (added) return results;
  Py_DECREF(results);
  return nullptr;
}

}  // namespace addend_python

#endif  // ADDEND_BINDINGS_PYTHON_NATIVE_RESULTS_H_
