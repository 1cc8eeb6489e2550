#include "core/rules/envelope_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "core/base/in_parallel.h"

namespace addend {
namespace {

// Sets the shares if one line is on top from end to end, as mostly, and as always where a baseline is the same
// everywhere: it and its copies share everything. Returns false if there is no such line, or if it is not finite.
template <typename T>
bool OneOnTop(const T* value, const T* reference, T* shares, int64_t n) {
  int64_t top = 0;
  for (int64_t i = 1; i < n; ++i) {
    if (value[i] > value[top] || (value[i] == value[top] && reference[i] > reference[top])) top = i;
  }
  if (n == 0 || !std::isfinite(value[top]) || !std::isfinite(reference[top])) return false;
  int64_t copies = 0;
  for (int64_t i = 0; i < n; ++i) {
    // Written so that NaN ends up in the way that looks closer.
    if (!(reference[i] <= reference[top] && value[i] <= value[top])) return false;
    copies += reference[i] == reference[top] && value[i] == value[top] ? 1 : 0;
  }
  const T share = T(1) / static_cast<T>(copies);
  for (int64_t i = 0; i < n; ++i) {
    shares[i] = reference[i] == reference[top] && value[i] == value[top] ? share : T(0);
  }
  return true;
}

struct EnvelopeLine {
  double slope, start;
  int64_t index;
  int64_t count;  // how many candidates are this very line
};

// Buffers that are reused to find one envelope after the other.
struct EnvelopeRoom {
  std::vector<EnvelopeLine> lines, hull;
};

// Up to so many lines are walked along, which needs no room and no order.
constexpr int64_t kFew = 16;

// The shares of a few lines: from the one that is on top at t = 0 to the one that overtakes it first, and so on. False
// where there are more, or one is not finite.
template <typename T>
bool EnvelopeOfFew(const T* value, const T* reference, T* shares, int64_t n) {
  if (n == 0 || n > kFew) return false;
  double start[kFew];
  double slope[kFew];
  int64_t top = 0;
  for (int64_t i = 0; i < n; ++i) {
    start[i] = reference[i];
    slope[i] = value[i] == reference[i] ? 0 : static_cast<double>(value[i]) - start[i];
    if (!std::isfinite(start[i]) || !std::isfinite(slope[i])) return false;
    if (start[i] > start[top] || (start[i] == start[top] && slope[i] > slope[top])) top = i;
  }
  std::fill(shares, shares + n, T(0));
  for (double from = 0; from < 1;) {
    double to = 1;
    int64_t next = -1;
    for (int64_t i = 0; i < n; ++i) {
      if (!(slope[i] > slope[top])) continue;
      const double crossing = (start[top] - start[i]) / (slope[i] - slope[top]);
      if (crossing > to || (crossing == to && (next < 0 || slope[i] <= slope[next]))) continue;
      to = crossing;
      next = i;
    }
    if (to > from) {
      const auto is_top = [&](int64_t i) { return start[i] == start[top] && slope[i] == slope[top]; };
      int64_t copies = 0;
      for (int64_t i = 0; i < n; ++i) copies += is_top(i) ? 1 : 0;
      for (int64_t i = 0; i < n; ++i) {
        if (is_top(i)) shares[i] = static_cast<T>((to - from) / static_cast<double>(copies));
      }
      from = to;
    }
    if (next < 0) break;
    top = next;
  }
  return true;
}

template <typename T>
void UpperEnvelope(const T* value, const T* reference, T* shares, int64_t n, EnvelopeRoom* room) {
  if (OneOnTop(value, reference, shares, n) || EnvelopeOfFew(value, reference, shares, n)) return;
  // The largest of numbers of which one is NaN is NaN, and so is each one's share in it.
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isnan(value[i]) && !std::isnan(reference[i])) continue;
    std::fill(shares, shares + n, std::numeric_limits<T>::quiet_NaN());
    return;
  }
  using Line = EnvelopeLine;
  std::vector<Line>& lines = room->lines;
  lines.clear();
  const auto line_of = [&](int64_t i) {
    const double start = reference[i];
    return Line{value[i] == reference[i] ? 0 : static_cast<double>(value[i]) - start, start, i, 1};
  };
  for (int64_t i = 0; i < n; ++i) {
    shares[i] = 0;
    const Line line = line_of(i);
    if (std::isfinite(line.slope) && !(line.start < -std::numeric_limits<T>::max())) lines.push_back(line);
  }
  if (lines.empty()) {  // all of them infinitely low: one is as good as another
    for (int64_t i = 0; i < n; ++i) shares[i] = T(1) / static_cast<T>(n);
    return;
  }
  std::sort(lines.begin(), lines.end(),
            [](const Line& a, const Line& b) { return a.slope != b.slope ? a.slope < b.slope : a.start > b.start; });
  // Point t at which a line overtakes one of smaller slope.
  const auto crossing = [](const Line& slow, const Line& fast) {
    return (slow.start - fast.start) / (fast.slope - slow.slope);
  };
  std::vector<Line>& hull = room->hull;
  hull.clear();
  for (const Line& line : lines) {
    if (!hull.empty() && hull.back().slope == line.slope) {  // parallel: the first, highest one stays
      hull.back().count += hull.back().start == line.start ? 1 : 0;
      continue;
    }
    while (hull.size() > 1 && crossing(hull[hull.size() - 2], line) <= crossing(hull[hull.size() - 2], hull.back())) {
      hull.pop_back();
    }
    hull.push_back(line);
  }
  double from = 0;
  for (size_t h = 0; h < hull.size(); ++h) {
    const double to = h + 1 < hull.size() ? std::clamp(crossing(hull[h], hull[h + 1]), 0.0, 1.0) : 1.0;
    const double length = std::max(0.0, to - from);
    if (length > 0 && hull[h].count == 1) shares[hull[h].index] = static_cast<T>(length);
    if (length > 0 && hull[h].count > 1) {
      const T share = static_cast<T>(length / static_cast<double>(hull[h].count));
      for (const Line& line : lines) {
        if (line.slope == hull[h].slope && line.start == hull[h].start) shares[line.index] = share;
      }
    }
    from = std::max(from, to);
  }
}

}  // namespace

