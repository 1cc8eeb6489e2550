#include "core/document/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/error_testing.h"
#include "core/explain/target.h"

namespace addend {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A document with these numbers, from which the picture is drawn; parts are called "part 0" and so on.
class Document {
 public:
  explicit Document(std::vector<double> contributions, double reference = 0, double leftover = 0) {
    Contributions numbers;
    numbers.reference = reference;
    numbers.leftover = leftover;
    numbers.contributions = std::move(contributions);
    AddUp(numbers);
    Json components = Json::array();
    for (size_t i = 0; i < numbers.contributions.size(); ++i) {
      components.push_back({{"name", absl::StrCat("part ", i)}, {"value", nullptr}, {"baseline", nullptr}});
    }
    record = {{"format", "addend.explanation"},
              {"version", 1},
              {"kind", "list"},
              {"noun", "component"},
              {"at", nullptr},
              {"components", components},
              {"targets",
               {{{"name", "German"},
                 {"target", "1"},
                 {"index", {0, 1}},
                 {"subtract", nullptr},
                 {"value", numbers.recovery},
                 {"reference", reference},
                 {"leftover", leftover},
                 {"recovery", numbers.recovery},
                 {"tolerance", 1e-6 * numbers.mass},
                 {"conditioning", 1},
                 {"mass", numbers.mass},
                 {"contributions", numbers.contributions}}}},
              {"report", {{"notes", Json::array()}, {"warnings", Json::array()}}}};
  }
  Json& target() { return record["targets"][0]; }
  std::string Draw() const { return ExplanationSvg(ReadExplanation(Dump(record))); }

