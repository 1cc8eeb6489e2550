#include "core/rules/attention_tiles.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/in_parallel.h"
#include "core/base/views.h"
#include "core/rules/for_loops.h"
#include "core/rules/kinds.h"
#include "core/rules/rows.h"
#include "core/rules/softmax_path.h"

namespace addend {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kTile = 64;  // columns that are left out together
// Numbers of a strip: what fits into a core's own cache beside the others that are made of it.
constexpr int64_t kStrip = int64_t{1} << 17;
constexpr int64_t kMostRows = 64;   // of a strip
constexpr int64_t kLeastRows = 16;  // fewer make products slow
// Numbers of a strip with all its rows of components.
constexpr int64_t kMostNumbers = int64_t{1} << 22;
// Scores from which on threads pay.
constexpr int64_t kWorthThreads = 16384;

// Columns of the scores.
struct Columns {
  int64_t first = 0;
  int64_t count = 0;
};
using Live = std::vector<Columns>;

int64_t WidthOf(const Live& live) {
  int64_t width = 0;
  for (const Columns& columns : live) width += columns.count;
  return width;
}

// Calls visit(columns, offset) with the offset of the columns within those that are live.
template <typename Visit>
void ForEach(const Live& live, const Visit& visit) {
  int64_t offset = 0;
  for (const Columns& columns : live) {
    visit(columns, offset);
    offset += columns.count;
  }
}

// The tiles of columns that are not hidden from all rows, and the rows from which all columns are. Beside a column
// whose mask is more by `margin` the weight of another is zero, wherever on the path. mask: [rows, columns].
template <typename T>
Live LiveColumns(const T* mask, int64_t rows, int64_t columns, double margin, std::vector<char>* empty) {
  std::vector<double> least(rows);
  empty->assign(rows, 0);
  for (int64_t i = 0; i < rows; ++i) {
    const double most = *std::max_element(mask + i * columns, mask + (i + 1) * columns);
    (*empty)[i] = most == -kInfinity;
    least[i] = (*empty)[i] ? kInfinity : most - margin;
  }
  Live live;
  for (int64_t first = 0; first < columns; first += kTile) {
    const int64_t count = std::min(kTile, columns - first);
    bool hidden = true;
    for (int64_t i = 0; hidden && i < rows; ++i) {
      const T* own = mask + i * columns + first;
      hidden = *std::max_element(own, own + count) <= least[i];
    }
    if (hidden) continue;
    if (!live.empty() && live.back().first + live.back().count == first) {
      live.back().count += count;
    } else {
      live.push_back({first, count});
    }
  }
  return live;
}

// Some rows of the scores of a group of heads.
struct Strip {
  int64_t first = 0;  // position of its first row among those that are looked at
  int64_t count = 0;
  Live live;
  at::Tensor query;  // what the rows of keys meet, [heads, count, width]; undefined where they are not read
  at::Tensor empty;  // [heads or 1, count, 1]: rows of which everything is masked, which give zero; undefined: none
  at::Tensor value;  // scores at both ends, [heads, count, columns]
  at::Tensor reference;
  int64_t width() const { return value.size(2); }
};

// The sizes of leading dimensions, multiplied. t: [front, *, rows, columns]
int64_t NumberOf(const at::Tensor& t, int64_t front) {
  int64_t number = 1;
  for (int64_t d = front; d + 2 < t.dim(); ++d) number *= t.size(d);
  return number;
}

// Matrices of heads that are taken together, for their products. A single one takes the way of a matrix.
// out [B, n, m] = left [B, n, k] x right [B, k, m].
void Multiply(const at::Tensor& out, const at::Tensor& left, const at::Tensor& right) {
  at::Tensor result = out.size(0) == 1 ? Select(out, 0, 0) : out;
  if (out.size(0) == 1) {
    at::mm_out(result, Select(left, 0, 0), Select(right, 0, 0));
  } else {
    at::bmm_out(result, left, right);
  }
}
// Adds the product of left and right to out.
void AddMultiplied(const at::Tensor& out, const at::Tensor& left, const at::Tensor& right) {
  if (out.size(0) == 1) {
    Select(out, 0, 0).addmm_(Select(left, 0, 0), Select(right, 0, 0));
  } else {
    at::Tensor result = out;
    result.baddbmm_(left, right);
  }
}

at::Tensor Turned(const at::Tensor& matrices) { return Transposed(matrices, 1, 2); }
at::Tensor ColumnsOf(const at::Tensor& t, const Columns& columns) { return Narrow(t, 1, columns.first, columns.count); }

// The live columns of t [B, n, S], side by side.
at::Tensor LiveOf(const at::Tensor& t, const Live& live) {
  std::vector<at::Tensor> parts;
  for (const Columns& columns : live) parts.push_back(Narrow(t, 2, columns.first, columns.count));
  return parts.size() == 1 ? parts[0] : at::cat(parts, 2);
}

// left [B, n, K] x the live columns of right [B, S, K], transposed.
void ProductTo(const at::Tensor& out, const at::Tensor& left, const at::Tensor& right, const Live& live) {
  ForEach(live, [&](const Columns& columns, int64_t offset) {
    Multiply(Narrow(out, 2, offset, columns.count), left, Turned(ColumnsOf(right, columns)));
  });
}

void AddProductTo(const at::Tensor& out, const at::Tensor& left, const at::Tensor& right, const Live& live) {
  ForEach(live, [&](const Columns& columns, int64_t offset) {
    AddMultiplied(Narrow(out, 2, offset, columns.count), left, Turned(ColumnsOf(right, columns)));
  });
}

// Adds left [B, n, width] x the live rows of right [B, S, K] to out.
void AddProduct(const at::Tensor& out, const at::Tensor& left, const at::Tensor& right, const Live& live) {
  ForEach(live, [&](const Columns& columns, int64_t offset) {
    AddMultiplied(out, Narrow(left, 2, offset, columns.count), ColumnsOf(right, columns));
  });
}

// Adds left^T [B, width, n] x right [B, n, K] to the live rows of out [B, S, K].
void AddTransposed(const at::Tensor& out, const at::Tensor& left, const at::Tensor& right, const Live& live) {
  ForEach(live, [&](const Columns& columns, int64_t offset) {
    AddMultiplied(ColumnsOf(out, columns), Turned(Narrow(left, 2, offset, columns.count)), right);
  });
}

// Rows of matrices [R, heads, n, K] as matrices of R n rows, [heads, R n, K], which meet the same matrix; and back.
at::Tensor Stacked(const at::Tensor& rows) {
  const at::IntArrayRef sizes = rows.sizes();
  if (sizes[0] == 1) return Select(rows, 0, 0);
  return Reshaped(Transposed(rows, 0, 1), {sizes[1], sizes[0] * sizes[2], sizes[3]});
}
at::Tensor Unstacked(const at::Tensor& matrices, int64_t rows) {
  const at::IntArrayRef sizes = matrices.sizes();
  if (rows == 1) return Unsqueezed(matrices, 0);
  const at::Tensor apart = Reshaped(matrices, {sizes[0], rows, sizes[1] / rows, sizes[2]});
  return Transposed(apart, 0, 1).contiguous();
}

// Calls work(first, second, same) with the matrices [heads, n, K] of each row of `first` and `second`, [R, heads, n,
// K], or with those of all rows at once, [R heads, n, K], where heads are taken together. `same` has no rows, and
// `first` may be written.
template <typename Work>
void OverRows(const at::Tensor& first, const at::Tensor& second, const at::Tensor& same, const Work& work) {
  const int64_t count = first.size(0);
  const int64_t heads = first.size(1);
  if (heads == 1 || count == 1 || !first.is_contiguous()) {
    for (int64_t r = 0; r < count; ++r) work(Select(first, 0, r), Select(second, 0, r), same);
    return;
  }
  const auto flat = [&](const at::Tensor& t) { return Reshaped(t, {count * heads, t.size(2), t.size(3)}); };
  work(flat(first), flat(second), flat(Unsqueezed(same, 0).expand({count, heads, same.size(1), same.size(2)})));
}

// Which heads of keys are taken together: some of one element of the batch, or all of several.
struct Group {
  int64_t batch = 0;  // the first
  int64_t batches = 1;
  int64_t head = 0;  // the first
  int64_t heads = 1;
  int64_t count() const { return batches * heads; }
};

// A group of heads of keys with the queries that they serve. The rows of each are share * T, one head of queries after
// the other. All rows of the scores are looked at, or some.
class Heads {
 public:
  Heads(const AttentionCall& call, int64_t share, const Group& group)
      : call_(call), share_(share), length_(call.query.size(-2)), group_(group) {}

