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
// Calls addend_trace_record; `frames()` gives source lines (file, line, function, text, column, length), outermost
// first, or is None. An exception of it ends the recording and is raised there.
addend_status* trace_record(const addend_request* request, PyObject* frames, addend_trace** out_trace);
// Calls addend_trace_set_frames; `frames` and its exceptions are treated as in trace_record.
addend_status* trace_set_frames(addend_trace* trace, PyObject* frames);
// Calls addend_trace_show_code, with `show(level, lines)`; its exceptions end nothing, as with `log`.
addend_status* trace_show_code(addend_trace* trace, const char* options, PyObject* show);
// `record(example, inputs)` gives the capsule of a program; see addend_record_fn. What it raises ends the call and is
// raised there.
addend_status* live_record(const addend_request* request, PyObject* record, addend_program** out_program);
addend_status* live_check_trace(const addend_request* request, const char* options, PyObject* record,
                                addend_string** out_json);

#endif  // ADDEND_BINDINGS_PYTHON_NATIVE_CALLBACKS_H_
