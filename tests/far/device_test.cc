// Whether the device is one: its memory is its own, and it computes what the CPU computes.
#include "tests/far/device.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/csrc/autograd/autograd.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
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
    // Kernels are those of the CPU, but for norms, which LibTorch writes out on devices that it does not know.
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

// Modes for as long as it lives.
class Modes {
 public:
  explicit Modes(const std::string& modes) { SetModes(modes); }
  ~Modes() { SetModes(""); }
  Modes(const Modes&) = delete;
  Modes& operator=(const Modes&) = delete;
};

using Function = std::function<at::Tensor(const at::Tensor&)>;

// Sums of numbers [6, 8, 9].
std::vector<Function> Sums() {
  const auto image = [](const at::Tensor& x) { return x.unsqueeze(0).narrow(1, 0, 6); };
  const auto kernel = [](const at::Tensor& x, at::IntArrayRef sizes) {
    return x.flatten().narrow(0, 0, c10::multiply_integers(sizes)).view(sizes);
  };
  const auto convolution = [=](const at::Tensor& x, at::IntArrayRef sizes, bool transposed, int64_t groups) {
    return at::convolution(image(x), kernel(x, sizes), {}, {1, 1}, {0, 0}, {1, 1}, transposed, {0, 0}, groups);
  };
  return {
      [](const at::Tensor& x) { return x.sum(); },
      [](const at::Tensor& x) {
        return x.sum(at::IntArrayRef{0, -1});
      },
      [](const at::Tensor& x) { return x.mean(at::IntArrayRef{1}, true); },
      [](const at::Tensor& x) { return x[0].mm(x[1].t()); },
      [](const at::Tensor& x) { return x.bmm(x.transpose(1, 2)); },
      [](const at::Tensor& x) { return at::matmul(x, x[0][0]); },
      [](const at::Tensor& x) { return at::linear(x[0], x[1], x[2].select(1, 0)); },
      [](const at::Tensor& x) { return at::dot(x[0][0], x[1][1]); },
      [=](const at::Tensor& x) {
        return convolution(x, {2, 6, 3, 3}, false, 1);
      },
      [=](const at::Tensor& x) {
        return convolution(x, {4, 3, 3, 3}, false, 2);
      },
      [=](const at::Tensor& x) {
        return convolution(x, {6, 4, 3, 3}, true, 2);
      },
  };
}

TEST(FarTest, SumsInAnotherOrder) {
  const at::Tensor x = Numbers({6, 8, 9});
  const auto sums = Sums();
  for (size_t k = 0; k < sums.size(); ++k) {
    SCOPED_TRACE(k);
    const at::Tensor near = sums[k](x);
    std::vector<at::Tensor> far;
    for (const char* modes : {"reorder", "reorder", "reorder:1", "reorder:2", "reorder:3"}) {
      const Modes set(modes);
      far.push_back(sums[k](Far(x)).cpu());
      EXPECT_TRUE(far.back().allclose(near, 1e-12, 1e-12)) << modes;
    }
    EXPECT_TRUE(far[0].equal(far[1]));
    // One number may be the same by chance in some orders.
    EXPECT_FALSE(far[0].equal(near) && far[2].equal(near) && far[3].equal(near) && far[4].equal(near));
    EXPECT_FALSE(far[0].equal(far[2]) && far[0].equal(far[3]) && far[0].equal(far[4]));
    EXPECT_TRUE(sums[k](Far(x)).cpu().allclose(near, 1e-14, 1e-14));
  }
  const Modes set("reorder");
  EXPECT_TRUE(Far(x).sin().mul(3).cpu().equal(x.sin().mul(3)));
  EXPECT_TRUE(std::get<0>(Far(x).sort(1)).cpu().equal(std::get<0>(x.sort(1))));
  EXPECT_EQ(Far(at::scalar_tensor(2, at::kDouble)).sum().item<double>(), 2);
  // Arguments that the CPU refuses are refused.
  for (const int64_t groups : {0, 4}) {
    const auto wrong = [&] { return at::convolution(Far(x), Far(x), {}, {1}, {0}, {1}, false, {0}, groups); };
    EXPECT_THROW(wrong(), c10::Error) << groups;
  }
  EXPECT_THROW(Far(x).sum(at::IntArrayRef{3}), c10::Error);
  EXPECT_THROW(Far(x)[0].mm(Far(x)[0]), c10::Error);
}

TEST(FarTest, LosesItsContextForGood) {
  const at::Tensor x = Far(Numbers({3}));
  const Modes set("lose:3");
  const auto words = [&]() -> std::string {
    try {
      x.add(1);
      return "";
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
  };
  EXPECT_EQ(words(), "");
  EXPECT_EQ(words(), "");
  for (int k = 0; k < 3; ++k) EXPECT_EQ(words(), "CUDA error: device-side assert triggered");
  EXPECT_THROW(x.cpu(), c10::Error);
}

TEST(FarTest, CountsWhatTheHostReads) {
  const at::Tensor near = Numbers({3});
  const at::Tensor x = Far(near);
  const at::Tensor mask = x.gt(0);
  EXPECT_EQ(addend_far_host_reads(), -1);
  const Modes set("count");
  const auto reads = [](const std::function<void()>& act) {
    const int64_t before = addend_far_host_reads();
    act();
    return addend_far_host_reads() - before;
  };
  EXPECT_EQ(reads([&] { x.add(1).mul(x).sum(); }), 0);
  EXPECT_EQ(reads([&] { Far(near).copy_(x); }), 0);
  EXPECT_EQ(reads([&] { x.index({Far(at::tensor({1, 0}, at::kLong))}); }), 0);
  EXPECT_EQ(reads([&] { x.sum().item(); }), 1);
  EXPECT_EQ(reads([&] { x.sum().is_nonzero(); }), 1);
  EXPECT_EQ(reads([&] { x.nonzero(); }), 1);
  EXPECT_EQ(reads([&] { x.equal(x); }), 1);
  EXPECT_EQ(reads([&] { x.cpu(); }), 1);
  EXPECT_EQ(reads([&] { at::empty_like(near).copy_(x); }), 1);
  EXPECT_EQ(reads([&] { x.masked_select(mask); }), 1);
  EXPECT_EQ(reads([&] { x.index({mask}); }), 1);
  EXPECT_EQ(reads([&] { x.index_put({mask}, at::zeros_like(x[0])); }), 1);
  EXPECT_EQ(reads([&] { x.index_put({Far(at::tensor({1}, at::kLong))}, at::zeros_like(x[0])); }), 0);
}

TEST(FarTest, TheEnvironmentChoosesModes) {
  std::string own(4096, '\0');
  own.resize(static_cast<size_t>(readlink("/proc/self/exe", own.data(), own.size())));
  const auto succeeds = [&](const std::string& modes) {
    const std::string command = "env -u XML_OUTPUT_FILE ADDEND_FAR=" + modes + " '" + own +
                                "' --gtest_filter=FarTest.ViewsShareMemory >/dev/null 2>&1";
    return std::system(command.c_str()) == 0;
  };
  EXPECT_TRUE(succeeds("reorder:7,count,lose:1000"));
  EXPECT_FALSE(succeeds("lose:2"));
  EXPECT_FALSE(succeeds("nonsense"));
  for (const char* wrong : {"nonsense", "lose", "lose:x", "reorder:-1", "count:3"}) {
    EXPECT_THROW(SetModes(wrong), c10::Error) << wrong;
  }
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
