// Runs `addend decompose`: its record, table, page and tensors.
#include "core/explain/decompose.h"

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/model/model.h"
#include "core/program/tensor_io.h"
#include "tools/addend/testing.h"

namespace addend::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

using DecomposeTest = ProgramTest;

TEST_F(DecomposeTest, PartsSumToTheOutputOfTheExampleModels) {
  for (const Example& example : Examples()) {
    SCOPED_TRACE(example.name);
    const Result result = Run(Arguments{"decompose"} + example.input + Arguments{"--target", "top1", "--json"});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    const Json record = Json::parse(result.out);
    EXPECT_EQ(record["kind"], example.kind);
    EXPECT_EQ(record["components"].size(), example.parts);
    EXPECT_EQ(record["preset"], "faithful");
    EXPECT_EQ(record["inputs"][0]["baseline"], example.baseline);

    // The samples are those that the models get right: the label is what has to be found.
    const TensorFile sample = ReadTensorFile(SampleOf(example.name));
    const int64_t label = sample.Find("label")->item<int64_t>();
    const Json classes = Json::parse(sample.metadata.at("classes"));
    at::Tensor logits =
        TracedModel(LoadTorchScript(ModelOf(example.name))).Run({*sample.Find("input")}).toTensor().to(at::kDouble)[0];
    // A model of text has a row for each position, of which the last one is explained.
    Json row = Json::array({0});
    if (logits.dim() == 2) {
      row.push_back(logits.size(0) - 1);
      logits = logits[-1];
    }
    Json index = row;
    index.push_back(label);
    const size_t shown = std::min<size_t>(classes.size(), 21);
    ASSERT_EQ(record["targets"].size(), shown);
    EXPECT_EQ(record["targets"][0]["index"], index);
    EXPECT_GT(record["targets"][0]["probability"], 0.5);
    double probabilities = 0;
    std::vector<double> values;
    for (const Json& target : record["targets"]) {
      const int64_t own = target["index"].back();
      index.back() = own;
      EXPECT_EQ(target["index"], index);
      EXPECT_EQ(target["name"], classes[own]);
      EXPECT_EQ(target["value"].get<double>(), logits[own].item<double>());
      values.push_back(target["value"]);
      EXPECT_EQ(target["contributions"].size(), example.parts);
      EXPECT_LT(RelativeError(target), 1e-5) << target["name"];
      EXPECT_LT(std::abs(target["leftover"].get<double>() / target["value"].get<double>()), 1e-5) << target["name"];
      EXPECT_LE(std::abs(target["recovery_error"].get<double>()), target["tolerance"].get<double>());
      probabilities += target["probability"].get<double>();
    }
    if (shown == classes.size()) {
      EXPECT_NEAR(probabilities, 1, 1e-6);
    } else {  // the largest ones, where there are more than a page can hold
      const at::Tensor largest = std::get<0>(logits.topk(21));
      for (size_t k = 0; k < shown; ++k) EXPECT_EQ(values[k], largest[k].item<double>()) << k;
    }
  }
}

