/* The C interface in Python: a private module of functions. A handle is a capsule that releases itself, a failed status
 * is an exception, what is given in out_ parameters is the result. See bindings/python/native. */

%{
#include "bindings/python/native/arrow.h"
#include "bindings/python/native/callbacks.h"
#include "bindings/python/native/error.h"
#include "bindings/python/native/handle.h"
#include "bindings/python/native/results.h"
#include "bindings/python/native/sequence.h"
#include "bindings/python/native/tensor.h"
#include "c_api/addend_ext.h"

#include <cstring>
#include <vector>
%}

%rename("%(strip:[addend_])s", %$isfunction) "";
%rename("%(strip:[ADDEND_])s", %$isenumitem) "";

/* ---- Handles: those of the list, except where the sections below say otherwise ---------------------------------- */

/* None is a NULL handle; only capsules of the right type pass otherwise. */
%define ADDEND_CAPSULE(Handle)
%ignore Handle ## _release;
%typemap(in) const Handle*, Handle* {
  if (!addend_python::GetHandle($input, "Handle", const_cast<Handle**>(&$1))) SWIG_fail;
}
%typemap(in, numinputs=0) Handle** (Handle* made = nullptr) { $1 = &made; }
%typemap(argout) Handle** {
  $result = addend_python::AddResult($result,
                                     addend_python::NewCapsule<Handle, &Handle ## _release>(*$1, "Handle"));
}
%enddef

%define ADDEND_HANDLE(noun, KIND, Name)
ADDEND_CAPSULE(addend_##noun)
%enddef
%include "c_api/handles.inc"

/* ---- Statuses --------------------------------------------------------------------------------------------------- */

%ignore addend_status_code;
%ignore addend_status_detail;
%ignore addend_status_message;
%ignore addend_status_payload;
%ignore addend_status_payload_key;
%typemap(out) addend_status* {
  if ($1 != nullptr) {
    addend_python::SetException($1);
    SWIG_fail;
  }
  $result = SWIG_Py_Void();
}

/* ---- Text and numbers ------------------------------------------------------------------------------------------- */

%typemap(in) const char* {
  Py_ssize_t size = 0;
  $1 = nullptr;
  if ($input != Py_None) {
    $1 = const_cast<char*>(PyUnicode_AsUTF8AndSize($input, &size));
    if ($1 == nullptr) SWIG_fail;
    if (std::strlen($1) != static_cast<size_t>(size)) {
      PyErr_SetString(PyExc_ValueError, "embedded null character");
      SWIG_fail;
    }
  }
}
%typemap(freearg) const char* "";

/* Text that was computed becomes a str, and its handle is released at once. */
%ignore addend_string_data;
%ignore addend_string_size;
%typemap(in, numinputs=0) addend_string** (addend_string* text = nullptr) { $1 = &text; }
%typemap(argout) addend_string** {
  $result = addend_python::AddResult(
      $result, PyUnicode_DecodeUTF8(addend_string_data(*$1), static_cast<Py_ssize_t>(addend_string_size(*$1)), "replace"));
  addend_string_release(*$1);
}

/* Except where it is bytes. */
%typemap(in, numinputs=0) addend_string** out_bytes (addend_string* text = nullptr) { $1 = &text; }
%typemap(argout) addend_string** out_bytes {
  $result = addend_python::AddResult(
      $result, PyBytes_FromStringAndSize(addend_string_data(*$1), static_cast<Py_ssize_t>(addend_string_size(*$1))));
  addend_string_release(*$1);
}

%typemap(in, numinputs=0) double* out_number (double number = 0) { $1 = &number; }
%typemap(argout) double* out_number { $result = addend_python::AddResult($result, PyFloat_FromDouble(*$1)); }

/* Integers; None stands for none of them. */
%typemap(in) (const int64_t* dims, size_t num_dims) (std::vector<int64_t> numbers) {
  if ($input != Py_None && !addend_python::GetIntegers($input, &numbers)) SWIG_fail;
  $1 = numbers.data();
  $2 = numbers.size();
}
%apply (const int64_t* dims, size_t num_dims) {
  (const int64_t* indices, size_t num_indices),
  (const int64_t* values, size_t num_values)
};

/* ---- Bytes ------------------------------------------------------------------------------------------------------ */

%typemap(in) (const void* data, size_t size) (Py_buffer bytes = {}) {
  if (PyObject_GetBuffer($input, &bytes, PyBUF_SIMPLE) != 0) SWIG_fail;
  $1 = bytes.buf;
  $2 = static_cast<size_t>(bytes.len);
}
%typemap(freearg) (const void* data, size_t size) { PyBuffer_Release(&bytes$argnum); }

%ignore addend_tensor_data;
%ignore addend_libtorch_tensor_release;
%ignore addend_tensor_from_dlpack;
%ignore addend_tensor_from_libtorch;
%ignore addend_tensor_to_dlpack;
%ignore addend_tensor_to_libtorch;
%ignore addend_tensor_wrap;
PyObject* tensor_from_buffer(PyObject* object);
PyObject* tensor_from_memory(PyObject* owner, unsigned long long address, size_t size, int32_t dtype, PyObject* dims,
                             PyObject* strides);
PyObject* tensor_from_dlpack(PyObject* capsule);
PyObject* tensor_from_torch(PyObject* tensor);
PyObject* tensor_to_dlpack(const addend_tensor* tensor, uint32_t max_major);
PyObject* tensor_address(const addend_tensor* tensor);

/* ---- Streams of Arrow ------------------------------------------------------------------------------------------- */

PyObject* arrow_stream_capsule(PyObject* stream);

/* ---- Callbacks -------------------------------------------------------------------------------------------------- */

%ignore addend_context_options_set_log;
%ignore addend_context_options_set_progress;
%ignore addend_frames_add;
%ignore addend_frames_fn;
%ignore addend_live_check_trace;
%ignore addend_live_record;
%ignore addend_record_fn;
%ignore addend_trace_record;
%ignore addend_trace_set_frames;
%ignore addend_trace_show_code;
addend_status* options_set_log(addend_context_options* options, PyObject* log);
addend_status* options_set_progress(addend_context_options* options, PyObject* progress);
addend_status* trace_record(const addend_request* request, PyObject* frames, addend_trace** out_trace);
addend_status* trace_set_frames(addend_trace* trace, PyObject* frames);
addend_status* trace_show_code(addend_trace* trace, const char* options, PyObject* show);
addend_status* live_record(const addend_request* request, PyObject* record, addend_program** out_program);
addend_status* live_check_trace(const addend_request* request, const char* options, PyObject* record,
                                addend_string** out_json);

/* ---- Rules without code, of addend_ext.h --------------------------------------------------------------------------- */

addend_status* addend_rules_create(addend_rules** out_rules);
addend_status* addend_rules_add(addend_rules* rules, const char* op, const char* principle);
addend_status* addend_context_options_set_rules(addend_context_options* options, const addend_rules* rules);

/* ---- What takes long lets other threads of Python run ----------------------------------------------------------- */

%define ADDEND_UNLOCKED(function)
%exception function {
  Py_BEGIN_ALLOW_THREADS
  $action
  Py_END_ALLOW_THREADS
}
%enddef

ADDEND_UNLOCKED(addend_attribution_explain)
ADDEND_UNLOCKED(addend_attribution_html)
ADDEND_UNLOCKED(addend_attribution_json)
ADDEND_UNLOCKED(addend_attribution_reasons)
ADDEND_UNLOCKED(addend_attribution_results)
ADDEND_UNLOCKED(addend_audit_log_append)
ADDEND_UNLOCKED(addend_audit_log_open)
ADDEND_UNLOCKED(addend_audit_verify)
ADDEND_UNLOCKED(addend_call)
ADDEND_UNLOCKED(addend_call_shapley)
ADDEND_UNLOCKED(addend_composition_component)
ADDEND_UNLOCKED(addend_composition_diagonal)
ADDEND_UNLOCKED(addend_composition_explain)
ADDEND_UNLOCKED(addend_composition_from_labels)
ADDEND_UNLOCKED(addend_composition_from_tensors)
ADDEND_UNLOCKED(addend_composition_grad)
ADDEND_UNLOCKED(addend_composition_part)
ADDEND_UNLOCKED(addend_composition_select)
ADDEND_UNLOCKED(addend_composition_to_string)
ADDEND_UNLOCKED(addend_explanation_html)
ADDEND_UNLOCKED(addend_explanation_read)
ADDEND_UNLOCKED(addend_explanation_reasons)
ADDEND_UNLOCKED(addend_explanation_svg)
ADDEND_UNLOCKED(addend_job_merge)
ADDEND_UNLOCKED(addend_job_open)
ADDEND_UNLOCKED(addend_job_plan)
ADDEND_UNLOCKED(addend_job_run)
ADDEND_UNLOCKED(addend_job_status)
ADDEND_UNLOCKED(addend_model_attribute)
ADDEND_UNLOCKED(addend_model_check_trace)
ADDEND_UNLOCKED(addend_model_decompose)
ADDEND_UNLOCKED(addend_model_interactions)
ADDEND_UNLOCKED(addend_model_load)
ADDEND_UNLOCKED(addend_model_load_bytes)
ADDEND_UNLOCKED(addend_model_to)
ADDEND_UNLOCKED(addend_model_methods)
ADDEND_UNLOCKED(addend_model_plan)
ADDEND_UNLOCKED(addend_model_record)
ADDEND_UNLOCKED(addend_model_requirements)
ADDEND_UNLOCKED(addend_model_run)
ADDEND_UNLOCKED(addend_model_sha256)
ADDEND_UNLOCKED(addend_model_shapley)
ADDEND_UNLOCKED(addend_plan_attribute)
ADDEND_UNLOCKED(addend_plan_attribute_into)
ADDEND_UNLOCKED(addend_program_code_json)
ADDEND_UNLOCKED(addend_program_code_text)
ADDEND_UNLOCKED(addend_program_export_torchscript)
ADDEND_UNLOCKED(addend_program_graph_dot)
ADDEND_UNLOCKED(addend_program_graph_html)
ADDEND_UNLOCKED(addend_program_graph_json)
ADDEND_UNLOCKED(addend_program_load)
ADDEND_UNLOCKED(addend_program_model)
ADDEND_UNLOCKED(addend_program_replay)
ADDEND_UNLOCKED(addend_program_requirements)
ADDEND_UNLOCKED(addend_program_save)
ADDEND_UNLOCKED(addend_program_summary)
ADDEND_UNLOCKED(addend_program_to)
ADDEND_UNLOCKED(addend_results_explain)
ADDEND_UNLOCKED(addend_results_report)
ADDEND_UNLOCKED(addend_tensor_file_decode)
ADDEND_UNLOCKED(addend_tensor_file_encode)
ADDEND_UNLOCKED(addend_tensor_file_read)
ADDEND_UNLOCKED(addend_tensor_file_write)
ADDEND_UNLOCKED(addend_tensor_to)
ADDEND_UNLOCKED(addend_tensor_to_string)
ADDEND_UNLOCKED(addend_trace_add_on_baseline)
ADDEND_UNLOCKED(addend_trace_again)
ADDEND_UNLOCKED(addend_trace_baseline)
ADDEND_UNLOCKED(addend_trace_end)
ADDEND_UNLOCKED(addend_trace_end_attribution)
ADDEND_UNLOCKED(addend_trace_end_plan)
ADDEND_UNLOCKED(addend_trace_end_program)