  // Looks at these positions only, in order; int64 on the CPU.
  void Choose(const at::Tensor& rows) {
    chosen_ = rows;
    positions_ = rows.remainder(length_).to(call_.query.device());
  }

  // The group's part of what has rows of queries, [front, *, heads of queries, T, width], as a view [front, batches,
  // heads, share, T, width]; `front` is one dimension or none. Undefined stays so.
  at::Tensor OfQueries(const at::Tensor& t, int64_t front) const { return Of(t, share_, front); }
  // Views keys or values as matrices [front, count, S, width].
  at::Tensor OfKeys(const at::Tensor& t, int64_t front) const {
    return t.defined() ? Merged(Of(t, 1, front), front) : t;
  }
  // A view of the queries' rows as matrices, [front, count, share * T, width], of what lies in one piece: what is
  // written there is written to the tensor.
  at::Tensor ToWrite(const at::Tensor& t, int64_t front) const {
    return t.defined() ? Merged(Of(t, share_, front), front) : t;
  }

  // Some rows of such a view, [front, count, rows, width]; a view too where they lie together.
  at::Tensor Cut(const at::Tensor& t, int64_t front, int64_t first, int64_t count) const {
    const int64_t share_dim = front + 2;
    std::vector<at::Tensor> parts;
    for (int64_t row = first; row < first + count;) {
      const int64_t start = RowAt(row);
      const at::Tensor own = Select(t, share_dim, start / length_);  // [front, batches, heads, T, width]
      int64_t length = 1;
      while (row + length < first + count && RowAt(row + length) / length_ == start / length_) ++length;
      parts.push_back(chosen_.defined() ? own.index_select(share_dim, Narrow(positions_, 0, row, length))
                                        : Narrow(own, share_dim, start % length_, length));
      row += length;
    }
    const at::Tensor all = parts.size() == 1 ? parts[0] : at::cat(parts, share_dim);
    at::DimVector sizes(all.sizes().begin(), all.sizes().begin() + front);
    for (const int64_t size : {all.size(front) * all.size(front + 1), count, all.size(-1)}) sizes.push_back(size);
    return Reshaped(all, sizes);
  }

