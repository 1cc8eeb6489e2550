// The C interface of a model in a native library: tensors are the addresses of at::Tensor objects.
#ifndef ADDEND_TESTS_NATIVE_MODEL_NATIVE_MODEL_H_
#define ADDEND_TESTS_NATIVE_MODEL_NATIVE_MODEL_H_

#include <stddef.h>
#include <stdint.h>

#define NATIVE_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct native_model native_model;

// Hears the path of the module that runs from now on: "encoder.0", "" outside of all.
typedef void (*native_hook)(void* payload, const char* module_path);

// The last error on this thread; "" if there is none.
NATIVE_API const char* native_error(void);

// A new float tensor of `sizes`, from a copy.
NATIVE_API void* native_tensor(const float* numbers, const int64_t* sizes, size_t num_sizes);
NATIVE_API void native_tensor_release(void* tensor);

// Operators as a wrapper of LibTorch has them; each gives a new tensor, or NULL where it failed.
NATIVE_API void* native_linear(const void* x, const void* weight, const void* bias);
NATIVE_API void* native_relu(const void* x);

// Maps [batch, 4] to the probabilities of 3 classes, [batch, 3], through the modules encoder.0, encoder.1, norm and
// head.
NATIVE_API native_model* native_model_create(void);
NATIVE_API void native_model_release(native_model* model);
// Parameters and buffers: their names, whether they are learned, and the tensors, which stay the model's.
NATIVE_API size_t native_model_num_tensors(const native_model* model);
NATIVE_API const char* native_model_tensor_name(const native_model* model, size_t index);
NATIVE_API int32_t native_model_tensor_is_learned(const native_model* model, size_t index);
NATIVE_API const void* native_model_tensor(const native_model* model, size_t index);
// A new tensor, or NULL where it failed. `hook` may be NULL.
NATIVE_API void* native_model_forward(const native_model* model, const void* x, native_hook hook, void* payload);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ADDEND_TESTS_NATIVE_MODEL_NATIVE_MODEL_H_
