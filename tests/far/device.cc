// A device that is not the CPU, on any machine, for tests: README.md. LibTorch knows it as "privateuseone".
//
// Note [Lending]
// A storage of this device has an address in memory that nobody may read or write (PROT_NONE), as that of a GPU is
// nothing to the CPU: whoever takes a pointer from a tensor and reads from it dies of SIGSEGV. Its numbers are in other
// memory, which the storage's context alone names. A boxed fallback under the device's dispatch key makes, for every
// operator, CPU tensors over those numbers, has LibTorch's CPU kernel compute, and makes tensors of the device of what
// came back. Who shares a storage on the device shares one while it is lent, so that views, in-place operators and out=
// arguments are what they are on the CPU.
#include "tests/far/device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <sys/mman.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#if __has_include(<ATen/detail/PrivateUse1HooksInterface.h>)
#include <ATen/detail/PrivateUse1HooksInterface.h>
#endif

namespace addend::far {
namespace {

using c10::IValue;
using Stack = torch::jit::Stack;

const at::Device kFar(at::kPrivateUse1, 0);

std::atomic<int64_t> kernels{0};

// ---- Modes: README.md

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

std::atomic<int64_t> lost_at{kNever};  // the kernel that loses the context
std::atomic<int64_t> seed{-1};         // of another order of sums; negative: that of the CPU
std::atomic<int64_t> host_reads{-1};   // negative: not counted

int64_t Whole(const std::string& word, const std::string& digits) {
  TORCH_CHECK(!digits.empty() && digits.size() < 19 && digits.find_first_not_of("0123456789") == std::string::npos,
              "ADDEND_FAR: ", word, " has no whole number");
  return std::stoll(digits);
}

// Counts a kernel, and throws once the context is lost. Every kernel calls it first.
void Launch() {
  const int64_t own = kernels.fetch_add(1, std::memory_order_relaxed) + 1;
  TORCH_CHECK(own < lost_at.load(std::memory_order_relaxed), "CUDA error: device-side assert triggered");
}

void CountHostRead() {
  if (host_reads.load(std::memory_order_relaxed) >= 0) host_reads.fetch_add(1, std::memory_order_relaxed);
}

bool IsMask(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte);
}

// Operators after which the host knows numbers of the device: one, or how many elements a result has.
bool ReadByHost(const std::string& name, const std::vector<IValue>& arguments) {
  static const std::set<std::string> kNames = {"aten::_local_scalar_dense",
                                               "aten::_unique",
                                               "aten::_unique2",
                                               "aten::equal",
                                               "aten::masked_select",
                                               "aten::nonzero",
                                               "aten::unique_dim",
                                               "aten::unique_consecutive",
                                               "aten::bincount",
                                               "aten::unique_dim_consecutive"};
  if (kNames.count(name) != 0) return true;
  // Masks among indices: elsewhere LibTorch itself makes indices of them, by nonzero.
  if (name != "aten::_index_put_impl_") return false;
  const auto indices = arguments[1].toOptionalTensorVector();
  return std::any_of(indices.begin(), indices.end(), [](const auto& index) { return index && IsMask(*index); });
}

// ---- Another order of sums

// An order that is the same for the same size, so that the device gives the same bits for the same numbers.
at::Tensor Order(int64_t size) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 draw(static_cast<uint64_t>(seed.load(std::memory_order_relaxed) + size));
  std::shuffle(order.begin(), order.end(), draw);
  return at::tensor(order, at::kLong);
}

// The elements along a dimension in another order, within each of `groups` parts of it. What the kernel will refuse
// stays as it is.
void Shuffle(IValue* argument, int64_t dim, int64_t groups = 1) {
  const at::Tensor tensor = argument->toTensor();
  if (dim < -tensor.dim() || dim >= tensor.dim() || groups < 1 || tensor.size(dim) % groups != 0) return;
  const int64_t size = tensor.size(dim) / groups;
  const at::Tensor order = at::arange(groups, at::kLong).mul(size).unsqueeze(1).add(Order(size)).reshape({-1});
  *argument = tensor.index_select(dim, order);
}

