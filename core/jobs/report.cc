#include "core/jobs/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/document/page_template.h"
#include "core/explain/target.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

constexpr char kFormat[] = "addend.job_report";
constexpr int64_t kVersion = 1;
constexpr double kShares[] = {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};
constexpr size_t kMostNames = 5;  // in one message
// The 95 % quantile of Kolmogorov's distribution.
constexpr double kKolmogorov = 1.3581;

// JSON has no word for numbers that are not finite.
Json Finite(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

Json Rounded(double number) {
  double rounded = 0;
  if (!std::isfinite(number) || !absl::SimpleAtod(absl::StrFormat("%.*g", kSampleDigits, number), &rounded)) {
    return nullptr;
  }
  return rounded;
}

double Mean(double sum, int64_t count) { return count == 0 ? 0 : sum / static_cast<double>(count); }
double MeanMagnitude(const ComponentAggregate& own) { return Mean(own.sum_of_magnitudes, own.sketch.count()); }

Json SpreadJson(const QuantileSketch& sketch) {
  Json quantiles = Json::array();
  for (const double share : kShares) quantiles.push_back(sketch.Quantile(share));
  return {{"least", sketch.least()},
          {"largest", sketch.largest()},
          {"quantiles", std::move(quantiles)},
          {"not_finite", sketch.not_finite()}};
}

Json NumberJson(const ComponentAggregate& own) {
  Json json = {{"mean", Finite(Mean(own.sum, own.sketch.count()))},
               {"mean_magnitude", Finite(MeanMagnitude(own))},
               {"positive", own.positive},
               {"negative", own.negative}};
  json.update(SpreadJson(own.sketch));
  return json;
}

Json WorstJson(const WorstRows& worst) {
  Json list = Json::array();
  for (const WorstRow& own : worst.rows()) list.push_back({{"row", own.row}, {"size", Finite(own.size)}});
  return list;
}

// The components with the largest mean magnitude, the largest first; those that are alike in their own order.
std::vector<size_t> Strongest(const std::vector<ComponentAggregate>& components) {
  std::vector<size_t> order(components.size());
  for (size_t c = 0; c < order.size(); ++c) order[c] = c;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return MeanMagnitude(components[a]) > MeanMagnitude(components[b]); });
  order.resize(std::min(order.size(), kMostDetailed));
  return order;
}

Json SampleJson(const Aggregates& own, const std::vector<size_t>& detailed) {
  Json rows = Json::array();
  Json values = Json::array();
  for (const auto& [row, sampled] : own.sample()) {
    rows.push_back(row);
    values.push_back(Rounded(sampled.value));
  }
  Json contributions = Json::array();
  Json elements = Json::array();
  for (const size_t c : detailed) {
    Json numbers = Json::array();
    Json told = Json::array();
    bool any = false;
    for (const auto& [row, sampled] : own.sample()) {
      numbers.push_back(Rounded(sampled.contributions.at(c)));
      told.push_back(c < sampled.elements.size() ? Rounded(sampled.elements[c]) : Json(nullptr));
      any = any || !told.back().is_null();
    }
    contributions.push_back(std::move(numbers));
    elements.push_back(any ? std::move(told) : Json(nullptr));
  }
  return {{"rows", std::move(rows)},
          {"values", std::move(values)},
          {"contributions", std::move(contributions)},
          {"elements", std::move(elements)}};
}

std::optional<double> FiniteNumberOf(const std::string& text) {
  double number = 0;
  return absl::SimpleAtod(text, &number) && std::isfinite(number) ? std::optional<double>(number) : std::nullopt;
}

// Positions of groups on one scale, by text; nothing unless `place` finds one for every group.
template <typename Place>
std::optional<std::map<std::string, double>> Places(const std::map<std::string, GroupAggregate>& groups,
                                                    const Place& place) {
  std::map<std::string, double> places;
  for (const auto& [text, own] : groups) {
    const std::optional<double> at = place(text);
    if (!at) return std::nullopt;
    places[text] = *at;
  }
  return places;
}

