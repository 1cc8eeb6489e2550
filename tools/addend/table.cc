#include "tools/addend/table.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/tensor_text.h"
#include "core/explain/notes.h"

namespace addend::cli {
namespace {

constexpr int kLabelWidth = 10;
// Up to here a difference is called rounding, relative to the number that is explained.
constexpr double kRounding = 1e-4;

std::string Trimmed(const std::string& text) {
  const auto piece = absl::StripAsciiWhitespace(text);
  return std::string(piece.data(), piece.size());
}

std::string Shown(const std::string& own) {
  const std::string name = Trimmed(Clean(own));
  return name.empty() ? "(space)" : name;
}

// "Model     path", the path cut at its start where the line would be too long.
std::string Fact(const std::string& label, const std::string& text, const Terminal& terminal) {
  const int width = std::max(kLabelWidth, DisplayWidth(label) + 1);
  return absl::StrCat(PadRight(label, width), CutStart(Clean(text), terminal.width - width, terminal), "\n");
}

std::string DescribePolicyUsed(const LoadedRun& run, const Report& report) {
  std::string text = PresetName(report.policy.preset);
  if (run.policy.preset == Preset::kAuto) {
    text += report.policy.preset == Preset::kFast ? " (by default, since no baseline was given)"
                                                  : " (by default, since a baseline was given)";
  }
  const auto defaults = DescribePolicy(Policy());
  const auto asked = DescribePolicy(run.policy);
  for (size_t k = 0; k < asked.size(); ++k) {
    // Behind the fields there are overrides, which have no defaults.
    if (asked[k].first == "preset" || (k < defaults.size() && asked[k] == defaults[k])) continue;
    absl::StrAppend(&text, ", ", asked[k].first, "=", asked[k].second);
  }
  return text;
}

// Bars to both sides of a line for zero, all on one scale.
class Bars {
 public:
  Bars(const std::vector<double>& numbers, int width, const Terminal& terminal) : utf8_(terminal.utf8) {
    double low = 0;
    double high = 0;
    for (const double x : numbers) {
      if (!std::isfinite(x)) continue;
      low = std::max(low, -x);
      high = std::max(high, x);
    }
    const int cells = width - 1;
    left_ = low + high > 0 ? static_cast<int>(std::lround(cells * low / (low + high))) : cells / 2;
    if (low > 0) left_ = std::max(left_, 1);
    if (high > 0) left_ = std::min(left_, cells - 1);
    right_ = cells - left_;
    unit_ = std::max(left_ > 0 ? low / left_ : 0, right_ > 0 ? high / right_ : 0);
  }

  std::string operator()(double x) const {
    // In halves of a cell; what is not zero is seen, but less than half a cell looks like nothing much.
    const int halves = unit_ > 0 && std::isfinite(x) ? static_cast<int>(std::lround(2 * std::abs(x) / unit_)) : 0;
    std::string bar;
    const int whole = utf8_ ? halves / 2 : (halves + 1) / 2;
    for (int i = 0; i < whole; ++i) bar += utf8_ ? "\u2588" : "#";
    const bool half = utf8_ && halves % 2 == 1;
    if (x < 0) return PadLeft(absl::StrCat(half ? "\u2590" : "", bar), left_) + Zero();
    return absl::StrCat(std::string(left_, ' '), Zero(), bar, half ? "\u258c" : "");
  }

  std::string Head() const {
    const std::string lowers = "lowers ";
    const std::string raises = " raises";
    return absl::StrCat(PadLeft(left_ >= static_cast<int>(lowers.size()) ? lowers : "", left_), Zero(),
                        right_ >= static_cast<int>(raises.size()) ? raises : "");
  }

 private:
  std::string Zero() const { return utf8_ ? "\u2502" : "|"; }

