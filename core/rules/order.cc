// The rank of a line changes only where it crosses another one: it rises by one where it overtakes and falls by one
// where it is overtaken. So each line is followed on its own, through its own crossings in the order of their t: there
// is no common order to maintain that the rounding of a crossing could break.
#include "core/rules/order.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace addend {
namespace {

// All candidates that are one and the same line.
struct Line {
  double start, end;
  int64_t rank = 0;  // of the first of them, where t has just left 0
  std::vector<int64_t> candidates;
  int64_t count() const { return static_cast<int64_t>(candidates.size()); }
};

struct Crossing {
  double t;
  int64_t change;  // of the rank
};

}  // namespace

template <typename T>
void AddRankShares(const T* value, const T* reference, int64_t n, int64_t first, int64_t last,
                   std::vector<RankShare>* shares) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<int64_t> order(n);
  std::vector<double> start(n);
  std::vector<double> end(n);
  for (int64_t i = 0; i < n; ++i) {
    order[i] = i;
    const bool nan = std::isnan(value[i]) || std::isnan(reference[i]);
    end[i] = nan ? kInfinity : static_cast<double>(value[i]);
    start[i] = nan ? kInfinity : static_cast<double>(reference[i]);
    // An element that is infinite at one end counts as infinite on the whole line.
    if (std::isinf(end[i])) start[i] = end[i];
    if (std::isinf(start[i])) end[i] = start[i];
  }
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    if (start[i] != start[j]) return start[i] < start[j];
    return end[i] != end[j] ? end[i] < end[j] : i < j;
  });
  std::vector<Line> lines;
  for (int64_t place = 0; place < n; ++place) {
    const int64_t i = order[place];
    if (lines.empty() || lines.back().start != start[i] || lines.back().end != end[i]) {
      lines.push_back({start[i], end[i], place, {}});
    }
    lines.back().candidates.push_back(i);
  }
  std::vector<Crossing> crossings;
  for (const Line& line : lines) {
    crossings.clear();
    for (const Line& other : lines) {
      const double apart = other.start - line.start;
      const double later = other.end - line.end;
      if (apart > 0 && later < 0) crossings.push_back({apart / (apart - later), other.count()});
      if (apart < 0 && later > 0) crossings.push_back({apart / (apart - later), -other.count()});
    }
    std::sort(crossings.begin(), crossings.end(), [](const Crossing& a, const Crossing& b) { return a.t < b.t; });
    // How long it holds each rank, summed over all visits.
    std::vector<std::pair<int64_t, double>> held;
    int64_t rank = line.rank;
    double from = 0;
    for (size_t c = 0; c <= crossings.size(); ++c) {
      const double to = c < crossings.size() ? crossings[c].t : 1.0;
      if (to > from) {
        const double part = (to - from) / static_cast<double>(line.count());
        for (int64_t r = std::max(rank, first); r < std::min(rank + line.count(), last); ++r)
          held.emplace_back(r, part);
        from = to;
      }
      if (c < crossings.size()) rank += crossings[c].change;
    }
    std::sort(held.begin(), held.end());
    for (const int64_t candidate : line.candidates) {
      for (size_t h = 0; h < held.size();) {
        double share = 0;
        const int64_t own = held[h].first;
        for (; h < held.size() && held[h].first == own; ++h) share += held[h].second;
        shares->push_back({own, candidate, share});
      }
    }
  }
}

template void AddRankShares<float>(const float*, const float*, int64_t, int64_t, int64_t, std::vector<RankShare>*);
template void AddRankShares<double>(const double*, const double*, int64_t, int64_t, int64_t, std::vector<RankShare>*);

}  // namespace addend
