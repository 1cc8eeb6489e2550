#include "core/document/svg.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/error.h"
#include "core/base/readable.h"
#include "core/base/text.h"
#include "core/document/shown_at_first.h"
#include "core/explain/notes.h"

namespace addend {
namespace {

// Places from the left, and sizes, in pixels.
constexpr double kWidth = 720;
constexpr double kMargin = 20;
constexpr double kLabelEnd = 296;  // of names, and of the input's numbers where there are some
constexpr double kNumberRoom = 78;
constexpr double kTrackBegin = 316;
constexpr double kTrackEnd = 604;
constexpr double kRow = 26;
constexpr double kBar = 14;
constexpr double kTitle = 17;  // sizes of letters
constexpr double kText = 13;
constexpr double kSmall = 12;
constexpr double kTiny = 11;

// Colours are those of the pages: orange raises, blue lowers, and a sign always says the same. A picture in an e-mail
// cannot know whether it is shown in the dark, and has its own white paper.
constexpr char kInk[] = "#1d2026";
constexpr char kSoft[] = "#5a616c";
constexpr char kLine[] = "#e3e1dc";
constexpr char kUp[] = "#d4660a";
constexpr char kDown[] = "#2b6cb0";
constexpr char kBad[] = "#a3195b";

// The width of a character in the size of its letters, rather too much than too little: nobody knows the font.
double InEms(uint32_t code) {
  const double columns = InColumns(code);
  if (columns != 1) return 0.55 * columns;
  if (code >= 0x80) return 0.8;
  const char c = static_cast<char>(code);
  if (std::strchr("MWmw@%", c) != nullptr) return 1;
  if (absl::ascii_isupper(c) || std::strchr("+<=>#~", c) != nullptr) return 0.8;
  return std::strchr(" iljtfr.,:;'|!()[]-/", c) != nullptr ? 0.42 : 0.63;
}

// Text as XML holds it. Control characters and marks of direction show as "\x1b"; what XML cannot hold is replaced.
std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(OneLine(text), {{"&", "&amp;"},
                                             {"<", "&lt;"},
                                             {">", "&gt;"},
                                             {"\"", "&quot;"},
                                             {"'", "&#39;"},
                                             {"\uFFFE", "\uFFFD"},
                                             {"\uFFFF", "\uFFFD"}});
}

std::string Pixels(double x) { return absl::StrFormat("%.2f", x); }

// Lines of a paragraph that all fit: words that are wider than a line, such as paths, are broken too.
std::vector<std::string> Broken(const std::string& text, double size) {
  const double room = (kWidth - 2 * kMargin) / size;
  std::vector<std::string> lines;
  for (std::string line : Lines(OneLine(text), room, 0, InEms)) {
    while (WidthOf(line, InEms) > room) {
      const size_t fits = Fitting(line, room, InEms);
      lines.push_back(line.substr(0, fits));
      line.erase(0, fits);
    }
    lines.push_back(line);
  }
  return lines;
}

// A name on one line, no wider than its room.
std::string Shown(const std::string& name, double room) {
  const std::string line = OneLine(name);
  const auto inner = absl::StripAsciiWhitespace(line);
  if (inner.empty()) return name.empty() ? "(no name)" : "(space)";
  return CutEnd({inner.data(), inner.size()}, room / kText, "\u2026", InEms);
}

std::string WithMinus(const std::string& number) { return absl::StrReplaceAll(number, {{"-", "\u2212"}}); }

// A step on the way from the reference to the value.
struct Step {
  std::string label;
  std::string place;  // "word 3", small behind the label
  std::string given;  // the input's own number
  std::string number;
  double move = 0;  // over the largest of all
  const char* colour = kSoft;
  bool pale = false;  // no single part
};

// Paragraph under the bars.
struct Paragraph {
  std::string text;
  const char* colour = kSoft;
};

// The parts of what is drawn, in sums that no large number overflows: all is over the largest of the moves.
class Figure {
 public:
  explicit Figure(const Explanation& explanation)
      : explanation_(explanation),
        record_(ExplanationJson(explanation, Writer())),  // the picture tells nothing of the writer
        target_(explanation.targets.at(0)),
        numbers_(target_.numbers),
        noun_(CutEnd(TextOf("noun", "component"), 30, "\u2026")),
        adds_(std::abs(target_.recovery_error()) <= numbers_.tolerance || target_.recovery_error() == 0) {
    CheckFinite();
    for (const double x : numbers_.contributions) largest_ = std::max(largest_, std::abs(x));
    unit_ = std::max({largest_, std::abs(numbers_.leftover), std::abs(missing())});
    if (unit_ == 0) unit_ = 1;
    ReadNotes();
    MakeSteps();
  }