  int64_t rows() const { return chosen_.defined() ? chosen_.size(0) : share_ * length_; }
  int64_t share() const { return share_; }

  // Visits strips of `rows` rows, without those of which everything is masked.
  template <typename Visit>
  void ForEachStrip(int64_t at_once, const Visit& visit) const {
    const Ends ends = {OfQueries(call_.query, 0), OfQueries(call_.query_at_start, 0), OfQueries(call_.query_meets, 0),
                       OfKeys(call_.key, 0), OfKeys(call_.key_at_start, 0)};
    for (int64_t first = 0; first < rows(); first += at_once) {
      const Strip strip = Make(ends, first, std::min(at_once, rows() - first));
      if (!strip.live.empty()) visit(strip);
    }
  }

  // The weights that rows of values meet.
  at::Tensor WeightsOf(const Strip& strip) const {
    at::Tensor weights;
    if (call_.rest.defined()) {
      const at::Tensor rest = LiveOf(OfKeys(call_.rest, 0), strip.live);
      return Without(strip, at::softmax(strip.value, 2).lerp_(at::softmax(strip.reference, 2), rest));
    }
    if (call_.weights_meet != Point::kReference) weights = at::softmax(strip.value, 2);
    if (call_.weights_meet != Point::kValue) {
      const at::Tensor other = at::softmax(strip.reference, 2);
      weights = weights.defined() ? weights.add_(other).div_(2) : other;
    }
    return Without(strip, weights);
  }

  // Zero in the rows of which everything is masked. t: [*, count, rows, width]
  static at::Tensor Without(const Strip& strip, at::Tensor t) {
    if (strip.empty.defined()) t.masked_fill_(strip.empty, 0);
    return t;
  }

 private:
  struct Ends {
    at::Tensor query, query_at_start, query_meets;  // [batches, heads, share, T, width]
    at::Tensor key, key_at_start;                   // [count, S, width]
  };

  int64_t RowAt(int64_t k) const { return chosen_.defined() ? chosen_.data_ptr<int64_t>()[k] : k; }