// The means of some rows; of contributions those of `detailed`.
Json MeansJson(const GroupAggregate& own, const std::vector<size_t>& detailed) {
  Json means = Json::array();
  for (const size_t c : detailed) means.push_back(Finite(Mean(own.sums.at(c), own.rows)));
  return {{"rows", own.rows}, {"mean_value", Finite(Mean(own.sum_of_values, own.rows))}, {"means", std::move(means)}};
}

Json ColumnJson(const std::string& column, const ColumnGroups& of, const std::vector<size_t>& detailed) {
  const std::map<std::string, GroupAggregate>& groups = of.groups;
  const char* order = "numbers";
  std::optional<std::map<std::string, double>> places = Places(groups, FiniteNumberOf);
  if (!places) {
    order = "dates";
    places = Places(groups, DaysOfDate);
  }
  if (!places) order = "texts";
  std::vector<std::string> texts;
  for (const auto& [text, own] : groups) texts.push_back(text);
  // Without an order of their own, the largest groups come first.
  std::stable_sort(texts.begin(), texts.end(), [&](const std::string& a, const std::string& b) {
    return places ? places->at(a) < places->at(b) : groups.at(a).rows > groups.at(b).rows;
  });
  Json list = Json::array();
  for (const std::string& text : texts) {
    Json group = {{"text", text}, {"at", places ? Json(places->at(text)) : Json(nullptr)}};
    group.update(MeansJson(groups.at(text), detailed));
    list.push_back(std::move(group));
  }
  return {{"column", column},
          {"order", order},
          {"groups", std::move(list)},
          {"others", of.others.rows == 0 ? Json(nullptr) : MeansJson(of.others, detailed)}};
}

// The rows of a merged file that holds tensors, read one by one.
class ResultRows {
 public:
  explicit ResultRows(const ReportedJob& job) : job_(job) {
    for (const char* name : {"value", "reference", "leftover", "target"}) Open(name);
    if (job.plan.contributions) Open("contributions");
  }

  // `leftover`: its magnitude as "merged.json" has it.
  Json Read(int64_t row, size_t target, double leftover) const {
    const double own_leftover = NumberOf("leftover", row, target);
    if (std::isfinite(own_leftover) && std::abs(own_leftover) != leftover) {
      throw FailedPrecondition(absl::StrCat(job_.merged.path, " holds other rows than merged.json tells of: row ", row,
                                            " has the leftover ", own_leftover, ", and had ", leftover,
                                            "; write both anew by addend job merge ", job_.plan_path));
    }
    Json json = {{"row", row},
                 {"element", Tensor("target", row, target).item<int64_t>()},
                 {"value", Finite(NumberOf("value", row, target))},
                 {"reference", Finite(NumberOf("reference", row, target))},
                 {"leftover", Finite(own_leftover)}};
    if (!job_.plan.contributions) {
      json["contributions"] = nullptr;
      json["total"] = nullptr;
      return json;
    }
    const at::Tensor tensor = Tensor("contributions", row, target).contiguous();
    const std::vector<double> numbers(tensor.data_ptr<double>(), tensor.data_ptr<double>() + tensor.numel());
    std::vector<size_t> order(numbers.size());
    for (size_t c = 0; c < order.size(); ++c) order[c] = c;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return std::abs(numbers[a]) > std::abs(numbers[b]); });
    double total = 0;
    for (const double number : numbers) total += number;
    Json largest = Json::array();
    for (size_t k = 0; k < std::min(order.size(), kMostContributions); ++k) {
      largest.push_back({{"component", order[k]}, {"contribution", Finite(numbers[order[k]])}});
    }
    json["contributions"] = std::move(largest);
    json["total"] = Finite(total);
    return json;
  }

 private:
  void Open(const std::string& name) {
    auto rows = std::make_unique<StoredRows>(TensorPlace{job_.merged.path, name}, std::vector<std::string>());
    std::vector<int64_t> shape = {job_.merged.rows};
    if (job_.plan.targets() > 1) shape.push_back(static_cast<int64_t>(job_.plan.targets()));
    if (name == "contributions") shape.push_back(static_cast<int64_t>(job_.plan.components.size()));
    if (rows->shape() != shape || rows->dtype() != (name == "target" ? at::kLong : at::kDouble)) {
      throw FailedPrecondition(absl::StrCat(rows->place(), " has another shape than results of ", job_.plan_path,
                                            " have; write it anew by addend job merge ", job_.plan_path));
    }
    tensors_[name] = std::move(rows);
  }
  at::Tensor Tensor(const std::string& name, int64_t row, size_t target) const {
    const at::Tensor own = tensors_.at(name)->Read(row, 1)[0];
    return job_.plan.targets() > 1 ? own[static_cast<int64_t>(target)] : own;
  }
  double NumberOf(const std::string& name, int64_t row, size_t target) const {
    return Tensor(name, row, target).item<double>();
  }

  const ReportedJob& job_;
  std::map<std::string, std::unique_ptr<StoredRows>> tensors_;
};

