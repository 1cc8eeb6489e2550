#include "core/linearize/settle.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <mutex>
#include <vector>

#include "core/base/host_read.h"
#include "core/base/in_parallel.h"
#include "core/base/views.h"
#include "core/rules/kernels.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

// Columns that are summed before the next ones: their sums stay in the first cache.
constexpr int64_t kBlock = 1024;

template <typename T>
struct Columns {
  T* rows;           // [num_rows, stride]
  int64_t num_rows;  // components and leftover
  int64_t stride;
  T* leftover;
  T* move;
  const T* value;
  const T* reference;
  T* sum;  // null: not wanted
  bool sum_is_known;
  SettleOptions options;
};

// Inlined into one function for each dtype, which the compiler clones for each width of vectors.
template <typename T>
ADDEND_ALWAYS_INLINE void SettleBlock(const Columns<T>& c, int64_t first, int64_t n, Settled* out) {
  const T* value = c.value + first;
  const T* reference = c.reference + first;
  const T largest = std::numeric_limits<T>::max();
  T max_value = 0, max_reference = 0, max_bracket = 0, max_passed = 0, max_leftover = 0, max_error = 0;
  int64_t bad_brackets = 0, bad_errors = 0, bad_leftovers = 0;  // NaN: a maximum would step over it
#pragma omp simd reduction(max : max_value, max_reference)
  for (int64_t j = 0; j < n; ++j) {
    const T v = std::abs(value[j]);
    const T r = std::abs(reference[j]);
    const T finite_v = v <= largest ? v : T(0);
    const T finite_r = r <= largest ? r : T(0);
    max_value = max_value > finite_v ? max_value : finite_v;
    max_reference = max_reference > finite_r ? max_reference : finite_r;
  }
  if (c.options.find_bracket) {
    T* move = c.move + first;
    T* leftover = c.leftover + first;
    const bool keep = c.options.keep_bracket;
#pragma omp simd reduction(max : max_bracket, max_passed) reduction(+ : bad_brackets)
    for (int64_t j = 0; j < n; ++j) {
      const bool finite = std::abs(value[j]) <= largest;
      const T difference = !finite || value[j] == reference[j] ? T(0) : value[j] - reference[j];
      const T bracket = finite ? difference - move[j] : T(0);
      const T passed = finite ? std::abs(move[j]) : T(0);
      const T size = std::abs(bracket);
      bad_brackets += size != size;
      max_bracket = max_bracket > size ? max_bracket : size;
      max_passed = max_passed > passed ? max_passed : passed;
      move[j] = difference;
      leftover[j] = keep ? leftover[j] + bracket : leftover[j];
    }
  }
  if (c.options.judge) {
    T own[kBlock];
    T* sum = c.sum != nullptr ? c.sum + first : own;
    if (!c.sum_is_known) {
      const auto row = [&](int64_t r) { return c.rows + r * c.stride + first; };
      const T* own_row = row(0);
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) sum[j] = own_row[j];
      // Four rows at once: what is read from afar arrives together.
      int64_t r = 1;
      for (; r + 4 <= c.num_rows; r += 4) {
        const T* a = row(r);
        const T* b = row(r + 1);
        const T* d = row(r + 2);
        const T* e = row(r + 3);
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) sum[j] += (a[j] + b[j]) + (d[j] + e[j]);
      }
      for (; r < c.num_rows; ++r) {
        own_row = row(r);
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) sum[j] += own_row[j];
      }
    }
    const T* leftover = c.leftover + first;
#pragma omp simd reduction(max : max_leftover, max_error) reduction(+ : bad_errors, bad_leftovers)
    for (int64_t j = 0; j < n; ++j) {
      const T recovery = sum[j] + reference[j];
      const bool finite = std::abs(value[j]) <= largest;
      const T error = finite ? std::abs(recovery - value[j]) : T(0);
      const T l = std::abs(leftover[j]);
      bad_errors += error != error;
      bad_leftovers += l != l;
      max_error = max_error > error ? max_error : error;
      max_leftover = max_leftover > l ? max_leftover : l;
    }
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  out->value = max_value;
  out->reference = max_reference;
  out->bracket = bad_brackets > 0 ? nan : static_cast<double>(max_bracket);
  out->passed = max_passed;
  out->leftover = bad_leftovers > 0 ? nan : static_cast<double>(max_leftover);
  out->error = bad_errors > 0 ? nan : static_cast<double>(max_error);
}

// Two plain functions and not a template: target_clones does not go on templates.
ADDEND_WIDEST_VECTORS void SettleOneBlock(const Columns<float>& c, int64_t first, int64_t n, Settled* out) {
  SettleBlock(c, first, n, out);
}
ADDEND_WIDEST_VECTORS void SettleOneBlock(const Columns<double>& c, int64_t first, int64_t n, Settled* out) {
  SettleBlock(c, first, n, out);
}

