// Callables of Python as callbacks of a context.
#ifndef ADDEND_BINDINGS_PYTHON_NATIVE_CALLBACKS_H_
#define ADDEND_BINDINGS_PYTHON_NATIVE_CALLBACKS_H_

#include <Python.h>

#include "c_api/addend.h"

// `log(level, message)`; what it raises ends nothing, it is written as unraisable.
addend_status* options_set_log(addend_context_options* options, PyObject* log);
// `progress(stage, done, total)`, or None: then the run only listens to signals, so that Ctrl-C ends it. What it raises
// ends the run and is raised there.
addend_status* options_set_progress(addend_context_options* options, PyObject* progress);

#endif  // ADDEND_BINDINGS_PYTHON_NATIVE_CALLBACKS_H_
