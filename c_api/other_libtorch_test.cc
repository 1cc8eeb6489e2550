// Tensors by their address, in a process that has loaded LibTorch twice: the object could be laid out otherwise, so
// that nothing looks at it.
#include <ATen/ops/ones.h>
#include <dlfcn.h>
#include <gmock/gmock.h>

#include "c_api/testing.h"

namespace addend::api {
namespace {

using testing::HasSubstr;

TEST(OtherLibTorchTest, AddressesOfTensorsAreRefused) {
  ASSERT_NE(dlopen("c_api/stub/foreign/libtorch_cpu.so", RTLD_NOW), nullptr) << dlerror();
  const Outcome refused(addend_check_libtorch());
  ASSERT_EQ(refused.code, ADDEND_FAILED_PRECONDITION);
  EXPECT_THAT(refused.message, HasSubstr("foreign/libtorch_cpu.so"));

  // The implementation is open and refuses: both are told, and what it computes with.
  EXPECT_THAT(ShowConfig(), HasSubstr("\n  opened: "));
  EXPECT_THAT(ShowConfig(), HasSubstr("\n  refused: " + refused.message + "\nLibTorch "));

  const at::Tensor ones = at::ones({2});
  addend_tensor* tensor = nullptr;
  const Outcome in(addend_tensor_from_libtorch(&ones, &tensor));
  EXPECT_EQ(in.code, ADDEND_FAILED_PRECONDITION);
  EXPECT_EQ(in.message, refused.message);
  EXPECT_EQ(tensor, nullptr);
  // No address of a tensor at all: it is not read.
  EXPECT_EQ(Outcome(addend_tensor_from_libtorch(reinterpret_cast<const void*>(1), &tensor)).code,
            ADDEND_FAILED_PRECONDITION);

  // Nor is there a tensor of which an address could be asked for.
  EXPECT_THROW(Tensor::Copy<float>({1}, {1}), Error);
}

}  // namespace
}  // namespace addend::api
