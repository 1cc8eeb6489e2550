/* The C interface for Python with one typemap that is wrong: a number argument of an operator loses half of its bits. */
%module addend_native

%typemap(in) double value %{ $1 = static_cast<float>(PyFloat_AsDouble($input)); %}
%include "bindings/swig/addend.i"
