#include "bindings/python/native/tensor.h"

#include <cstring>
#include <memory>
#include <vector>

#include "bindings/python/native/error.h"
#include "bindings/python/native/handle.h"
#include "bindings/python/native/python_lock.h"
#include "bindings/python/native/sequence.h"

namespace {

constexpr char kOlder[] = "dltensor";
constexpr char kVersioned[] = "dltensor_versioned";
// Names to which a consumer renames a capsule, so that the capsule no longer deletes what it held.
constexpr char kUsedOlder[] = "used_dltensor";
constexpr char kUsedVersioned[] = "used_dltensor_versioned";

// The beginning of DLPack's structs, as far as it takes to delete them.
struct Managed {
  unsigned char tensor[48];
  void* manager;
  void (*deleter)(Managed* self);
};
struct ManagedVersioned {
  uint32_t version[2];
  void* manager;
  void (*deleter)(ManagedVersioned* self);
};

template <typename Struct>
void Delete(void* pointer) {
  Struct* const managed = static_cast<Struct*>(pointer);
  if (managed->deleter != nullptr) managed->deleter(managed);
}

void DeleteUnused(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kOlder)) Delete<Managed>(PyCapsule_GetPointer(capsule, kOlder));
  if (PyCapsule_IsValid(capsule, kVersioned)) {
    Delete<ManagedVersioned>(PyCapsule_GetPointer(capsule, kVersioned));
  }
}

PyObject* TensorCapsule(addend_status* status, addend_tensor* tensor) {
  if (status != nullptr) {
    addend_python::SetException(status);
    return nullptr;
  }
  return addend_python::NewCapsule<addend_tensor, &addend_tensor_release>(tensor, "addend_tensor");
}

struct ReleaseBuffer {
  void operator()(Py_buffer* buffer) const {
    if (!Py_IsInitialized()) return;
    const addend_python::PythonLock lock;
    PyBuffer_Release(buffer);
    delete buffer;
  }
};
using Buffer = std::unique_ptr<Py_buffer, ReleaseBuffer>;

// A new buffer, or null with an exception set.
Buffer GetBuffer(PyObject* object) {
  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object, buffer.get(), PyBUF_FULL_RO) != 0) return nullptr;
  return Buffer(buffer.release());
}

// The type of a buffer's elements as in addend_dtype; 0 where tensors have none like it.
int32_t Dtype(const Py_buffer& buffer) {
  const char* format = buffer.format == nullptr ? "B" : buffer.format;
  if (std::strchr("@=<", format[0]) != nullptr) ++format;
  const bool complex = format[0] == 'Z';
  if (complex) ++format;
  if (format[0] == '\0' || format[1] != '\0') return 0;
  const int32_t bits = static_cast<int32_t>(buffer.itemsize) * 8;
  if (complex) return std::strchr("fd", format[0]) == nullptr ? 0 : (bits << 8) + 5;
  if (format[0] == '?') return (bits << 8) + 6;
  if (std::strchr("bhilqn", format[0]) != nullptr) return bits << 8;
  if (std::strchr("BHILQN", format[0]) != nullptr) return (bits << 8) + 1;
  if (std::strchr("efd", format[0]) != nullptr) return (bits << 8) + 2;
  return 0;
}

// Strides in elements, and the bytes from the first to the last. False where a tensor cannot lie like that.
bool Layout(const Py_buffer& buffer, std::vector<int64_t>* strides, size_t* size) {
  if (buffer.suboffsets != nullptr) return false;
  if (reinterpret_cast<uintptr_t>(buffer.buf) % static_cast<uintptr_t>(buffer.itemsize) != 0) return false;
  int64_t last = 0;
  for (int d = 0; d < buffer.ndim; ++d) {
    if (buffer.shape[d] == 0) {
      strides->clear();
      *size = 0;
      return true;
    }
    const Py_ssize_t stride = buffer.strides[d];
    if (stride < 0 || stride % buffer.itemsize != 0) return false;
    strides->push_back(stride / buffer.itemsize);
    last += strides->back() * (buffer.shape[d] - 1);
  }
  *size = static_cast<size_t>((last + 1) * buffer.itemsize);
  return true;
}

PyObject* Copy(const Py_buffer& buffer, int32_t dtype, const std::vector<int64_t>& dims) {
  std::vector<unsigned char> bytes(static_cast<size_t>(buffer.len));
  // Not const before Python 3.11, though it only reads.
  if (PyBuffer_ToContiguous(bytes.data(), const_cast<Py_buffer*>(&buffer), buffer.len, 'C') != 0) return nullptr;
  addend_tensor* tensor = nullptr;
  addend_status* const status =
      addend_tensor_copy(bytes.data(), bytes.size(), dtype, dims.data(), dims.size(), &tensor);
  return TensorCapsule(status, tensor);
}

}  // namespace