  at::Tensor Of(const at::Tensor& t, int64_t share, int64_t front) const {
    if (!t.defined()) return t;
    at::Tensor own = t;
    while (own.dim() < front + 4) own = Unsqueezed(own, front);  // without a batch, or without heads
    if (own.dim() > front + 4) {
      at::DimVector sizes(own.sizes().begin(), own.sizes().begin() + front);
      int64_t batches = 1;
      for (int64_t d = front; d + 3 < own.dim(); ++d) batches *= own.size(d);
      sizes.push_back(batches);
      sizes.append(own.sizes().end() - 3, own.sizes().end());
      own = Reshaped(own, sizes);
    }
    own = Narrow(own, front, group_.batch, group_.batches);
    own = Narrow(own, front + 1, group_.head * share, group_.heads * share);
    return Parted(own, front + 1, share);
  }

  // [front, batches, heads, share, rows, width] -> [front, batches * heads, share * rows, width]
  static at::Tensor Merged(const at::Tensor& t, int64_t front) {
    at::DimVector sizes(t.sizes().begin(), t.sizes().begin() + front);
    sizes.push_back(t.size(front) * t.size(front + 1));
    sizes.push_back(t.size(front + 2) * t.size(front + 3));
    sizes.push_back(t.size(front + 4));
    return Reshaped(t, sizes);
  }

  // The mask of some rows, [count or 1, rows, columns].
  at::Tensor MaskOf(int64_t first, int64_t count) const {
    at::Tensor mask = Of(call_.mask, share_, 0);  // [batches, heads, share, T, columns]
    const auto same = [&](int64_t d) { return mask.size(d) == 1 || mask.stride(d) == 0; };
    if (same(0) && same(1)) mask = Narrow(Narrow(mask, 0, 0, 1), 1, 0, 1);
    return Summand(Cut(mask, 0, first, count));
  }

  Strip Make(const Ends& ends, int64_t first, int64_t count) const {
    Strip strip;
    strip.first = first;
    strip.count = count;
    at::Tensor mask;  // a summand, of the live columns
    const int64_t columns = ends.key.size(1);
    int64_t shown = columns;  // columns of which nothing is hidden
    if (call_.causal) {
      int64_t least = length_;
      int64_t most = -1;
      for (int64_t k = first; k < first + count; ++k) {
        least = std::min(least, RowAt(k) % length_);
        most = std::max(most, RowAt(k) % length_);
      }
      shown = std::min(columns, least + 1);
      strip.live = {{0, std::min(columns, most + 1)}};
    } else if (call_.mask.defined()) {
      mask = MaskOf(first, count);
      FindLive(mask, &strip);
    } else {
      strip.live = {{0, columns}};
    }
    if (strip.live.empty()) return strip;
    const int64_t width = WidthOf(strip.live);
    if (mask.defined() && width < columns) mask = LiveOf(mask, strip.live);
    at::Tensor hidden;
    if (shown < width) {
      const auto options = call_.query.options().dtype(at::kLong);
      at::Tensor rows =
          chosen_.defined() ? Narrow(positions_, 0, first, count) : at::arange(first, first + count, options);
      if (!chosen_.defined() && share_ > 1) rows = rows.remainder(length_);
      hidden = Unsqueezed(at::arange(shown, width, options), 0).gt(Unsqueezed(rows, 1));
    }
    const auto scores = [&](const at::Tensor& query, const at::Tensor& key) {
      const at::Tensor all = at::empty({group_.count(), count, width}, query.options());
      ProductTo(all, Cut(query, 0, first, count), key, strip.live);
      if (mask.defined()) all.add_(mask);
      if (hidden.defined()) Narrow(all, 2, shown, width - shown).masked_fill_(hidden, -kInfinity);
      // On the way they rest at zero: with their infinities the coefficients of the softmax would be NaN.
      return Without(strip, all);
    };
    strip.value = scores(ends.query, ends.key);
    strip.reference = call_.scores_move ? scores(ends.query_at_start, ends.key_at_start) : strip.value;
    if (ends.query_meets.defined()) strip.query = Cut(ends.query_meets, 0, first, count);
    return strip;
  }

  at::Tensor Summand(const at::Tensor& mask) const {
    const at::TensorOptions options = call_.query.options();
    if (mask.scalar_type() != at::kBool) return InDtype(mask, call_.query.scalar_type()).contiguous();
    return at::zeros(mask.sizes(), options).masked_fill_(mask.logical_not(), -kInfinity);
  }

