// The lock of the interpreter on threads that may or may not hold it.
#ifndef ADDEND_BINDINGS_PYTHON_NATIVE_PYTHON_LOCK_H_
#define ADDEND_BINDINGS_PYTHON_NATIVE_PYTHON_LOCK_H_

#include <Python.h>

namespace addend_python {

class PythonLock {
 public:
  PythonLock() : state_(PyGILState_Ensure()) {}
  ~PythonLock() { PyGILState_Release(state_); }
  PythonLock(const PythonLock&) = delete;
  PythonLock& operator=(const PythonLock&) = delete;

 private:
  PyGILState_STATE state_;
};

// An addend_release_fn for objects. When the interpreter is gone its objects are too.
inline void ReleaseObject(void* object) {
  if (!Py_IsInitialized()) return;
  const PythonLock lock;
  Py_DECREF(static_cast<PyObject*>(object));
}

}  // namespace addend_python

#endif  // ADDEND_BINDINGS_PYTHON_NATIVE_PYTHON_LOCK_H_