PyObject* tensor_from_buffer(PyObject* object) {
  Buffer buffer = GetBuffer(object);
  if (buffer == nullptr) return nullptr;
  const int32_t dtype = Dtype(*buffer);
  if (dtype == 0) {
    PyErr_Format(PyExc_TypeError, "elements of format '%s' are of no dtype that tensors have",
                 buffer->format == nullptr ? "" : buffer->format);
    return nullptr;
  }
  const std::vector<int64_t> dims(buffer->shape, buffer->shape + buffer->ndim);
  std::vector<int64_t> strides;
  size_t size = 0;
  if (!Layout(*buffer, &strides, &size)) return Copy(*buffer, dtype, dims);
  addend_tensor* tensor = nullptr;
  addend_status* const status = addend_tensor_wrap(
      buffer->buf, size, dtype, dims.data(), dims.size(), strides.empty() ? nullptr : strides.data(), strides.size(),
      [](void* payload) { ReleaseBuffer()(static_cast<Py_buffer*>(payload)); }, buffer.get(), &tensor);
  if (status == nullptr) static_cast<void>(buffer.release());
  return TensorCapsule(status, tensor);
}

PyObject* tensor_from_memory(PyObject* owner, uint64_t address, size_t size, int32_t dtype, PyObject* dims,
                             PyObject* strides) {
  std::vector<int64_t> own_dims;
  std::vector<int64_t> own_strides;
  if (!addend_python::GetIntegers(dims, &own_dims) || !addend_python::GetIntegers(strides, &own_strides)) {
    return nullptr;
  }
  addend_tensor* tensor = nullptr;
  Py_INCREF(owner);
  addend_status* const status =
      addend_tensor_wrap(reinterpret_cast<void*>(address), size, dtype, own_dims.data(), own_dims.size(),
                         own_strides.data(), own_strides.size(), &addend_python::ReleaseObject, owner, &tensor);
  if (status != nullptr) Py_DECREF(owner);
  return TensorCapsule(status, tensor);
}

PyObject* tensor_from_dlpack(PyObject* capsule) {
  const bool versioned = PyCapsule_IsValid(capsule, kVersioned) != 0;
  if (!versioned && PyCapsule_IsValid(capsule, kOlder) == 0) {
    PyErr_SetString(PyExc_ValueError, "not an unused capsule of DLPack");
    return nullptr;
  }
  void* const managed = PyCapsule_GetPointer(capsule, versioned ? kVersioned : kOlder);
  addend_tensor* tensor = nullptr;
  addend_status* const status = addend_tensor_from_dlpack(managed, versioned ? 1 : 0, &tensor);
  if (status == nullptr) PyCapsule_SetName(capsule, versioned ? kUsedVersioned : kUsedOlder);
  return TensorCapsule(status, tensor);
}

PyObject* tensor_from_torch(PyObject* given) {
  PyObject* const torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");  // borrowed
  PyObject* const kind = torch == nullptr ? nullptr : PyObject_GetAttrString(torch, "Tensor");
  const int fits = kind == nullptr ? 0 : PyObject_IsInstance(given, kind);
  Py_XDECREF(kind);
  PyObject* const number = fits == 1 ? PyObject_GetAttrString(given, "_cdata") : nullptr;
  const uint64_t impl = number == nullptr ? 0 : PyLong_AsUnsignedLongLong(number);
  Py_XDECREF(number);
  if (PyErr_Occurred() || impl == 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "only a torch.Tensor is taken so");
    return nullptr;
  }
  const void* at_tensor = reinterpret_cast<const void*>(impl);
  addend_tensor* tensor = nullptr;
  addend_status* const status = addend_tensor_from_libtorch(&at_tensor, &tensor);
  return TensorCapsule(status, tensor);
}

PyObject* tensor_to_dlpack(const addend_tensor* tensor, uint32_t max_major) {
  void* managed = nullptr;
  int32_t versioned = 0;
  addend_status* const status = addend_tensor_to_dlpack(tensor, max_major, &managed, &versioned);
  if (status != nullptr) {
    addend_python::SetException(status);
    return nullptr;
  }
  PyObject* const capsule = PyCapsule_New(managed, versioned != 0 ? kVersioned : kOlder, &DeleteUnused);
  if (capsule == nullptr) versioned != 0 ? Delete<ManagedVersioned>(managed) : Delete<Managed>(managed);
  return capsule;
}

PyObject* tensor_address(const addend_tensor* tensor) {
  return PyLong_FromVoidPtr(const_cast<void*>(addend_tensor_data(tensor)));
}
