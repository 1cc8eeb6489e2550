// Tensors to and from other libraries by DLPack.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "c_api/bodies.h"
#include "c_api/dlpack_abi.h"
#include "c_api/memory.h"
#include "core/intercept/tracing_scope.h"

namespace addend::c_api {
namespace {

at::Device DeviceOf(const dlpack::Tensor& tensor) {
  if (tensor.device_type == dlpack::kCpu) return at::kCPU;
  if (tensor.device_type == dlpack::kCuda) return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(tensor.device_id));
  throw Unimplemented(
      absl::StrCat("DLPack's device type ", tensor.device_type, "; tensors are on 1 (CPU) or 2 (CUDA)"));
}

Layout LayoutOf(const dlpack::Tensor& tensor) {
  Layout layout;
  if (tensor.type_lanes != 1) {
    throw Unimplemented(absl::StrCat("elements of ", tensor.type_lanes, " lanes; LibTorch has elements of 1"));
  }
  layout.dtype = DtypeOf(tensor.type_code + (static_cast<int32_t>(tensor.type_bits) << 8));
  layout.device = DeviceOf(tensor);
  if (tensor.ndim < 0) throw InvalidArgument(absl::StrCat("the tensor has ", tensor.ndim, " dimensions"));
  layout.sizes = ShapeOf(tensor.shape, static_cast<size_t>(tensor.ndim));
  BytesOf(layout.sizes, layout.dtype);
  layout.strides = tensor.strides == nullptr || tensor.ndim == 0
                       ? ContiguousStrides(layout.sizes)
                       : std::vector<int64_t>(tensor.strides, tensor.strides + tensor.ndim);
  return layout;
}

at::Tensor Import(const dlpack::Tensor& tensor, const std::shared_ptr<Owner>& owner) {
  const Layout layout = LayoutOf(tensor);
  if (ExtentOf(layout) == 0)
    return at::empty(layout.sizes, at::TensorOptions().dtype(layout.dtype).device(layout.device));
  if (tensor.data == nullptr) throw InvalidArgument("the tensor has elements, but its data is NULL");
  return Over(static_cast<char*>(tensor.data) + tensor.byte_offset, layout, owner);
}

// An exported struct with its owner: the tensor, whose sizes and strides it points to.
template <typename Managed>
struct Export {
  explicit Export(at::Tensor t) : tensor(std::move(t)), shape(tensor.sizes().vec()), strides(tensor.strides().vec()) {
    LiveCount(ADDEND_HANDLE_DLPACK).fetch_add(1);
  }
  ~Export() { LiveCount(ADDEND_HANDLE_DLPACK).fetch_sub(1); }
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;

  at::Tensor tensor;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  Managed managed = {};
};

template <typename Managed>
void Delete(Managed* self) {
  delete static_cast<Export<Managed>*>(self->manager);
}

// Whether this library lent the memory out: nobody here writes it, so that it is shared in spite of its flag.
bool IsOurs(const dlpack::ManagedVersioned& managed) { return managed.deleter == &Delete<dlpack::ManagedVersioned>; }

template <typename Managed>
Managed* MakeExport(const at::Tensor& tensor, int32_t dtype) {
  auto exported = std::make_unique<Export<Managed>>(tensor);
  Managed& managed = exported->managed;
  dlpack::Tensor& out = managed.tensor;
  out.data = tensor.data_ptr();
  out.device_type = tensor.is_cuda() ? dlpack::kCuda : dlpack::kCpu;
  out.device_id = tensor.is_cuda() ? tensor.get_device() : 0;
  out.ndim = static_cast<int32_t>(tensor.dim());
  out.type_code = static_cast<uint8_t>(dtype & 0xff);
  out.type_bits = static_cast<uint8_t>(dtype >> 8);
  out.type_lanes = 1;
  out.shape = exported->shape.data();
  out.strides = exported->strides.data();
  managed.manager = exported.get();
  managed.deleter = &Delete<Managed>;
  return &exported.release()->managed;
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_tensor_from_dlpack(void* managed, int32_t is_versioned,
                                                    addend_tensor** out_tensor) noexcept {
  return Guard([&] {
    RequireOut(managed, "managed");
    RequireOut(out_tensor, "out_tensor");
    const TracingPause pause;
    if (is_versioned == 0) {
      auto* legacy = static_cast<dlpack::Managed*>(managed);
      const auto owner = std::make_shared<Owner>([legacy] {
        if (legacy->deleter != nullptr) legacy->deleter(legacy);
      });
      Give(out_tensor, Import(legacy->tensor, owner), /*lent=*/legacy->deleter != &Delete<dlpack::Managed>);
      owner->Arm();
      return;
    }
    auto* versioned = static_cast<dlpack::ManagedVersioned*>(managed);
    if (versioned->major != dlpack::kMajor) {
      throw Unimplemented(
          absl::StrCat("DLPack ", versioned->major, ".", versioned->minor, "; this library knows version 1"));
    }
    const auto owner = std::make_shared<Owner>([versioned] {
      if (versioned->deleter != nullptr) versioned->deleter(versioned);
    });
    at::Tensor tensor = Import(versioned->tensor, owner);
    // LibTorch knows no memory that may not be written.
    const bool read_only = (versioned->flags & dlpack::kReadOnly) != 0;
    if (read_only && !IsOurs(*versioned)) tensor = tensor.clone();
    Give(out_tensor, std::move(tensor), /*lent=*/!read_only);
    owner->Arm();
  });
}

ADDEND_API addend_status* addend_tensor_to_dlpack(const addend_tensor* tensor, uint32_t max_major, void** out_managed,
                                                  int32_t* out_is_versioned) noexcept {
  return Guard([&] {
    RequireOut(out_managed, "out_managed");
    RequireOut(out_is_versioned, "out_is_versioned");
    const at::Tensor& body = TensorOf(tensor, "tensor");
    const TracingPause pause;
    const at::Tensor view = body.detach().resolve_conj().resolve_neg();
    if (!view.is_cpu() && !view.is_cuda()) {
      throw Unimplemented(absl::StrCat("DLPack for tensors on ", view.device().str()));
    }
    int32_t dtype = DtypeNumber(view.scalar_type());
    if (dtype == 0) throw Unimplemented("DLPack has no such dtype");
    if (max_major >= dlpack::kMajor) {
      auto* versioned = MakeExport<dlpack::ManagedVersioned>(view, dtype);
      versioned->major = dlpack::kMajor;
      versioned->minor = 0;
      versioned->flags = dlpack::kReadOnly;
      *out_managed = versioned;
      *out_is_versioned = 1;
      return;
    }
    if (dtype == ADDEND_BOOL) dtype = ADDEND_UINT8;
    *out_managed = MakeExport<dlpack::Managed>(view, dtype);
    *out_is_versioned = 0;
  });
}

}  // extern "C"

}  // namespace addend::c_api