// Products: which dimensions of which two arguments are summed over.
struct Product {
  size_t left;
  int64_t left_dim;
  size_t right;
  int64_t right_dim;
};

const Product* ProductOf(const std::string& name) {
  static const std::map<std::string, Product> kProducts = {
      {"aten::addbmm", {1, -1, 2, -2}},  {"aten::addmm", {1, -1, 2, -2}}, {"aten::addmv", {1, -1, 2, -1}},
      {"aten::baddbmm", {1, -1, 2, -2}}, {"aten::bmm", {0, -1, 1, -2}},   {"aten::dot", {0, -1, 1, -1}},
      {"aten::mm", {0, -1, 1, -2}},      {"aten::mv", {0, -1, 1, -1}},    {"aten::vdot", {0, -1, 1, -1}}};
  const auto found = kProducts.find(name);
  return found == kProducts.end() ? nullptr : &found->second;
}

IValue Named(const c10::FunctionSchema& schema, const IValue* arguments, const char* name) {
  const c10::optional<int> index = schema.argumentIndexWithName(name);
  return index ? arguments[*index] : IValue();
}

// Brings what an operator sums into another order, in copies of its arguments, so that the CPU's kernel adds up
// otherwise. What LibTorch composes of these operators (matmul, linear) is reordered by them.
void Reorder(const c10::FunctionSchema& schema, IValue* arguments) {
  const std::string& name = schema.name();
  if (const Product* product = ProductOf(name)) {
    Shuffle(&arguments[product->left], product->left_dim);
    Shuffle(&arguments[product->right], product->right_dim);
  } else if (name == "aten::sum" || name == "aten::mean") {
    const IValue dims = Named(schema, arguments, "dim");
    std::vector<int64_t> summed = dims.isIntList() ? dims.toIntVector() : std::vector<int64_t>();
    if (summed.empty()) {
      summed.resize(static_cast<size_t>(arguments[0].toTensor().dim()));
      std::iota(summed.begin(), summed.end(), 0);
    }
    for (const int64_t dim : summed) Shuffle(&arguments[0], dim);
  } else if (name == "aten::convolution" || name == "aten::_convolution" || name == "aten::mkldnn_convolution") {
    const IValue transposed = Named(schema, arguments, "transposed");
    const int64_t groups = Named(schema, arguments, "groups").toInt();
    const bool turned = transposed.isBool() && transposed.toBool();
    Shuffle(&arguments[0], 1, groups);
    Shuffle(&arguments[1], turned ? 0 : 1, turned ? groups : 1);
  }
}

// ---- Memory

// Context of a storage, which holds its memory.
struct Block {
  void* numbers = nullptr;
};

void Free(void* context) {
  auto* block = static_cast<Block*>(context);
  std::free(block->numbers);
  delete block;
}

// Addresses that nobody may touch, none of them given twice: one reservation, since a mapping for each storage would be
// most of the work of small operators. It is of addresses alone and takes no memory.
void* AddressesFor(size_t bytes) {
  constexpr size_t kReserved = size_t{1} << 44;
  static void* const begin = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  static std::atomic<size_t> given{0};
  TORCH_CHECK(begin != MAP_FAILED, "the far device cannot reserve addresses");
  const size_t offset = given.fetch_add(bytes, std::memory_order_relaxed);
  TORCH_CHECK(offset + bytes <= kReserved, "the far device has no addresses for ", bytes, " bytes");
  return static_cast<char*>(begin) + offset;
}

// Memory of `bytes` bytes; null for none.
at::DataPtr Allocate(size_t bytes) {
  if (bytes == 0) return {nullptr, kFar};
  constexpr size_t kAlignment = 64;
  const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* const address = AddressesFor(whole);
  auto block = std::make_unique<Block>();
  block->numbers = std::aligned_alloc(kAlignment, whole);
  TORCH_CHECK(block->numbers != nullptr, "the far device has no memory for ", bytes, " bytes");
  return {address, block.release(), &Free, kFar};
}