// The rows with the largest leftover.
Json WorstRowsJson(const ReportedJob& job, size_t target) {
  Json list = Json::array();
  if (job.plan.format != "safetensors") return list;
  const Aggregates& own = job.merged.aggregates.at(target);
  const ResultRows rows(job);
  for (const WorstRow& worst : own.worst_leftover().rows()) list.push_back(rows.Read(worst.row, target, worst.size));
  return list;
}

std::string TargetName(const JobPlan& plan, const std::string& text) {
  const Target target = ParseTarget(text);
  const auto name = [&](const std::vector<int64_t>& index) -> std::string {
    const auto count = static_cast<int64_t>(plan.classes.size());
    if (index.size() != 1 || index[0] >= count || index[0] < -count) return "";
    return plan.classes[static_cast<size_t>(index[0] < 0 ? index[0] + count : index[0])];
  };
  if (target.quantity != Target::Quantity::kElement || target.top1) return text;
  const std::string own = name(target.index);
  if (own.empty() || target.subtract.empty()) return own.empty() ? text : own;
  const std::string other = name(target.subtract);
  return other.empty() ? text : absl::StrCat(own, " minus ", other);
}

Json TargetJson(const ReportedJob& job, size_t target) {
  const JobPlan& plan = job.plan;
  const Aggregates& own = job.merged.aggregates.at(target);
  const auto text = plan.request.at("targets").at(target).get<std::string>();
  const std::vector<size_t> detailed = Strongest(own.components());
  Json components = Json::array();
  for (const ComponentAggregate& component : own.components()) components.push_back(NumberJson(component));
  Json columns = Json::array();
  for (size_t g = 0; g < own.groups().size(); ++g) {
    columns.push_back(ColumnJson(plan.groups.at(g), own.groups()[g], detailed));
  }
  return {{"target", text},
          {"name", TargetName(plan, text)},
          {"rows", own.rows()},
          {"value", NumberJson(own.values())},
          {"reference", NumberJson(own.references())},
          {"worst_recovery_error", Finite(own.worst_recovery_error())},
          {"leftover_share", SpreadJson(own.leftover_shares().sketch)},
          {"conditioning", SpreadJson(own.conditionings())},
          {"components", std::move(components)},
          {"detailed", detailed},
          {"sample", SampleJson(own, detailed)},
          {"columns", std::move(columns)},
          {"worst_leftover", WorstJson(own.worst_leftover())},
          {"worst_rows", WorstRowsJson(job, target)}};
}

// Maps each component to the one of the same name in another job. Throws if there is none.
std::vector<size_t> Match(const ReportedJob& job, const ReportedJob& against) {
  const std::vector<std::string>& own = job.plan.components;
  const std::vector<std::string>& other = against.plan.components;
  std::vector<size_t> match;
  if (own == other) {
    for (size_t c = 0; c < own.size(); ++c) match.push_back(c);
    return match;
  }
  const auto places = [](const ReportedJob& of) {
    std::map<std::string, size_t> found;
    for (size_t c = 0; c < of.plan.components.size(); ++c) {
      if (!found.emplace(of.plan.components[c], c).second) {
        throw InvalidArgument(absl::StrCat("two components of ", of.plan_path, " are called ", of.plan.components[c],
                                           ", so that names do not tell them apart; plan the job with other --names"));
      }
    }
    return found;
  };
  const std::map<std::string, size_t> own_places = places(job);
  const std::map<std::string, size_t> other_places = places(against);
  const auto require = [](const ReportedJob& of, const std::map<std::string, size_t>& in, const ReportedJob& lacking) {
    std::vector<std::string> missing;
    for (const std::string& name : of.plan.components) {
      if (in.count(name) == 0 && missing.size() < kMostNames) missing.push_back(name);
    }
    if (missing.empty()) return;
    throw InvalidArgument(absl::StrCat(lacking.plan_path, " has not the components of ", of.plan_path, ": no ",
                                       absl::StrJoin(missing, ", no "),
                                       "; a drift is told of jobs with the same components"));
  };
  require(job, other_places, against);
  require(against, own_places, job);
  for (const std::string& name : own) match.push_back(other_places.at(name));
  return match;
}