  bool utf8_;
  int left_ = 0;
  int right_ = 0;
  double unit_ = 0;
};

std::vector<size_t> Strongest(const std::vector<double>& contributions) {
  std::vector<size_t> order(contributions.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::abs(contributions[a]) > std::abs(contributions[b]); });
  return order;
}

std::string Probability(double p) {
  if (p > 0.9995 && p < 1) return "more than 0.999";
  if (p < 0.0005 && p > 0) return "less than 0.001";
  return NumberFormat({p}, 3)(p);
}

// Whether the reference is what the model gives on the baseline; the policy or a condition may make it another.
bool IsModelOnBaseline(const Explanation& explanation) {
  return explanation.run->report.reference_is_model_on_baseline == "yes";
}

std::string ReferenceLabel(const Explanation& explanation) {
  if (IsModelOnBaseline(explanation)) return "reference (the model on the baseline)";
  if (explanation.run->report.policy.anchor == Anchor::kResidual) return "reference (the residual)";
  return "reference (see the notes)";
}

// A number of the headline: with the decimals of the table below it, unless that would leave less than three digits of
// it: beside parts of a million, a score of 0.327 is no 0.
std::string InHeadline(double x, const NumberFormat& format) {
  const std::string text = format(x);
  double shown = 0;
  const bool read = absl::SimpleAtod(text, &shown);
  return read && std::abs(shown - x) > 0.005 * std::abs(x) ? Number(x, 3) : text;
}

std::string Headline(const Explanation& explanation, const ExplainedTarget& target, const NumberFormat& format,
                     const Terminal& terminal) {
  const Contributions& numbers = target.numbers;
  const std::string name = Clean(target.name);
  const Target& place = numbers.target;
  const bool score = place.quantity == Target::Quantity::kElement;
  std::string text = absl::StrCat(
      score ? "The model's score for " : "The model's ", target.named ? absl::StrCat("\"", name, "\"") : name, " is ",
      InHeadline(numbers.value, format),
      target.named
          ? absl::StrCat(" (index ", absl::StrJoin(place.index, ","),
                         place.subtract.empty() ? "" : absl::StrCat(" minus ", absl::StrJoin(place.subtract, ",")), ")")
          : "");
  if (target.probability) absl::StrAppend(&text, ", as a probability ", Probability(*target.probability));
  absl::StrAppend(
      &text, IsModelOnBaseline(explanation) ? ". For the baseline the same model gives " : ". The reference is ",
      InHeadline(numbers.reference, format), ". The ",
      Plural(explanation.run->components.list.size(), explanation.run->components.noun), " of the input account for ");
  const double gap = std::abs(numbers.value - numbers.reference);
  if (gap > 0 && std::abs(numbers.leftover) > kMuchLeftover * gap) {
    absl::StrAppend(&text, "the difference only in part, ", Number(100 * std::abs(numbers.leftover) / gap, 2),
                    " % of it is leftover:");
  } else {
    text += "the difference:";
  }
  std::string out = Wrap(text, terminal.width);
  const std::string cancelling = DescribeCancelling(numbers);
  if (!cancelling.empty()) out += "\n" + Wrap("WARNING: " + cancelling, terminal.width);
  return out;
}

std::string Contributed(const Components& components, const ExplainedTarget& target, int64_t top,
                        const NumberFormat& format, const Terminal& terminal) {
  const std::vector<double>& contributions = target.numbers.contributions;
  const std::vector<Component>& list = components.list;
  std::vector<size_t> shown = Strongest(contributions);
  double rest = 0;
  // A line for one other part would be as long as the part's own.
  const size_t others = shown.size() > static_cast<size_t>(top) + 1 ? shown.size() - static_cast<size_t>(top) : 0;
  for (size_t k = shown.size() - others; k < shown.size(); ++k) rest += contributions[shown[k]];
  shown.resize(shown.size() - others);

  std::vector<double> bars;
  const bool values = std::any_of(shown.begin(), shown.end(), [&](size_t i) { return list[i].value.has_value(); });
  const std::string others_name = absl::StrCat(others, " others together");
  const std::string& noun = components.noun;
  int name_width = std::max(DisplayWidth(noun), others > 0 ? DisplayWidth(others_name) : 0);
  for (const size_t i : shown) {
    bars.push_back(contributions[i]);
    name_width = std::max(name_width, DisplayWidth(Shown(list[i].name)));
  }
  constexpr int kValueWidth = 10;
  constexpr int kContributionWidth = 14;
  const int number_width = (values ? kValueWidth + 1 : 0) + kContributionWidth;
  name_width = std::min(name_width, std::max(20, terminal.width - 2 - number_width - 2 - 30));
  const Bars bar(bars, terminal.width - 2 - name_width - number_width - 3, terminal);

  const auto row = [&](const std::string& name, const std::string& value, const std::string& contribution,
                       const std::string& drawn) {
    std::string line = absl::StrCat("  ", PadRight(CutEnd(name, name_width, terminal), name_width),
                                    values ? absl::StrCat(" ", PadLeft(value, kValueWidth)) : "",
                                    PadLeft(contribution, kContributionWidth), "  ", drawn);
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  };
  std::string out = row(noun, "value", "contribution", bar.Head());
  for (const size_t i : shown) {
    const double x = contributions[i];
    out += row(Shown(list[i].name), list[i].value ? Number(*list[i].value, 4) : "", format.Signed(x), bar(x));
  }
  // No bar: it would be the sum of many beside single ones.
  if (others > 0) out += row(others_name, "", format.Signed(rest), "");
  return out;
}

// Both as characters, side by side: the image in shades, the contributions as figures from -9 to +9.
std::string HeatMap(const Image& image, const std::vector<double>& contributions, const NumberFormat& format,
                    const Terminal& terminal) {
  constexpr int kMaxHeight = 32;
  constexpr int kGap = 4;
  const int heat_width = static_cast<int>(3 * image.width);
  const int image_width = static_cast<int>(2 * image.width);
  if (image.height > kMaxHeight || heat_width + 2 > terminal.width) return "";
  double largest = 0;
  for (const double x : contributions) largest = std::max(largest, std::abs(x));
  if (!(largest > 0) || !std::isfinite(largest)) return "";
  const bool both = 2 + image_width + kGap + heat_width <= terminal.width;

  constexpr char kShades[] = " .:-=+*#%@";
  const double range = image.value_max > image.value_min ? image.value_max - image.value_min : 1;
  std::string out = Wrap(absl::StrCat(both ? "Left the image, right what" : "What",
                                      " each of its pixels contributed, from -9 (lowers) to +9 (raises), where 9 is ",
                                      format(largest), ":"),
                         terminal.width);
  for (int64_t y = 0; y < image.height; ++y) {
    out += "  ";
    for (int64_t x = 0; both && x < image.width; ++x) {
      const double level = (image.values[y * image.width + x] - image.value_min) / range;
      out.append(2, kShades[std::clamp<int>(static_cast<int>(level * 10), 0, 9)]);
    }
    if (both) out += std::string(kGap, ' ');
    for (int64_t x = 0; x < image.width; ++x) {
      const int digit = static_cast<int>(std::lround(9 * contributions[y * image.width + x] / largest));
      out += digit == 0 ? "  ." : absl::StrCat(" ", digit < 0 ? "-" : "+", std::abs(digit));
    }
    out += "\n";
  }
  return out + "\n";
}

std::string Sum(const Explanation& explanation, const ExplainedTarget& target, const NumberFormat& format,
                const Terminal& terminal) {
  const Contributions& numbers = target.numbers;
  const std::string& noun = explanation.run->components.noun;
  const double contributed = std::accumulate(numbers.contributions.begin(), numbers.contributions.end(), 0.0);
  constexpr int kTextWidth = 38;
  const auto row = [&](const std::string& sign, const std::string& text, const std::string& number,
                       const std::string& comment = "") {
    return absl::StrCat(sign, " ", PadRight(text, kTextWidth), PadLeft(number, 12), comment.empty() ? "" : "  ",
                        comment, "\n");
  };
  const double error = std::abs(target.recovery_error());
  const bool adds_up = error <= numbers.tolerance;
  const double relative = numbers.value != 0 ? error / std::abs(numbers.value) : error;
  const char* verdict = !adds_up                              ? "(TOO LARGE)"
                        : relative <= kRounding || error == 0 ? "(rounding)"
                                                              : "(digits are lost)";
  std::string out;
  out += row(" ", absl::StrCat("sum of the ", Plural(numbers.contributions.size(), "contribution")),
             format.Signed(contributed));
  out += row("+", ReferenceLabel(explanation), format.Signed(numbers.reference));
  out += row("+", absl::StrCat("leftover (what belongs to no ", noun, ")"), format.Signed(numbers.leftover));
  out += row("=", "recovery (all of it together)", format(numbers.recovery));
  out += row(" ", "the model's own output", format(numbers.value));
  out += row(" ", "relative recovery error", Small(relative), verdict);
  if (const auto apart = explanation.run->report.reference_error) {
    out += row(" ", "reference apart from a run there", Small(*apart),
               IsModelOnBaseline(explanation) ? "(rounding)" : "(see the notes)");
  }
  out += row(" ", "conditioning", std::isfinite(numbers.conditioning) ? Number(numbers.conditioning, 3) : "infinite",
             "(1: nothing cancels)");
  if (!adds_up) {
    out += "\n" + Wrap(
                      "WARNING: the parts do not add up to the model's output; do not rely on them. addend check says "
                      "at which operator.",
                      terminal.width);
  }
  const double gap = std::abs(numbers.value - numbers.reference);
  if (std::abs(numbers.leftover) > 0.01 * gap && gap > 0) {
    const Policy& policy = explanation.run->report.policy;
    const bool fast = policy.preset == Preset::kFast && policy.nonlinearity == Nonlinearity::kPath &&
                      policy.bias == Bias::kResidual && policy.overrides.empty();
    out += "\n" + Wrap(absl::StrCat("Note: the leftover is ", Number(100 * std::abs(numbers.leftover) / gap, 2),
                                    " % of the difference between output and reference.",
                                    fast ? " With --policy preset=faithful nothing is left over." : ""),
                       terminal.width);
  }
  return out;
}

// Operators by how much of a target passed through them.
std::string Operators(const Explanation& explanation, size_t target, int64_t top, const NumberFormat& format,
                      const Terminal& terminal) {
  if (!explanation.operators || top == 0) return "";
  const std::vector<OperatorRelevance>& operators = *explanation.operators;
  std::vector<double> passed;
  for (const OperatorRelevance& one : operators) passed.push_back(one.passed[target]);
  std::vector<size_t> shown = Strongest(passed);
  const size_t others = shown.size() > static_cast<size_t>(top) ? shown.size() - static_cast<size_t>(top) : 0;
  shown.resize(shown.size() - others);
  constexpr int kIndexWidth = 6;
  constexpr int kNumberWidth = 14;
  const int name_width = terminal.width - 2 - kIndexWidth - 2 * kNumberWidth;
  const auto row = [&](const std::string& index, const std::string& name, const std::string& through,
                       const std::string& left) {
    std::string line = absl::StrCat("  ", PadRight(index, kIndexWidth),
                                    PadRight(CutEnd(Clean(name), name_width, terminal), name_width),
                                    PadLeft(through, kNumberWidth), PadLeft(left, kNumberWidth));
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  };
  std::string out = "\n" + row("", "operator", "passes", "leaves over");
  for (const size_t i : shown) {
    const OperatorRelevance& one = operators[i];
    std::string name = one.position.op;
    if (!one.position.module_path.empty()) absl::StrAppend(&name, " in ", one.position.module_path);
    out += row(absl::StrCat("#", one.position.op_index), name, format.Signed(one.passed[target]),
               one.leftover[target] == 0 ? "" : format.Signed(one.leftover[target]));
  }
  if (others > 0) absl::StrAppend(&out, "  and ", Plural(others, "other"), "; --top shows more\n");
  return out;
}

std::string OtherScores(const Explanation& explanation, const Terminal& terminal) {
  if (explanation.targets.size() < 2) return "";
  const auto& targets = explanation.targets;
  std::string out = "\n";
  std::string line = "Other scores (--target explains another):";
  // Classes are all of interest, numbered elements are an example.
  const size_t shown = targets[0].named ? targets.size() : std::min<size_t>(targets.size(), 7);
  for (size_t k = 1; k < shown; ++k) {
    const std::string score = absl::StrCat(" ", Clean(targets[k].name), ": ", Number(targets[k].numbers.value, 3),
                                           k + 1 < shown            ? ","
                                           : shown < targets.size() ? ", ..."
                                                                    : "");
    if (DisplayWidth(line) + DisplayWidth(score) > terminal.width) {
      absl::StrAppend(&out, line, "\n");
      line = " ";
    }
    line += score;
  }
  return absl::StrCat(out, line, "\n");
}

}  // namespace