  Json record;
};

// A bar as a reader of the file finds it, without the code that drew it.
struct Bar {
  double x = 0;
  double width = 0;
  std::string fill;
};
std::vector<Bar> BarsOf(const std::string& svg) {
  static const std::regex bar("<rect x=\"([^\"]*)\" y=\"[^\"]*\" width=\"([^\"]*)\"[^>]* fill=\"([^\"]*)\"");
  std::vector<Bar> bars;
  for (std::sregex_iterator it(svg.begin(), svg.end(), bar), end; it != end; ++it) {
    bars.push_back({std::stod((*it)[1]), std::stod((*it)[2]), (*it)[3]});
  }
  return bars;
}
std::vector<double> DotsOf(const std::string& svg) {
  static const std::regex dot("<circle cx=\"([^\"]*)\"");
  std::vector<double> dots;
  for (std::sregex_iterator it(svg.begin(), svg.end(), dot), end; it != end; ++it) dots.push_back(std::stod((*it)[1]));
  return dots;
}
std::vector<std::string> TextsOf(const std::string& svg) {
  static const std::regex text("<text [^>]*>([^<]*)");
  std::vector<std::string> texts;
  for (std::sregex_iterator it(svg.begin(), svg.end(), text), end; it != end; ++it) texts.push_back((*it)[1]);
  return texts;
}
// Without the spaces, at which lines break.
std::string Dense(const std::string& text) { return absl::StrReplaceAll(text, {{" ", ""}}); }
std::string AllTextOf(const std::string& svg) {
  std::string all;
  for (const std::string& text : TextsOf(svg)) all += Dense(text);
  return all;
}

constexpr char kUp[] = "#d4660a";
constexpr char kDown[] = "#2b6cb0";
constexpr double kPixel = 0.011;  // coordinates have two decimals

// The bars lead from the first dot to the second, each as long as its number says. Moves are in the order of the bars.
void ExpectWay(const std::string& svg, const std::vector<double>& moves, double reference, double value) {
  const std::vector<Bar> bars = BarsOf(svg);
  const std::vector<double> dots = DotsOf(svg);
  ASSERT_EQ(bars.size(), moves.size());
  ASSERT_EQ(dots.size(), 2u);
  if (moves.empty()) {
    EXPECT_EQ(dots[0], dots[1]);
    return;
  }
  double largest = 0;
  size_t at = 0;
  for (size_t k = 0; k < moves.size(); ++k) {
    if (std::abs(moves[k]) > largest) largest = std::abs(moves[at = k]);
  }
  const double pixels = bars[at].width / largest;
  EXPECT_NEAR(dots[1] - dots[0], pixels * (value - reference), 2 * kPixel);
  double place = dots[0];
  for (size_t k = 0; k < moves.size(); ++k) {
    EXPECT_NEAR(bars[k].width, pixels * std::abs(moves[k]), 2 * kPixel) << k;
    EXPECT_NEAR(moves[k] < 0 ? bars[k].x + bars[k].width : bars[k].x, place, 3 * kPixel) << k;
    place += moves[k] < 0 ? -bars[k].width : bars[k].width;
    EXPECT_GE(bars[k].x, 316 - kPixel);
    EXPECT_LE(bars[k].x + bars[k].width, 604 + kPixel);
  }
}

TEST(ExplanationSvg, BarsAreAsLongAsNumbersAre) {
  const std::string svg = Document({0.5, -2, 3, 0.25}, 1).Draw();
  ExpectWay(svg, {3, -2, 0.5, 0.25}, 1, 2.75);
  const std::vector<Bar> bars = BarsOf(svg);
  EXPECT_EQ(bars[0].fill, kUp);
  EXPECT_EQ(bars[1].fill, kDown);
  EXPECT_THAT(
      TextsOf(svg),
      testing::ElementsAre("Score for \u201cGerman\u201d", "component", "contribution", "reference", "1.000", "part 2",
                           "+3.000", "part 1", "\u22122.000", "part 0", "+0.500", "part 3", "+0.250", "value", "2.750",
                           "0", "2.750 = 1.000 (reference) + 1.750 (4 components) + 0.000 (leftover)"));
}

TEST(ExplanationSvg, OthersShareABarOfTheirSum) {
  std::vector<double> contributions;
  for (int i = 0; i < 10000; ++i) contributions.push_back((i % 3 == 0 ? -1.0 : 1.0) / (1 + i));
  const std::string svg = Document(contributions, 3).Draw();
  std::vector<double> moves(contributions.begin(), contributions.begin() + 12);
  double rest = 0;
  for (size_t i = 12; i < contributions.size(); ++i) rest += contributions[i];
  moves.push_back(rest);
  double value = 3;
  for (const double x : moves) value += x;
  ExpectWay(svg, moves, 3, value);
  EXPECT_THAT(svg, HasSubstr(">9988 others together<"));
  EXPECT_LT(svg.size(), 10000u);
  // One other part has a bar of its own.
  contributions.resize(13);
  EXPECT_THAT(Document(contributions).Draw(), AllOf(HasSubstr(">part 12<"), Not(HasSubstr("others"))));
}

TEST(ExplanationSvg, LeftoverAndWhatIsMissingAreSteps) {
  EXPECT_THAT(Document({1, 2}, 0, 1e-9).Draw(), Not(HasSubstr(">leftover<")));
  const std::string left = Document({1, 2}, 0, -0.25).Draw();
  ExpectWay(left, {2, 1, -0.25}, 0, 2.75);
  EXPECT_THAT(left, AllOf(HasSubstr(">leftover<"), HasSubstr(">\u22120.250<"), Not(HasSubstr("Warning"))));
  // Much of it is told of, once.
  Document much({1, 2}, 0, 3);
  EXPECT_THAT(Dense(much.Draw()), HasSubstr(Dense("is 50 % of the difference between value and reference")));
  much.record["report"]["warnings"] = {"much is left over: 50 % of it"};
  EXPECT_THAT(Dense(much.Draw()), Not(HasSubstr(Dense("is 50 % of the difference between value and reference"))));

  Document off({1, 2});
  off.target()["value"] = 3.5;
  const std::string missing = off.Draw();
  ExpectWay(missing, {2, 1, 0.5}, 0, 3.5);
  EXPECT_THAT(missing, HasSubstr(">missing<"));
  EXPECT_THAT(AllTextOf(missing), HasSubstr(Dense("Warning: the parts do not add up to the value")));
}

TEST(ExplanationSvg, EveryNoteIsToldWhole) {
  Document document({1, -1, 1e-4});
  std::vector<std::string> notes = {"short", "a path that is no word: /" + std::string(3000, 'x'),
                                    "WIDE LETTERS " + std::string(400, 'W'), "the examples influence each other"};
  document.record["report"]["notes"] = notes;
  document.record["report"]["warnings"] = {notes[3]};
  const std::string svg = document.Draw();
  const std::string all = AllTextOf(svg);
  for (size_t k = 0; k < notes.size(); ++k) {
    EXPECT_THAT(all, HasSubstr(Dense((k == 3 ? "Warning: " : "Note: ") + notes[k])));
  }
  EXPECT_THAT(all, Not(HasSubstr(Dense("Note: " + notes[3]))));
  // Parts that cancel are told of where no note does so.
  EXPECT_THAT(all, HasSubstr(Dense("without their signs these parts come to 2e+04 times the difference")));
  document.record["report"]["warnings"] = {"ill-conditioned: the parts of output come to much"};
  EXPECT_THAT(AllTextOf(document.Draw()), Not(HasSubstr("withouttheirsigns")));
  // Older documents have no warnings.
  document.record["report"].erase("warnings");
  EXPECT_THAT(AllTextOf(document.Draw()), HasSubstr(Dense("Warning: " + notes[3])));
  // Lines stay on the paper, however wide their letters are.
  for (const std::string& text : TextsOf(svg)) {
    if (text.find("WWW") != std::string::npos) {
      EXPECT_LE(text.size(), 57u);  // 680 pixels by letters that are as wide as high, 12
    }
  }
  // The picture is as high as its text needs.
  std::smatch height;
  ASSERT_TRUE(std::regex_search(svg, height, std::regex("viewBox=\"0 0 720 ([0-9]+)\"")));
  double lowest = 0;
  const std::regex y(" y=\"([^\"]*)\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), y), end; it != end; ++it) {
    lowest = std::max(lowest, std::stod((*it)[1]));
  }
  EXPECT_GT(std::stod(height[1]), lowest);
  EXPECT_LT(std::stod(height[1]), lowest + 40);
}

TEST(ExplanationSvg, SaysWhatTheNumbersAreOf) {
  Document document({1, 2}, 0.5);
  EXPECT_THAT(document.Draw(), HasSubstr("<title>Score for \u201cGerman\u201d</title>"));
  document.target()["target"] = "log_probability:1";
  document.target()["name"] = "log-probability of 1 at position 3";
  document.record["at"] = "logits";
  document.record["report"]["reference_is_model_on_baseline"] = "no";
  document.record["report"]["reference_reason"] = "some conditions are others";
  document.target()["baselines"] = {{"count", 7},
                                    {"standard_errors", {0.1, 0.1}},
                                    {"same_sign", {1, 1}},
                                    {"reference_standard_error", 0.1},
                                    {"worst_leftover", 0}};
  const std::string svg = document.Draw();
  EXPECT_THAT(svg, HasSubstr(">Log-probability of 1 at position 3<"));
  const std::string all = AllTextOf(svg);
  for (const char* told : {"the inner result \u201clogits\u201d", "means over 7 baselines",
                           "the reference is not what the model gives on the baseline (some conditions are others)"}) {
    EXPECT_THAT(all, HasSubstr(Dense(told)));
  }
}

TEST(ExplanationSvg, NamesAreTextWhateverTheyHold) {
  Document document({8, 7, 6, 5, 4, 3, 2, 1});
  const std::vector<std::string> names = {"<b>&\"'",
                                          "a\x01\x1b[31m",
                                          "\u202eevil",
                                          "\u05e9\u05dc\u05d5\u05dd",
                                          absl::StrReplaceAll(std::string(500, 'x'), {{"x", "\u6f22"}}),
                                          " ",
                                          "",
                                          "\uffff"};
  for (size_t i = 0; i < names.size(); ++i) document.record["components"][i]["name"] = names[i];
  const std::string svg = document.Draw();
  const std::vector<std::string> texts = TextsOf(svg);
  for (const char* shown : {"&lt;b&gt;&amp;&quot;&#39;", "a\\x01\\x1b[31m", "\\u202eevil", "\u05e9\u05dc\u05d5\u05dd",
                            "(space)", "(no name)", "\ufffd"}) {
    EXPECT_THAT(texts, testing::Contains(shown));
  }
  // Cut between characters, never inside of one.
  bool cut = false;
  for (std::string text : texts) {
    if (!absl::EndsWith(text, "\u2026")) continue;
    cut = true;
    text.resize(text.size() - 3);
    EXPECT_EQ(text, absl::StrReplaceAll(std::string(text.size() / 3, 'x'), {{"x", "\u6f22"}}));
    EXPECT_GT(text.size(), 30u);
  }
  EXPECT_TRUE(cut);
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("<b>")), Not(HasSubstr("\x1b")), Not(HasSubstr("\u202e"))));
  // Pictures fetch nothing and run nothing.
  EXPECT_THAT(absl::StrReplaceAll(svg, {{"http://www.w3.org/2000/svg", ""}}),
              AllOf(Not(HasSubstr("http")), Not(HasSubstr("href")), Not(HasSubstr("<script")), Not(HasSubstr("url("))));
}

