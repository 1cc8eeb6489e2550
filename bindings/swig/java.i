/* The C interface in Java: statuses become exceptions, handles are longs, text is String, and memory is a direct
 * buffer. The generated classes are package-private; users see bindings/java/dev/addend. */

%pragma(java) jniclassclassmodifiers="final class"
%pragma(java) moduleclassmodifiers="final class"
%pragma(java) jniclasscode=%{
  static {
    NativeLibrary.load();
  }
%}

%{
#include "bindings/java/jni/support.h"
#include "c_api/addend_ext.h"
%}

/* Enumerations are classes of int constants: addend_dtype becomes AddendDtype. */
%include "enumtypeunsafe.swg"
%javaconst(1);
%rename("%(camelcase)s", %$isenum) "";
%typemap(javaclassmodifiers) enum SWIGTYPE "final class"

/* The interface that this wrapper was compiled for; a constant would become a public type. */
/* Live models are checked where they run, which is Python so far. */
%ignore addend_live_check_trace;
%ignore addend_live_record;
%ignore addend_record_fn;

%ignore ADDEND_ABI_VERSION;
%inline %{
static int32_t addend_compiled_abi_version() { return ADDEND_ABI_VERSION; }
%}

/* ---- Handles: those of the list, except where the next section says otherwise ------------------------------------ */

%define %handle_in(TYPE)
%typemap(jni) TYPE "jlong"
%typemap(jtype) TYPE "long"
%typemap(jstype) TYPE "long"
%typemap(javain) TYPE "$javainput"
%typemap(in) TYPE %{ $1 = reinterpret_cast<$1_ltype>($input); %}
%enddef

/* out_ parameters: a long[1], which keeps its value where the call fails. */
%define %out(TYPE, JNI_ARRAY, JAVA_ARRAY, KIND)
%typemap(jni) TYPE* "JNI_ARRAY"
%typemap(jtype) TYPE* "JAVA_ARRAY"
%typemap(jstype) TYPE* "JAVA_ARRAY"
%typemap(javain) TYPE* "$javainput"
%typemap(in) TYPE* (TYPE out = 0) %{ $1 = &out; %}
%typemap(argout) TYPE* %{
  if (!result) addend_jni::Set##KIND(jenv, $input, out$argnum);
%}
%enddef

%define %handle(TYPE)
%handle_in(TYPE*)
%handle_in(const TYPE*)
%out(TYPE*, jlongArray, long[], Handle)
%enddef