// The largest finite sum of magnitudes among n columns.
template <typename T>
ADDEND_ALWAYS_INLINE T MassOfBlock(const Columns<T>& c, int64_t first, int64_t n) {
  const T largest = std::numeric_limits<T>::max();
  T mass[kBlock];
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) mass[j] = std::abs(c.reference[first + j]);
  for (int64_t r = 0; r < c.num_rows; ++r) {
    const T* row = c.rows + r * c.stride + first;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) mass[j] += std::abs(row[j]);
  }
  T max_mass = 0;
#pragma omp simd reduction(max : max_mass)
  for (int64_t j = 0; j < n; ++j) {
    const T finite = mass[j] <= largest ? mass[j] : T(0);
    max_mass = max_mass > finite ? max_mass : finite;
  }
  return max_mass;
}

ADDEND_WIDEST_VECTORS float MassOfOneBlock(const Columns<float>& c, int64_t first, int64_t n) {
  return MassOfBlock(c, first, n);
}
ADDEND_WIDEST_VECTORS double MassOfOneBlock(const Columns<double>& c, int64_t first, int64_t n) {
  return MassOfBlock(c, first, n);
}

// The larger of two; NaN is larger than anything.
double Larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

void Merge(const Settled& part, Settled& all) {
  all.error = Larger(all.error, part.error);
  all.value = Larger(all.value, part.value);
  all.reference = Larger(all.reference, part.reference);
  all.leftover = Larger(all.leftover, part.leftover);
  all.bracket = Larger(all.bracket, part.bracket);
  all.passed = Larger(all.passed, part.passed);
}

template <typename T>
Settled SettleColumns(const Columns<T>& columns, int64_t numel) {
  Settled all;
  const int64_t blocks = (numel + kBlock - 1) / kBlock;
  if (blocks == 1) {  // a parallel region costs more, also where it asks for one thread
    Settled part;
    SettleOneBlock(columns, 0, numel, &part);
    Merge(part, all);
    return all;
  }
  std::mutex mutex;
  InParallelIf(numel * columns.num_rows > 65536, blocks, [&](int64_t from, int64_t to) {
    Settled own;
    for (int64_t b = from; b < to; ++b) {
      Settled part;
      SettleOneBlock(columns, b * kBlock, std::min(kBlock, numel - b * kBlock), &part);
      Merge(part, own);
    }
    const std::lock_guard<std::mutex> lock(mutex);
    Merge(own, all);
  });
  return all;
}

template <typename T>
Columns<T> ColumnsOf(const at::Tensor& rows, const at::Tensor& reference) {
  Columns<T> columns{};
  columns.rows = rows.data_ptr<T>();
  columns.num_rows = rows.size(0) - 1;
  columns.stride = rows.stride(0);
  columns.leftover = columns.rows + (rows.size(0) - 2) * columns.stride;
  columns.move = columns.rows + (rows.size(0) - 1) * columns.stride;
  columns.reference = reference.data_ptr<T>();
  return columns;
}

template <typename T>
Settled SettleOnCpu(const at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference,
                    const SettleOptions& options, at::Tensor* sum) {
  Columns<T> columns = ColumnsOf<T>(rows, reference);
  columns.value = value.data_ptr<T>();
  columns.sum_is_known = sum != nullptr && sum->defined();
  if (sum != nullptr && !sum->defined() && options.judge) *sum = at::empty(value.sizes(), value.options());
  columns.sum = sum != nullptr && sum->defined() ? sum->data_ptr<T>() : nullptr;
  columns.options = options;
  return SettleColumns(columns, value.numel());
}

template <typename T>
double LargestMassOnCpu(const at::Tensor& rows, const at::Tensor& reference, double enough) {
  const Columns<T> columns = ColumnsOf<T>(rows, reference);
  double largest = 0;
  for (int64_t first = 0; first < reference.numel() && largest < enough; first += kBlock) {
    const T mass = MassOfOneBlock(columns, first, std::min(kBlock, reference.numel() - first));
    largest = std::max<double>(largest, mass);
  }
  return largest;
}

// Whether the elements of each row lie one behind the other.
bool HasFlatRows(const at::Tensor& rows) {
  int64_t expected = 1;
  for (int64_t d = rows.dim() - 1; d > 0; --d) {
    if (rows.size(d) != 1 && rows.stride(d) != expected) return false;
    expected *= rows.size(d);
  }
  return true;
}

// Whether the loops can walk over the memory as it is.
bool IsFlat(const at::Tensor& rows, const at::Tensor& reference) {
  return rows.device().is_cpu() && !rows.is_neg() && !reference.is_neg() && reference.is_contiguous() &&
         HasFlatRows(rows) && reference.scalar_type() == rows.scalar_type() &&
         (rows.scalar_type() == at::kFloat || rows.scalar_type() == at::kDouble);
}

}  // namespace