  std::string Draw() const;

 private:
  double missing() const { return adds_ ? 0 : numbers_.value - numbers_.recovery; }
  double contributed() const {
    return std::accumulate(numbers_.contributions.begin(), numbers_.contributions.end(), 0.0);
  }

  void CheckFinite() const {
    std::vector<double> all = numbers_.contributions;
    all.insert(all.end(), {numbers_.value, numbers_.reference, numbers_.leftover, numbers_.recovery});
    if (std::all_of(all.begin(), all.end(), [](double x) { return std::isfinite(x); })) return;
    throw FailedPrecondition(
        "numbers of this explanation are missing or not finite, and no bar can be drawn for them; its page in HTML and "
        "its JSON show which");
  }

  // A text of the document, which may be an old one, or one that somebody wrote.
  std::string TextOf(const char* key, const std::string& otherwise) const {
    const auto found = record_.find(key);
    return found != record_.end() && found->is_string() ? found->get<std::string>() : otherwise;
  }

  void ReadNotes() {
    const auto report = record_.find("report");
    if (report == record_.end() || !report->is_object()) return;
    const auto texts = [&](const char* key) {
      std::vector<std::string> list;
      const auto found = report->find(key);
      if (found == report->end() || !found->is_array()) return list;
      for (const Json& one : *found) {
        if (one.is_string()) list.push_back(one.get<std::string>());
      }
      return list;
    };
    told_ = texts("notes");
    // Documents had no warnings at first.
    warnings_ = report->contains("warnings") ? texts("warnings") : WarningsAmong(told_);
    const auto text = [&](const char* key) {
      const auto found = report->find(key);
      return found != report->end() && found->is_string() ? found->get<std::string>() : "";
    };
    of_reference_ = text("reference_is_model_on_baseline");
    reference_reason_ = text("reference_reason");
  }

  bool Warns(NoteKind kind) const {
    return std::any_of(warnings_.begin(), warnings_.end(),
                       [&](const std::string& warning) { return KindOf(warning) == kind; });
  }

  // The format of the sum: four digits of the largest number in it, and as far as two more help, so many that the sum
  // is true as it is written.
  NumberFormat EndsFormat() const {
    const std::vector<double> terms = {numbers_.reference, contributed(), numbers_.leftover, missing()};
    std::vector<double> all = terms;
    all.insert(all.end(), {numbers_.value, largest_});
    for (int digits = 4; digits <= 6; ++digits) {
      const NumberFormat format(all, digits);
      const auto written = [&](double x) {
        double shown = 0;
        return absl::SimpleAtod(format(x), &shown) ? shown : 0;
      };
      double sum = 0;
      for (const double term : terms) sum += written(term);
      if (written(sum) == written(numbers_.value)) return format;
    }
    return {all, 4};
  }

  void MakeSteps();
  std::string Headline() const;
  std::string Sum() const;
  std::vector<Paragraph> Paragraphs() const;

  const Explanation& explanation_;
  const Json record_;
  const ExplainedTarget& target_;
  const Contributions& numbers_;
  const std::string noun_;
  const bool adds_;
  double largest_ = 0;
  double unit_ = 0;
  std::vector<std::string> told_;
  std::vector<std::string> warnings_;
  std::string of_reference_;
  std::string reference_reason_;
  NumberFormat ends_ = {{}, 4};
  std::vector<Step> steps_;
  bool given_ = false;  // some step has the number of the input
};

void Figure::MakeSteps() {
  const std::vector<double>& contributions = numbers_.contributions;
  ends_ = EndsFormat();
  const NumberFormat fine({largest_}, 4);
  std::vector<size_t> order(contributions.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::abs(contributions[a]) > std::abs(contributions[b]); });
  // A bar for one other part would take as much room as the part's own.
  constexpr size_t kOwn = kShownAtFirst;
  const size_t own = order.size() > kOwn + 1 ? kOwn : order.size();

