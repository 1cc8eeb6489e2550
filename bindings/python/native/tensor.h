// Tensors from and to Python without copies: the buffer protocol and DLPack.
#ifndef ADDEND_BINDINGS_PYTHON_NATIVE_TENSOR_H_
#define ADDEND_BINDINGS_PYTHON_NATIVE_TENSOR_H_

#include <Python.h>

#include <cstdint>

#include "c_api/addend.h"

// A new capsule of an addend_tensor that shares the memory of an object with the buffer protocol and keeps the object.
// Memory that no tensor can describe (negative strides, unaligned elements) is copied.
PyObject* tensor_from_buffer(PyObject* object);

// A new capsule of an addend_tensor that shares memory which `owner` keeps, and keeps the owner; strides count
// elements.
PyObject* tensor_from_memory(PyObject* owner, uint64_t address, size_t size, int32_t dtype, PyObject* dims,
                             PyObject* strides);

// A new capsule of an addend_tensor that takes over a capsule of DLPack.
PyObject* tensor_from_dlpack(PyObject* capsule);

// A new capsule of an addend_tensor that is a torch.Tensor, by what its attribute _cdata tells: the address of the
// c10::TensorImpl, which is all that an at::Tensor holds. A TypeError for anything else.
PyObject* tensor_from_torch(PyObject* tensor);

// A new capsule of DLPack.
PyObject* tensor_to_dlpack(const addend_tensor* tensor, uint32_t max_major);

// The address of the elements; 0 where addend_tensor_data() has none.
PyObject* tensor_address(const addend_tensor* tensor);

#endif  // ADDEND_BINDINGS_PYTHON_NATIVE_TENSOR_H_
