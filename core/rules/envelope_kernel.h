// Upper envelopes: which of several lines is the largest, and where, in fused loops; kinds.cc and pooling.cc have the
// ATen forms.
#ifndef ADDEND_CORE_RULES_ENVELOPE_KERNEL_H_
#define ADDEND_CORE_RULES_ENVELOPE_KERNEL_H_

#include <cstdint>

namespace addend {

// Computes, row by row of [rows, n], the shares of t in 0..1 on which each of the lines reference[i] + t * (value[i] -
// reference[i]) is the largest, ties shared; they sum to 1. The upper envelope is built from the lines in the order of
// their slopes, in n log n steps. Lines that are infinite at one end only have no share, also where they are infinitely
// high. A NaN in a row makes all shares of the row NaN.
template <typename T>
void UpperEnvelopes(const T* value, const T* reference, T* shares, int64_t rows, int64_t n);

// Windows over planes of elements, with both ends of the lines of the elements.
template <typename T>
struct WindowsView {
  const T* value;         // [planes, plane]
  const T* reference;     // the same
  const int64_t* within;  // [tables, outputs, window]: places in a plane; negative: beyond it
  int64_t planes, plane;
  int64_t tables;  // 1, which serves all planes, or `planes`
  int64_t outputs, window;
};

// Finds the largest value of each window, and its number among all planes: [planes, outputs]. The first of several
// equal ones, NaN before all others; -1 if the whole window is beyond the plane. References are not read.
template <typename T>
void WindowWinners(const WindowsView<T>& windows, int64_t* source, T* largest);

// Computes the shares of UpperEnvelopes for the elements of each window, [planes, outputs, window], 0 beyond the plane;
// and the largest value of each window, [planes, outputs], NaN if the window holds one. Returns the largest number of
// positive shares in one window.
template <typename T>
int64_t WindowShares(const WindowsView<T>& windows, T* shares, T* largest);

// Moves the elements with positive shares to the front, by their number among all planes: [planes, outputs, width],
// with -1 and a share of 0 behind them. `width`: what WindowShares returned, or more.
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