void* NumbersOf(const c10::Storage& storage) {
  const auto* block = static_cast<const Block*>(storage.data_ptr().get_context());
  return block == nullptr ? nullptr : block->numbers;
}

c10::Storage NewStorage(size_t bytes) {
  return {c10::Storage::use_byte_size_t(), bytes, Allocate(bytes), nullptr, false};
}

// A CPU storage on memory of the device. A CPU kernel may make it larger: that gives it memory of the CPU's.
c10::Storage Lend(const c10::Storage& storage) {
  return {c10::Storage::use_byte_size_t(), storage.nbytes(), at::DataPtr(NumbersOf(storage), at::kCPU),
          c10::GetAllocator(at::kCPU), true};
}

// ---- Tensors

bool IsFar(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == at::kPrivateUse1; }

// A tensor over `storage` that is to it what `like` is to its own.
at::Tensor Over(const c10::Storage& storage, const at::Tensor& like) {
  const bool far = storage.device().type() == at::kPrivateUse1;
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(far ? c10::DispatchKey::PrivateUse1 : c10::DispatchKey::CPU),
      like.dtype());
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_offset(like.storage_offset());
  impl->set_sizes_and_strides(like.sizes(), like.strides());
  if (like.is_conj()) tensor._set_conj(true);
  if (like.is_neg()) tensor._set_neg(true);
  if (like._is_zerotensor()) tensor._set_zero(true);
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return tensor;
}

constexpr char kLayouts[] = "the far device computes on strided and sparse COO tensors only";

// A sparse tensor with indices and values that `move` has brought to another device.
template <typename Move>
at::Tensor Sparse(const at::Tensor& tensor, at::Device to, const Move& move) {
  const bool far = to.type() == at::kPrivateUse1;
  const auto* own = static_cast<const at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
  at::Tensor moved = at::detail::make_tensor<at::SparseTensorImpl>(
      c10::DispatchKeySet(far ? c10::DispatchKey::SparsePrivateUse1 : c10::DispatchKey::SparseCPU), tensor.dtype());
  auto* impl = static_cast<at::SparseTensorImpl*>(moved.unsafeGetTensorImpl());
  impl->resize_(own->sparse_dim(), own->dense_dim(), tensor.sizes());
  impl->set_indices_and_values_unsafe(move(own->indices()), move(own->values()));
  impl->set_coalesced(own->coalesced());
  return moved;
}

// Tensors that one call has lent to a CPU kernel, and gets back.
class Loan {
 public:
  at::Tensor Tensor(const at::Tensor& own) {
    for (const auto& [far, lent] : tensors_) {
      if (far.is_same(own)) return lent;
    }
    if (own.layout() == at::kSparse) return Sparse(own, at::kCPU, [&](const at::Tensor& part) { return Tensor(part); });
    TORCH_CHECK_NOT_IMPLEMENTED(own.layout() == at::kStrided && own.has_storage(), kLayouts);
    tensors_.emplace_back(own, Over(Storage(own.storage()), own));
    return tensors_.back().second;
  }

  c10::Storage Storage(const c10::Storage& own) {
    for (const auto& [far, lent] : storages_) {
      if (far.unsafeGetStorageImpl() == own.unsafeGetStorageImpl()) return lent;
    }
    storages_.emplace_back(own, Lend(own));
    return storages_.back().second;
  }

