// Every door of the C++ face with every construct of tests/doors: numbers are right, or the door says that they are
// not. A door is a way to ask what the columns of rows give to one number of each row; tests/doors/cells.py names them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "c_api/testing.h"

namespace addend::api {
namespace {

using nlohmann::json;

const std::string kFolder = "tests/doors/cases/";
const std::vector<std::pair<std::string, int>> kSides = {{"adverse", -1}, {"favourable", 1}};

// Its keys are those of Construct.record in tests/doors/constructs.py.
const json& Cases() {
  static const json cases = [] {
    std::ifstream file(kFolder + "cases.json");
    return json::parse(file).at("cases");
  }();
  return cases;
}

// NaN for null, which is what JSON has for it.
std::vector<double> Doubles(const json& list) {
  std::vector<double> numbers;
  for (const json& one : list) {
    numbers.push_back(one.is_null() ? std::numeric_limits<double>::quiet_NaN() : one.get<double>());
  }
  return numbers;
}

bool Holds(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

// Findings of a door.
struct Answer {
  explicit Answer(size_t rows) : contributions(rows) {}

  std::vector<std::vector<double>> contributions;  // by row and column
  std::vector<std::string> said;                   // what a reader has to know before any number is read
  std::map<size_t, double> claimed;                // by row the reference that is said to be the model on the baseline
  bool several = false;                            // whether these are means over all baselines
  bool of_batch = false;                           // whether a contribution is that of a column of all rows
  std::string wrong;                               // what else is wrong
};

// A model with rows and a baseline, and what PyTorch says of the answer.
class Construct {
 public:
  explicit Construct(const json& record) : record_(record) {}

  std::string file() const { return kFolder + Text("file"); }
  const json& rows() const { return record_.at("rows"); }
  size_t num_rows() const { return rows().size(); }
  size_t columns() const { return rows().at(0).size(); }
  std::string at() const { return Text("at"); }
  // Name of the explained tensor; "" for the first output.
  std::string explained() const { return at().empty() ? Text("output") : at(); }
  bool stops() const { return !record_.at("refused").empty(); }
  std::string target() const { return std::to_string(record_.at("target").get<int64_t>()); }
  std::string target_of_row(size_t row) const { return std::to_string(together() ? row : 0) + "," + target(); }
  std::string part(size_t column) const { return "part " + std::to_string(column); }

  // A regular expression of the error with which a door may stop; empty if it may not.
  std::string MayStop(const std::string& door) const {
    std::string words;
    for (const json& word : record_.at("refused")) words += (words.empty() ? "" : "|") + word.get<std::string>();
    return record_.at("may_stop").value(door, words);
  }
  // Why a door is not right yet; empty if it is.
  std::string Known(const std::string& door) const { return record_.at("known").value(door, std::string()); }

  Tensor TensorOf(const json& rows) const {
    std::vector<double> numbers;
    for (const json& row : rows) {
      for (const double number : Doubles(row)) numbers.push_back(number);
    }
    const std::vector<int64_t> dims = {static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns())};
    if (Text("dtype") == "int64") return Tensor::Copy(std::vector<int64_t>(numbers.begin(), numbers.end()), dims);
    return Tensor::Copy(std::vector<float>(numbers.begin(), numbers.end()), dims);
  }

  Request Where(const json& rows) const {
    Request request;
    request.Input(TensorOf(rows)).SplitAlong({1}).Baseline(TensorOf(record_.at("baseline")));
    for (size_t column = 0; column < columns(); ++column) request.Name(part(column));
    if (!Text("output").empty()) request.Output(Text("output"));
    return request;
  }
  // The number of each row.
  Request OfEachRow(const json& rows) const {
    Request request = Where(rows);
    request.Explained(at()).Target(target()).EachExample();
    return request;
  }
  Request WithSeveralBaselines() const {
    Request request = OfEachRow(rows());
    request.Baselines(TensorOf(record_.at("baselines")));
    return request;
  }
  // The number of one row, alone or among all where it has another number among others.
  Request OfRow(size_t row) const {
    Request request = Where(Asked(row));
    request.Explained(at()).Target(target_of_row(row));
    return request;
  }
  // A request of a decomposition, which gives tensors inside the model as probes.
  Request Decomposed(size_t row) const {
    Request request = Where(Asked(row));
    if (!at().empty()) request.Probe(at());
    return request;
  }

  Answer ForEachRow() const { return Answer(num_rows()); }
  Answer RowByRow() const {
    Answer answer(num_rows());
    answer.of_batch = together();
    return answer;
  }

  // Fault of an answer that the answer does not tell; empty if there is none.
  std::string Fault(const Answer& answer) const {
    if (!answer.wrong.empty()) return answer.wrong;
    const std::vector<double> on_baseline = Doubles(record_.at("on_baseline"));
    for (const auto& [row, reference] : answer.claimed) {
      if (!Near(reference, on_baseline[row])) return "the reference is said to be the model on the baseline";
    }
    std::string said;
    for (const std::string& line : answer.said) said += "\n" + line;
    const std::string wrong = Wrong(answer);
    const json& says = record_.at("says");
    if (says.empty()) {
      return wrong.empty() && !said.empty() ? "numbers are right, and the door says otherwise:" + said : wrong;
    }
    const bool told =
        std::any_of(says.begin(), says.end(), [&](const json& word) { return Holds(said, word.get<std::string>()); });
    return wrong.empty() || told ? "" : wrong + ", and nothing says it:" + said;
  }

 private:
  std::string Text(const std::string& key) const { return record_.at(key).get<std::string>(); }
  bool together() const { return record_.at("together").get<bool>(); }
  json Asked(size_t row) const {
    if (together()) return rows();
    return json::array({rows().at(row)});
  }
  bool Near(double found, double wanted) const {
    return std::abs(found - wanted) <= record_.at("tolerance").get<double>();
  }

  // Fault of numbers; empty if there is none.
  std::string Wrong(const Answer& answer) const {
    const std::string of = answer.several ? "_of_several" : "";
    const json& contributions = record_.at("contributions" + of);
    // All rows together have no other rows beside them.
    const bool whole = together() && answer.of_batch;
    if (contributions.is_null() && !whole && !record_.at("complete").get<bool>()) return "these numbers need a word";
    const bool sums = contributions.is_null() || whole;
    const std::vector<double> moves = Doubles(record_.at("move" + of));
    for (size_t row = 0; row < num_rows(); ++row) {
      std::vector<double> given = answer.contributions[row];
      if (sums) given = {std::accumulate(given.begin(), given.end(), 0.0)};
      const std::vector<double> wanted = sums ? std::vector<double>{moves[row]} : Doubles(contributions.at(row));
      for (size_t k = 0; k < wanted.size(); ++k) {
        if (k < given.size() && Near(given[k], wanted[k])) continue;
        return std::string(sums ? "the sum is " : "contributions are ") + json(given).dump() + " for " +
               json(wanted).dump();
      }
    }
    return "";
  }

  const json record_;
};

void Add(const Explanation& found, const Results& results, size_t row, Answer* answer) {
  answer->contributions[row] = Parts(found);
  for (const std::string& warning : results.warnings()) answer->said.push_back(warning);
  if (results.report_text("reference_is_model_on_baseline") == "yes") answer->claimed[row] = found.reference();
}

Answer OfAttribution(const Attribution& found, const Construct& own) {
  Answer answer = own.ForEachRow();
  const Results results = found.results();
  for (size_t row = 0; row < found.num_targets(); ++row) Add(found.Explain(row), results, row, &answer);
  const std::vector<std::string> notes = results.notes();
  for (const std::string& warning : results.warnings()) {
    if (std::find(notes.begin(), notes.end(), warning) == notes.end()) answer.wrong = "no note: " + warning;
  }
  return answer;
}

void AddWarnings(const json& document, Answer* answer) {
  for (const json& warning : document.at("warnings")) answer->said.push_back(warning.get<std::string>());
}

// The warnings among the notes of a job.
void AddWarningsOfJob(const json& document, Answer* answer) {
  for (const json& note : document.at("notes")) {
    if (note.at("warning").get<bool>()) answer->said.push_back(note.at("note").get<std::string>());
  }
}

// One concept for each column.
json ConceptsOf(const Construct& own, const std::string& side) {
  json concepts = json::array();
  for (size_t column = 0; column < own.columns(); ++column) {
    concepts.push_back({{"name", own.part(column)}, {"components", json::array({own.part(column)})}});
  }
  return {{"format", "addend.concepts"},
          {"version", 1},
          {"side", side},
          {"at_most", own.columns()},
          {"concepts", std::move(concepts)}};
}

std::vector<Answer> Explain(const Construct& own) {
  const Model model = Model::Load(own.file());
  const Attribution found = model.Attribute(own.OfEachRow(own.rows()));
  Answer each = OfAttribution(found, own);
  const std::vector<double> elements = Numbers(found.input());
  if (elements.size() != own.num_rows() * own.columns()) each.wrong = "elements are too few or too many";
  for (size_t k = 0; k < elements.size() && each.wrong.empty(); ++k) {
    const double component = each.contributions[k / own.columns()][k % own.columns()];
    if (static_cast<float>(component) != static_cast<float>(elements[k])) each.wrong = "elements are no components";
  }
  Answer alone = own.RowByRow();
  for (size_t row = 0; row < own.num_rows(); ++row) {
    const Attribution one = model.Attribute(own.OfRow(row));
    Add(one.Explain(), one.results(), row, &alone);
  }
  return {each, alone};
}

std::vector<Answer> Decompose(const Construct& own) {
  const Model model = Model::Load(own.file());
  Answer answer = own.RowByRow();
  for (size_t row = 0; row < own.num_rows(); ++row) {
    const Results results = model.Decompose(own.Decomposed(row));
    Add(results.Explain(own.target_of_row(row), own.explained()), results, row, &answer);
  }
  return {answer};
}

std::vector<Answer> Planned(const Construct& own) {
  json turned = own.rows();
  std::reverse(turned.begin(), turned.end());
  const Plan plan = Model::Load(own.file()).MakePlan(own.OfEachRow(turned));
  return {OfAttribution(plan.Attribute(own.OfEachRow(own.rows())), own)};
}

// Columns that moved a number to a side, the largest first; the rest is -1.
std::vector<int64_t> Ranked(const std::vector<double>& contributions, int sign) {
  std::vector<int64_t> ranked;
  for (size_t k = 0; k < contributions.size(); ++k) {
    if (sign * contributions[k] > 0) ranked.push_back(static_cast<int64_t>(k));
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](int64_t a, int64_t b) { return sign * contributions[a] > sign * contributions[b]; });
  ranked.resize(contributions.size(), -1);
  return ranked;
}

std::vector<Answer> OfJob(const Construct& own) {
  const std::string rows = testing::TempDir() + "/doors_rows.safetensors";
  TensorFile::Create().Add("rows", own.TensorOf(own.rows())).Write(rows);
  Request request = own.OfEachRow(json::array({own.rows().at(0)}));
  request.EachExample(false);
  std::vector<Answer> answers;
  for (const auto& [side, sign] : kSides) {
    const std::string plan = testing::TempDir() + "/doors_" + side + ".json";
    std::filesystem::remove_all(testing::TempDir() + "/doors_" + side + ".out");  // of the construct before
    const json options = {{"inputs", json::array({rows})}, {"concepts", ConceptsOf(own, side)}};
    Job::Plan(plan, own.file(), request, options.dump());
    {
      const Job job(plan);
      for (size_t shard = 0; shard < job.NumShards(); ++shard) job.Run(static_cast<int64_t>(shard));
    }
    Answer answer = own.ForEachRow();
    const json merged = json::parse(Job::Merge(plan));
    AddWarningsOfJob(json::parse(Job::Status(plan)), &answer);
    AddWarningsOfJob(merged, &answer);
    for (const json& refused : merged.at("refused")) answer.said.push_back(refused.at("reason").get<std::string>());
    const TensorFile results = TensorFile::Read(merged.at("path").get<std::string>());
    const std::vector<double> numbers = results.tensor("contributions").To<double>();
    const std::vector<int64_t> reasons = results.tensor("reasons").To<int64_t>();
    for (size_t row = 0; row < own.num_rows(); ++row) {
      const auto begin = static_cast<int64_t>(row * own.columns());
      const auto end = static_cast<int64_t>((row + 1) * own.columns());
      answer.contributions[row].assign(numbers.begin() + begin, numbers.begin() + end);
      const std::vector<int64_t> told(reasons.begin() + begin, reasons.begin() + end);
      if (told != Ranked(answer.contributions[row], sign)) answer.wrong = "other reasons than contributions";
    }
    answers.push_back(answer);
  }
  return answers;
}

std::vector<Answer> Reasons(const Construct& own) {
  const Attribution found = Model::Load(own.file()).Attribute(own.OfEachRow(own.rows()));
  Answer answer = own.ForEachRow();
  for (std::vector<double>& row : answer.contributions) row.resize(own.columns());
  for (const auto& side : kSides) {
    const json told = json::parse(found.ReasonsJson(Concepts::Read(ConceptsOf(own, side.first).dump())));
    AddWarnings(told, &answer);
    for (size_t row = 0; row < own.num_rows(); ++row) {
      const json& decision = told.at("decisions").at(row);
      std::vector<double>& contributions = answer.contributions[row];
      double before = std::numeric_limits<double>::infinity();
      for (const json& reason : decision.at("reasons")) {
        const auto contribution = reason.at("contribution").get<double>();
        if (std::abs(contribution) > before) answer.wrong = "reasons are in another order";
        before = std::abs(contribution);
        for (size_t column = 0; column < own.columns(); ++column) {
          if (reason.at("concept") == own.part(column)) contributions[column] = contribution;
        }
      }
      if (decision.at("outcome") == "not_finite") {
        contributions.assign(own.columns(), std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
  return {answer};
}

std::vector<Answer> Interactions(const Construct& own) {
  const Model model = Model::Load(own.file());
  Answer answer = own.RowByRow();
  for (size_t row = 0; row < own.num_rows(); ++row) {
    const json found = json::parse(model.InteractionsJson(own.OfRow(row)));
    json numbers = json::array();
    for (const json& group : found.at("groups")) numbers.push_back(group.at("contribution"));
    answer.contributions[row] = Doubles(numbers);
    AddWarnings(found, &answer);
  }
  return {answer};
}

std::vector<Answer> SeveralBaselines(const Construct& own) {
  Answer answer = OfAttribution(Model::Load(own.file()).Attribute(own.WithSeveralBaselines()), own);
  answer.several = true;
  answer.claimed.clear();
  return {answer};
}

std::vector<Answer> Page(const Construct& own) {
  const Attribution found = Model::Load(own.file()).Attribute(own.OfEachRow(own.rows()));
  const std::string tag = R"(<script type="application/json" id="data">)";
  const std::string page = found.Html();
  const size_t begin = page.find(tag) + tag.size();
  std::vector<Answer> answers;
  for (const std::string& text : {found.Json(), page.substr(begin, page.find("</script>", begin) - begin)}) {
    const json document = json::parse(text);
    const json& report = document.at("report");
    Answer answer = own.ForEachRow();
    for (const json& warning : report.at("warnings")) answer.said.push_back(warning.get<std::string>());
    for (size_t row = 0; row < own.num_rows(); ++row) {
      const json& target = document.at("targets").at(row);
      answer.contributions[row] = Doubles(target.at("contributions"));
      if (report.at("reference_is_model_on_baseline") == "yes") {
        answer.claimed[row] = Doubles(json::array({target.at("reference")}))[0];
      }
    }
    answers.push_back(answer);
  }
  return answers;
}

// The notes below a picture, which are broken into lines, each with the word that it begins with.
std::vector<std::string> NotesOfPicture(const std::string& svg) {
  static const std::regex text("<text [^>]*>([^<]*)");
  std::vector<std::string> notes;
  const std::sregex_iterator end;
  for (std::sregex_iterator found(svg.begin(), svg.end(), text); found != end; ++found) {
    const std::string line = (*found)[1];
    if (line.rfind("Warning: ", 0) == 0 || line.rfind("Note: ", 0) == 0) {
      notes.push_back(line);
    } else if (!notes.empty()) {
      notes.back() += " " + line;
    }
  }
  return notes;
}

std::vector<Answer> Picture(const Construct& own) {
  const Attribution found = Model::Load(own.file()).Attribute(own.OfEachRow(own.rows()));
  Answer answer = own.ForEachRow();
  for (size_t row = 0; row < own.num_rows(); ++row) {
    const Explanation one = found.Explain(row);
    answer.contributions[row] = Parts(one);
    bool claims = true;
    for (const std::string& note : NotesOfPicture(one.Svg())) {
      if (note.rfind("Warning: ", 0) == 0) answer.said.push_back(note);
      claims = claims && !Holds(note, "what the model gives on the baseline");
    }
    if (claims) answer.claimed[row] = one.reference();
  }
  return {answer};
}

const std::map<std::string, std::function<std::vector<Answer>(const Construct&)>>& Doors() {
  static const std::map<std::string, std::function<std::vector<Answer>(const Construct&)>> doors = {
      {"explain of a file", Explain}, {"decompose of a file", Decompose},
      {"plan of a file", Planned},    {"job", OfJob},
      {"reasons of a file", Reasons}, {"interactions of a file", Interactions},
      {"page of a file", Page},       {"baselines of a file", SeveralBaselines},
      {"picture of a file", Picture},
  };
  return doors;
}

// Fault of a cell; empty if there is none.
std::string FaultOf(const std::string& door, const Construct& own) {
  std::vector<Answer> answers;
  try {
    answers = Doors().at(door)(own);
  } catch (const Error& error) {
    const std::string message = error.what();
    const std::string may_stop = own.MayStop(door);
    return !may_stop.empty() && std::regex_search(message, std::regex(may_stop)) ? "" : message;
  }
  if (own.stops()) return "the door does not stop";
  for (const Answer& answer : answers) {
    const std::string fault = own.Fault(answer);
    if (!fault.empty()) return fault;
  }
  return "";
}

std::vector<std::string> NamesOfDoors() {
  std::vector<std::string> names;
  for (const auto& door : Doors()) names.push_back(door.first);
  return names;
}

class DoorsTest : public CApiTest, public testing::WithParamInterface<std::tuple<std::string, size_t>> {};

TEST_P(DoorsTest, EveryCellIsRightOrSaysSo) {
  const std::string door = std::get<0>(GetParam());
  const Construct own(Cases().at(std::get<1>(GetParam())));
  const std::string known = own.Known(door);
  const std::string fault = FaultOf(door, own);
  if (known.empty()) {
    EXPECT_EQ(fault, "");
  } else {
    EXPECT_NE(fault, "") << "works now; take it out of KNOWN in tests/doors/cells.py: " << known;
  }
}

std::string NameOf(const testing::TestParamInfo<DoorsTest::ParamType>& info) {
  std::string name = std::get<0>(info.param) + ": " + Cases().at(std::get<1>(info.param)).at("name").get<std::string>();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cells, DoorsTest,
                         testing::Combine(testing::ValuesIn(NamesOfDoors()), testing::Range<size_t>(0, Cases().size())),
                         NameOf);

}  // namespace
}  // namespace addend::api