  // Which columns some row sees, and which rows see none. Of numbers that the host cannot read, all are taken.
  void FindLive(const at::Tensor& mask, Strip* strip) const {
    const int64_t columns = mask.size(2);
    if (!mask.device().is_cpu()) {
      strip->live = {{0, columns}};
      strip->empty = mask.amax(2, /*keepdim=*/true).eq(-kInfinity);
      return;
    }
    // Beyond that an exponential is zero in both dtypes.
    const double margin = 2 * call_.reach + 750;
    std::vector<char> empty;
    DispatchReal(mask.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      strip->live = LiveColumns(mask.data_ptr<T>(), mask.size(0) * mask.size(1), columns, margin, &empty);
    });
    if (std::find(empty.begin(), empty.end(), 1) == empty.end()) return;
    strip->empty = at::empty({mask.size(0), mask.size(1), 1}, at::kBool);
    std::copy(empty.begin(), empty.end(), strip->empty.data_ptr<bool>());
  }

  const AttentionCall& call_;
  int64_t share_;   // heads of queries that one head of keys serves
  int64_t length_;  // T
  Group group_;
  at::Tensor chosen_;     // rows, int64 on the CPU; undefined: all of them
  at::Tensor positions_;  // their positions in their heads, where the queries are
};

at::Tensor Part(const at::Tensor& rows, int64_t first, int64_t count) {
  return rows.defined() ? Narrow(rows, 0, first, count) : rows;
}

class AttentionMap : public LinearMap {
 public:
  explicit AttentionMap(AttentionCall call)
      : call_(std::move(call)),
        keys_(NumberOf(call_.key, 0)),
        share_(NumberOf(call_.query, 0) / std::max<int64_t>(keys_, 1)),
        columns_(call_.key.size(-2)),
        value_width_(call_.value_meets.size(-1)) {
    if (2 * call_.reach > LongestHalfRange(call_.query.scalar_type())) RequireFollowable();
  }

  Rows Forward(const Rows& rows) const override {
    size_t next = 0;
    const auto take = [&](bool reads) { return reads ? InDtype(rows[next++], Dtype()) : at::Tensor(); };
    Inputs in;
    in.query = take(ReadsQuery());
    in.key = take(ReadsKey());
    in.value = take(call_.value_moves);
    const int64_t count = rows[0].size(0);
    at::DimVector sizes = WithRows(count, call_.query.sizes());
    const auto made = [&](int64_t width) {
      sizes.back() = width;
      return at::zeros(sizes, Options());
    };
    const Outputs out = {made(value_width_), GivesSums() ? made(1) : at::Tensor(),
                         GivesWeights() ? made(columns_) : at::Tensor()};
    ForEachBlock(count, [&](int64_t first, int64_t some) {
      const Inputs block_in = {Part(in.query, first, some), Part(in.key, first, some), Part(in.value, first, some)};
      const Outputs block_out = {Part(out.output, first, some), Part(out.sums, first, some),
                                 Part(out.weights, first, some)};
      ForEachGroup(some, [&](Heads& heads, int64_t at_once) { Apply(heads, at_once, some, block_in, block_out); });
    });
    Rows results = {out.output};
    if (GivesSums()) results.push_back(out.sums.squeeze(-1));
    if (GivesWeights()) results.push_back(out.weights);
    return results;
  }

  Rows Transpose(const Rows& cotangents) const override { return TransposeByRows(*this, cotangents); }

  Rows TransposeRows(const Rows& cotangents) const override {
    int64_t count = 0;
    for (const at::Tensor& g : cotangents) count = g.defined() ? g.size(0) : count;
    const auto given = [&](size_t k) {
      return k < cotangents.size() && cotangents[k].defined() ? InDtype(cotangents[k], Dtype()) : at::Tensor();
    };
    Outputs behind;
    behind.output = given(0);
    if (GivesSums() && given(1).defined()) behind.sums = given(1).unsqueeze(-1);
    if (GivesWeights()) behind.weights = given(1);
    const auto back = [&](bool reads, const at::Tensor& like, int64_t width) {
      at::DimVector sizes = WithRows(count, like.sizes());
      sizes.back() = width;
      return reads ? at::zeros(sizes, Options()) : at::Tensor();
    };
    const Inputs to = {back(ReadsQuery(), call_.query, call_.query.size(-1)),
                       back(ReadsKey(), call_.key, call_.key.size(-1)),
                       back(call_.value_moves, call_.value_meets, value_width_)};
    ForEachBlock(count, [&](int64_t first, int64_t some) {
      const Outputs own = {Part(behind.output, first, some), Part(behind.sums, first, some),
                           Part(behind.weights, first, some)};
      const Inputs block = {Part(to.query, first, some), Part(to.key, first, some), Part(to.value, first, some)};
      ForEachGroup(some, [&](Heads& heads, int64_t at_once) { Return(heads, at_once, some, own, block); });
    });
    Rows results;
    for (const at::Tensor& t : {to.query, to.key, to.value}) {
      if (t.defined()) results.push_back(t);
    }
    return results;
  }