  // After the kernel: arguments that it wrote into, moved or made larger.
  void Settle() {
    for (auto& [far, lent] : storages_) {
      if (lent.data_ptr().get() == NumbersOf(far)) continue;
      at::DataPtr moved = Allocate(lent.nbytes());
      if (moved) std::memcpy(static_cast<Block*>(moved.get_context())->numbers, lent.data_ptr().get(), lent.nbytes());
      far.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(moved));
      far.unsafeGetStorageImpl()->set_nbytes(lent.nbytes());
    }
    for (auto& [far, lent] : tensors_) {
      c10::TensorImpl* impl = far.unsafeGetTensorImpl();
      const c10::Storage& home = Home(lent.storage());
      if (home.unsafeGetStorageImpl() != far.storage().unsafeGetStorageImpl()) impl->set_storage_keep_dtype(home);
      if (far.sizes() == lent.sizes() && far.strides() == lent.strides() &&
          far.storage_offset() == lent.storage_offset()) {
        continue;
      }
      impl->set_storage_offset(lent.storage_offset());
      impl->set_sizes_and_strides(lent.sizes(), lent.strides());
    }
  }

  // A result of the kernel as a tensor of the device.
  at::Tensor Back(const at::Tensor& result) {
    if (!result.defined() || !result.device().is_cpu()) return result;
    for (const auto& [far, lent] : tensors_) {
      if (lent.is_same(result)) return far;
    }
    if (result.layout() == at::kSparse) return Sparse(result, kFar, [&](const at::Tensor& part) { return Back(part); });
    TORCH_CHECK_NOT_IMPLEMENTED(result.layout() == at::kStrided && result.has_storage(), kLayouts);
    return Over(Home(result.storage()), result);
  }

 private:
  // The device's storage of one that a kernel computed on; a new one with the same numbers where the kernel made it.
  const c10::Storage& Home(const c10::Storage& near) {
    for (const auto& [far, lent] : storages_) {
      if (lent.unsafeGetStorageImpl() == near.unsafeGetStorageImpl()) return far;
    }
    const c10::Storage made = NewStorage(near.nbytes());
    if (near.nbytes() > 0) std::memcpy(NumbersOf(made), near.data_ptr().get(), near.nbytes());
    storages_.emplace_back(made, near);
    return storages_.back().first;
  }

  std::vector<std::pair<at::Tensor, at::Tensor>> tensors_;       // the device's, the CPU's
  std::vector<std::pair<c10::Storage, c10::Storage>> storages_;  // likewise
};

// Applies a function to every tensor of an argument or result, in lists too.
template <typename Change>
IValue ForTensors(const IValue& value, const Change& change) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(change(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<c10::optional<at::Tensor>> list;
    for (const c10::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? c10::optional<at::Tensor>(change(*tensor)) : tensor);
    }
    return list;
  }
  return value;
}

// Operators that take tensors of the CPU with one or more dimensions beside those of another device, on a GPU too.
bool TakesBoth(const std::string& name) {
  static const std::set<std::string> kNames = {"aten::index", "aten::index_put", "aten::index_put_",
                                               "aten::index.Tensor_out", "aten::_index_put_impl_"};
  return kNames.count(name) != 0;
}

// Keys above those of devices: what autograd, autocast and the like do about a call has been done.
const c10::DispatchKeySet& Above() {
  static const c10::DispatchKeySet keys = c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset |
                                          c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView);
  return keys;
}