template <typename T>
void UpperEnvelopes(const T* value, const T* reference, T* shares, int64_t rows, int64_t n) {
  InParallelIf(rows * n > 32768, rows, [&](int64_t from, int64_t to) {
    EnvelopeRoom room;
    for (int64_t row = from; row < to; ++row) {
      UpperEnvelope(value + row * n, reference + row * n, shares + row * n, n, &room);
    }
  });
}

namespace {

template <typename T>
struct WindowRoom {
  EnvelopeRoom lines;
  std::vector<int64_t> place;  // in the window, of each element that there is
  std::vector<T> value, reference, share;
};

// The place in the window of its largest value, the first of several, NaN before all; -1: there is none.
template <typename T>
int64_t Winner(const T* value, const int64_t* within, int64_t window) {
  int64_t winner = -1;
  for (int64_t j = 0; j < window; ++j) {
    if (within[j] < 0) continue;
    const T own = value[within[j]];
    if (std::isnan(own)) return j;
    if (winner < 0 || own > value[within[winner]]) winner = j;
  }
  return winner;
}

// One window of one plane whose largest value is at `winner`. Returns how many shares are positive.
template <typename T>
int64_t SharesOfWindow(const T* value, const T* reference, const int64_t* within, int64_t window, int64_t winner,
                       T* shares, WindowRoom<T>* room) {
  // Mostly the winner is on top from end to end, by itself: see OneOnTop.
  const T top = value[within[winner]];
  const T top_reference = reference[within[winner]];
  bool alone = std::isfinite(top) && std::isfinite(top_reference);
  for (int64_t j = 0; j < window; ++j) {
    shares[j] = 0;
    if (within[j] < 0 || j == winner) continue;
    const T own = value[within[j]];
    const T own_reference = reference[within[j]];
    alone = alone && own <= top && own_reference <= top_reference && (own < top || own_reference < top_reference);
  }
  if (alone) {
    shares[winner] = 1;
    return 1;
  }
  room->place.clear();
  room->value.clear();
  room->reference.clear();
  for (int64_t j = 0; j < window; ++j) {
    if (within[j] < 0) continue;
    room->place.push_back(j);
    room->value.push_back(value[within[j]]);
    room->reference.push_back(reference[within[j]]);
  }
  room->share.resize(room->place.size());
  UpperEnvelope(room->value.data(), room->reference.data(), room->share.data(),
                static_cast<int64_t>(room->place.size()), &room->lines);
  int64_t positive = 0;
  for (size_t i = 0; i < room->place.size(); ++i) {
    shares[room->place[i]] = room->share[i];
    positive += room->share[i] == 0 ? 0 : 1;  // NaN counts
  }
  return positive;
}

template <typename T>
const int64_t* TableOf(const WindowsView<T>& windows, int64_t plane) {
  return windows.within + (windows.tables == 1 ? 0 : plane * windows.outputs * windows.window);
}

// work(from, to) for planes, on several threads where there is enough to do.
template <typename T, typename Work>
void InPlanes(const WindowsView<T>& windows, const Work& work) {
  InParallelIf(windows.planes * windows.outputs * windows.window > 32768, windows.planes, work);
}

}  // namespace