%define ADDEND_HANDLE(noun, KIND, Name)
%handle(addend_##noun)
%enddef
%include "c_api/handles.inc"

/* The frames that a frames callback is given live as long as it runs. */
%handle_in(addend_frames*)
%out(double, jdoubleArray, double[], Double)
%out(int32_t, jintArray, int[], Int)

/* A DLManagedTensor and an at::Tensor, by their addresses. */
%handle_in(void* managed)
%handle_in(const void* at_tensor)
%handle_in(void* at_tensor)
%out(void*, jlongArray, long[], Handle)

/* ---- Status: checked in Java, so that native code throws nothing ------------------------------------------------ */

%typemap(jni) addend_status* "jlong"
%typemap(jtype) addend_status* "long"
%typemap(jstype) addend_status* "void"
%typemap(javaout) addend_status* { Status.check($jnicall); }
%typemap(out) addend_status* %{ $result = reinterpret_cast<jlong>($1); %}

%typemap(jni) addend_status* status "jlong"
%typemap(jtype) addend_status* status "long"
%typemap(jstype) addend_status* status "long"
%typemap(javain) addend_status* status "$javainput"
%typemap(in) addend_status* status %{ $1 = reinterpret_cast<addend_status*>($input); %}

/* ---- Text: bytes in UTF-8, because JNI's own strings are something else ----------------------------------------- */

%typemap(jni) const char* "jbyteArray"
%typemap(jtype) const char* "byte[]"
%typemap(jstype) const char* "String"
%typemap(javain) const char* "Text.encode($javainput)"
%typemap(javaout) const char* { return Text.decode($jnicall); }
%typemap(in) const char* (addend_jni::Bytes bytes) %{
  $1 = const_cast<char*>(bytes.Read(jenv, $input));
%}
%typemap(freearg) const char* ""
%typemap(out) const char* %{ $result = addend_jni::NewBytes(jenv, $1); %}
%typemap(out) const char* addend_string_data %{
  $result = addend_jni::NewBytes(jenv, $1, addend_string_size(arg1));
%}

/* ---- Arrays and memory ------------------------------------------------------------------------------------------ */

%define %longs(VALUES, COUNT)
%typemap(jni) (const int64_t* VALUES, size_t COUNT) "jlongArray"
%typemap(jtype) (const int64_t* VALUES, size_t COUNT) "long[]"
%typemap(jstype) (const int64_t* VALUES, size_t COUNT) "long[]"
%typemap(javain) (const int64_t* VALUES, size_t COUNT) "$javainput"
%typemap(in) (const int64_t* VALUES, size_t COUNT) (addend_jni::Longs longs) %{
  $1 = const_cast<int64_t*>(longs.Read(jenv, $input));
  $2 = longs.size();
%}
%enddef

%longs(dims, num_dims)
%longs(strides, num_strides)
%longs(indices, num_indices)
%longs(values, num_values)

/* Direct buffers from their first byte on, whatever their position: the face passes slices. */
%define %buffer(TYPE)
%typemap(jni) TYPE data "jobject"
%typemap(jtype) TYPE data "java.nio.Buffer"
%typemap(jstype) TYPE data "java.nio.Buffer"
%typemap(javain) TYPE data "$javainput"
%typemap(in) TYPE data %{ $1 = $input ? jenv->GetDirectBufferAddress($input) : nullptr; %}
%enddef

%buffer(void*)
%buffer(const void*)

/* Memory of a contiguous tensor as a ByteBuffer; null for others. */
%typemap(jni) const void* addend_tensor_data "jobject"
%typemap(jtype) const void* addend_tensor_data "java.nio.ByteBuffer"
%typemap(jstype) const void* addend_tensor_data "java.nio.ByteBuffer"
%typemap(javaout) const void* addend_tensor_data { return $jnicall; }
%typemap(out) const void* addend_tensor_data %{ $result = addend_jni::NewBuffer(jenv, $1, arg1); %}

/* ---- Java objects that the library holds ------------------------------------------------------------------------ */

%typemap(jni) (addend_release_fn release, void* payload) "jobject"
%typemap(jtype) (addend_release_fn release, void* payload) "Object"
%typemap(jstype) (addend_release_fn release, void* payload) "Object"
%typemap(javain) (addend_release_fn release, void* payload) "$javainput"
%typemap(in) (addend_release_fn release, void* payload) %{
  $1 = addend_jni::Release;
  $2 = addend_jni::Hold(jenv, $input);
%}
/* On failure the payload stays the caller's. */
%typemap(argout) (addend_release_fn release, void* payload) %{
  if (result) addend_jni::Release($2);
%}

%define %java_callback(TYPE, NAME, CLASS, FUNCTION)
%typemap(jni) (TYPE NAME, void* payload, addend_release_fn release) "jobject"
%typemap(jtype) (TYPE NAME, void* payload, addend_release_fn release) "CLASS"
%typemap(jstype) (TYPE NAME, void* payload, addend_release_fn release) "CLASS"
%typemap(javain) (TYPE NAME, void* payload, addend_release_fn release) "$javainput"
%typemap(in) (TYPE NAME, void* payload, addend_release_fn release) %{
  $1 = $input ? addend_jni::FUNCTION : nullptr;
  $2 = addend_jni::Hold(jenv, $input);
  $3 = addend_jni::Release;
%}
%typemap(argout) (TYPE NAME, void* payload, addend_release_fn release) %{
  if (result) addend_jni::Release($2);
%}
%enddef

%java_callback(addend_log_fn, log, LogCallback, Log)
%java_callback(addend_progress_fn, progress, ProgressCallback, Progress)
%java_callback(addend_frames_fn, frames, FramesCallback, Frames)

/* ---- Rules without code, of addend_ext.h ------------------------------------------------------------------------ */

addend_status* addend_rules_create(addend_rules** out_rules);
addend_status* addend_rules_add(addend_rules* rules, const char* op, const char* principle);
addend_status* addend_context_options_set_rules(addend_context_options* options, const addend_rules* rules);
void addend_rules_release(addend_rules* rules);