// Whether an operator only looks at memory in another way, which no kernel is launched for.
bool IsView(const c10::FunctionSchema& schema) {
  return std::all_of(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

void Compute(const c10::OperatorHandle& op, Stack* stack) {
  if (!IsView(op.schema())) Launch();
  const c10::FunctionSchema& schema = op.schema();
  const size_t first = stack->size() - schema.arguments().size();
  Loan loan;
  // The kernel may drop what is on the stack before its results, which refer to it, are looked at.
  const Stack owners(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
  if (ReadByHost(schema.name(), owners)) CountHostRead();
  bool elsewhere = false;
  for (size_t k = first; k < stack->size(); ++k) {
    IValue& argument = (*stack)[k];
    if (argument.isDevice()) {
      elsewhere = argument.toDevice().type() != at::kPrivateUse1;
      if (!elsewhere) argument = at::Device(at::kCPU);
    } else if (argument.isStorage()) {
      argument = loan.Storage(argument.toStorage());
    } else {
      argument = ForTensors(argument, [&](const at::Tensor& tensor) {
        if (IsFar(tensor)) return loan.Tensor(tensor);
        TORCH_CHECK(!tensor.defined() || tensor.dim() == 0 || TakesBoth(schema.name()), schema.name(),
                    ": expected all tensors to be on the same device, but argument ",
                    schema.arguments()[k - first].name(), " is on ", tensor.device(), ", others on ", kFar);
        return tensor;
      });
    }
  }
  {
    const c10::impl::ExcludeDispatchKeyGuard below(Above());
    if (seed.load(std::memory_order_relaxed) >= 0) Reorder(schema, stack->data() + first);
    op.callBoxed(stack);
  }
  loan.Settle();
  if (elsewhere) return;
  for (size_t k = stack->size() - schema.returns().size(); k < stack->size(); ++k) {
    (*stack)[k] = ForTensors((*stack)[k], [&](const at::Tensor& tensor) { return loan.Back(tensor); });
  }
}

// ---- Operators that are not lent

// Moves numbers between devices; on one device it is lent.
at::Tensor& Copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  Loan loan;
  const at::Tensor to = IsFar(self) ? loan.Tensor(self) : self;
  const at::Tensor from = IsFar(source) ? loan.Tensor(source) : source;
  Launch();
  if (!IsFar(self)) CountHostRead();
  const c10::impl::ExcludeDispatchKeyGuard below(Above());
  to.copy_(from, non_blocking);
  return self;
}

at::Tensor NewTensor(size_t bytes, c10::optional<at::ScalarType> dtype) {
  const c10::ScalarType type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  return at::detail::make_tensor<c10::TensorImpl>(NewStorage(bytes), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                                  c10::scalarTypeToTypeMeta(type));
}

at::Tensor EmptyStrided(at::IntArrayRef size, at::IntArrayRef stride, c10::optional<at::ScalarType> dtype,
                        c10::optional<at::Layout> /*layout*/, c10::optional<at::Device> /*device*/,
                        c10::optional<bool> /*pin_memory*/) {
  const c10::ScalarType type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  at::Tensor tensor = NewTensor(at::detail::computeStorageNbytes(size, stride, c10::elementSize(type)), type);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride);
  return tensor;
}

at::Tensor Empty(at::IntArrayRef size, c10::optional<at::ScalarType> dtype, c10::optional<at::Layout> layout,
                 c10::optional<at::Device> device, c10::optional<bool> pin_memory,
                 c10::optional<at::MemoryFormat> format) {
  std::vector<int64_t> stride(size.size(), 1);
  for (size_t d = size.size(); d-- > 1;) stride[d - 1] = stride[d] * std::max<int64_t>(size[d], 1);
  at::Tensor tensor = EmptyStrided(size, stride, dtype, layout, device, pin_memory);
  if (format && *format != at::MemoryFormat::Contiguous) {
    tensor.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return tensor;
}

// LibTorch copies lazily only memory of its own, so this copies at once.
at::Tensor LazyClone(const at::Tensor& self) { return self.clone(); }

// The cells that newer versions of LibTorch call on every device but the CPU, where they have no kernels. `gates` are
// products without biases; the last result is for the derivative.
std::vector<at::Tensor> Gates(const at::Tensor& gates, const c10::optional<at::Tensor>& bias, int64_t count) {
  return (bias && bias->defined() ? gates + *bias : gates).chunk(count, 1);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> FusedLstmCell(const at::Tensor& input_gates,
                                                             const at::Tensor& hidden_gates, const at::Tensor& cx,
                                                             const c10::optional<at::Tensor>& input_bias,
                                                             const c10::optional<at::Tensor>& hidden_bias) {
  const std::vector<at::Tensor> input = Gates(input_gates, input_bias, 4);
  const std::vector<at::Tensor> hidden = Gates(hidden_gates, hidden_bias, 4);
  const at::Tensor in = (input[0] + hidden[0]).sigmoid();
  const at::Tensor forget = (input[1] + hidden[1]).sigmoid();
  const at::Tensor cell = (input[2] + hidden[2]).tanh();
  const at::Tensor out = (input[3] + hidden[3]).sigmoid();
  const at::Tensor cy = forget * cx + in * cell;
  return {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<at::Tensor, at::Tensor> FusedGruCell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                const at::Tensor& hx, const c10::optional<at::Tensor>& input_bias,
                                                const c10::optional<at::Tensor>& hidden_bias) {
  const std::vector<at::Tensor> input = Gates(input_gates, input_bias, 3);
  const std::vector<at::Tensor> hidden = Gates(hidden_gates, hidden_bias, 3);
  const at::Tensor reset = (input[0] + hidden[0]).sigmoid();
  const at::Tensor update = (input[1] + hidden[1]).sigmoid();
  const at::Tensor fresh = (input[2] + reset * hidden[2]).tanh();
  return {fresh + update * (hx - fresh), at::cat({reset, update, fresh, hx, hidden[2]}, 1)};
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&Compute>()); }

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&Compute>());
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) { library.impl("copy_", TORCH_FN(Copy)); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("copy_", TORCH_FN(Copy));
  library.impl("empty.memory_format", TORCH_FN(Empty));
  library.impl("empty_strided", TORCH_FN(EmptyStrided));
  library.impl("_lazy_clone", TORCH_FN(LazyClone));
  library.impl("_thnn_fused_lstm_cell", TORCH_FN(FusedLstmCell));
  library.impl("_thnn_fused_gru_cell", TORCH_FN(FusedGruCell));
  // Kernels that LibTorch has for every device, but that know the devices of LibTorch only.
  for (const char* name :
       {"conj_physical_", "convolution", "_convolution", "convolution_backward", "mkldnn_convolution"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&Compute>());
  }
}

// One device, one stream.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return at::kPrivateUse1; }
  c10::Device exchangeDevice(c10::Device /*device*/) const override { return kFar; }
  c10::Device getDevice() const override { return kFar; }
  void setDevice(c10::Device /*device*/) const override {}
  void uncheckedSetDevice(c10::Device /*device*/) const noexcept override {}
  c10::Stream getStream(c10::Device /*device*/) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, kFar);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// Newer versions of LibTorch ask who is the accelerator, and for what it can do beside its kernels.
