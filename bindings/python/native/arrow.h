// Streams of Arrow, which Python's Arrow PyCapsule interface hands over.
#ifndef ADDEND_BINDINGS_PYTHON_NATIVE_ARROW_H_
#define ADDEND_BINDINGS_PYTHON_NATIVE_ARROW_H_

#include <Python.h>

// A new capsule, "arrow_array_stream", of the struct ArrowArrayStream at an address; `owner` holds the struct and is
// held. What no consumer has taken is released with the capsule, and an exception that is set then stays set.
PyObject* arrow_stream_capsule(unsigned long long address, PyObject* owner);

#endif  // ADDEND_BINDINGS_PYTHON_NATIVE_ARROW_H_