TEST(ExplanationSvg, WordsHaveTheirPlacesAndColumnsTheirNumbers) {
  Document document({2, 1});
  for (Json& component : document.record["components"]) component["name"] = "the";
  document.record["kind"] = "text";
  document.record["noun"] = "word";
  EXPECT_THAT(document.Draw(), AllOf(HasSubstr("> word 1</tspan>"), HasSubstr("> word 2</tspan>")));
  document.record["kind"] = "table";
  document.record["noun"] = "feature";
  document.record["components"][1]["value"] = -711.25;
  const std::string svg = document.Draw();
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("tspan")), HasSubstr(">feature<"), HasSubstr(">input<")));
  EXPECT_THAT(TextsOf(svg), testing::Contains("\u2212711.2"));
}

TEST(ExplanationSvg, AnyFiniteNumbersCanBeDrawn) {
  ExpectWay(Document({}, 1.5).Draw(), {}, 1.5, 1.5);
  ExpectWay(Document({2}).Draw(), {2}, 0, 2);
  const std::vector<Bar> none = BarsOf(Document({0, 0}).Draw());
  ASSERT_EQ(none.size(), 2u);
  EXPECT_EQ(none[0].width, 0);
  const double huge = std::numeric_limits<double>::max();
  const double tiny = std::numeric_limits<double>::denorm_min();
  for (const double unit : {huge / 2, tiny}) {
    SCOPED_TRACE(unit);
    Document document({unit, -unit, unit});
    document.target()["tolerance"] = unit;
    const std::string svg = document.Draw();
    const std::vector<Bar> bars = BarsOf(svg);
    ASSERT_EQ(bars.size(), 3u);
    for (const Bar& bar : bars) EXPECT_NEAR(bar.width, 604 - 316, kPixel);
  }
  // Steps that are far smaller than the reference keep their lengths.
  const std::vector<Bar> far = BarsOf(Document({1, -3}, 1e12).Draw());
  EXPECT_NEAR(far[0].width, 3 * far[1].width, 4 * kPixel);
}

TEST(ExplanationSvg, RefusesNumbersThatAreNotFinite) {
  for (const char* key : {"value", "reference", "leftover", "recovery"}) {
    Document document({1, 2});
    document.target()[key] = nullptr;
    EXPECT_THAT(MessageOf([&] { document.Draw(); }), HasSubstr("not finite")) << key;
  }
  Document document({1, 2});
  document.target()["contributions"][1] = nullptr;
  EXPECT_THAT(MessageOf([&] { document.Draw(); }), HasSubstr("not finite"));
}

TEST(ExplanationSvg, DocumentsOfOthersNeedNoReport) {
  Document document({1, 2});
  document.record["noun"] = 7;
  document.record["report"] = {{"notes", {1, nullptr, "kept"}}, {"warnings", "none"}, {"reference_reason", 3}};
  EXPECT_THAT(document.Draw(), HasSubstr("Note: kept"));
  for (const char* key : {"noun", "kind", "report"}) document.record.erase(key);
  EXPECT_THAT(document.Draw(), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace addend
