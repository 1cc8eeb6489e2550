// Statuses of the C interface as exceptions of Python.
#ifndef ADDEND_BINDINGS_PYTHON_NATIVE_ERROR_H_
#define ADDEND_BINDINGS_PYTHON_NATIVE_ERROR_H_

#include <Python.h>

#include "c_api/addend.h"

namespace addend_python {

// Sets the exception that a failed status stands for, and releases it. Where a callback raised, that is its exception.
void SetException(addend_status* status);

// Keeps the exception that is set now for the SetException() of the call that this thread is in.
void KeepCallbackException();

}  // namespace addend_python

#endif  // ADDEND_BINDINGS_PYTHON_NATIVE_ERROR_H_
