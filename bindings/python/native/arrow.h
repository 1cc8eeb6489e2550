// Streams of Arrow, which Python's Arrow PyCapsule interface hands over.
#ifndef ADDEND_BINDINGS_PYTHON_NATIVE_ARROW_H_
#define ADDEND_BINDINGS_PYTHON_NATIVE_ARROW_H_

#include <Python.h>

// A new capsule, "arrow_array_stream", of a struct ArrowArrayStream: an object with the buffer protocol, writable,
// whose memory is the struct. It is held. What no consumer has taken is released with the capsule, and an exception
// that is set then stays set. A TypeError for memory that no such struct can be.
PyObject* arrow_stream_capsule(PyObject* stream);

#endif  // ADDEND_BINDINGS_PYTHON_NATIVE_ARROW_H_
