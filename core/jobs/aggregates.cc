#include "core/jobs/aggregates.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/audit/canonical_json.h"
#include "core/base/error.h"
#include "core/linearize/operator_check.h"

namespace addend {
namespace {

constexpr int kDropped = 46;  // bits of the mantissa that a bucket does not tell

uint64_t BitsOf(double number) {
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}

double NumberOfBits(uint64_t bits) {
  double number = 0;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}

// Whether a row belongs to a sample is told by its number, which SplitMix64's finalizer (Steele, Lea, Flood 2014)
// spreads evenly over all 64-bit numbers.
uint64_t Spread(uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

Json NumbersJson(const std::vector<double>& numbers) {
  Json list = Json::array();
  for (const double number : numbers) list.push_back(RecordedNumber(number));
  return list;
}

std::vector<double> NumbersOf(const Json& list) {
  std::vector<double> numbers;
  for (const Json& number : list) numbers.push_back(NumberOf(number));
  return numbers;
}

Error NotWritten(const std::string& what) {
  return InvalidArgument(absl::StrCat("its aggregates are none that Addend wrote: ", what));
}

// A whole number from 0 on.
int64_t CountOf(const Json& json, const char* key) {
  const Json& count = json.at(key);
  if (!count.is_number_integer() || count.get<int64_t>() < 0) {
    throw NotWritten(absl::StrCat("\"", key, "\" is no count"));
  }
  return count.get<int64_t>();
}

// One number for each component.
std::vector<double> ByComponent(const Json& json, const char* key, size_t components) {
  std::vector<double> numbers = NumbersOf(json.at(key));
  if (numbers.size() != components) {
    throw NotWritten(absl::StrCat("\"", key, "\" has ", numbers.size(), " numbers for ", components, " components"));
  }
  return numbers;
}

Json ComponentJson(const ComponentAggregate& own) {
  return {{"negative", own.negative},
          {"positive", own.positive},
          {"sketch", own.sketch.ToJson()},
          {"sum", RecordedNumber(own.sum)},
          {"sum_of_magnitudes", RecordedNumber(own.sum_of_magnitudes)}};
}

ComponentAggregate ComponentOf(const Json& json) {
  ComponentAggregate own;
  own.negative = CountOf(json, "negative");
  own.positive = CountOf(json, "positive");
  own.sketch = QuantileSketch::OfJson(json.at("sketch"));
  own.sum = NumberOf(json.at("sum"));
  own.sum_of_magnitudes = NumberOf(json.at("sum_of_magnitudes"));
  return own;
}

void AddTo(std::vector<double>& sums, const std::vector<double>& more) {
  if (sums.size() < more.size()) sums.resize(more.size());
  for (size_t k = 0; k < more.size(); ++k) sums[k] += more[k];
}

// JSON of one group's aggregate; `text` is null for rows without a group of their own.
Json GroupJson(const GroupAggregate& own, Json text) {
  return {{"rows", own.rows},
          {"sum_of_values", RecordedNumber(own.sum_of_values)},
          {"sums", NumbersJson(own.sums)},
          {"sums_of_magnitudes", NumbersJson(own.sums_of_magnitudes)},
          {"text", std::move(text)}};
}

GroupAggregate GroupOf(const Json& json, size_t components) {
  GroupAggregate own;
  own.rows = CountOf(json, "rows");
  own.sum_of_values = NumberOf(json.at("sum_of_values"));
  own.sums = ByComponent(json, "sums", components);
  own.sums_of_magnitudes = ByComponent(json, "sums_of_magnitudes", components);
  return own;
}

}  // namespace

int32_t QuantileSketch::BucketOf(double number) {
  if (number == 0) return 0;
  const auto bucket = static_cast<int32_t>(BitsOf(std::abs(number)) >> kDropped) + 1;
  return number < 0 ? -bucket : bucket;
}

double QuantileSketch::MiddleOf(int32_t bucket) {
  if (bucket == 0) return 0;
  const auto place = static_cast<uint64_t>(std::abs(bucket) - 1);
  const double low = NumberOfBits(place << kDropped);
  const double high = NumberOfBits((place + 1) << kDropped);
  const double middle = std::isfinite(high) ? low / 2 + high / 2 : low;
  return bucket < 0 ? -middle : middle;
}

void QuantileSketch::Add(double number) {
  if (!std::isfinite(number)) {
    ++not_finite_;
    return;
  }
  least_ = count_ == 0 ? number : std::min(least_, number);
  largest_ = count_ == 0 ? number : std::max(largest_, number);
  ++buckets_[BucketOf(number)];
  ++count_;
}

void QuantileSketch::Merge(const QuantileSketch& other) {
  not_finite_ += other.not_finite_;
  if (other.count_ == 0) return;
  least_ = count_ == 0 ? other.least_ : std::min(least_, other.least_);
  largest_ = count_ == 0 ? other.largest_ : std::max(largest_, other.largest_);
  for (const auto& [bucket, count] : other.buckets_) buckets_[bucket] += count;
  count_ += other.count_;
}

double QuantileSketch::Quantile(double share) const {
  if (count_ == 0) return 0;
  const auto rank = static_cast<int64_t>(std::llround(share * static_cast<double>(count_ - 1)));
  if (rank <= 0) return least_;
  if (rank >= count_ - 1) return largest_;
  int64_t before = 0;
  for (const auto& [bucket, count] : buckets_) {
    before += count;
    if (rank < before) return std::clamp(MiddleOf(bucket), least_, largest_);
  }
  return largest_;
}

double QuantileSketch::ShareUpTo(double number) const {
  if (count_ == 0) return 0;
  const int32_t limit = BucketOf(number);
  int64_t below = 0;
  for (const auto& [bucket, count] : buckets_) below += bucket <= limit ? count : 0;
  return static_cast<double>(below) / static_cast<double>(count_);
}

double QuantileSketch::Distance(const QuantileSketch& a, const QuantileSketch& b) {
  const auto share = [](int64_t below, const QuantileSketch& of) {
    return of.count_ == 0 ? 0 : static_cast<double>(below) / static_cast<double>(of.count_);
  };
  // Shares change at buckets only.
  auto left = a.buckets_.begin();
  auto right = b.buckets_.begin();
  int64_t below_a = 0;
  int64_t below_b = 0;
  double distance = 0;
  while (left != a.buckets_.end() || right != b.buckets_.end()) {
    const bool take_a = right == b.buckets_.end() || (left != a.buckets_.end() && left->first <= right->first);
    const bool take_b = left == a.buckets_.end() || (right != b.buckets_.end() && right->first <= left->first);
    if (take_a) below_a += (left++)->second;
    if (take_b) below_b += (right++)->second;
    distance = std::max(distance, std::abs(share(below_a, a) - share(below_b, b)));
  }
  return distance;
}

bool operator==(const QuantileSketch& a, const QuantileSketch& b) {
  return a.buckets_ == b.buckets_ && a.count_ == b.count_ && a.not_finite_ == b.not_finite_ && a.least_ == b.least_ &&
         a.largest_ == b.largest_;
}

Json QuantileSketch::ToJson() const {
  Json buckets = Json::array();
  Json counts = Json::array();
  for (const auto& [bucket, count] : buckets_) {
    buckets.push_back(bucket);
    counts.push_back(count);
  }
  return {{"buckets", std::move(buckets)},
          {"counts", std::move(counts)},
          {"largest", RecordedNumber(largest_)},
          {"least", RecordedNumber(least_)},
          {"not_finite", not_finite_}};
}

QuantileSketch QuantileSketch::OfJson(const Json& json) {
  QuantileSketch sketch;
  const Json& buckets = json.at("buckets");
  const Json& counts = json.at("counts");
  if (buckets.size() != counts.size()) throw NotWritten("a sketch has as many counts as buckets");
  const int64_t last = BucketOf(std::numeric_limits<double>::max());
  int64_t before = -last - 1;
  for (size_t k = 0; k < buckets.size(); ++k) {
    if (!buckets[k].is_number_integer() || !counts[k].is_number_integer()) throw NotWritten("a sketch holds integers");
    const auto bucket = buckets[k].get<int64_t>();
    const auto count = counts[k].get<int64_t>();
    if (bucket <= before || bucket > last) throw NotWritten(absl::StrCat("a sketch has no bucket ", bucket, " there"));
    if (count < 1 || count > std::numeric_limits<int64_t>::max() - sketch.count_) {
      throw NotWritten(absl::StrCat("a bucket of a sketch does not hold ", count, " numbers"));
    }
    sketch.buckets_[static_cast<int32_t>(bucket)] = count;
    sketch.count_ += count;
    before = bucket;
  }
  sketch.largest_ = NumberOf(json.at("largest"));
  sketch.least_ = NumberOf(json.at("least"));
  sketch.not_finite_ = CountOf(json, "not_finite");
  if (!std::isfinite(sketch.least_) || !std::isfinite(sketch.largest_) || sketch.least_ > sketch.largest_) {
    throw NotWritten("a sketch has no range");
  }
  return sketch;
}

void ComponentAggregate::Add(double number) {
  sketch.Add(number);
  if (!std::isfinite(number)) return;
  positive += number > 0 ? 1 : 0;
  negative += number < 0 ? 1 : 0;
  sum += number;
  sum_of_magnitudes += std::abs(number);
}

void ComponentAggregate::Merge(const ComponentAggregate& other) {
  positive += other.positive;
  negative += other.negative;
  sum += other.sum;
  sum_of_magnitudes += other.sum_of_magnitudes;
  sketch.Merge(other.sketch);
}

void GroupAggregate::Merge(const GroupAggregate& other) {
  rows += other.rows;
  sum_of_values += other.sum_of_values;
  AddTo(sums, other.sums);
  AddTo(sums_of_magnitudes, other.sums_of_magnitudes);
}

GroupAggregate& ColumnGroups::Of(const std::string& text) {
  const auto found = groups.find(text);
  if (found != groups.end()) return found->second;
  if (groups.size() < kMost) return groups[text];
  const auto last = std::prev(groups.end());
  if (text > last->first) return others;
  others.Merge(last->second);
  groups.erase(last);
  return groups[text];
}

void ColumnGroups::Merge(const ColumnGroups& other) {
  for (const auto& [text, own] : other.groups) Of(text).Merge(own);
  others.Merge(other.others);
}

void WorstRows::Add(int64_t row, double size) {
  if (std::isnan(size)) size = std::numeric_limits<double>::infinity();
  if (size == 0) return;
  const auto worse = [](const WorstRow& a, const WorstRow& b) {
    return a.size != b.size ? a.size > b.size : a.row < b.row;
  };
  const WorstRow own = {row, size};
  if (rows_.size() == kMost && !worse(own, rows_.back())) return;
  rows_.insert(std::upper_bound(rows_.begin(), rows_.end(), own, worse), own);
  if (rows_.size() > kMost) rows_.pop_back();
}

void WorstRows::Merge(const WorstRows& other) {
  for (const WorstRow& own : other.rows_) Add(own.row, own.size);
}

Json WorstRows::ToJson() const {
  Json list = Json::array();
  for (const WorstRow& own : rows_) list.push_back({{"row", own.row}, {"size", RecordedNumber(own.size)}});
  return list;
}

WorstRows WorstRows::OfJson(const Json& json) {
  WorstRows worst;
  for (const Json& own : json) worst.Add(CountOf(own, "row"), NumberOf(own.at("size")));
  return worst;
}

Aggregates::Aggregates(int64_t components, double sampled, size_t grouped)
    : sampled_(sampled), components_(static_cast<size_t>(components)), groups_(grouped) {}

bool Aggregates::Samples(int64_t row) const {
  // The upper 53 bits, which a double holds exactly, against the same share of 2^53.
  return static_cast<double>(Spread(static_cast<uint64_t>(row)) >> 11) < sampled_ * 9007199254740992.0;
}

void Aggregates::Add(const RowNumbers& numbers) {
  ++rows_;
  const size_t count = components_.size();
  const bool finite =
      std::isfinite(numbers.value) && std::isfinite(numbers.reference) && std::isfinite(numbers.leftover) &&
      std::all_of(numbers.contributions, numbers.contributions + count, [](double own) { return std::isfinite(own); });
  not_finite_ += finite ? 0 : 1;
  for (size_t k = 0; k < count; ++k) components_[k].Add(numbers.contributions[k]);
  values_.Add(numbers.value);
  references_.Add(numbers.reference);
  const double move = std::abs(numbers.value - numbers.reference);
  leftover_shares_.Add(numbers.leftover == 0 ? 0 : std::abs(numbers.leftover) / move);
  conditionings_.Add(numbers.conditioning);
  worst_leftover_.Add(numbers.row, std::abs(numbers.leftover));
  if (Samples(numbers.row)) {
    SampledRow& own = sample_[numbers.row];
    own.row = numbers.row;
    own.value = numbers.value;
    own.contributions.assign(numbers.contributions, numbers.contributions + count);
    if (numbers.elements != nullptr) own.elements.assign(numbers.elements, numbers.elements + count);
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    GroupAggregate& own = groups_[g].Of(numbers.groups.at(g));
    ++own.rows;
    own.sum_of_values += numbers.value;
    own.sums.resize(count);
    own.sums_of_magnitudes.resize(count);
    for (size_t k = 0; k < count; ++k) {
      own.sums[k] += numbers.contributions[k];
      own.sums_of_magnitudes[k] += std::abs(numbers.contributions[k]);
    }
  }
}

void Aggregates::AddRecoveryError(double error) { NoteWorst(error, worst_recovery_error_); }

void Aggregates::Merge(const Aggregates& other) {
  if (other.components_.size() != components_.size() || other.groups_.size() != groups_.size()) {
    throw InvalidArgument("these aggregates are of other components or other columns");
  }
  rows_ += other.rows_;
  refused_ += other.refused_;
  not_finite_ += other.not_finite_;
  for (size_t k = 0; k < components_.size(); ++k) components_[k].Merge(other.components_[k]);
  values_.Merge(other.values_);
  references_.Merge(other.references_);
  leftover_shares_.Merge(other.leftover_shares_);
  conditionings_.Merge(other.conditionings_);
  worst_leftover_.Merge(other.worst_leftover_);
  NoteWorst(other.worst_recovery_error_, worst_recovery_error_);
  sample_.insert(other.sample_.begin(), other.sample_.end());
  for (size_t g = 0; g < groups_.size(); ++g) groups_[g].Merge(other.groups_[g]);
}

Json Aggregates::ToJson() const {
  Json components = Json::array();
  for (const ComponentAggregate& own : components_) components.push_back(ComponentJson(own));
  Json sample = Json::array();
  for (const auto& [row, own] : sample_) {
    sample.push_back({{"contributions", NumbersJson(own.contributions)},
                      {"elements", NumbersJson(own.elements)},
                      {"row", row},
                      {"value", RecordedNumber(own.value)}});
  }
  Json groups = Json::array();
  for (const auto& column : groups_) {
    Json texts = Json::array();
    for (const auto& [text, own] : column.groups) texts.push_back(GroupJson(own, text));
    if (column.others.rows > 0) texts.push_back(GroupJson(column.others, nullptr));
    groups.push_back(std::move(texts));
  }
  return {{"components", std::move(components)},
          {"conditioning", conditionings_.ToJson()},
          {"groups", std::move(groups)},
          {"leftover_share", ComponentJson(leftover_shares_)},
          {"not_finite", not_finite_},
          {"reference", ComponentJson(references_)},
          {"refused", refused_},
          {"rows", rows_},
          {"sample", std::move(sample)},
          {"sampled", RecordedNumber(sampled_)},
          {"value", ComponentJson(values_)},
          {"worst_leftover", worst_leftover_.ToJson()},
          {"worst_recovery_error", RecordedNumber(worst_recovery_error_)}};
}

Aggregates Aggregates::OfJson(const Json& json) {
  try {
    const Json& components = json.at("components");
    const Json& groups = json.at("groups");
    const size_t count = components.size();
    Aggregates own(static_cast<int64_t>(count), NumberOf(json.at("sampled")), groups.size());
    own.rows_ = CountOf(json, "rows");
    own.refused_ = CountOf(json, "refused");
    own.not_finite_ = CountOf(json, "not_finite");
    const auto of_all = [&](const QuantileSketch& sketch) {
      if (sketch.not_finite() > own.rows_ || sketch.count() != own.rows_ - sketch.not_finite()) {
        throw NotWritten("a sketch is of another number of rows");
      }
    };
    for (size_t k = 0; k < count; ++k) {
      own.components_[k] = ComponentOf(components[k]);
      of_all(own.components_[k].sketch);
    }
    own.values_ = ComponentOf(json.at("value"));
    of_all(own.values_.sketch);
    own.references_ = ComponentOf(json.at("reference"));
    of_all(own.references_.sketch);
    own.leftover_shares_ = ComponentOf(json.at("leftover_share"));
    of_all(own.leftover_shares_.sketch);
    own.conditionings_ = QuantileSketch::OfJson(json.at("conditioning"));
    of_all(own.conditionings_);
    own.worst_leftover_ = WorstRows::OfJson(json.at("worst_leftover"));
    own.worst_recovery_error_ = NumberOf(json.at("worst_recovery_error"));
    for (const Json& row : json.at("sample")) {
      SampledRow& sampled = own.sample_[CountOf(row, "row")];
      sampled.row = CountOf(row, "row");
      sampled.value = NumberOf(row.at("value"));
      sampled.contributions = ByComponent(row, "contributions", count);
      sampled.elements = NumbersOf(row.at("elements"));
      if (!sampled.elements.empty() && sampled.elements.size() != count) {
        throw NotWritten("a row of the sample has another number of elements than of components");
      }
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const Json& text : groups[g]) {
        GroupAggregate group = GroupOf(text, count);
        if (text.at("text").is_null()) {
          own.groups_[g].others = std::move(group);
        } else {
          own.groups_[g].groups[text.at("text").get<std::string>()] = std::move(group);
        }
      }
      if (own.groups_[g].groups.size() > ColumnGroups::kMost) throw NotWritten("a column has too many groups");
    }
    return own;
  } catch (const Json::exception&) {
    throw NotWritten("they lack something");
  }
}

}  // namespace addend