 private:
  // Rows or cotangents; undefined: none.
  struct Inputs {
    at::Tensor query, key, value;
  };
  struct Outputs {
    at::Tensor output;   // [R, *, T, width]
    at::Tensor sums;     // [R, *, T, 1]
    at::Tensor weights;  // [R, *, T, S]
  };

  at::ScalarType Dtype() const { return call_.query.scalar_type(); }
  at::TensorOptions Options() const { return call_.query.options(); }
  bool GivesSums() const { return call_.beside == BesideAttention::kSums; }
  bool GivesWeights() const { return call_.beside == BesideAttention::kWeights; }
  bool ReadsQuery() const { return call_.query_moves && ReadsScores(call_); }
  bool ReadsKey() const { return call_.key_moves && ReadsScores(call_); }

  // Heads are taken together where each has so few scores that calls of operators take longer than what they compute,
  // and on other devices than the CPU, which many small calls leave idle. Elsewhere each has a thread of its own.
  bool OnCpu() const { return call_.query.device().is_cpu(); }
  bool Together() const { return keys_ > 1 && (!OnCpu() || call_.query.size(-2) * share_ * columns_ <= kWorthThreads); }

  // So many rows at a time that a strip of the fewest scores takes bounded memory.
  template <typename Work>
  void ForEachBlock(int64_t count, const Work& work) const {
    const int64_t heads = OnCpu() ? 1 : keys_;
    const int64_t block = std::max<int64_t>(1, kMostNumbers / (kLeastRows * columns_ * heads));
    for (int64_t first = 0; first < count; first += block) work(first, std::min(block, count - first));
  }

  // Calls work(heads, rows of a strip). Rows that share keys are visited one after the other: what comes back to the
  // keys is summed in their order.
  template <typename Work>
  void ForEachGroup(int64_t count, const Work& work) const {
    const int64_t heads = call_.key.dim() > 2 ? call_.key.size(-3) : 1;  // of one element of the batch
    const int64_t batches = keys_ / std::max<int64_t>(heads, 1);
    const int64_t scores = std::max<int64_t>(1, count * columns_);
    const bool together = Together();
    Group group;
    if (together) {
      // So many that a strip of theirs takes bounded memory.
      const int64_t rows = OnCpu() ? share_ * call_.query.size(-2) : kLeastRows;
      const int64_t most = (OnCpu() ? kStrip : kMostNumbers) / std::max<int64_t>(1, rows * scores);
      group.heads = std::clamp<int64_t>(most, 1, heads);
      while (heads % group.heads != 0) --group.heads;
      group.batches = std::clamp<int64_t>(most / heads, 1, batches);
    }
    const int64_t numbers = scores * group.count();
    const int64_t at_once = OnCpu() ? std::min(kMostRows, std::max(kLeastRows, kStrip / numbers))
                                    : std::max(kLeastRows, kMostNumbers / numbers);
    const int64_t of_heads = heads / group.heads;
    const int64_t groups = of_heads * ((batches + group.batches - 1) / group.batches);
    InParallel(groups, together ? groups : 1, [&](int64_t first, int64_t last) {
      const c10::AutoGradMode no_grad(false);
      for (int64_t k = first; k < last; ++k) {
        Group own = group;
        own.head = k % of_heads * group.heads;
        own.batch = k / of_heads * group.batches;
        own.batches = std::min(group.batches, batches - own.batch);
        Heads together_here(call_, share_, own);
        work(together_here, at_once);
      }
    });
  }

  void RequireFollowable() const {
    ForEachGroup(1, [&](Heads& heads, int64_t at_once) {
      heads.ForEachStrip(at_once, [&](const Strip& strip) { PathOf(strip); });
    });
  }