std::string RunHeader(const LoadedRun& run, const Report& report, const Terminal& terminal) {
  std::string out = Fact("Model", run.model_path, terminal);
  const bool several = run.inputs.size() > 1;
  for (size_t k = 0; k < run.inputs.size(); ++k) {
    const LoadedInput& loaded = run.inputs[k];
    const at::Tensor& value = loaded.input.value;
    const std::string number = several ? absl::StrCat(" ", k) : "";
    out += Fact((loaded.inside() ? "Inside" : "Input") + number, loaded.path, terminal);
    out += Fact("",
                absl::StrCat(run.row && !loaded.inside() ? absl::StrCat("row ", *run.row, ", ") : "", TensorText(value),
                             ", split: ", loaded.split),
                terminal);
    if (loaded.plain()) continue;
    out += Fact("Baseline" + number, absl::StrCat(loaded.baseline, loaded.baseline_given ? "" : " (none was given)"),
                terminal);
  }
  return out + Fact("Policy", DescribePolicyUsed(run, report), terminal);
}

std::vector<std::string> NotesBehindHeader(const std::vector<std::string>& notes) {
  std::vector<std::string> behind;
  for (const std::string& note : notes) {
    // The header's lines of policy and baseline have these.
    const NoteKind kind = KindOf(note);
    const bool header =
        kind == NoteKind::kPreset || kind == NoteKind::kNoBaseline || kind == NoteKind::kNoBaselineOfIds;
    if (!header) behind.push_back(note);
  }
  return behind;
}