template <typename T>
void WindowWinners(const WindowsView<T>& windows, int64_t* source, T* largest) {
  InPlanes(windows, [&](int64_t from, int64_t to) {
    for (int64_t p = from; p < to; ++p) {
      const int64_t* within = TableOf(windows, p);
      for (int64_t o = 0; o < windows.outputs; ++o) {
        const int64_t* own = within + o * windows.window;
        const int64_t winner = Winner(windows.value + p * windows.plane, own, windows.window);
        const int64_t at = p * windows.outputs + o;
        source[at] = winner < 0 ? -1 : p * windows.plane + own[winner];
        largest[at] = winner < 0 ? -std::numeric_limits<T>::infinity() : windows.value[source[at]];
      }
    }
  });
}

template <typename T>
int64_t WindowShares(const WindowsView<T>& windows, T* shares, T* largest) {
  int64_t most_of_all = 0;
  std::mutex mutex;
  InPlanes(windows, [&](int64_t from, int64_t to) {
    WindowRoom<T> room;
    int64_t most = 0;
    for (int64_t p = from; p < to; ++p) {
      const T* value = windows.value + p * windows.plane;
      const T* reference = windows.reference + p * windows.plane;
      for (int64_t o = 0; o < windows.outputs; ++o) {
        const int64_t* within = TableOf(windows, p) + o * windows.window;
        const int64_t at = p * windows.outputs + o;
        T* own = shares + at * windows.window;
        const int64_t winner = Winner(value, within, windows.window);
        if (winner < 0) {
          std::fill(own, own + windows.window, T(0));
          largest[at] = -std::numeric_limits<T>::infinity();
          continue;
        }
        largest[at] = value[within[winner]];
        most = std::max(most, SharesOfWindow(value, reference, within, windows.window, winner, own, &room));
      }
    }
    const std::lock_guard<std::mutex> lock(mutex);
    most_of_all = std::max(most_of_all, most);
  });
  return most_of_all;
}

template <typename T>
void KeepPositiveShares(const WindowsView<T>& windows, const T* shares, int64_t width, int64_t* source, T* kept) {
  InPlanes(windows, [&](int64_t from, int64_t to) {
    for (int64_t p = from; p < to; ++p) {
      const int64_t* within = TableOf(windows, p);
      for (int64_t o = 0; o < windows.outputs; ++o) {
        const int64_t at = p * windows.outputs + o;
        int64_t next = at * width;
        for (int64_t j = 0; j < windows.window; ++j) {
          const T share = shares[at * windows.window + j];
          if (share == 0) continue;
          source[next] = p * windows.plane + within[o * windows.window + j];
          kept[next++] = share;
        }
        for (; next < (at + 1) * width; ++next) {
          source[next] = -1;
          kept[next] = 0;
        }
      }
    }
  });
}

template void UpperEnvelopes<float>(const float*, const float*, float*, int64_t, int64_t);
template void UpperEnvelopes<double>(const double*, const double*, double*, int64_t, int64_t);
template void WindowWinners<float>(const WindowsView<float>&, int64_t*, float*);
template void WindowWinners<double>(const WindowsView<double>&, int64_t*, double*);
template int64_t WindowShares<float>(const WindowsView<float>&, float*, float*);
template int64_t WindowShares<double>(const WindowsView<double>&, double*, double*);
template void KeepPositiveShares<float>(const WindowsView<float>&, const float*, int64_t, int64_t*, float*);
template void KeepPositiveShares<double>(const WindowsView<double>&, const double*, int64_t, int64_t*, double*);

}  // namespace addend
