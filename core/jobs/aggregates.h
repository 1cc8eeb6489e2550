// Aggregates of the contributions of many rows: sums, signs, quantiles and a sample of rows, all of which can be found
// for parts of the rows and put together.
//
// Note [What can be put together]
// Counts, sketches and samples of two disjoint sets of rows give those of both in any order, bit for bit. Sums of
// floating-point numbers depend on the order: they are of shards, and are put together in the order of shards, so that
// whoever computed which shard, and when, changes nothing. Of a column with many texts, those that come first in the
// order of their bytes have groups of their own: a text that is among the first ones of all rows is among the first
// ones of each part of them.
#ifndef ADDEND_CORE_JOBS_AGGREGATES_H_
#define ADDEND_CORE_JOBS_AGGREGATES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace addend {

// Quantiles of numbers, each known to 1 part in 128 of its magnitude: counts by the exponent and the first six bits of
// the mantissa (a sketch by logarithmic buckets, as DDSketch is, with buckets that need no logarithm and so are the
// same on every machine). Numbers that are not finite are counted apart.
class QuantileSketch {
 public:
  void Add(double number);
  void Merge(const QuantileSketch& other);

  int64_t count() const { return count_; }            // of finite numbers
  int64_t not_finite() const { return not_finite_; }  // of the others
  double least() const { return least_; }             // exactly; 0 without numbers
  double largest() const { return largest_; }
  // The number of rank share * (count - 1), rounded to the nearest rank: the middle of its bucket, and exactly the
  // least or the largest at the ends. 0 without numbers. share: from 0 to 1.
  double Quantile(double share) const;
  // The share of the numbers that are at most this; numbers in one bucket count as equal.
  double ShareUpTo(double number) const;
  // The largest difference between what ShareUpTo() of both gives for a number: the Kolmogorov-Smirnov distance, from 0
  // to 1. Numbers in one bucket count as equal, so it is never more than that of the numbers themselves.
  static double Distance(const QuantileSketch& a, const QuantileSketch& b);

  Json ToJson() const;
  // Throws InvalidArgument for what no ToJson() wrote.
  static QuantileSketch OfJson(const Json& json);

  friend bool operator==(const QuantileSketch& a, const QuantileSketch& b);

 private:
  // The bucket of a number: its sign, exponent and six bits, in the order of numbers; 0 for zeros of either sign.
  static int32_t BucketOf(double number);
  static double MiddleOf(int32_t bucket);

  std::map<int32_t, int64_t> buckets_;
  int64_t count_ = 0;
  int64_t not_finite_ = 0;
  double least_ = 0;
  double largest_ = 0;
};

// Aggregate of one component over rows, or of another number that each row has.
struct ComponentAggregate {
  int64_t positive = 0;
  int64_t negative = 0;  // zeros are neither
  double sum = 0;
  double sum_of_magnitudes = 0;
  QuantileSketch sketch;

  void Add(double number);
  void Merge(const ComponentAggregate& other);
};

// A row as pages show it.
struct SampledRow {
  int64_t row = 0;
  double value = 0;                   // of the target
  std::vector<double> contributions;  // by component
  std::vector<double> elements;       // the number that each component is, NaN where it is none; may be empty
};

// Aggregate of the rows of one group: as little as a page needs.
struct GroupAggregate {
  int64_t rows = 0;
  double sum_of_values = 0;
  std::vector<double> sums;  // by component; empty without rows
  std::vector<double> sums_of_magnitudes;

  void Merge(const GroupAggregate& other);
};

// The groups of one column.
struct ColumnGroups {
  static constexpr size_t kMost = 1000;
  std::map<std::string, GroupAggregate> groups;  // by text: the kMost that come first in the order of their bytes
  GroupAggregate others;                         // the rows of all other texts

  // The group of a text, for more rows of it.
  GroupAggregate& Of(const std::string& text);
  void Merge(const ColumnGroups& other);
};

// The rows that a page points to because something is worst there, at most kMostWorst, worst first; rows that are alike
// in the order of rows.
struct WorstRow {
  int64_t row = 0;
  double size = 0;
};
class WorstRows {
 public:
  static constexpr size_t kMost = 10;
  // Zeros are not bad at all.
  void Add(int64_t row, double size);
  void Merge(const WorstRows& other);
  const std::vector<WorstRow>& rows() const { return rows_; }
  Json ToJson() const;
  static WorstRows OfJson(const Json& json);

 private:
  std::vector<WorstRow> rows_;
};

// One row's numbers, as aggregates take them.
struct RowNumbers {
  int64_t row = 0;
  double value = 0;
  double reference = 0;
  double leftover = 0;
  double conditioning = 1;
  const double* contributions = nullptr;  // by component
  const double* elements = nullptr;       // likewise, or null
  std::vector<std::string> groups;        // by column that rows are put together by
};

// Aggregates of all rows of a shard, or of several.
class Aggregates {
 public:
  // `components`: how many there are. `sampled`: the share of rows in the sample, from 0 to 1; rows are drawn by their
  // numbers, so that a row is in it or not whatever else was computed. `grouped`: how many columns rows are put
  // together by.
  Aggregates(int64_t components, double sampled, size_t grouped);

  void Add(const RowNumbers& numbers);
  void AddRefused() { ++refused_; }
  // Report::worst_recovery_error of an attribution that rows are from.
  void AddRecoveryError(double error);
  // Adds rows behind those that are in already. Throws InvalidArgument if `other` has other components or columns.
  void Merge(const Aggregates& other);

  int64_t rows() const { return rows_; }
  int64_t refused() const { return refused_; }
  int64_t not_finite() const { return not_finite_; }  // rows with a number that is not finite
  const std::vector<ComponentAggregate>& components() const { return components_; }
  const ComponentAggregate& values() const { return values_; }
  const ComponentAggregate& references() const { return references_; }
  const ComponentAggregate& leftover_shares() const { return leftover_shares_; }  // |leftover| / |value - reference|
  const QuantileSketch& conditionings() const { return conditionings_; }
  const WorstRows& worst_leftover() const { return worst_leftover_; }  // by |leftover|
  double worst_recovery_error() const { return worst_recovery_error_; }
  const std::map<int64_t, SampledRow>& sample() const { return sample_; }
  const std::vector<ColumnGroups>& groups() const { return groups_; }  // by column

  Json ToJson() const;
  // Throws InvalidArgument for what no ToJson() wrote.
  static Aggregates OfJson(const Json& json);

  // Whether a row is in the sample, so that its elements are asked for.
  bool Samples(int64_t row) const;

 private:
  double sampled_ = 0;
  int64_t rows_ = 0;
  int64_t refused_ = 0;
  int64_t not_finite_ = 0;
  std::vector<ComponentAggregate> components_;
  ComponentAggregate values_;
  ComponentAggregate references_;
  ComponentAggregate leftover_shares_;
  QuantileSketch conditionings_;
  WorstRows worst_leftover_;
  double worst_recovery_error_ = 0;
  std::map<int64_t, SampledRow> sample_;
  std::vector<ColumnGroups> groups_;
};

}  // namespace addend

#endif  // ADDEND_CORE_JOBS_AGGREGATES_H_