// Two numbers of the same kind, of this job and of the other.
Json ComparedJson(const ComponentAggregate& own, const ComponentAggregate& other) {
  return {{"distance", QuantileSketch::Distance(own.sketch, other.sketch)},
          {"mean", Finite(Mean(own.sum, own.sketch.count()))},
          {"mean_against", Finite(Mean(other.sum, other.sketch.count()))},
          {"mean_magnitude", Finite(MeanMagnitude(own))},
          {"mean_magnitude_against", Finite(MeanMagnitude(other))}};
}

Json DriftJson(const ReportedJob& job, const ReportedJob& against) {
  const Json& own = job.plan.request;
  const Json& other = against.plan.request;
  for (const char* key : {"targets", "at"}) {
    if (own.at(key) == other.at(key)) continue;
    throw InvalidArgument(absl::StrCat(job.plan_path, " explains other numbers than ", against.plan_path, ": ", key,
                                       " are ", Dump(own.at(key)), " and ", Dump(other.at(key)),
                                       "; a drift is told of jobs with the same targets"));
  }
  const std::vector<size_t> match = Match(job, against);
  const auto baselines = [](const Json& request) {
    Json list = Json::array();
    for (const Json& input : request.at("inputs")) list.push_back(input.at("baseline"));
    return list;
  };
  Json targets = Json::array();
  for (size_t t = 0; t < job.merged.aggregates.size(); ++t) {
    const Aggregates& a = job.merged.aggregates[t];
    const Aggregates& b = against.merged.aggregates.at(t);
    Json components = Json::array();
    for (size_t c = 0; c < match.size(); ++c) {
      components.push_back(ComparedJson(a.components()[c], b.components().at(match[c])));
    }
    const auto rows = static_cast<double>(a.rows());
    const auto rows_against = static_cast<double>(b.rows());
    const bool some = a.rows() > 0 && b.rows() > 0;
    targets.push_back(
        {{"rows_against", b.rows()},
         {"by_chance",
          some ? std::min(1.0, kKolmogorov * std::sqrt((rows + rows_against) / (rows * rows_against))) : 1},
         {"value", ComparedJson(a.values(), b.values())},
         {"components", std::move(components)}});
  }
  return {{"plan", {{"path", against.plan_path}, {"sha256", Sha256OfPlan(against.plan)}}},
          {"same_model", job.plan.model_sha256 == against.plan.model_sha256},
          {"same_baselines", baselines(own) == baselines(other)},
          {"same_policy", own.at("policy") == other.at("policy")},
          {"targets", std::move(targets)}};
}

}  // namespace

ReportedJob LoadReportedJob(const std::string& plan_path) {
  ReportedJob job;
  job.plan_path = plan_path;
  job.plan = LoadJobPlan(plan_path);
  job.merged = ReadMergedJob(job.plan, plan_path);
  return job;
}

