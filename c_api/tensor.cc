// Tensors: from the caller's memory, and what can be asked of them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "c_api/bodies.h"
#include "c_api/memory.h"
#include "core/base/tensor_text.h"
#include "core/composition/format_tensor.h"
#include "core/intercept/tracing_scope.h"

namespace addend::c_api {
namespace {

std::string Shown(const std::vector<int64_t>& numbers) { return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]"); }

at::Tensor Wrap(void* data, size_t size, const Layout& layout, bool contiguous, const std::shared_ptr<Owner>& owner) {
  const size_t needed = ExtentOf(layout);
  if (contiguous ? size != needed : size < needed) {
    throw InvalidArgument(absl::StrCat("buffer has ", size, " bytes, shape ", Shown(layout.sizes), " needs ", needed));
  }
  RequireArray(data, size, "data");
  return needed == 0 ? at::empty(layout.sizes, at::TensorOptions().dtype(layout.dtype)) : Over(data, layout, owner);
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_tensor_wrap(void* data, size_t size, int32_t dtype, const int64_t* dims,
                                             size_t num_dims, const int64_t* strides, size_t num_strides,
                                             addend_release_fn release, void* payload,
                                             addend_tensor** out_tensor) noexcept {
  return Guard([&] {
    RequireOut(out_tensor, "out_tensor");
    const TracingPause pause;
    Layout layout;
    layout.dtype = DtypeOf(dtype);
    layout.sizes = ShapeOf(dims, num_dims);
    BytesOf(layout.sizes, layout.dtype);
    const bool contiguous = strides == nullptr && num_strides == 0;
    if (contiguous) {
      layout.strides = ContiguousStrides(layout.sizes);
    } else {
      RequireArray(strides, num_strides, "strides");
      if (num_strides != num_dims) {
        throw InvalidArgument(absl::StrCat("num_strides is ", num_strides, ", num_dims is ", num_dims));
      }
      layout.strides.assign(strides, strides + num_strides);
    }
    const auto owner = std::make_shared<Owner>([release, payload] {
      if (release != nullptr) release(payload);
    });
    Give(out_tensor, Wrap(data, size, layout, contiguous, owner), /*lent=*/true);
    owner->Arm();
  });
}

ADDEND_API addend_status* addend_tensor_copy(const void* data, size_t size, int32_t dtype, const int64_t* dims,
                                             size_t num_dims, addend_tensor** out_tensor) noexcept {
  return Guard([&] {
    RequireOut(out_tensor, "out_tensor");
    const TracingPause pause;
    const at::ScalarType type = DtypeOf(dtype);
    const std::vector<int64_t> shape = ShapeOf(dims, num_dims);
    const size_t needed = BytesOf(shape, type);
    if (size != needed) {
      throw InvalidArgument(absl::StrCat("buffer has ", size, " bytes, shape ", Shown(shape), " needs ", needed));
    }
    RequireArray(data, size, "data");
    const at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(type));
    if (size > 0) std::memcpy(tensor.data_ptr(), data, size);
    Give(out_tensor, tensor);
  });
}

ADDEND_API addend_status* addend_tensor_to(const addend_tensor* tensor, int32_t dtype, const char* device,
                                           addend_tensor** out_tensor) noexcept {
  return Guard([&] {
    const at::Tensor& from = TensorOf(tensor, "tensor");
    RequireOut(out_tensor, "out_tensor");
    const TracingPause pause;
    const at::ScalarType type = dtype == 0 ? from.scalar_type() : DtypeOf(dtype);
    if (from.is_complex() && !c10::isComplexType(type)) {
      throw InvalidArgument(absl::StrCat("complex numbers (", TensorText(from), ") have an imaginary part, which ",
                                         "numbers of another type would lose"));
    }
    const at::Device where = device == nullptr ? from.device() : at::Device(Text(device, "device"));
    Give(out_tensor, from.detach().to(where, type).resolve_conj().resolve_neg().contiguous());
  });
}

ADDEND_API size_t addend_tensor_num_dims(const addend_tensor* tensor) noexcept {
  const auto* body = Peek(tensor);
  return body == nullptr ? 0 : static_cast<size_t>(body->tensor.dim());
}

ADDEND_API int64_t addend_tensor_size(const addend_tensor* tensor, size_t dim) noexcept {
  const auto* body = Peek(tensor);
  return body == nullptr || dim >= body->tensor.sizes().size() ? -1 : body->tensor.sizes()[dim];
}

ADDEND_API int64_t addend_tensor_stride(const addend_tensor* tensor, size_t dim) noexcept {
  const auto* body = Peek(tensor);
  const bool known = body != nullptr && body->tensor.layout() == at::kStrided && dim < body->tensor.sizes().size();
  return known ? body->tensor.strides()[dim] : -1;
}

ADDEND_API size_t addend_tensor_num_bytes(const addend_tensor* tensor) noexcept {
  const auto* body = Peek(tensor);
  return body == nullptr ? 0 : static_cast<size_t>(body->tensor.numel()) * body->tensor.dtype().itemsize();
}

ADDEND_API int32_t addend_tensor_dtype(const addend_tensor* tensor) noexcept {
  const auto* body = Peek(tensor);
  return body == nullptr ? 0 : DtypeNumber(body->tensor.scalar_type());
}

ADDEND_API const char* addend_tensor_device(const addend_tensor* tensor) noexcept {
  const auto* body = Peek(tensor);
  return body == nullptr ? nullptr : body->device.c_str();
}

ADDEND_API const void* addend_tensor_data(const addend_tensor* tensor) noexcept {
  const auto* body = Peek(tensor);
  if (body == nullptr || !body->tensor.is_cpu() || !body->tensor.has_storage() || !body->tensor.is_contiguous() ||
      body->tensor.is_conj() || body->tensor.is_neg()) {
    return nullptr;
  }
  return body->tensor.data_ptr();
}

ADDEND_API addend_status* addend_tensor_to_string(const addend_tensor* tensor, addend_string** out_text) noexcept {
  return Guard([&] {
    const at::Tensor& body = TensorOf(tensor, "tensor");
    RequireOut(out_text, "out_text");
    const TracingPause pause;
    Give(out_text, FormatTensor(body));
  });
}

ADDEND_API void addend_tensor_release(addend_tensor* tensor) noexcept { Release(tensor); }

}  // extern "C"

}  // namespace addend::c_api