  const std::vector<Component>* known = explanation_.run == nullptr ? nullptr : &explanation_.run->components.list;
  if (known != nullptr && known->size() != contributions.size()) known = nullptr;
  const auto value = [&](size_t i) { return known == nullptr ? std::nullopt : (*known)[i].value; };
  given_ = std::any_of(order.begin(), order.begin() + static_cast<int64_t>(own), [&](size_t i) { return value(i); });
  const bool text = TextOf("kind", "") == "text";
  const auto add = [&](double x, double move, const std::string& number) -> Step& {
    Step step;
    step.number = WithMinus(number);
    step.move = move;
    step.colour = x < 0 ? kDown : kUp;
    steps_.push_back(step);
    return steps_.back();
  };
  for (size_t k = 0; k < own; ++k) {
    const double x = contributions[order[k]];
    Step& step = add(x, x / unit_, fine.Signed(x));
    // A word may stand at several places.
    if (text) step.place = absl::StrCat(noun_, " ", order[k] + 1);
    if (const auto number = value(order[k])) step.given = WithMinus(Number(*number, 4));
    const double room = kLabelEnd - kMargin - (given_ ? kNumberRoom : 0);
    step.label = Shown(NameOf(explanation_, static_cast<int64_t>(order[k])),
                       room - (text ? kTiny * WidthOf(" " + OneLine(step.place), InEms) : 0));
  }
  if (own < order.size()) {
    double rest = 0;
    for (size_t k = own; k < order.size(); ++k) rest += contributions[order[k]] / unit_;
    Step& step = add(rest, rest, fine.Signed(rest * unit_));
    step.label = absl::StrCat(order.size() - own, " others together");
    step.pale = true;
  }
  const double leftover = numbers_.leftover;
  // A leftover that is rounding, and is written as zero, is no step.
  if (std::abs(leftover) > numbers_.tolerance || ends_(leftover) != ends_(0)) {
    Step& step = add(leftover, leftover / unit_, ends_.Signed(leftover));
    step.label = "leftover";
    step.colour = kSoft;
  }
  if (!adds_) {
    Step& step = add(missing(), missing() / unit_, ends_.Signed(missing()));
    step.label = "missing";
    step.colour = kBad;
    step.pale = true;
  }
}

std::string Figure::Headline() const {
  std::string name = target_.name;
  const bool score = numbers_.target.quantity == Target::Quantity::kElement;
  if (!score && !name.empty()) name[0] = absl::ascii_toupper(name[0]);
  const double room = 2.6 * (kWidth - 2 * kMargin) / kTitle;
  name = CutEnd(OneLine(name), room, "\u2026", InEms);
  return score ? absl::StrCat("Score for \u201c", name, "\u201d") : name;
}

std::string Figure::Sum() const {
  std::string sum =
      absl::StrCat(WithMinus(ends_(numbers_.value)), " = ", WithMinus(ends_(numbers_.reference)), " (reference)");
  const auto add = [&](double x, const std::string& what) {
    const std::string text = ends_(x);
    const bool negative = text[0] == '-';
    absl::StrAppend(&sum, negative ? " \u2212 " : " + ", WithMinus(text.substr(negative ? 1 : 0)), " (", what, ")");
  };
  add(contributed(), Plural(numbers_.contributions.size(), noun_));
  add(numbers_.leftover, "leftover");
  if (!adds_) add(missing(), "missing");
  return sum;
}