  static at::Tensor AsRows(const at::Tensor& scores) {
    return Reshaped(scores, {scores.size(0) * scores.size(1), scores.size(2)});
  }
  SoftmaxPath PathOf(const Strip& strip) const {
    return MakeSoftmaxPath(call_.name, AsRows(strip.value), AsRows(strip.reference));
  }
  // Rows [R, heads, n, width] through the softmax.
  static at::Tensor Along(const SoftmaxPath& path, const at::Tensor& rows, bool transposed) {
    const at::Tensor flat = Reshaped(rows, {rows.size(0), rows.size(1) * rows.size(2), rows.size(3)});
    return Reshaped(AlongSoftmaxPath(path, flat, transposed), rows.sizes());
  }
  static at::Tensor MeanOf(const SoftmaxPath& path, const Strip& strip) {
    return Reshaped(MeanProbabilities(path), strip.value.sizes());
  }

  void Apply(const Heads& heads, int64_t at_once, int64_t count, const Inputs& in, const Outputs& out) const {
    const at::Tensor query = heads.OfQueries(in.query, 1);
    const at::Tensor key = heads.OfKeys(in.key, 1);
    const at::Tensor value = heads.OfKeys(in.value, 1);
    const at::Tensor output = heads.ToWrite(out.output, 1);
    const at::Tensor sums = heads.ToWrite(out.sums, 1);
    const at::Tensor all_weights = heads.ToWrite(out.weights, 1);
    const at::Tensor key_meets = query.defined() ? heads.OfKeys(call_.key_meets, 0) : at::Tensor();
    const at::Tensor value_meets = heads.OfKeys(call_.value_meets, 0);
    const int64_t own_heads = value_meets.size(0);
    heads.ForEachStrip(at_once, [&](const Strip& strip) {
      const int64_t n = strip.count;
      const int64_t width = strip.width();
      at::Tensor sum;
      if (ReadsScores(call_)) {
        at::Tensor scores;
        if (query.defined()) {
          const at::Tensor scaled = Stacked(heads.Cut(query, 1, strip.first, n)) * call_.scale;
          const at::Tensor all = at::empty({own_heads, count * n, width}, output.options());
          ProductTo(all, scaled, key_meets, strip.live);
          scores = Unstacked(all, count);
        } else {
          scores = at::zeros({count, own_heads, n, width}, output.options());
        }
        if (key.defined()) {
          OverRows(scores, key, strip.query, [&](const at::Tensor& to, const at::Tensor& from, const at::Tensor& left) {
            AddProductTo(to, left, from, strip.live);
          });
        }
        const SoftmaxPath path = PathOf(strip);
        Heads::Without(strip, scores);
        if (sums.defined()) {
          Narrow(sums, 2, strip.first, n).copy_((scores * MeanOf(path, strip)).sum(-1, /*keepdim=*/true));
        }
        const bool reads_weights = call_.weights_move || all_weights.defined();
        const at::Tensor moved = reads_weights ? Heads::Without(strip, Along(path, scores, false)) : at::Tensor();
        if (all_weights.defined()) {
          const at::Tensor own_weights = Narrow(all_weights, 2, strip.first, n);
          ForEach(strip.live, [&](const Columns& columns, int64_t offset) {
            Narrow(own_weights, 3, columns.first, columns.count).copy_(Narrow(moved, 3, offset, columns.count));
          });
        }
        if (call_.weights_move) {
          const at::Tensor all = at::zeros({own_heads, count * n, value_width_}, output.options());
          AddProduct(all, Stacked(moved), value_meets, strip.live);
          sum = Unstacked(all, count);
        }
      }
      if (value.defined()) {
        if (!sum.defined()) sum = at::zeros({count, own_heads, n, value_width_}, output.options());
        OverRows(sum, value, heads.WeightsOf(strip),
                 [&](const at::Tensor& to, const at::Tensor& from, const at::Tensor& weights) {
                   AddProduct(to, weights, from, strip.live);
                 });
      }
      if (sum.defined()) Narrow(output, 2, strip.first, n).copy_(sum);
    });
  }

  // The rows of scores that anything comes back to; undefined: all of them. behind: as Heads::OfQueries gives them.
  static at::Tensor RowsOf(const Outputs& behind, int64_t share) {
    std::vector<at::Tensor> by_head(share);
    for (const at::Tensor& t : {behind.output, behind.sums, behind.weights}) {
      for (int64_t s = 0; t.defined() && s < share; ++s) {
        const at::Tensor own = Select(t, 3, s).ne(0).any(4).any(2).any(1).any(0);  // [T]
        by_head[s] = by_head[s].defined() ? by_head[s].logical_or_(own) : own;
      }
    }
    const at::Tensor any = share == 1 ? by_head[0] : at::cat(by_head, 0);
    const at::Tensor index = any.nonzero().squeeze(1);
    return index.size(0) == any.size(0) ? at::Tensor() : index;
  }