#if __has_include(<ATen/detail/PrivateUse1HooksInterface.h>)
struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const { return true; }
  bool isAvailable() const { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const { return true; }
};

const bool registered = [] {
  c10::register_privateuse1_backend("far");
  at::RegisterPrivateUse1HooksInterface(new Hooks());  // lives as long as LibTorch
  return true;
}();
#endif

}  // namespace

at::Device TheDevice() { return kFar; }

int64_t KernelsRun() { return kernels.load(std::memory_order_relaxed); }

void SetModes(const std::string& modes) {
  int64_t lost = kNever;
  int64_t order = -1;
  int64_t reads = -1;
  std::istringstream words(modes);
  for (std::string word; std::getline(words, word, ',');) {
    const size_t colon = word.find(':');
    const std::string name = word.substr(0, colon);
    if (name == "lose") {
      lost = KernelsRun() + Whole(word, colon == std::string::npos ? "" : word.substr(colon + 1));
    } else if (name == "reorder") {
      order = colon == std::string::npos ? 0 : Whole(word, word.substr(colon + 1));
    } else {
      TORCH_CHECK(word == "count", "ADDEND_FAR: no mode is called ", word);
      reads = 0;
    }
  }
  lost_at = lost;
  seed = order;
  host_reads = reads;
}

namespace {

const bool modes_are_set = [] {
  const char* const modes = std::getenv("ADDEND_FAR");
  if (modes != nullptr) SetModes(modes);
  return true;
}();

}  // namespace
}  // namespace addend::far

int64_t addend_far_host_reads() { return addend::far::host_reads.load(std::memory_order_relaxed); }
