// Which of several lines is the largest, and where, in fused loops; kinds.cc and pooling.cc have the ATen forms.
#ifndef ADDEND_CORE_RULES_ENVELOPE_KERNEL_H_
#define ADDEND_CORE_RULES_ENVELOPE_KERNEL_H_

#include <cstdint>

namespace addend {

// Row by row of [rows, n]: shares of t in 0..1 on which each of the lines reference[i] + t * (value[i] - reference[i])
// is the largest, ties shared; they sum to 1. The upper envelope from the lines in the order of their slopes: n log n
// steps. Lines that are infinite at one end only have no share, also where they are infinitely high. NaN in a row makes
// all of its shares NaN.
template <typename T>
void UpperEnvelopes(const T* value, const T* reference, T* shares, int64_t rows, int64_t n);

// Windows over planes of elements, and where the lines of the elements begin and end.
template <typename T>
struct WindowsView {
  const T* value;         // [planes, plane]
  const T* reference;     // the same
  const int64_t* within;  // [tables, outputs, window]: places in a plane; negative: beyond it
  int64_t planes, plane;
  int64_t tables;  // 1, which serves all planes, or `planes`
  int64_t outputs, window;
};

// The number among all planes of the largest value of each window, [planes, outputs], the first of several, NaN before
// all; -1 where all of the window is beyond the plane. And that value. References are not read.
template <typename T>
void WindowWinners(const WindowsView<T>& windows, int64_t* source, T* largest);

// The shares of UpperEnvelopes for the elements of each window, 0 beyond the plane: [planes, outputs, window], and the
// largest value of each window, [planes, outputs], NaN where one is. Returns how many shares of one window are
// positive at most.
template <typename T>
int64_t WindowShares(const WindowsView<T>& windows, T* shares, T* largest);

// The elements with positive shares in front, by their number among all planes: [planes, outputs, width], with -1 and a
// share of 0 behind them. `width` is what WindowShares returned, or more.
template <typename T>
void KeepPositiveShares(const WindowsView<T>& windows, const T* shares, int64_t width, int64_t* source, T* kept);

extern template void UpperEnvelopes<float>(const float*, const float*, float*, int64_t, int64_t);
extern template void UpperEnvelopes<double>(const double*, const double*, double*, int64_t, int64_t);
extern template void WindowWinners<float>(const WindowsView<float>&, int64_t*, float*);
extern template void WindowWinners<double>(const WindowsView<double>&, int64_t*, double*);
extern template int64_t WindowShares<float>(const WindowsView<float>&, float*, float*);
extern template int64_t WindowShares<double>(const WindowsView<double>&, double*, double*);
extern template void KeepPositiveShares<float>(const WindowsView<float>&, const float*, int64_t, int64_t*, float*);
extern template void KeepPositiveShares<double>(const WindowsView<double>&, const double*, int64_t, int64_t*, double*);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_ENVELOPE_KERNEL_H_