std::string TargetTable(const Explanation& explanation, size_t target, int64_t top, const Terminal& terminal) {
  const ExplainedTarget& own = explanation.targets[target];
  const Contributions& numbers = own.numbers;
  const Components& components = explanation.run->components;
  double largest = 0;
  for (const double x : numbers.contributions) largest = std::max(largest, std::abs(x));
  const NumberFormat format({numbers.value, numbers.reference, numbers.leftover, largest}, 4);
  const NumberFormat fine({largest}, 4);
  std::string out = Headline(explanation, own, format, terminal) + "\n";
  const std::optional<Image> image = ImageOf(explanation.run->inputs, components);
  if (image) out += HeatMap(*image, numbers.contributions, fine, terminal);
  if (top > 0) absl::StrAppend(&out, Contributed(components, own, top, fine, terminal), "\n");
  absl::StrAppend(&out, Sum(explanation, own, format, terminal), Operators(explanation, target, top, format, terminal));
  return out;
}

std::string ExplanationTable(const LoadedRun& run, const Explanation& explanation, int64_t top,
                             const Terminal& terminal) {
  const Report& report = explanation.run->report;
  std::string out = absl::StrCat(RunHeader(run, report, terminal), "\n");
  for (const std::string& note : report.notes) {
    if (SpoilsNumbers(note)) absl::StrAppend(&out, Wrap("WARNING: " + Clean(note), terminal.width), "\n");
  }
  absl::StrAppend(&out, TargetTable(explanation, 0, top, terminal), OtherScores(explanation, terminal));
  std::vector<std::string> notes = report.notes;
  notes.insert(notes.end(), explanation.notes.begin(), explanation.notes.end());
  for (const std::string& note : NotesBehindHeader(notes)) {
    // The headline, or what stands before it, says it already.
    if (KindOf(note) != NoteKind::kMuchLeftOver && !SpoilsNumbers(note))
      out += Wrap("Note: " + Clean(note), terminal.width, 2);
  }
  return out;
}

}  // namespace addend::cli
