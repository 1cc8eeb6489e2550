/* The C interface as input of SWIG, for every language. What handles, statuses, buffers and callbacks are in a language
 * is said in its typemap file; what its users see is written by hand in bindings/<language>. */
%module addend_native

%{
#include "c_api/addend.h"
%}

/* Not stdint.i, which would write `long long` where the header says int64_t: pointers to the two do not convert. */
%apply int { int32_t };
%apply unsigned int { uint32_t };
%apply long long { int64_t };

#if defined(SWIGPYTHON)
%include "bindings/swig/python.i"
#elif defined(SWIGJAVA)
%include "bindings/swig/java.i"
#elif defined(SWIGCSHARP)
%include "bindings/swig/csharp.i"
#endif

%include "c_api/addend.h"
