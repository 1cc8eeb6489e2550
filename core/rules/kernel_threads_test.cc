// Each kernel gives the same bits whatever the number of LibTorch's threads that share it.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "core/rules/envelope_kernel.h"
#include "core/rules/gather_kernel.h"
#include "core/rules/kernels.h"
#include "core/rules/softmax_kernel.h"

namespace addend {
namespace {

template <typename T>
std::vector<T> Random(int64_t n, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<T> numbers(n);
  for (T& number : numbers) number = static_cast<T>(normal(generator));
  return numbers;
}

template <typename T>
class KernelThreads : public testing::Test {
 protected:
  KernelThreads() : before_(at::get_num_threads()) {}
  ~KernelThreads() override { at::set_num_threads(before_); }

  // Expects the same bits from `run`, which fills its argument, on every number of threads.
  template <typename Number>
  static void ExpectSameBits(int64_t size, const std::function<void(Number*)>& run) {
    std::vector<Number> one(size, Number(-7)), more(size, Number(-8));
    at::set_num_threads(1);
    run(one.data());
    for (const int threads : {2, 3, 4}) {
      at::set_num_threads(threads);
      run(more.data());
      EXPECT_EQ(std::memcmp(one.data(), more.data(), size * sizeof(Number)), 0) << threads << " threads";
    }
  }

