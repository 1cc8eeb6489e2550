#include "core/jobs/shard_table.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/audit/canonical_json.h"
#include "core/base/error.h"
#include "core/document/explanation.h"
#include "core/explain/examples.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Which element of an example's output a target is, counted row by row; -1 where it is no single one.
int64_t ElementOf(const Target& target, at::IntArrayRef sizes) {
  const bool element = target.quantity == Target::Quantity::kElement && target.subtract.empty();
  const bool of_element =
      target.quantity == Target::Quantity::kProbability || target.quantity == Target::Quantity::kLogProbability;
  if ((!element && !of_element) || target.index.size() != sizes.size()) return -1;
  int64_t place = 0;
  // The first dimension counts examples.
  for (size_t d = 1; d < sizes.size(); ++d) {
    const int64_t own = target.index[d] < 0 ? target.index[d] + sizes[d] : target.index[d];
    place = place * sizes[d] + own;
  }
  return place;
}

template <typename T>
at::Tensor TensorOf(const std::vector<T>& numbers, const std::vector<int64_t>& shape, at::ScalarType dtype) {
  return at::from_blob(const_cast<T*>(numbers.data()), shape, dtype);
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string CsvNumber(double number) { return std::isfinite(number) ? CanonicalNumber(number) : absl::StrCat(number); }

}  // namespace

std::string EndingOf(const std::string& format) {
  if (format == "safetensors" || format == "csv") return format;
  throw InvalidArgument(absl::StrCat("results are written as safetensors or csv, not as ", format));
}

std::vector<std::string> ColumnsOf(const JobPlan& plan, int64_t at_most) {
  std::vector<std::string> columns = {"row", "target", "value", "reference", "leftover"};
  if (plan.contributions) columns.insert(columns.end(), plan.components.begin(), plan.components.end());
  for (int64_t r = 1; r <= at_most; ++r) {
    const std::string reason = absl::StrCat("reason ", r);
    columns.insert(columns.end(), {reason, reason + " contribution", reason + " text"});
  }
  columns.push_back("refused");
  return columns;
}

ShardTable::ShardTable(const JobPlan& plan, int64_t first, int64_t count, const Concepts* concepts)
    : plan_(plan),
      first_(first),
      count_(count),
      targets_(static_cast<int64_t>(plan.targets())),
      components_(static_cast<int64_t>(plan.components.size())),
      at_(plan.request.at("at").is_string() ? plan.request.at("at").get<std::string>() : ""),
      at_most_(concepts == nullptr ? 0 : concepts->at_most),
      is_refused_(static_cast<size_t>(count), 0) {
  const auto numbers = static_cast<size_t>(count * targets_);
  value_.resize(numbers, kUnknown);
  reference_.resize(numbers, kUnknown);
  leftover_.resize(numbers, kUnknown);
  target_.resize(numbers, -1);
  if (plan.contributions) contributions_.resize(numbers * static_cast<size_t>(components_), kUnknown);
  reason_.resize(numbers * static_cast<size_t>(at_most_), -1);
  reason_contribution_.resize(reason_.size(), 0);
  if (concepts != nullptr) {
    for (const BoundConcept& bound : BindConcepts(*concepts, plan.components)) concepts_.push_back(bound.name);
  }
  if (plan.format == "csv") {
    target_names_.resize(numbers);
    reason_text_.resize(reason_.size());
  }
}

void ShardTable::Take(int64_t row, const Attribution& attribution, int64_t place, int64_t examples,
                      const Reasons* reasons) {
  for (int64_t t = 0; t < targets_; ++t) {
    // All examples of the first target come first.
    const auto from = static_cast<size_t>(t * examples + place);
    const auto to = static_cast<size_t>((row - first_) * targets_ + t);
    const Contributions& own = attribution.targets.at(from);
    value_[to] = own.value;
    reference_[to] = own.reference;
    leftover_[to] = own.leftover;
    target_[to] = ElementOf(own.target, attribution.value.sizes());
    if (!target_names_.empty()) {
      target_names_[to] =
          NameTarget(attribution.value.select(0, place), at_, plan_.classes, WithoutExample(own.target));
    }
    if (plan_.contributions) {
      std::copy(own.contributions.begin(), own.contributions.end(),
                contributions_.begin() + static_cast<std::ptrdiff_t>(to * static_cast<size_t>(components_)));
    }
    if (reasons == nullptr) continue;
    const std::vector<Reason>& given = reasons->decisions.at(from).reasons;
    for (size_t r = 0; r < std::min(given.size(), static_cast<size_t>(at_most_)); ++r) {
      const size_t at = to * static_cast<size_t>(at_most_) + r;
      reason_[at] = static_cast<int64_t>(given[r].concept_number);
      reason_contribution_[at] = given[r].contribution;
      if (!reason_text_.empty()) reason_text_[at] = given[r].text;
    }
  }
}