  void Return(Heads& heads, int64_t at_once, int64_t count, const Outputs& behind, const Inputs& to) const {
    const Outputs from = {heads.OfQueries(behind.output, 1), heads.OfQueries(behind.sums, 1),
                          heads.OfQueries(behind.weights, 1)};
    // Leave out query rows without cotangents on the CPU only: on a device the host would have to wait for them.
    const at::Tensor rows = OnCpu() ? RowsOf(from, share_) : at::Tensor();
    if (rows.defined()) {
      if (rows.size(0) == 0) return;
      heads.Choose(rows);
    }
    const at::Tensor query = heads.ToWrite(to.query, 1);
    const at::Tensor key = heads.OfKeys(to.key, 1);
    const at::Tensor value = heads.OfKeys(to.value, 1);
    const at::Tensor key_meets = query.defined() ? heads.OfKeys(call_.key_meets, 0) : at::Tensor();
    const at::Tensor value_meets = heads.OfKeys(call_.value_meets, 0);
    const int64_t own_heads = value_meets.size(0);
    heads.ForEachStrip(at_once, [&](const Strip& strip) {
      const int64_t n = strip.count;
      const int64_t width = strip.width();
      // [count, heads, n, value width]
      const auto cut = [&](const at::Tensor& t) { return t.defined() ? heads.Cut(t, 1, strip.first, n) : t; };
      const at::Tensor g = from.output.defined() ? cut(from.output).contiguous() : at::Tensor();
      if (value.defined() && g.defined()) {
        OverRows(value, g, heads.WeightsOf(strip),
                 [&](const at::Tensor& back, const at::Tensor& own, const at::Tensor& weights) {
                   AddTransposed(back, weights, own, strip.live);
                 });
      }
      const bool by_output = call_.weights_move && g.defined();
      if (!ReadsScores(call_) || !(by_output || from.weights.defined() || from.sums.defined())) return;
      const SoftmaxPath path = PathOf(strip);
      at::Tensor scores;
      if (by_output || from.weights.defined()) {
        at::Tensor weights;
        if (by_output) {
          const at::Tensor all = at::empty({own_heads, count * n, width}, Options());
          ProductTo(all, Stacked(g), value_meets, strip.live);
          weights = Unstacked(all, count);
        } else {
          weights = at::zeros({count, own_heads, n, width}, Options());
        }
        if (from.weights.defined()) {
          const at::Tensor own_weights = cut(from.weights);
          ForEach(strip.live, [&](const Columns& columns, int64_t offset) {
            Narrow(weights, 3, offset, columns.count).add_(Narrow(own_weights, 3, columns.first, columns.count));
          });
        }
        scores = Along(path, weights, /*transposed=*/true);
      }
      if (from.sums.defined()) {
        const at::Tensor weighed = MeanOf(path, strip) * cut(from.sums);
        const at::Tensor by_sums = InDtype(weighed, from.sums.scalar_type());
        scores = scores.defined() ? scores.add_(by_sums) : by_sums;
      }
      Heads::Without(strip, scores);
      if (query.defined()) {
        const at::Tensor back = at::zeros({own_heads, count * n, key_meets.size(2)}, scores.options());
        AddProduct(back, Stacked(scores), key_meets, strip.live);
        back.mul_(call_.scale);
        const at::Tensor own_back = Unstacked(back, count);
        if (rows.defined()) {
          query.index_copy_(2, Narrow(rows, 0, strip.first, n), own_back);
        } else {
          Narrow(query, 2, strip.first, n).copy_(own_back);
        }
      }
      if (key.defined()) {
        OverRows(key, scores, strip.query, [&](const at::Tensor& back, const at::Tensor& own, const at::Tensor& left) {
          AddTransposed(back, own, left, strip.live);
        });
      }
    });
  }

  AttentionCall call_;
  int64_t keys_;   // heads
  int64_t share_;  // heads of queries that one of them serves
  int64_t columns_;
  int64_t value_width_;
};

}  // namespace

bool ReadsScores(const AttentionCall& call) {
  return call.weights_move || (call.beside != BesideAttention::kNothing && call.scores_move);
}

std::shared_ptr<const LinearMap> AttentionInTiles(AttentionCall call) {
  return std::make_shared<AttentionMap>(std::move(call));
}

}  // namespace addend
