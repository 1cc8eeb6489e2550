#include "core/rules/attention_tiles.h"

#include <ATen/ops/arange.h>
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

// The tiles of columns that are not hidden from all rows. Beside a column whose mask is more by `margin` the weight of
// another is zero, wherever on the path. mask: [rows, columns].
template <typename T>
Live LiveColumns(const T* mask, int64_t rows, int64_t columns, double margin) {
  std::vector<double> least(rows);
  for (int64_t i = 0; i < rows; ++i) {
    const double most = *std::max_element(mask + i * columns, mask + (i + 1) * columns);
    least[i] = most == -kInfinity ? kInfinity : most - margin;
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

// Some rows of the scores of one head.
struct Strip {
  int64_t first = 0;  // position of its first row among those that are looked at
  int64_t count = 0;
  Live live;
  at::Tensor query;  // what the rows of keys meet; undefined where they are not read
  at::Tensor empty;  // [count, 1]: rows of which everything is masked, which give zero; undefined: none
  SoftmaxPath path;  // of the live columns; only where scores move
  at::Tensor value;  // scores at both ends, [count, width]
  at::Tensor reference;
  int64_t width() const { return value.size(1); }
};

// The matrices of tensors [*, rows, columns]; `front`: dimensions in front that stay.
at::Tensor HeadOf(at::Tensor t, int64_t head, int64_t front = 0) {
  while (t.dim() > front + 2) {
    const int64_t last = t.dim() - 3;
    const int64_t size = t.size(last);
    t = t.select(last, head % size);
    head /= size;
  }
  return t;
}

int64_t HeadsOf(const at::Tensor& t) {
  int64_t heads = 1;
  for (int64_t d = 0; d + 2 < t.dim(); ++d) heads *= t.size(d);
  return heads;
}

at::Tensor ColumnsOf(const at::Tensor& t, const Columns& columns) { return t.narrow(0, columns.first, columns.count); }

// left [*, K] x the live columns of right [S, K], transposed.
void ProductTo(at::Tensor out, const at::Tensor& left, const at::Tensor& right, const Live& live) {
  ForEach(live, [&](const Columns& columns, int64_t offset) {
    at::Tensor part = out.narrow(1, offset, columns.count);
    at::mm_out(part, left, ColumnsOf(right, columns).t());
  });
}

// Adds left [n, width] x the live rows of right [S, K] to out.
void AddProduct(at::Tensor out, const at::Tensor& left, const at::Tensor& right, const Live& live) {
  ForEach(live, [&](const Columns& columns, int64_t offset) {
    out.addmm_(left.narrow(1, offset, columns.count), ColumnsOf(right, columns));
  });
}

// Adds left^T [width, n] x right [n, K] to the live rows of out [S, K].
void AddTransposed(const at::Tensor& out, const at::Tensor& left, const at::Tensor& right, const Live& live) {
  ForEach(live, [&](const Columns& columns, int64_t offset) {
    ColumnsOf(out, columns).addmm_(left.narrow(1, offset, columns.count).t(), right);
  });
}

// One head of a call, of which all rows of the scores are looked at, or some.
class Head {
 public:
  // `rows`: positions of queries, int64; undefined: all of them.
  Head(const AttentionCall& call, int64_t head, int64_t key_head, const at::Tensor& rows)
      : call_(call),
        rows_(rows),
        query_(Chosen(call.query, head)),
        query_at_start_(Chosen(call.query_at_start, head)),
        query_meets_(Chosen(call.query_meets, head)),
        key_(HeadOf(call.key, key_head)),
        key_at_start_(HeadOf(call.key_at_start, key_head)),
        columns_(call.causal ? at::arange(key_.size(0), query_.options().dtype(at::kLong)) : at::Tensor()) {
    if (call.mask.defined()) mask_ = Picked(HeadOf(call.mask, head));
    if (call.causal && !rows_.defined()) rows_ = at::arange(query_.size(0), columns_.options());
  }

  int64_t count() const { return query_.size(0); }

  // Visits strips of `rows` rows, without those of which everything is masked.
  template <typename Visit>
  void ForEachStrip(int64_t rows, const Visit& visit) const {
    for (int64_t first = 0; first < count(); first += rows) {
      const Strip strip = Make(first, std::min(rows, count() - first));
      if (!strip.live.empty()) visit(strip);
    }
  }

  // The weights that rows of values meet.
  at::Tensor WeightsOf(const Strip& strip) const {
    at::Tensor weights;
    if (call_.weights_meet != Point::kReference) weights = at::softmax(strip.value, 1);
    if (call_.weights_meet != Point::kValue) {
      const at::Tensor other = at::softmax(strip.reference, 1);
      weights = weights.defined() ? weights.add_(other).div_(2) : other;
    }
    return Without(strip, weights);
  }

  // Zero in the rows of which everything is masked. t: [*, rows, width]
  static at::Tensor Without(const Strip& strip, at::Tensor t) {
    if (strip.empty.defined()) t.masked_fill_(strip.empty, 0);
    return t;
  }

 private:
  at::Tensor Picked(const at::Tensor& matrix) const { return rows_.defined() ? matrix.index_select(0, rows_) : matrix; }
  at::Tensor Chosen(const at::Tensor& all, int64_t head) const {
    return all.defined() ? Picked(HeadOf(all, head)) : all;
  }

  Strip Make(int64_t first, int64_t count) const {
    Strip strip;
    strip.first = first;
    strip.count = count;
    at::Tensor mask;  // a summand, of the live columns
    const int64_t columns = key_.size(0);
    int64_t shown = columns;  // columns of which nothing is hidden
    if (call_.causal) {
      const at::Tensor own = rows_.narrow(0, first, count);
      shown = std::min(columns, own.select(0, 0).item<int64_t>() + 1);
      strip.live = {{0, std::min(columns, own.select(0, count - 1).item<int64_t>() + 1)}};
    } else if (call_.mask.defined()) {
      mask = Summand(mask_.narrow(0, first, count));
      strip.live = LiveOf(mask);
      const at::Tensor empty = mask.amax(1, /*keepdim=*/true).eq(-kInfinity);
      if (empty.any().item<bool>()) strip.empty = empty;
    } else {
      strip.live = {{0, columns}};
    }
    if (strip.live.empty()) return strip;
    const int64_t width = WidthOf(strip.live);
    if (mask.defined() && width < columns) {
      std::vector<at::Tensor> parts;
      for (const Columns& own : strip.live) parts.push_back(mask.narrow(1, own.first, own.count));
      mask = at::cat(parts, 1);
    }
    const auto scores = [&](const at::Tensor& query, const at::Tensor& key) {
      const at::Tensor all = at::empty({count, width}, query.options());
      ProductTo(all, query.narrow(0, first, count), key, strip.live);
      if (mask.defined()) all.add_(mask);
      if (shown < width) {
        const at::Tensor hidden =
            columns_.narrow(0, shown, width - shown).unsqueeze(0).gt(rows_.narrow(0, first, count).unsqueeze(1));
        all.narrow(1, shown, width - shown).masked_fill_(hidden, -kInfinity);
      }
      // On the way they rest at zero: with their infinities the coefficients of the softmax would be NaN.
      return Without(strip, all);
    };
    strip.value = scores(query_, key_);
    strip.reference = call_.scores_move ? scores(query_at_start_, key_at_start_) : strip.value;
    if (query_meets_.defined()) strip.query = query_meets_.narrow(0, first, count);
    return strip;
  }

  at::Tensor Summand(const at::Tensor& mask) const {
    if (mask.scalar_type() != at::kBool) return mask.to(query_.scalar_type()).contiguous();
    return at::zeros(mask.sizes(), query_.options()).masked_fill_(mask.logical_not(), -kInfinity);
  }

  Live LiveOf(const at::Tensor& mask) const {
    // Beyond that an exponential is zero in both dtypes.
    const double margin = 2 * call_.reach + 750;
    return DispatchReal(mask.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      return LiveColumns(mask.data_ptr<T>(), mask.size(0), mask.size(1), margin);
    });
  }

  const AttentionCall& call_;
  at::Tensor rows_;
  at::Tensor query_;
  at::Tensor query_at_start_;
  at::Tensor query_meets_;
  at::Tensor key_;
  at::Tensor key_at_start_;
  at::Tensor columns_;  // positions of keys, where the mask is causal
  at::Tensor mask_;
};

// The rows of one head; undefined of what is undefined.
at::Tensor RowsOfHead(const at::Tensor& t, int64_t head) { return t.defined() ? HeadOf(t, head, 1) : t; }

at::Tensor Part(const at::Tensor& rows, int64_t first, int64_t count) {
  return rows.defined() ? rows.narrow(0, first, count) : rows;
}

class AttentionMap : public LinearMap {
 public:
  explicit AttentionMap(AttentionCall call)
      : call_(std::move(call)),
        queries_(HeadsOf(call_.query)),
        keys_(HeadsOf(call_.key)),
        columns_(call_.key.size(-2)),
        value_width_(call_.value_meets.size(-1)) {
    if (2 * call_.reach > LongestHalfRange(call_.query.scalar_type())) RequireFollowable();
  }

  Rows Forward(const Rows& rows) const override {
    size_t next = 0;
    const auto take = [&](bool reads) { return reads ? rows[next++].to(Dtype()) : at::Tensor(); };
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
      ForEachHead([&](int64_t head, int64_t key_head) { ApplyHead(head, key_head, some, block_in, block_out); });
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
      return k < cotangents.size() && cotangents[k].defined() ? cotangents[k].to(Dtype()) : at::Tensor();
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
      ForEachHead([&](int64_t head, int64_t key_head) { TransposeHead(head, key_head, some, own, block); });
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

  // So many rows at a time that a strip of the fewest scores takes bounded memory.
  template <typename Work>
  void ForEachBlock(int64_t count, const Work& work) const {
    const int64_t block = std::max<int64_t>(1, kMostNumbers / (kLeastRows * columns_));
    for (int64_t first = 0; first < count; first += block) work(first, std::min(block, count - first));
  }

  // Heads that share keys are visited one after the other: what comes back to the keys is summed in their order.
  template <typename Work>
  void ForEachHead(const Work& work) const {
    const int64_t share = queries_ / keys_;
    const bool pays = call_.query.size(-2) * columns_ > kWorthThreads;
    InParallel(keys_, pays ? 1 : keys_, [&](int64_t first, int64_t last) {
      const c10::AutoGradMode no_grad(false);
      for (int64_t k = first; k < last; ++k) {
        for (int64_t q = k * share; q < (k + 1) * share; ++q) work(q, k);
      }
    });
  }

  int64_t RowsOfStrip(int64_t count) const {
    return std::min(kMostRows, std::max(kLeastRows, kStrip / std::max<int64_t>(1, count * columns_)));
  }

  void RequireFollowable() const {
    ForEachHead([&](int64_t head, int64_t key_head) {
      Head(call_, head, key_head, {}).ForEachStrip(RowsOfStrip(1), [&](const Strip& strip) { PathOf(strip); });
    });
  }

  SoftmaxPath PathOf(const Strip& strip) const { return MakeSoftmaxPath(call_.name, strip.value, strip.reference); }

  void ApplyHead(int64_t head, int64_t key_head, int64_t count, const Inputs& in, const Outputs& out) const {
    const at::Tensor query = RowsOfHead(in.query, head);
    const at::Tensor key = RowsOfHead(in.key, key_head);
    const at::Tensor value = RowsOfHead(in.value, key_head);
    const at::Tensor output = HeadOf(out.output, head, 1);
    const at::Tensor sums = RowsOfHead(out.sums, head);
    const at::Tensor all_weights = RowsOfHead(out.weights, head);
    const at::Tensor key_meets = query.defined() ? HeadOf(call_.key_meets, key_head) : at::Tensor();
    const at::Tensor value_meets = HeadOf(call_.value_meets, key_head);
    const Head own(call_, head, key_head, {});
    own.ForEachStrip(RowsOfStrip(count), [&](const Strip& strip) {
      const int64_t n = strip.count;
      const int64_t width = strip.width();
      const at::Tensor sum = at::zeros({count, n, value_width_}, output.options());
      if (ReadsScores(call_)) {
        const at::Tensor scores = at::empty({count, n, width}, output.options());
        if (query.defined()) {
          const at::Tensor scaled = query.narrow(1, strip.first, n) * call_.scale;
          ProductTo(scores.view({count * n, width}), scaled.reshape({count * n, scaled.size(2)}), key_meets,
                    strip.live);
        } else {
          scores.zero_();
        }
        for (int64_t r = 0; key.defined() && r < count; ++r) {
          const at::Tensor to = scores.select(0, r);
          const at::Tensor from = key.select(0, r);
          ForEach(strip.live, [&](const Columns& columns, int64_t offset) {
            to.narrow(1, offset, columns.count).addmm_(strip.query, ColumnsOf(from, columns).t());
          });
        }
        const SoftmaxPath path = PathOf(strip);
        Head::Without(strip, scores);
        if (sums.defined()) {
          sums.narrow(1, strip.first, n).copy_((scores * MeanProbabilities(path)).sum(-1, /*keepdim=*/true));
        }
        const bool reads_weights = call_.weights_move || all_weights.defined();
        const at::Tensor moved = reads_weights ? Head::Without(strip, AlongSoftmaxPath(path, scores)) : at::Tensor();
        if (all_weights.defined()) {
          const at::Tensor own_weights = all_weights.narrow(1, strip.first, n);
          ForEach(strip.live, [&](const Columns& columns, int64_t offset) {
            own_weights.narrow(2, columns.first, columns.count).copy_(moved.narrow(2, offset, columns.count));
          });
        }
        if (call_.weights_move) {
          AddProduct(sum.view({count * n, value_width_}), moved.view({count * n, width}), value_meets, strip.live);
        }
      }
      if (value.defined()) {
        const at::Tensor weights = own.WeightsOf(strip);
        for (int64_t r = 0; r < count; ++r) AddProduct(sum.select(0, r), weights, value.select(0, r), strip.live);
      }
      output.narrow(1, strip.first, n).copy_(sum);
    });
  }

  // Positions of the rows of scores that anything comes back to; undefined: all of them.
  static at::Tensor RowsOf(const Outputs& behind) {
    at::Tensor any;
    for (const at::Tensor& t : {behind.output, behind.sums, behind.weights}) {
      if (!t.defined()) continue;
      const at::Tensor own = t.ne(0).any(2).any(0);
      any = any.defined() ? any.logical_or_(own) : own;
    }
    const at::Tensor index = any.nonzero().squeeze(1);
    return index.size(0) == any.size(0) ? at::Tensor() : index;
  }

  void TransposeHead(int64_t head, int64_t key_head, int64_t count, const Outputs& behind, const Inputs& to) const {
    Outputs from = {RowsOfHead(behind.output, head), RowsOfHead(behind.sums, head), RowsOfHead(behind.weights, head)};
    const at::Tensor rows = RowsOf(from);
    if (rows.defined() && rows.size(0) == 0) return;
    for (at::Tensor* t : {&from.output, &from.sums, &from.weights}) {
      if (rows.defined() && t->defined()) *t = t->index_select(1, rows);
    }
    const at::Tensor query = RowsOfHead(to.query, head);
    const at::Tensor key = RowsOfHead(to.key, key_head);
    const at::Tensor value = RowsOfHead(to.value, key_head);
    const at::Tensor key_meets = query.defined() ? HeadOf(call_.key_meets, key_head) : at::Tensor();
    const at::Tensor value_meets = HeadOf(call_.value_meets, key_head);
    const Head own(call_, head, key_head, rows);
    own.ForEachStrip(RowsOfStrip(count), [&](const Strip& strip) {
      const int64_t n = strip.count;
      const int64_t width = strip.width();
      // [count, n, value width]
      const at::Tensor g = from.output.defined() ? from.output.narrow(1, strip.first, n).contiguous() : at::Tensor();
      if (value.defined() && g.defined()) {
        const at::Tensor weights = own.WeightsOf(strip);
        for (int64_t r = 0; r < count; ++r) AddTransposed(value.select(0, r), weights, g.select(0, r), strip.live);
      }
      const bool by_output = call_.weights_move && g.defined();
      if (!ReadsScores(call_) || !(by_output || from.weights.defined() || from.sums.defined())) return;
      const SoftmaxPath path = PathOf(strip);
      at::Tensor scores;
      if (by_output || from.weights.defined()) {
        const at::Tensor weights = at::empty({count, n, width}, Options());
        if (by_output) {
          ProductTo(weights.view({count * n, width}), g.view({count * n, value_width_}), value_meets, strip.live);
        } else {
          weights.zero_();
        }
        if (from.weights.defined()) {
          const at::Tensor own_weights = from.weights.narrow(1, strip.first, n);
          ForEach(strip.live, [&](const Columns& columns, int64_t offset) {
            weights.narrow(2, offset, columns.count).add_(own_weights.narrow(2, columns.first, columns.count));
          });
        }
        scores = AlongSoftmaxPath(path, weights, /*transposed=*/true);
      }
      if (from.sums.defined()) {
        const at::Tensor weighed = MeanProbabilities(path) * from.sums.narrow(1, strip.first, n);
        const at::Tensor by_sums = weighed.to(from.sums.scalar_type());
        scores = scores.defined() ? scores.add_(by_sums) : by_sums;
      }
      Head::Without(strip, scores);
      if (query.defined()) {
        const at::Tensor back = at::zeros({count * n, key_meets.size(1)}, scores.options());
        AddProduct(back, scores.view({count * n, width}), key_meets, strip.live);
        back.mul_(call_.scale);
        const at::Tensor own_back = back.view({count, n, key_meets.size(1)});
        if (rows.defined()) {
          query.index_copy_(1, rows.narrow(0, strip.first, n), own_back);
        } else {
          query.narrow(1, strip.first, n).copy_(own_back);
        }
      }
      for (int64_t r = 0; key.defined() && r < count; ++r) {
        AddTransposed(key.select(0, r), scores.select(0, r), strip.query, strip.live);
      }
    });
  }

  AttentionCall call_;
  int64_t queries_;  // heads
  int64_t keys_;
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