Json JobReportJson(const ReportedJob& job, const ReportedJob* against, const Writer& writer) {
  const JobPlan& plan = job.plan;
  const MergedJob& merged = job.merged;
  Json refused = Json::array();
  for (size_t k = 0; k < std::min(merged.refused.size(), kMostRefused); ++k) refused.push_back(merged.refused[k]);
  Json targets = Json::array();
  for (size_t t = 0; t < merged.aggregates.size(); ++t) targets.push_back(TargetJson(job, t));
  return {
      {"format", kFormat},
      {"version", kVersion},
      {"addend", WriterJson(writer)},
      {"plan", {{"path", job.plan_path}, {"sha256", Sha256OfPlan(plan)}}},
      {"planned_by", plan.addend},
      {"libtorch", plan.libtorch},
      {"model", {{"path", plan.model}, {"sha256", plan.model_sha256}}},
      {"result", {{"path", merged.path}, {"bytes", merged.bytes}, {"sha256", merged.sha256}, {"format", plan.format}}},
      {"hash", merged.hash},
      {"rows", merged.rows},
      {"refused_rows", merged.refused_rows},
      {"refused", std::move(refused)},
      {"notes", NoteCountsJson(merged.notes)},
      {"shards", plan.shards()},
      {"machines", merged.machines},
      {"seconds", Finite(merged.seconds)},
      {"at", plan.request.at("at")},
      {"policy", plan.request.at("policy")},
      {"classes", plan.classes},
      {"components", plan.components},
      {"shares", kShares},
      {"targets", std::move(targets)},
      {"drift", against == nullptr ? Json(nullptr) : DriftJson(job, *against)}};
}

std::string JobReportHtml(const Json& report) {
  if (!report.is_object() || report.value("format", Json()) != kFormat || !report.contains("targets")) {
    throw InvalidArgument("json is no report of a job as Addend writes it");
  }
  return FillPage(kJobReportPageTemplate, report);
}

std::optional<double> DaysOfDate(const std::string& text) {
  size_t place = 0;
  // Exactly `digits` digits as a number; -1: something else stands there.
  const auto number = [&](size_t digits) {
    if (text.size() < place + digits) return -1;
    int found = 0;
    for (size_t k = 0; k < digits; ++k) {
      if (!absl::ascii_isdigit(static_cast<unsigned char>(text[place + k]))) return -1;
      found = found * 10 + (text[place + k] - '0');
    }
    place += digits;
    return found;
  };
  const auto takes = [&](const char* any) {
    const bool there = place < text.size() && std::string(any).find(text[place]) != std::string::npos;
    if (there) ++place;
    return there;
  };
  // The number of a day by the Gregorian calendar, from the first of March of the year 0 on.
  const auto day_number = [](int year, int month, int day) {
    const int64_t years = month < 3 ? year - 1 : year;
    const int64_t months = month < 3 ? month + 9 : month - 3;
    return 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 1;
  };
  const int year = number(4);
  if (year < 1 || !takes("-")) return std::nullopt;
  const int month = number(2);
  if (month < 1 || month > 12) return std::nullopt;
  int day = 1;
  bool has_day = false;
  if (takes("-")) {
    day = number(2);
    const int64_t length =
        (month == 12 ? day_number(year + 1, 1, 1) : day_number(year, month + 1, 1)) - day_number(year, month, 1);
    if (day < 1 || day > length) return std::nullopt;
    has_day = true;
  }
  auto days = static_cast<double>(day_number(year, month, day) - day_number(1970, 1, 1));
  if (place == text.size()) return days;
  if (!has_day || !takes("T ")) return std::nullopt;
  const int hour = number(2);
  if (hour < 0 || hour > 24 || !takes(":")) return std::nullopt;
  const int minute = number(2);
  if (minute < 0 || minute > 59) return std::nullopt;
  double seconds = hour * 3600.0 + minute * 60.0;
  if (takes(":")) {
    const int second = number(2);
    if (second < 0 || second > 60) return std::nullopt;  // 60: of a leap second
    seconds += second;
    if (takes(".,")) {
      double unit = 0.1;
      const size_t first = place;
      while (place < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[place]))) {
        seconds += (text[place++] - '0') * unit;
        unit /= 10;
      }
      if (place == first) return std::nullopt;
    }
  }
  if (!takes("Z") && place < text.size()) {
    const int sign = text[place] == '-' ? -1 : 1;
    if (!takes("+-")) return std::nullopt;
    const int hours = number(2);
    if (hours < 0 || hours > 23) return std::nullopt;
    seconds -= sign * hours * 3600.0;
    if (place < text.size()) {
      takes(":");
      const int minutes = number(2);
      if (minutes < 0 || minutes > 59) return std::nullopt;
      seconds -= sign * minutes * 60.0;
    }
  }
  if (place != text.size()) return std::nullopt;
  return days + seconds / 86400;
}

}  // namespace addend