UnreadSettled SettleUnread(at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference,
                           const SettleOptions& options, at::Tensor* sum) {
  UnreadSettled all;
  auto& [error, largest, largest_reference, left, bracket, passed, mass] = all.unread;
  if (value.numel() == 0) return all;
  const int64_t numc = rows.size(0) - 2;
  const bool finite = options.value >= 0 && options.reference >= 0;
  const at::Tensor infinite = finite ? at::Tensor() : at::isfinite(value).logical_not_();
  const auto counted = [&](const at::Tensor& numbers) { return finite ? numbers : numbers.masked_fill(infinite, 0); };
  at::Tensor leftover = Select(rows, 0, numc);
  if (options.find_bracket) {
    at::Tensor move = Select(rows, 0, numc + 1);
    at::Tensor difference = value - reference;
    if (!finite) difference = difference.masked_fill_(value.eq(reference).logical_or_(infinite), 0);
    const at::Tensor missing = counted(difference - move);
    passed = MaxAbs(counted(move));
    bracket = MaxAbs(missing);
    move.copy_(difference);
    if (options.keep_bracket) leftover.add_(missing);
  }
  if (options.judge) {
    const at::Tensor added = sum != nullptr && sum->defined() ? *sum : at::sum(rows.narrow(0, 0, numc + 1), {0});
    if (sum != nullptr) *sum = added;
    error = MaxAbs(counted(added + reference - value));
    left = MaxAbs(leftover);
    if (options.mass) {
      const at::Tensor sizes = at::linalg_vector_norm(rows.narrow(0, 0, numc + 1), 1, {0});
      mass = MaxFinite(sizes + reference.abs());
    }
  }
  if (finite) {
    all.known[1] = options.value;
    all.known[2] = options.reference;
  } else {
    largest = MaxAbs(counted(value));
    largest_reference = MaxFinite(reference.abs());
  }
  return all;
}

std::vector<Settled> ReadSettled(const std::vector<UnreadSettled>& all) {
  std::vector<at::Tensor> unread;
  for (const UnreadSettled& one : all) {
    std::copy_if(one.unread.begin(), one.unread.end(), std::back_inserter(unread),
                 [](const at::Tensor& number) { return number.defined(); });
  }
  const std::vector<double> read = ReadAll(unread);
  auto next = read.begin();
  std::vector<Settled> settled;
  for (const UnreadSettled& one : all) {
    std::array<double, 7> numbers = one.known;
    for (size_t k = 0; k < numbers.size(); ++k) {
      if (one.unread[k].defined()) numbers[k] = *next++;
    }
    const auto [error, value, reference, leftover, bracket, passed, mass] = numbers;
    settled.push_back({error, value, reference, leftover, bracket, passed, mass});
  }
  return settled;
}

Settled SettleByOperators(at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference,
                          const SettleOptions& options, at::Tensor* sum) {
  return ReadSettled({SettleUnread(rows, value, reference, options, sum)})[0];
}

double LargestMass(const at::Tensor& rows, const at::Tensor& reference, double enough) {
  if (!IsFlat(rows, reference) || rows.requires_grad()) {
    const at::Tensor mass = rows.narrow(0, 0, rows.size(0) - 1).abs().sum(0).add_(reference.abs());
    return mass.numel() == 0 ? 0 : ReadNumber(MaxFinite(mass));
  }
  return rows.scalar_type() == at::kFloat ? LargestMassOnCpu<float>(rows, reference, enough)
                                          : LargestMassOnCpu<double>(rows, reference, enough);
}

double RecoveryTolerance(bool single, int64_t components, int64_t depth) {
  return RecoveryTolerance(single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon(),
                           components, depth);
}

double RecoveryTolerance(double epsilon, int64_t components, int64_t depth) {
  const double terms =
      static_cast<double>(std::max<int64_t>(components, 1)) * static_cast<double>(std::max<int64_t>(depth, 1));
  return 8 * epsilon * std::sqrt(terms);
}

RecoveryLimits RecoveryLimitsOf(bool single, std::optional<double> tolerance) {
  const double least = tolerance.value_or(0);
  return single ? RecoveryLimits{std::max(1e-3, least), std::max(1e-2, least)}
                : RecoveryLimits{std::max(1e-9, least), std::max(1e-8, least)};
}

double OwnAllowance(bool single, double value, double terms, std::optional<double> tolerance) {
  if (value == 0 && terms == 0) return std::numeric_limits<double>::infinity();
  const double eps = single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  const double relative = std::max(single ? 1e-3 : 4e-8, tolerance.value_or(0));
  return relative * (value > 0 ? value : terms) + 16 * eps * terms;
}

Settled Settle(at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference, const SettleOptions& options,
               at::Tensor* sum) {
  const bool flat = IsFlat(rows, reference) && value.is_contiguous() && value.scalar_type() == rows.scalar_type() &&
                    (sum == nullptr || !sum->defined() || sum->is_contiguous());
  const bool in_graph = rows.requires_grad() || value.requires_grad() || reference.requires_grad();
  if (!flat || in_graph) return SettleByOperators(rows, value, reference, options, sum);
  return rows.scalar_type() == at::kFloat ? SettleOnCpu<float>(rows, value, reference, options, sum)
                                          : SettleOnCpu<double>(rows, value, reference, options, sum);
}

}  // namespace addend