std::vector<Paragraph> Figure::Paragraphs() const {
  std::vector<Paragraph> all = {{Sum(), kInk}};
  const auto fault = [&](const std::string& text) { all.push_back({"Warning: " + text, kBad}); };
  if (!adds_) {
    fault(absl::StrCat("the parts do not add up to the value: they miss it by ", Number(std::abs(missing()), 2),
                       std::isfinite(numbers_.tolerance)
                           ? absl::StrCat(", and at most ", Number(numbers_.tolerance, 2), " is accepted")
                           : "",
                       ". Do not rely on them."));
  }
  const std::string cancelling = DescribeCancelling(numbers_);
  if (!cancelling.empty() && !Warns(NoteKind::kIllConditioned)) fault(cancelling);
  const double gap = std::abs(numbers_.value - numbers_.reference);
  const double leftover = std::abs(numbers_.leftover);
  if (leftover > kMuchLeftover * gap && leftover > numbers_.tolerance && !Warns(NoteKind::kMuchLeftOver)) {
    fault(absl::StrCat("the leftover, which belongs to no ", noun_, ", is ",
                       gap > 0 ? Number(100 * (leftover / gap), 2) + " %" : "more than all",
                       " of the difference between value and reference."));
  }
  for (const std::string& note : warnings_) fault(note);
  const auto remark = [&](const std::string& text) { all.push_back({"Note: " + text, kSoft}); };
  if (!explanation_.at.empty()) {
    remark(absl::StrCat("this explains the inner result \u201c", explanation_.at, "\u201d, not the model's output."));
  }
  if (of_reference_ == "no" || of_reference_ == "unknown") {
    remark(absl::StrCat("the reference ", of_reference_ == "no" ? "is not" : "may not be",
                        " what the model gives on the baseline",
                        reference_reason_.empty() ? "" : absl::StrCat(" (", reference_reason_, ")"), "."));
  }
  if (target_.spread) remark(absl::StrCat("the numbers are means over ", target_.spread->count, " baselines."));
  for (const std::string& note : told_) {
    if (std::find(warnings_.begin(), warnings_.end(), note) == warnings_.end()) remark(note);
  }
  return all;
}

// Writes the elements of a picture from above, and knows how high it has become.
class Paper {
 public:
  void Add(const std::string& element) { absl::StrAppend(&body_, element, "\n"); }
  // `more`: attributes.
  void Text(double x, double size, const char* colour, const std::string& text, const std::string& more = "",
            const std::string& behind = "") {
    Add(absl::StrCat("<text x=\"", Pixels(x), "\" y=\"", Pixels(y), "\" font-size=\"", size, "\" fill=\"", colour, "\"",
                     more, ">", Escaped(text), behind, "</text>"));
  }
  void Text(const std::vector<std::string>& lines, double size, const char* colour, const std::string& more = "") {
    for (const std::string& line : lines) {
      Text(kMargin, size, colour, line, more);
      y += std::round(1.4 * size);
    }
  }
  const std::string& body() const { return body_; }

  double y = kMargin;

 private:
  std::string body_;
};

constexpr char kAtEnd[] = " text-anchor=\"end\"";

