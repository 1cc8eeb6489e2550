/* The C interface in C#: every function becomes an internal static method; a status becomes an exception, a handle a
 * SafeHandle, which the runtime keeps alive around the call. Nothing of SWIG's own run-time support is needed (see
 * `options` in bindings/csharp/BUILD). */
%pragma(csharp) moduleclassmodifiers="internal static class"
%pragma(csharp) imclassclassmodifiers="internal static class"

%{
#include "bindings/csharp/native/calls.h"
#include "c_api/addend_ext.h"
%}

/* Every function is a call that the end of the process waits for. */
%csnothrowexception {
  const addend_csharp::Call call;
  $action
}

/* Numbers of enumerations as constants, which the enumerations that users see are made of. */
%include "enumsimple.swg"
%csconst(1);

/* Live models are checked where they run, which is Python so far. */
%ignore addend_live_check_trace;
%ignore addend_live_record;
%ignore addend_record_fn;

/* Handles are released by their SafeHandle, with the pointer itself: Handles.cs, which is made of the same list, declares
 * those functions. */
%define ADDEND_SAFE_HANDLE(NOUN, CLASS)
%ignore NOUN##_release;
%typemap(ctype) NOUN*, const NOUN* "void *"
%typemap(imtype) NOUN*, const NOUN* "global::Addend.Native.CLASS"
%typemap(cstype) NOUN*, const NOUN* "global::Addend.Native.CLASS"
%typemap(csin) NOUN*, const NOUN* "$csinput"
%typemap(in) NOUN*, const NOUN* %{ $1 = static_cast<$1_ltype>($input); %}
%typemap(ctype) NOUN** "void **"
%typemap(imtype) NOUN** "out global::Addend.Native.CLASS"
%typemap(cstype) NOUN** "out global::Addend.Native.CLASS"
%typemap(csin) NOUN** "out $csinput"
%typemap(in) NOUN** %{ $1 = reinterpret_cast<$1_ltype>($input); %}
%enddef

%define ADDEND_HANDLE(noun, KIND, Name)
ADDEND_SAFE_HANDLE(addend_##noun, Name##Handle)
%enddef
%include "c_api/handles.inc"

/* Statuses are no objects: they are read where they become exceptions. */
%ignore addend_status_code;
%ignore addend_status_message;
%ignore addend_status_detail;
%ignore addend_status_payload;
%ignore addend_status_payload_key;
%typemap(ctype) addend_status* "void *"
%typemap(imtype) addend_status* "global::System.IntPtr"
%typemap(cstype) addend_status* "void"
%typemap(out) addend_status* %{ $result = $1; %}
%typemap(csout) addend_status* { global::Addend.Native.Status.Check($imcall); }

/* Text that goes in is UTF-8 on every system; text that comes out is borrowed, and decoded while its owner is held. */
%typemap(ctype) const char* "const char *"
%typemap(imtype, out="global::System.IntPtr",
         inattributes="[global::System.Runtime.InteropServices.MarshalAs(global::System.Runtime.InteropServices.UnmanagedType.LPUTF8Str)]")
    const char* "string"
%typemap(cstype, out="global::System.IntPtr") const char* "string"
%typemap(csin) const char* "$csinput"
%typemap(in) const char* %{ $1 = const_cast<$1_ltype>($input); %}
%typemap(out) const char* %{ $result = $1; %}
%typemap(csout) const char* { return $imcall; }
%typemap(freearg) const char* ""

%typemap(ctype, out="const void *") void*, const void* "void *"
%typemap(imtype) void*, const void* "global::System.IntPtr"
%typemap(cstype) void*, const void* "global::System.IntPtr"
%typemap(csin) void*, const void* "$csinput"
%typemap(csout) void*, const void* { return $imcall; }
%typemap(in) void*, const void* %{ $1 = $input; %}
%typemap(out) void*, const void* %{ $result = $1; %}

%typemap(ctype) addend_frames_fn, addend_log_fn, addend_progress_fn, addend_release_fn "void *"
%typemap(imtype) addend_frames_fn, addend_log_fn, addend_progress_fn, addend_release_fn "global::System.IntPtr"
%typemap(cstype) addend_frames_fn, addend_log_fn, addend_progress_fn, addend_release_fn "global::System.IntPtr"
%typemap(csin) addend_frames_fn, addend_log_fn, addend_progress_fn, addend_release_fn "$csinput"
%typemap(in) addend_frames_fn, addend_log_fn, addend_progress_fn, addend_release_fn %{ $1 = reinterpret_cast<$1_ltype>($input); %}

/* The frames that a frames callback is given live as long as it runs. */
%typemap(ctype) addend_frames* "void *"
%typemap(imtype) addend_frames* "global::System.IntPtr"
%typemap(cstype) addend_frames* "global::System.IntPtr"
%typemap(csin) addend_frames* "$csinput"
%typemap(in) addend_frames* %{ $1 = static_cast<addend_frames*>($input); %}

%typemap(ctype) size_t "size_t"
%typemap(imtype) size_t "nuint"
%typemap(cstype) size_t "nuint"
%typemap(csin) size_t "$csinput"
%typemap(csout) size_t { return $imcall; }
%typemap(in) size_t %{ $1 = $input; %}
%typemap(out) size_t %{ $result = $1; %}

%typemap(ctype) const int64_t* "const int64_t *"
%typemap(imtype, inattributes="[global::System.Runtime.InteropServices.In]") const int64_t* "long[]"
%typemap(cstype) const int64_t* "long[]"
%typemap(csin) const int64_t* "$csinput"
%typemap(in) const int64_t* %{ $1 = const_cast<$1_ltype>($input); %}

%define ADDEND_OUT(C_TYPE, CSHARP_TYPE)
%typemap(ctype) C_TYPE* "C_TYPE *"
%typemap(imtype) C_TYPE* "out CSHARP_TYPE"
%typemap(cstype) C_TYPE* "out CSHARP_TYPE"
%typemap(csin) C_TYPE* "out $csinput"
%typemap(in) C_TYPE* %{ $1 = $input; %}
%enddef

ADDEND_OUT(double, double)
ADDEND_OUT(int32_t, int)
ADDEND_OUT(void*, global::System.IntPtr)

/* Rules without code, of addend_ext.h. */

addend_status* addend_rules_create(addend_rules** out_rules);
addend_status* addend_rules_add(addend_rules* rules, const char* op, const char* principle);
addend_status* addend_context_options_set_rules(addend_context_options* options, const addend_rules* rules);