 private:
  int before_;
};

using Dtypes = testing::Types<float, double>;
TYPED_TEST_SUITE(KernelThreads, Dtypes);

constexpr int64_t kGroups = 301;
constexpr int64_t kWidth = 257;
constexpr int64_t kNumbers = kGroups * kWidth;

TYPED_TEST(KernelThreads, Normalizer) {
  using T = TypeParam;
  const std::vector<T> value = Random<T>(kNumbers, 1), reference = Random<T>(kNumbers, 2);
  const std::vector<T> weight = Random<T>(kWidth, 3), rows = Random<T>(2 * kNumbers, 4);
  // middle, met, inverse, bend, largest, and two rows each way.
  constexpr int64_t kCoefficients = 2 * kNumbers + 2 * kGroups + 1;
  this->template ExpectSameBits<T>(kCoefficients + 4 * kNumbers, [&](T* out) {
    T* inverse = out + 2 * kNumbers;
    const NormalizerCoefficients<T> found = {out, out + kNumbers, inverse, inverse + kGroups};
    const NormalizerEnds<T> ends = {value.data(), reference.data(), kGroups, kWidth, static_cast<T>(1e-5)};
    out[kCoefficients - 1] = FindNormalizer(ends, found);
    const NormalizerView<T> view = {found.middle, found.met, found.inverse, found.bend, weight.data(), kGroups, kWidth};
    NormalizeRows(rows.data(), out + kCoefficients, 2, view, false);
    NormalizeRows(rows.data(), out + kCoefficients + 2 * kNumbers, 2, view, true);
  });
}

TYPED_TEST(KernelThreads, Secants) {
  using T = TypeParam;
  const std::vector<T> value = Random<T>(kNumbers, 1), reference = Random<T>(kNumbers, 2);
  SecantView<T> view = {value.data(), reference.data(), reference.data(), value.data(), kNumbers, T(0.01), false};
  this->template ExpectSameBits<T>(3 * kNumbers + 1, [&](T* out) {
    const std::vector<int64_t> small = SecantQuotients(view, out);
    out[3 * kNumbers] = static_cast<T>(small.size());
    for (size_t i = 0; i < small.size(); ++i) out[small[i]] = static_cast<T>(i);  // their order counts
    Middles(value.data(), reference.data(), out + kNumbers, kNumbers);
    Moves(value.data(), reference.data(), out + 2 * kNumbers, kNumbers);
  });
}

TYPED_TEST(KernelThreads, LookingThroughNumbers) {
  using T = TypeParam;
  std::vector<T> numbers = Random<T>(100'000, 1);
  const auto look = [&](T* out) {
    out[0] = LargestFinite(numbers.data(), static_cast<int64_t>(numbers.size()));
    out[1] = AllFiniteNumbers(numbers.data(), static_cast<int64_t>(numbers.size())) ? 1 : 0;
  };
  this->template ExpectSameBits<T>(2, look);
  numbers[99'999] = std::numeric_limits<T>::infinity();
  numbers[5] = std::nan("");
  this->template ExpectSameBits<T>(2, look);
  T found[2];
  look(found);
  EXPECT_EQ(found[1], 0);
  EXPECT_TRUE(std::isfinite(found[0]) && found[0] > 0);
}

TYPED_TEST(KernelThreads, Softmax) {
  using T = TypeParam;
  const std::vector<T> value = Random<T>(kNumbers, 1), reference = Random<T>(kNumbers, 2);
  const std::vector<T> rows = Random<T>(3 * kNumbers, 3);
  const SoftmaxEnds<T> ends = {value.data(), reference.data(), kGroups, kWidth};
  const double nodes[] = {0.1, 0.3, 0.5, 0.7, 0.9}, weights[] = {0.2, 0.2, 0.2, 0.2, 0.2};
  const NodesView few = {nodes, weights, 1}, many = {nodes, weights, 5};
  std::vector<const NodesView*> rules(kGroups);
  for (int64_t g = 0; g < kGroups; ++g) rules[g] = g % 3 == 0 ? &many : &few;
  this->template ExpectSameBits<T>(4 * kNumbers + kGroups, [&](T* out) {
    SoftmaxAlongPath(ends, rules.data(), rows.data(), 3, out);
    MeanSoftmaxAlongPath(ends, rules.data(), out + 3 * kNumbers);
    EXPECT_TRUE(HalfRanges(ends, out + 4 * kNumbers));
  });
}

TYPED_TEST(KernelThreads, Envelopes) {
  using T = TypeParam;
  const std::vector<T> value = Random<T>(kNumbers, 1), reference = Random<T>(kNumbers, 2);
  this->template ExpectSameBits<T>(
      kNumbers, [&](T* out) { UpperEnvelopes(value.data(), reference.data(), out, kGroups, kWidth); });

  constexpr int64_t kWindow = 4;
  constexpr int64_t kOutputs = kWidth - kWindow + 1;
  std::vector<int64_t> within;
  for (int64_t i = 0; i < kOutputs * kWindow; ++i) within.push_back(i / kWindow + i % kWindow);
  const WindowsView<T> windows = {value.data(), reference.data(), within.data(), kGroups, kWidth, 1, kOutputs, kWindow};
  constexpr int64_t kPlaces = kGroups * kOutputs;
  this->template ExpectSameBits<T>(kPlaces * (kWindow + 2) + 1, [&](T* out) {
    T* largest = out + kPlaces * kWindow;
    out[kPlaces * (kWindow + 2)] = static_cast<T>(WindowShares(windows, out, largest));
    std::vector<int64_t> source(kPlaces);
    WindowWinners(windows, source.data(), largest + kPlaces);
  });
  std::vector<T> shares(kPlaces * kWindow), largest(kPlaces), kept(kPlaces * kWindow);
  const int64_t width = WindowShares(windows, shares.data(), largest.data());
  this->template ExpectSameBits<int64_t>(
      kPlaces * width, [&](int64_t* out) { KeepPositiveShares(windows, shares.data(), width, out, kept.data()); });
}

TYPED_TEST(KernelThreads, Gather) {
  using T = TypeParam;
  constexpr int64_t kOutputs = 20'000;
  constexpr int64_t kTaps = 3;
  std::mt19937 generator(5);
  std::vector<int64_t> source(kOutputs * kTaps);
  for (int64_t& place : source) place = static_cast<int64_t>(generator() % (kNumbers / 2)) - 1;
  const std::vector<T> weight = Random<T>(kOutputs * kTaps, 6), rows = Random<T>(kNumbers, 7);
  const GatherView<T> view = {source.data(), weight.data(), kOutputs, kTaps, kNumbers / 2};
  this->template ExpectSameBits<T>(2 * kOutputs, [&](T* out) { GatherRows(view, rows.data(), 2, out); });
}

}  // namespace
}  // namespace addend
