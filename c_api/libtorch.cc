// Tensors of other code in this process that computes with the same LibTorch, by the address of an at::Tensor.
#include <ATen/core/Tensor.h>

#include "absl/strings/str_cat.h"
#include "c_api/bodies.h"

namespace addend::c_api {
namespace {

// Throws unless every other function of the C interface may be given the tensor.
void RequireDense(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    throw InvalidArgument("at_tensor is undefined; give the tensor that an operator or a module gave");
  }
  if (tensor.is_quantized()) throw Unimplemented("at_tensor is quantized; dequantize it first");
  if (tensor.layout() != at::kStrided || !tensor.has_storage()) {
    throw Unimplemented("at_tensor is sparse, or its elements lie in no memory of its own; give a dense copy of it");
  }
  if (DtypeNumber(tensor.scalar_type()) == 0) {
    throw Unimplemented(
        absl::StrCat("at_tensor holds ", at::toString(tensor.scalar_type()), ", which addend_dtype has no number for"));
  }
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_tensor_from_libtorch(const void* at_tensor, addend_tensor** out_tensor) noexcept {
  return Guard([&] {
    RequireOut(at_tensor, "at_tensor");
    RequireOut(out_tensor, "out_tensor");
    // Before the first look at the object: in another LibTorch it is laid out otherwise.
    RequireLibTorch();
    const auto& tensor = *static_cast<const at::Tensor*>(at_tensor);
    RequireDense(tensor);
    Give(out_tensor, TensorBody(tensor));
  });
}

ADDEND_API addend_status* addend_tensor_to_libtorch(const addend_tensor* tensor, void** out_at_tensor) noexcept {
  return Guard([&] {
    RequireOut(out_at_tensor, "out_at_tensor");
    RequireLibTorch();
    *out_at_tensor = new at::Tensor(TensorOf(tensor, "tensor"));
  });
}

ADDEND_API void addend_libtorch_tensor_release(void* at_tensor) noexcept { delete static_cast<at::Tensor*>(at_tensor); }

}  // extern "C"

}  // namespace addend::c_api
