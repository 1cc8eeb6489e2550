// Whether the device is one: its memory is its own, and it computes what the CPU computes.
#include "tests/far/device.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/csrc/autograd/autograd.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <vector>

namespace addend::far {
namespace {

at::Tensor Far(const at::Tensor& tensor) { return tensor.to(TheDevice()); }

at::Tensor Numbers(std::vector<int64_t> sizes, double start = 1) {
  at::Tensor numbers = at::arange(at::prod(at::tensor(sizes)).item<int64_t>(), at::kDouble);
  return numbers.add(start).mul(0.75).sin().reshape(sizes);
}

// The signal that ends a process which does this; 0 where it goes on.
int SignalOf(const std::function<void()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    act();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(FarTest, ItsMemoryIsNotTheCpus) {
  const at::Tensor near = Numbers({3});
  const at::Tensor far = Far(near);
  volatile double read = 0;
  EXPECT_EQ(SignalOf([&] { read = near.data_ptr<double>()[1]; }), 0);
  EXPECT_EQ(SignalOf([&] { read = far.data_ptr<double>()[1]; }), SIGSEGV);
  EXPECT_EQ(SignalOf([&] { far.data_ptr<double>()[0] = read; }), SIGSEGV);
  // Behind the last element of large ones, too: whole pages.
  const at::Tensor large = at::zeros({5000}, at::TensorOptions(at::kDouble).device(TheDevice()));
  EXPECT_EQ(SignalOf([&] { read = large.data_ptr<double>()[4999]; }), SIGSEGV);
  EXPECT_EQ(SignalOf([&] { read = large.sum().item<double>(); }), 0);
  (void)read;
}

TEST(FarTest, ComputesWhatTheCpuComputes) {
  const std::vector<std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>> functions = {
      [](const auto& a, const auto& b) { return a + b; },
      [](const auto& a, const auto& b) { return at::matmul(a, b.t()).softmax(-1); },
      [](const auto& a, const auto& b) {
        return std::get<0>(at::cat({a, b}, 1).sort());
      },
      [](const auto& a, const auto& b) { return at::stack(at::unbind(a * b), 1); },
      [](const auto& a, const auto&) { return at::conv1d(a.unsqueeze(0), at::ones_like(a).unsqueeze(0)); },
      [](const auto& a, const auto& b) { return at::where(a.gt(b), a, b.to(at::kFloat)); },
      [](const auto& a, const auto&) {
        return a.index({at::tensor({1, 0}, at::kLong)});
      },  // indices may be on the CPU
      [](const auto& a, const auto&) { return at::fft_fft(a).conj().abs(); },
      [](const auto& a, const auto&) { return at::layer_norm(a, {a.size(1)}); },
      [](const auto& a, const auto&) { return a.mul(a.sum().item()); },
      [](const auto& a, const auto&) { return a.to_sparse().mul(2).to_dense(); },
  };
  const at::Tensor a = Numbers({2, 4});
  const at::Tensor b = Numbers({2, 4}, 7);
  for (size_t k = 0; k < functions.size(); ++k) {
    SCOPED_TRACE(k);
    const int64_t before = KernelsRun();
    const at::Tensor far = functions[k](Far(a), Far(b));
    EXPECT_EQ(far.device(), TheDevice());
    EXPECT_GT(KernelsRun(), before);
    const at::Tensor near = functions[k](a, b);
    EXPECT_EQ(far.scalar_type(), near.scalar_type());
    EXPECT_EQ(far.strides(), near.strides());
    // The same kernels, but for norms, which LibTorch writes out on devices that it does not know.
    EXPECT_TRUE(far.cpu().allclose(near, 1e-14, 1e-14));
  }
}

TEST(FarTest, ViewsShareMemory) {
  at::Tensor x = Far(Numbers({3, 4}));
  const at::Tensor column = x.t().select(0, 1);
  EXPECT_TRUE(column.is_alias_of(x));
  column.mul_(0);
  x.narrow(0, 0, 1).fill_(2);
  at::Tensor expected = Numbers({3, 4});
  expected.select(1, 1).zero_();
  expected.select(0, 0).fill_(2);
  EXPECT_TRUE(x.cpu().equal(expected));
  EXPECT_TRUE(column.cpu().equal(expected.select(1, 1)));
  // One storage twice among the arguments.
  x.copy_(x.clone().flip(0));
  EXPECT_TRUE(x.cpu().equal(expected.flip(0)));
  EXPECT_TRUE(x.view_as(x).is_alias_of(x));
}

TEST(FarTest, OutArgumentsGrowWithTheirViews) {
  at::Tensor out = at::empty({0}, at::TensorOptions(at::kDouble).device(TheDevice()));
  const at::Tensor x = Far(Numbers({2, 3}));
  EXPECT_TRUE(at::mul_out(out, x, x).is_same(out));
  EXPECT_EQ(out.device(), TheDevice());
  EXPECT_TRUE(out.cpu().equal(Numbers({2, 3}).square()));
  at::Tensor grown = x.clone();
  const at::Tensor row = grown.select(0, 1);
  grown.resize_({4, 3});
  grown.narrow(0, 1, 1).zero_();
  EXPECT_TRUE(row.is_alias_of(grown));
  EXPECT_TRUE(row.cpu().equal(at::zeros({3}, at::kDouble)));
  at::Tensor other = at::empty({0}, x.options());
  other.set_(x);
  EXPECT_TRUE(other.is_alias_of(x));
  EXPECT_TRUE(other.cpu().equal(x.cpu()));
}

TEST(FarTest, AutogradWorks) {
  const auto gradient = [](const at::Device& device) {
    const at::Tensor x = Numbers({2, 3}).to(device).requires_grad_();
    const at::Tensor w = Numbers({4, 3}, 5).to(device).requires_grad_();
    at::Tensor y = at::linear(x, w).tanh() * 2;
    y.select(1, 0).mul_(3);
    return torch::autograd::grad({(y * y).sum()}, {x, w});
  };
  const auto near = gradient(at::kCPU);
  const auto far = gradient(TheDevice());
  for (size_t k = 0; k < near.size(); ++k) {
    EXPECT_EQ(far[k].device(), TheDevice());
    EXPECT_TRUE(far[k].cpu().allclose(near[k], 1e-14, 1e-14));
  }
}

TEST(FarTest, DevicesDoNotMix) {
  const at::Tensor near = Numbers({3, 3});
  const at::Tensor far = Far(near);
  EXPECT_THROW(far + near, c10::Error);
  EXPECT_THROW(at::mm(far, near), c10::Error);
  EXPECT_THROW(at::where(far.gt(0), far, near), c10::Error);
  at::Tensor out = at::empty({0}, at::kDouble);
  EXPECT_THROW(at::mm_out(out, far, far), c10::Error);
  // Numbers may be anywhere.
  EXPECT_TRUE((far * at::scalar_tensor(2, at::kDouble)).cpu().equal(near * 2));
}

// Its kernels draw from the CPU's generator: it has none.
TEST(FarTest, RandomNumbersCanBeDrawnAgain) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const at::Tensor state = generator.get_state();
  const at::Tensor x = Far(Numbers({50}));
  const at::Tensor first = at::dropout(x, 0.5, true);
  EXPECT_FALSE(at::dropout(x, 0.5, true).equal(first));
  generator.set_state(state);
  EXPECT_TRUE(at::dropout(x, 0.5, true).equal(first));
}

}  // namespace
}  // namespace addend::far
