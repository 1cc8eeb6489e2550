// Times of work, for benchmarks that compare medians.
#ifndef ADDEND_BENCHMARKS_SPENT_H_
#define ADDEND_BENCHMARKS_SPENT_H_

#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

// Seconds by the clock and by the processor; the latter are reliable also on a machine that others use.
struct Spent {
  std::vector<double> clock;
  std::vector<double> processor;

  template <typename Work>
  void Measure(const Work& work) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t before = std::clock();
    work();
    processor.push_back(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
    clock.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
};

inline double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

#endif  // ADDEND_BENCHMARKS_SPENT_H_