TEST_F(DecomposeTest, RecordHasWhatAnAuditorNeeds) {
  const Result result = Run(Table() + Arguments{"--json", "--policy", "preset=fast"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  EXPECT_EQ(record["addend"]["sha256"], Sha256OfFile(kProgram));
  EXPECT_EQ(record["model"]["sha256"], Sha256OfFile(ModelOf("breast_cancer")));
  EXPECT_EQ(record["inputs"][0]["sha256"], Sha256OfFile(SampleOf("breast_cancer")));
  EXPECT_EQ(record["inputs"][0]["baseline"], "0");
  EXPECT_EQ(record["inputs"][0]["baseline_given"], false);
  EXPECT_EQ(record["inputs"][0]["split"], "dim=1");
  EXPECT_EQ(record["inputs"][0]["shape"], Json({1, 30}));
  EXPECT_EQ(record["policy"]["preset"], "fast");
  EXPECT_EQ(record["preset"], "fast");
  EXPECT_EQ(record["components"][0]["name"], "mean radius");
  EXPECT_EQ(record["components"][0]["value"].get<float>(),
            (*ReadTensorFile(SampleOf("breast_cancer")).Find("input"))[0][0].item<float>());
  EXPECT_EQ(record["report"]["failures"], 0);
  EXPECT_GT(record["report"]["operators"], 0);
  EXPECT_FALSE(record["libtorch"]["version"].get<std::string>().empty());
}

TEST_F(DecomposeTest, EveryFieldOfThePolicyCanBeGiven) {
  const std::vector<std::pair<std::string, std::string>> fields = {
      {"segments", "3"},      {"nonlinearity", "hybrid_affine(0.2)"}, {"bias", "hybrid"},     {"freeze", "gate"},
      {"anchor", "residual"}, {"nonlinearity@aten::relu", "scaling"}, {"bias@nowhere", "abs"}};
  Arguments arguments = Table();
  for (const auto& [key, value] : fields) {
    arguments.push_back("--policy");
    arguments.push_back(key + "=" + value);
  }
  const Result table = Run(arguments);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("anchor=residual, nonlinearity@aten::relu=scaling"));
  EXPECT_THAT(table.out, HasSubstr("\n+ reference (the residual) "));
  EXPECT_THAT(table.out, Not(HasSubstr("For the baseline")));
  const Result result = Run(arguments + Arguments{"--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  for (const auto& [key, value] : fields) EXPECT_EQ(record["policy"][key], value) << key;
  EXPECT_THAT(record["report"]["notes"].dump(), HasSubstr("the policy names nowhere"));
  EXPECT_EQ(record["report"]["failures"], 0);
}

TEST_F(DecomposeTest, TablesFitATerminal) {
  for (const std::string locale : {"LC_ALL=C", "LC_ALL=C.UTF-8"}) {
    for (const Example& example : Examples()) {
      SCOPED_TRACE(example.name + " " + locale);
      const Result result = Run(Arguments{"decompose"} + example.input, locale);
      ASSERT_EQ(result.code, 0) << result.err;
      ExpectNarrow(result.out);
      EXPECT_THAT(result.out, HasSubstr("\n  the model's own output "));
      EXPECT_THAT(result.out, HasSubstr("\n+ reference (the model on the baseline) "));
      EXPECT_THAT(result.out, HasSubstr("(rounding)"));
      EXPECT_EQ(absl::StrContains(result.out, "\u2588"), locale == "LC_ALL=C.UTF-8");
    }
  }
}

TEST_F(DecomposeTest, TableNamesTheLargestAndSumsTheRest) {
  const Result result = Run(Arguments{"decompose"} + Examples()[0].input + Arguments{"--top", "2"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(Run(Arguments{"decompose"} + Examples()[0].input + Arguments{"--json"}).out);
  std::vector<std::pair<double, std::string>> order;
  for (size_t i = 0; i < 30; ++i) {
    order.emplace_back(-std::abs(record["targets"][0]["contributions"][i].get<double>()),
                       record["components"][i]["name"]);
  }
  std::sort(order.begin(), order.end());
  EXPECT_THAT(result.out, HasSubstr("\n  " + order[0].second));
  EXPECT_THAT(result.out, HasSubstr("\n  " + order[1].second));
  EXPECT_THAT(result.out, Not(HasSubstr("\n  " + order[2].second)));
  EXPECT_THAT(result.out, HasSubstr("\n  28 others together "));
}

TEST_F(DecomposeTest, AMemoryThatSufficesChangesNothing) {
  const Arguments command = Arguments{"decompose"} + Examples()[0].input + Arguments{"--json"};
  const Json whole = Json::parse(Run(command).out);
  const Result within = Run(command + Arguments{"--memory", "1GiB"});
  ASSERT_EQ(within.code, 0) << within.err;
  EXPECT_EQ(Json::parse(within.out)["targets"][0]["contributions"], whole["targets"][0]["contributions"]);
  ExpectError(command + Arguments{"--memory", "1B"}, "do not fit into 1 bytes");
}

TEST_F(DecomposeTest, BothDirectionsGiveTheSame) {
  const Arguments command = Arguments{"decompose"} + Examples()[0].input + Arguments{"--json", "--direction"};
  const Json forward = Json::parse(Run(command + Arguments{"forward"}).out);
  const Json backward = Json::parse(Run(command + Arguments{"backward"}).out);
  EXPECT_EQ(forward["report"]["direction"], "forward");
  EXPECT_EQ(backward["report"]["direction"], "backward");
  const Json& expected = forward["targets"][0]["contributions"];
  const Json& found = backward["targets"][0]["contributions"];
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i].get<double>(), expected[i].get<double>(), 1e-5);
  ExpectError(command + Arguments{"sideways"}, "--direction");
}

TEST_F(DecomposeTest, PageHoldsItsDataAndNothingThatEndsThem) {
  const std::string names = Path("names");
  // 30 names, one of them hostile.
  std::ofstream list(names);
  list << "</script><script>alert(1)</script>__ADDEND_DATA__";
  for (int i = 1; i < 30; ++i) list << "\nname " << i;
  list.close();
  const std::string page_path = Path("page.html");
  const Result result = Run(Table() + Arguments{"--names", names, "--html", page_path});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(page_path));
  const std::string page = ReadFile(page_path);
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  const size_t end = page.find("</script>", begin);
  ASSERT_NE(end, std::string::npos);
  const std::string data = page.substr(begin, end - begin);
  EXPECT_THAT(data, Not(HasSubstr("<")));
  const Json record = Json::parse(data);
  EXPECT_EQ(record["components"][0]["name"], "</script><script>alert(1)</script>__ADDEND_DATA__");
  EXPECT_EQ(record["components"][29]["name"], "name 29");
  EXPECT_LT(RelativeError(record["targets"][0]), 1e-5);
  // The template's own marker is gone: what is left of the word is the name.
  EXPECT_EQ(page.find("__ADDEND_DATA__"), begin + data.find("__ADDEND_DATA__"));
  EXPECT_EQ(page.rfind("__ADDEND_DATA__"), page.find("__ADDEND_DATA__"));
}

TEST_F(DecomposeTest, PictureShowsWhatTheRecordSays) {
  const std::string path = Path("figure.svg");
  const Result result = Run(Table() + Arguments{"--svg", path});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nPicture written: " + path));
  const std::string svg = ReadFile(path);
  const Result json = Run(Table() + Arguments{"--svg", path, "--json"});
  ASSERT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(ReadFile(path), svg);
  const Json record = Json::parse(json.out);
  const std::vector<double> contributions = record["targets"][0]["contributions"];
  const auto largest = std::max_element(contributions.begin(), contributions.end(),
                                        [](double a, double b) { return std::abs(a) < std::abs(b); });
  const std::string name = record["components"][largest - contributions.begin()]["name"];
  EXPECT_THAT(svg, HasSubstr(record["targets"][0]["name"].get<std::string>() + "\u201d</title>"));
  EXPECT_THAT(svg, HasSubstr(">" + name + "<"));
  EXPECT_THAT(svg, HasSubstr(">18 others together<"));
  // The first bar is that of the largest part, and raises or lowers.
  const size_t bar = svg.find("<rect ");
  EXPECT_EQ(svg.substr(bar, svg.find("/>", bar) - bar).find("#2b6cb0") != std::string::npos, *largest < 0);
}

TEST_F(DecomposeTest, TensorsReadBackAndSum) {
  const std::string out = Path("parts.safetensors");
  const Result result =
      Run(Arguments{"decompose"} + Examples()[2].input + Arguments{"--at", "output", "--at", "layers.0", "--out", out});
  ASSERT_EQ(result.code, 0) << result.err;
  const TensorFile file = ReadTensorFile(out);
  for (const std::string prefix : {"", "layers.0/"}) {
    SCOPED_TRACE(prefix);
    const at::Tensor* components = file.Find(prefix + "components");
    const at::Tensor* value = file.Find(prefix + "value");
    ASSERT_NE(components, nullptr);
    ASSERT_NE(value, nullptr);
    EXPECT_EQ(components->size(0), 12);
    EXPECT_EQ(components->sizes().slice(1), value->sizes());
    const at::Tensor sum =
        components->to(at::kDouble).sum(0) + *file.Find(prefix + "reference") + *file.Find(prefix + "leftover");
    EXPECT_LT(((sum - *value).abs().max() / value->abs().max()).item<double>(), 1e-5);
  }
  EXPECT_EQ(Json::parse(file.metadata.at("names"))[1], "gro\u00dfe ");
  EXPECT_EQ(Json::parse(file.metadata.at("target"))["name"], "German");
  EXPECT_EQ(Json::parse(file.metadata.at("model"))["sha256"], Sha256OfFile(ModelOf("language")));
}

TEST_F(DecomposeTest, TargetsAreElementsDifferencesAndClasses) {
  const auto explain = [&](const std::string& target) {
    const Result result = Run(Table() + Arguments{"--json", "--target", target});
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out)["targets"];
  };
  const Json benign = explain("1");
  EXPECT_EQ(benign, explain("0,1"));
  EXPECT_EQ(benign, explain("benign"));
  const Json difference = explain("0-1");
  EXPECT_EQ(difference[0]["name"], "malignant minus benign");
  EXPECT_EQ(difference[0]["subtract"], Json({0, 1}));
  EXPECT_EQ(difference[0]["probability"], nullptr);
  EXPECT_NEAR(difference[0]["value"].get<double>(), benign[1]["value"].get<double>() - benign[0]["value"].get<double>(),
              1e-12);
  EXPECT_EQ(difference.size(), 3);
}

TEST_F(DecomposeTest, TargetsAreWhatASoftmaxSays) {
  const auto explain = [&](const std::string& target) {
    const Result result = Run(Table() + Arguments{"--json", "--target", target});
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out)["targets"];
  };
  const Json own = explain("log_probability:1");
  EXPECT_EQ(own, explain("log_probability:benign"));
  EXPECT_EQ(own[0]["name"], "log-probability of benign");
  EXPECT_EQ(own[0]["target"], "log_probability:0,1");
  EXPECT_LE(std::abs(own[0]["recovery_error"].get<double>()), own[0]["tolerance"].get<double>());
  // The other class, by the same quantity; both probabilities sum to one.
  ASSERT_EQ(own.size(), 2);
  EXPECT_EQ(own[1]["name"], "log-probability of malignant");
  EXPECT_NEAR(std::exp(own[0]["value"].get<double>()) + std::exp(own[1]["value"].get<double>()), 1, 1e-12);
  EXPECT_NEAR(own[0]["probability"].get<double>(), explain("probability:benign")[0]["value"].get<double>(), 1e-12);
  EXPECT_EQ(explain("entropy").size(), 1);
  EXPECT_EQ(explain("sum:benign+malignant")[0]["target"], "sum:0,1+0,0");
  const Result table = Run(Table() + Arguments{"--target", "log_probability:benign"});
  ExpectNarrow(table.out);
  EXPECT_THAT(table.out, HasSubstr("The model's log-probability of benign is"));
  ExpectError(Table() + Arguments{"--target", "log_probability:nowhere"}, "is not understood");
}

TEST_F(DecomposeTest, DoublePrecisionAddsUpMoreClosely) {
  const Result result = Run(Arguments{"decompose"} + Examples()[1].input + Arguments{"--dtype", "float64", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json target = Json::parse(result.out)["targets"][0];
  EXPECT_LT(RelativeError(target), 1e-12);
  EXPECT_LT(std::abs(target["leftover"].get<double>()), 1e-10 * target["value"].get<double>());
}

}  // namespace
}  // namespace addend::cli