std::string Figure::Draw() const {
  const std::vector<Paragraph> paragraphs = Paragraphs();
  // The way, from the reference at 0.
  std::vector<double> marks = {0};
  for (const Step& step : steps_) marks.push_back(marks.back() + step.move);
  double low = *std::min_element(marks.begin(), marks.end());
  double high = *std::max_element(marks.begin(), marks.end());
  // Dots stand for reference and value, so that the axis need not begin at zero; it does where zero is near.
  const double zero = -numbers_.reference / unit_;
  const bool has_zero = std::max({low - zero, zero - high, 0.0}) <= 1.5 * (high - low);
  if (has_zero) {
    low = std::min(low, zero);
    high = std::max(high, zero);
  }
  if (!(high > low)) {
    low -= 0.5;
    high += 0.5;
  }
  const auto place = [&](double x) { return kTrackBegin + (kTrackEnd - kTrackBegin) * ((x - low) / (high - low)); };

  Paper paper;
  paper.y += kTitle;
  paper.Text(Broken(Headline(), 1.12 * kTitle), kTitle, kInk, " font-weight=\"600\"");
  paper.y += 8;
  paper.Text(kMargin, kTiny, kSoft, noun_);
  if (given_) paper.Text(kLabelEnd, kTiny, kSoft, "input", kAtEnd);
  paper.Text(kWidth - kMargin, kTiny, kSoft, "contribution", kAtEnd);
  paper.y += 8;

  const double top = paper.y;
  const double bottom = top + kRow * (static_cast<double>(steps_.size()) + 2);
  const auto middle = [&](size_t row) { return top + kRow * (static_cast<double>(row) + 0.5); };
  if (has_zero) {
    paper.Add(absl::StrCat("<path d=\"M", Pixels(place(zero)), " ", Pixels(top), "V", Pixels(bottom), "\" stroke=\"",
                           kLine, "\"/>"));
  }
  std::string way;
  for (size_t k = 0; k < marks.size(); ++k) {
    absl::StrAppend(&way, "M", Pixels(place(marks[k])), " ", Pixels(middle(k)), "V", Pixels(middle(k + 1)));
  }
  paper.Add(absl::StrCat("<path d=\"", way, "\" stroke=\"", kSoft, "\" stroke-dasharray=\"1 3\"/>"));
  const auto row = [&](size_t k, const Step& step) {
    paper.y = middle(k) + 0.35 * kText;
    paper.Text(kMargin, kText, kInk, step.label, "",
               step.place.empty() ? ""
                                  : absl::StrCat("<tspan font-size=\"", kTiny, "\" fill=\"", kSoft, "\"> ",
                                                 Escaped(step.place), "</tspan>"));
    if (!step.given.empty()) paper.Text(kLabelEnd, kSmall, kSoft, step.given, kAtEnd);
    paper.Text(kWidth - kMargin, kText, kInk, step.number, kAtEnd);
  };
  const auto end = [&](size_t k, const char* label, double x) {
    Step step;
    step.label = label;
    step.number = WithMinus(ends_(x));
    row(k, step);
    paper.Add(absl::StrCat("<circle cx=\"", Pixels(place(k == 0 ? 0 : marks.back())), "\" cy=\"", Pixels(middle(k)),
                           "\" r=\"5\" fill=\"", kInk, "\"/>"));
  };
  end(0, "reference", numbers_.reference);
  for (size_t k = 0; k < steps_.size(); ++k) {
    const Step& step = steps_[k];
    const double from = place(marks[k]);
    const double to = place(marks[k + 1]);
    row(k + 1, step);
    paper.Add(absl::StrCat(
        "<rect x=\"", Pixels(std::min(from, to)), "\" y=\"", Pixels(middle(k + 1) - kBar / 2), "\" width=\"",
        Pixels(std::abs(to - from)), "\" height=\"", kBar, "\" fill=\"", step.colour, "\"",
        step.pale ? absl::StrCat(" fill-opacity=\"0.3\" stroke=\"", step.colour, "\" stroke-dasharray=\"3 2\"") : "",
        "/>"));
  }
  end(steps_.size() + 1, "value", numbers_.value);
  paper.y = bottom + kTiny;
  if (has_zero) paper.Text(place(zero), kTiny, kSoft, "0", " text-anchor=\"middle\"");
  paper.y += 2 * kTiny;
  for (const Paragraph& paragraph : paragraphs) {
    paper.Text(Broken(paragraph.text, kSmall), kSmall, paragraph.colour);
    paper.y += 4;
  }

  std::string told = absl::StrCat("A bar for each step from the reference to the value. ", Sum(), ". ");
  for (const Step& step : steps_) absl::StrAppend(&told, step.label, " ", step.number, "; ");
  absl::StrAppend(&told, "value ", WithMinus(ends_(numbers_.value)), ".");
  for (const Paragraph& paragraph : paragraphs) {
    if (paragraph.colour == kBad) absl::StrAppend(&told, " ", paragraph.text);
  }
  const std::string height = absl::StrCat(std::ceil(paper.y));
  return absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth, "\" height=\"", height,
                      "\" viewBox=\"0 0 ", kWidth, " ", height,
                      "\" font-family=\"system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif\">\n<title>",
                      Escaped(Headline()), "</title>\n<desc>", Escaped(told), "</desc>\n<path d=\"M0 0H", kWidth, "V",
                      height, "H0Z\" fill=\"#ffffff\"/>\n", paper.body(), "</svg>\n");
}

}  // namespace

std::string ExplanationSvg(const Explanation& explanation) { return Figure(explanation).Draw(); }

}  // namespace addend
