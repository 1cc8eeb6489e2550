// Tensors over memory of the caller's.
#ifndef ADDEND_C_API_MEMORY_H_
#define ADDEND_C_API_MEMORY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace addend::c_api {

// Calls a function with its last owner, once it is armed: until then the memory is the caller's.
class Owner {
 public:
  explicit Owner(std::function<void()> release) : release_(std::move(release)) {}
  ~Owner() {
    if (armed_) release_();
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  void Arm() noexcept { armed_ = true; }

 private:
  std::function<void()> release_;
  bool armed_ = false;
};

struct Layout {
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // in elements, as many as sizes
};

// Throws InvalidArgument where 64 bits do not hold them, which a tensor without elements may have in its dims.
std::vector<int64_t> ContiguousStrides(const std::vector<int64_t>& sizes);
// How many bytes the elements reach from the first on. Throws InvalidArgument for strides that are negative or reach
// further than any memory.
size_t ExtentOf(const Layout& layout);
// Shares memory that `owner` keeps. Throws InvalidArgument where it is not aligned to its elements.
at::Tensor Over(void* data, const Layout& layout, std::shared_ptr<Owner> owner);

}  // namespace addend::c_api

#endif  // ADDEND_C_API_MEMORY_H_