void ShardTable::Refuse(RefusedRow refused) {
  is_refused_.at(static_cast<size_t>(refused.row - first_)) = 1;
  refused_.push_back(std::move(refused));
}

std::string ShardTable::Encode(const NoteCounts& notes) const {
  return plan_.format == "csv" ? EncodeCsv() : EncodeTensors(notes);
}

std::string ShardTable::EncodeTensors(const NoteCounts& notes) const {
  std::vector<int64_t> shape = {count_};
  if (targets_ > 1) shape.push_back(targets_);
  const auto with = [&](int64_t last) {
    std::vector<int64_t> longer = shape;
    longer.push_back(last);
    return longer;
  };
  TensorFile file;
  if (plan_.contributions) {
    file.tensors.emplace_back("contributions", TensorOf(contributions_, with(components_), at::kDouble));
  }
  file.tensors.emplace_back("value", TensorOf(value_, shape, at::kDouble));
  file.tensors.emplace_back("reference", TensorOf(reference_, shape, at::kDouble));
  file.tensors.emplace_back("leftover", TensorOf(leftover_, shape, at::kDouble));
  file.tensors.emplace_back("target", TensorOf(target_, shape, at::kLong));
  if (at_most_ > 0) {
    file.tensors.emplace_back("reasons", TensorOf(reason_, with(at_most_), at::kLong));
    file.tensors.emplace_back("reason_contributions", TensorOf(reason_contribution_, with(at_most_), at::kDouble));
    file.metadata["concepts"] = Dump(Json(concepts_));
  }
  file.tensors.emplace_back("refused", TensorOf(is_refused_, {count_}, at::kByte));
  file.metadata["names"] = Dump(Json(plan_.components));
  file.metadata["classes"] = Dump(Json(plan_.classes));
  file.metadata["notes"] = Dump(NoteCountsJson(notes));
  file.metadata["targets"] = Dump(plan_.request.at("targets"));
  return EncodeSafetensors(file);
}

std::string ShardTable::EncodeCsv() const {
  std::string text;
  for (const std::string& column : ColumnsOf(plan_, at_most_)) {
    absl::StrAppend(&text, text.empty() ? "" : ",", CsvField(column));
  }
  text += '\n';
  std::vector<std::string> why(static_cast<size_t>(count_));
  for (const RefusedRow& refused : refused_) why[static_cast<size_t>(refused.row - first_)] = refused.reason;
  for (int64_t row = 0; row < count_; ++row) {
    for (int64_t t = 0; t < targets_; ++t) {
      const auto at = static_cast<size_t>(row * targets_ + t);
      const bool known = is_refused_[static_cast<size_t>(row)] == 0;
      const auto number = [&](double own) { return known ? CsvNumber(own) : std::string(); };
      absl::StrAppend(&text, first_ + row, ",", CsvField(target_names_[at]), ",", number(value_[at]), ",",
                      number(reference_[at]), ",", number(leftover_[at]));
      for (int64_t c = 0; plan_.contributions && c < components_; ++c) {
        absl::StrAppend(&text, ",",
                        number(contributions_[at * static_cast<size_t>(components_) + static_cast<size_t>(c)]));
      }
      for (int64_t r = 0; r < at_most_; ++r) {
        const size_t own = at * static_cast<size_t>(at_most_) + static_cast<size_t>(r);
        const bool given = reason_[own] >= 0;
        absl::StrAppend(&text, ",", given ? CsvField(concepts_[static_cast<size_t>(reason_[own])]) : "", ",",
                        given ? CsvNumber(reason_contribution_[own]) : "", ",", CsvField(reason_text_[own]));
      }
      absl::StrAppend(&text, ",", CsvField(why[static_cast<size_t>(row)]), "\n");
    }
  }
  return text;
}

}  // namespace addend
