// Runs the program as a user does: what it prints, what it writes, and how it fails.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/explain/decompose.h"
#include "core/model/model.h"
#include "core/program/tensor_io.h"
#include "tools/addend/text.h"

namespace addend {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

constexpr char kProgram[] = "tools/addend/addend";
constexpr char kModels[] = "docs/examples/models/";

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_TRUE(file) << path;
  return content.str();
}

struct Result {
  int code = -1;
  std::string out;
  std::string err;
};

using Arguments = std::vector<std::string>;

Arguments operator+(Arguments first, const Arguments& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A folder for each test.
class AddendTest : public testing::Test {
 protected:
  AddendTest() {
    std::string pattern = testing::TempDir() + "/addend_XXXXXX";
    folder_ = mkdtemp(&pattern[0]);
    fs::create_directory(folder_ / "user");
  }
  ~AddendTest() override { fs::remove_all(folder_); }

  // Where tests put their files.
  std::string Path(const std::string& name) const { return (folder_ / "user" / name).string(); }
  std::string Save(const std::string& name, const at::Tensor& tensor) const {
    WriteTensorFile(Path(name), {{{"input", tensor}}, {}});
    return Path(name);
  }

  Result Run(const Arguments& arguments, const std::string& environment = "LC_ALL=C") const {
    std::string command = absl::StrCat("env ", environment, " ./", kProgram);
    for (const std::string& argument : arguments) {
      absl::StrAppend(&command, " '", absl::StrReplaceAll(argument, {{"'", "'\\''"}}), "'");
    }
    const fs::path out = folder_ / "stdout";
    const fs::path err = folder_ / "stderr";
    absl::StrAppend(&command, " >'", out.string(), "' 2>'", err.string(), "' </dev/null");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(out), ReadFile(err)};
  }

  // The run fails as bad input does: one clear line, exit code 2, and no file more than before.
  void ExpectError(const Arguments& arguments, const std::string& message) const {
    const std::set<fs::path> before = Files();
    const Result result = Run(arguments);
    const std::string command = testing::PrintToString(arguments);
    EXPECT_EQ(result.code, 2) << command << result.out;
    EXPECT_EQ(result.out, "") << command;
    EXPECT_THAT(result.err, AllOf(StartsWith("addend: "), HasSubstr(message), Not(HasSubstr("frame #")),
                                  Not(HasSubstr("Exception raised"))))
        << command;
    ASSERT_FALSE(result.err.empty());
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << "not one line: " << result.err;
    EXPECT_EQ(Files(), before) << command;
  }

 private:
  std::set<fs::path> Files() const {
    std::set<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "user")) files.insert(entry.path());
    return files;
  }

  fs::path folder_;
};

// The three commands of tools/quickstart.
struct Example {
  std::string name;
  Arguments input;
  std::string baseline;
  std::string kind;
  size_t parts;
};

std::string ModelOf(const std::string& name) { return absl::StrCat(kModels, name, "/model.pt"); }
std::string SampleOf(const std::string& name) { return absl::StrCat(kModels, name, "/sample.safetensors"); }
std::string HeldoutOf(const std::string& name) { return absl::StrCat(kModels, name, "/heldout.safetensors"); }

std::vector<Example> Examples() {
  return {
      {"breast_cancer",
       {ModelOf("breast_cancer"), "--input", SampleOf("breast_cancer"), "--baseline",
        absl::StrCat(kModels, "breast_cancer/baseline.npy")},
       absl::StrCat(kModels, "breast_cancer/baseline.npy"),
       "table",
       30},
      {"digits", {ModelOf("digits"), "--input", SampleOf("digits"), "--baseline", "0"}, "0", "image", 64},
      {"language",
       {ModelOf("language"), "--input", SampleOf("language") + ":labels=segments", "--baseline", "token:mask_token"},
       "token 0 [mask]",
       "text",
       12}};
}

double SumOf(const Json& numbers) {
  double sum = 0;
  for (const Json& number : numbers) sum += number.get<double>();
  return sum;
}

// The relative distance between a target's value and its parts, added here.
double RelativeError(const Json& target) {
  const double sum =
      SumOf(target["contributions"]) + target["reference"].get<double>() + target["leftover"].get<double>();
  return std::abs(sum - target["value"].get<double>()) / std::abs(target["value"].get<double>());
}

void ExpectNarrow(const std::string& text) {
  for (const auto line : absl::StrSplit(text, '\n')) {
    const std::string copy(line.data(), line.size());
    // Paths that may be copied stay whole.
    if (absl::StrContains(copy, " written: ")) continue;
    EXPECT_LE(cli::DisplayWidth(copy), 80) << copy;
    EXPECT_FALSE(absl::EndsWith(copy, " ")) << "\"" << copy << "\"";
  }
}

const Arguments& Table() {
  static const auto& arguments =
      *new Arguments{"decompose", ModelOf("breast_cancer"), "--input", SampleOf("breast_cancer")};
  return arguments;
}

// ---- decompose

TEST_F(AddendTest, PartsSumToTheOutputOfTheThreeModels) {
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
    const at::Tensor logits =
        Trace(LoadTorchScript(ModelOf(example.name))).Run({*sample.Find("input")}).toTensor().to(at::kDouble);
    ASSERT_EQ(record["targets"].size(), classes.size());
    EXPECT_EQ(record["targets"][0]["index"], Json({0, label}));
    EXPECT_GT(record["targets"][0]["probability"], 0.5);
    double probabilities = 0;
    for (const Json& target : record["targets"]) {
      const int64_t index = target["index"][1];
      EXPECT_EQ(target["name"], classes[index]);
      EXPECT_EQ(target["value"].get<double>(), logits[0][index].item<double>());
      EXPECT_EQ(target["contributions"].size(), example.parts);
      EXPECT_LT(RelativeError(target), 1e-5) << target["name"];
      EXPECT_LT(std::abs(target["leftover"].get<double>() / target["value"].get<double>()), 1e-5) << target["name"];
      EXPECT_LE(std::abs(target["recovery_error"].get<double>()), target["tolerance"].get<double>());
      probabilities += target["probability"].get<double>();
    }
    EXPECT_NEAR(probabilities, 1, 1e-6);
  }
}

TEST_F(AddendTest, RecordHasWhatAnAuditorNeeds) {
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

TEST_F(AddendTest, EveryFieldOfThePolicyCanBeGiven) {
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

TEST_F(AddendTest, TablesFitATerminal) {
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

TEST_F(AddendTest, TableNamesTheLargestAndSumsTheRest) {
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

TEST_F(AddendTest, AMemoryThatSufficesChangesNothing) {
  const Arguments command = Arguments{"decompose"} + Examples()[0].input + Arguments{"--json"};
  const Json whole = Json::parse(Run(command).out);
  const Result within = Run(command + Arguments{"--memory", "1GiB"});
  ASSERT_EQ(within.code, 0) << within.err;
  EXPECT_EQ(Json::parse(within.out)["targets"][0]["contributions"], whole["targets"][0]["contributions"]);
  ExpectError(command + Arguments{"--memory", "1B"}, "do not fit into 1 bytes");
}

TEST_F(AddendTest, BothDirectionsGiveTheSame) {
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

TEST_F(AddendTest, PageHoldsItsDataAndNothingThatEndsThem) {
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

TEST_F(AddendTest, TensorsReadBackAndSum) {
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

TEST_F(AddendTest, TargetsAreElementsDifferencesAndClasses) {
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

TEST_F(AddendTest, RowsOfABatchAreThoseOfTheFile) {
  const Result result = Run({"decompose", ModelOf("language"), "--input", HeldoutOf("language") + ":labels=segments",
                             "--baseline", "token:mask_token", "--row", "41", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  const TensorFile file = ReadTensorFile(HeldoutOf("language"));
  const Json text = Json::parse(file.metadata.at("texts"))[41];
  EXPECT_EQ(record["text"], text);
  EXPECT_EQ(record["inputs"][0]["row"], 41);
  EXPECT_EQ(record["inputs"][0]["shape"], Json({1, 96}));
  // The words are spelled by the vocabulary, since the file names only those of its samples.
  std::string spelled;
  for (const Json& component : record["components"]) spelled += component["name"].get<std::string>();
  EXPECT_EQ(spelled, text.get<std::string>());
}

TEST_F(AddendTest, DoublePrecisionAddsUpMoreClosely) {
  const Result result = Run(Arguments{"decompose"} + Examples()[1].input + Arguments{"--dtype", "float64", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json target = Json::parse(result.out)["targets"][0];
  EXPECT_LT(RelativeError(target), 1e-12);
  EXPECT_LT(std::abs(target["leftover"].get<double>()), 1e-10 * target["value"].get<double>());
}

TEST_F(AddendTest, InputsMayHaveColonsAndTensorNames) {
  const at::Tensor input = *ReadTensorFile(SampleOf("breast_cancer")).Find("input");
  const std::string path = Path("a:b.safetensors");
  WriteTensorFile(path, {{{"first", input}, {"second", input * 2}}, {}});
  const auto value = [&](const std::string& text) {
    const Result result = Run({"decompose", ModelOf("breast_cancer"), "--input", text, "--json"});
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out)["components"][0]["value"].get<double>();
  };
  EXPECT_EQ(value(path + "#second"), 2 * value(path + "#first:dim=1"));
  ExpectError({"decompose", ModelOf("breast_cancer"), "--input", path}, "several tensors (first, second)");
}

TEST_F(AddendTest, LabelsAndPartsComeFromOtherFiles) {
  const at::Tensor input = *ReadTensorFile(SampleOf("breast_cancer")).Find("input");
  at::Tensor labels = at::zeros({1, 30}, at::kLong);
  labels.slice(1, 10).fill_(1);
  labels.slice(1, 20).fill_(-1);
  const std::string label_path = Save("labels.safetensors", labels);
  Result result = Run({"decompose", ModelOf("breast_cancer"), "--input",
                       absl::StrCat(SampleOf("breast_cancer"), ":labels=", label_path), "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["components"].size(), 2);
  const std::string part_path = Save("parts.safetensors", (input / 4).expand({3, 1, 30}).contiguous());
  result = Run({"decompose", ModelOf("breast_cancer"), "--input",
                absl::StrCat(SampleOf("breast_cancer"), ":parts=", part_path), "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  EXPECT_EQ(record["components"].size(), 3);
  EXPECT_LT(RelativeError(record["targets"][0]), 1e-5);
}

// ---- splits inside the model

// The file has what plain PyTorch computes of the second half of the model.
constexpr char kHeads[] = "tests/conformance/models/heads";

at::Tensor OfHeads(const std::string& name) { return *ReadTensorFile(absl::StrCat(kHeads, ".safetensors")).Find(name); }

Arguments Heads(const std::string& command) {
  return {command, absl::StrCat(kHeads, ".pt"), "--input", absl::StrCat(kHeads, ".safetensors#table")};
}

const Arguments& ByHead() {
  static const auto& arguments = *new Arguments{"--inside",   "aten::contiguous:dim=1",
                                                "--baseline", absl::StrCat(kHeads, ".safetensors#baseline"),
                                                "--target",   "2,1"};
  return arguments;
}

TEST_F(AddendTest, DecomposesFromInsideTheModel) {
  const std::string out = Path("out.safetensors");
  const std::string page = Path("page.html");
  Result result = Run(Heads("decompose") + ByHead() + Arguments{"--out", out, "--html", page});
  ASSERT_EQ(result.code, 0) << result.err;
  ExpectNarrow(result.out);
  EXPECT_THAT(result.out, AllOf(HasSubstr("Inside 1"), HasSubstr("aten::contiguous"), HasSubstr("f32[4, 2, 3]"),
                                HasSubstr("position 0"), HasSubstr("split: plain"), HasSubstr("Baseline 1 tests/")));
  EXPECT_THAT(ReadFile(page), HasSubstr("</html>"));
  const TensorFile file = ReadTensorFile(out);
  for (const char* name : {"components", "reference"}) {
    EXPECT_LE((*file.Find(name) - OfHeads(name)).abs().max().item<double>(), 1e-5) << name;
  }
  EXPECT_LE((*file.Find("value") - OfHeads("output")).abs().max().item<double>(), 1e-5);
  result = Run(Heads("decompose") + ByHead() + Arguments{"--json", "--names", "left,right"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  EXPECT_EQ(record["kind"], "list");
  EXPECT_EQ(record["components"][1]["name"], "right");
  EXPECT_EQ(record["components"][1]["value"], nullptr);
  EXPECT_FALSE(record["inputs"][0]["inside"].get<bool>());
  const Json& inside = record["inputs"][1];
  EXPECT_TRUE(inside["inside"].get<bool>());
  EXPECT_EQ(inside["name"], "aten::contiguous");
  EXPECT_EQ(inside["path"], nullptr);
  EXPECT_EQ(inside["shape"], Json({4, 2, 3}));
  EXPECT_EQ(inside["split"], "dim=1");
  for (size_t head = 0; head < 2; ++head) {
    EXPECT_NEAR(record["targets"][0]["contributions"][head].get<double>(),
                OfHeads("components")[head][2][1].item<double>(), 1e-5);
  }
  // Neurons, by labels of a file; one of them is in no part.
  const std::string labels = Save("labels.safetensors", at::ones({1, 2, 3}, at::kLong).cumsum(2) - 2);
  result = Run(Heads("check") + Arguments{"--inside", "aten::contiguous:labels=" + labels});
  EXPECT_EQ(result.code, 0) << result.err << result.out;
  ExpectNarrow(result.out);
}

TEST_F(AddendTest, AttributesToWhatIsInsideTheModel) {
  const std::string out = Path("out.safetensors");
  const std::string graph = Path("graph.html");
  const Result result =
      Run(Heads("attribute") + ByHead() + Arguments{"--target", "3,0", "--nodes", "--out", out, "--graph", graph});
  ASSERT_EQ(result.code, 0) << result.err;
  ExpectNarrow(result.out);
  const at::Tensor elements = *ReadTensorFile(out).Find("aten::contiguous/elements");
  ASSERT_EQ(elements.sizes(), at::IntArrayRef({2, 4, 2, 3}));
  // Rows do not look at each other behind the heads.
  at::Tensor expected = at::zeros({2, 4, 2, 3});
  expected[0][2].copy_(OfHeads("elements")[1][2]);
  expected[1][3].copy_(OfHeads("elements")[0][3]);
  EXPECT_LE((elements - expected).abs().max().item<double>(), 1e-5);
  EXPECT_THAT(ReadFile(graph), HasSubstr("passed to"));
}

TEST_F(AddendTest, SplitsInsideThatDoNotFit) {
  const auto expect = [&](const std::string& inside, const std::string& message) {
    ExpectError(Heads("decompose") + Arguments{"--inside", inside}, message);
  };
  expect("aten::contiguous", "does not say how the tensor is split");
  expect(":dim=1", "does not say how the tensor is split");
  expect("aten::contiguous:parts=x", "along dimensions or by labels");
  expect("aten::contiguous:plain", "along dimensions or by labels");
  expect("aten::contiguous:labels=nowhere", "there is no file nowhere");
  expect("aten::contiguous:dim=3", "aten::contiguous of shape f32[4, 2, 3] has no dimension 3");
  expect("aten::linear:dim=1", "calls aten::linear 3 times");
  for (const char* command : {"decompose", "attribute", "check"}) {
    ExpectError(Heads(command) + Arguments{"--inside", "nowhere:dim=1"}, "nothing inside the model is called nowhere");
    ExpectError({command, absl::StrCat(kHeads, ".pt"), "--input", absl::StrCat(kHeads, ".safetensors#table:dim=1"),
                 "--inside", "aten::contiguous:dim=1"},
                "where a split starts inside, the arguments are plain");
  }
  for (const char* command : {"decompose", "attribute"}) {
    ExpectError(Heads(command) + ByHead() + Arguments{"--inside", "aten::softmax:dim=0", "--baseline", "0"},
                "depends on another split already");
  }
  ExpectError(Heads("decompose") + Arguments{"--baseline", "0", "--baseline", "1", "--inside", "mix:dim=1"},
              "--baseline is given 2 times, but 1 input is split");
}

// ---- trace

// Writes in place, and takes another branch where its input's sum is not positive.
constexpr char kAwkward[] = "tests/conformance/models/awkward.pt";

TEST_F(AddendTest, TraceShowsOperatorsUnderSourceLines) {
  const Result result = Run({"trace", ModelOf("digits"), "--input", SampleOf("digits")}, "LC_ALL=C.UTF-8");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("  # "));  // a source line ends with its place
  EXPECT_THAT(result.out, HasSubstr("in forward:\n"));
  EXPECT_THAT(result.out, HasSubstr("# conv2d(f32[1, 1, "));
  EXPECT_THAT(result.out, HasSubstr(" operators recorded\n"));
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b[")));
  const Result named = Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--names", "--color"});
  EXPECT_THAT(named.out, HasSubstr("weight: f32["));
  EXPECT_THAT(named.out, HasSubstr("\x1b["));
  EXPECT_THAT(named.out, Not(HasSubstr("\u2502")));  // the C locale cannot show it
}

TEST_F(AddendTest, TraceGivesTheGraphInThreeForms) {
  const Arguments base = {"trace", ModelOf("language"), "--input", SampleOf("language"), "--graph"};
  const Result json = Run(base + Arguments{"json"});
  ASSERT_EQ(json.code, 0) << json.err;
  const Json graph = Json::parse(json.out);
  size_t calls = 0;
  for (const Json& node : graph["nodes"]) calls += node["kind"] == "call" ? 1 : 0;
  const Json code = Json::parse(Run({"trace", ModelOf("language"), "--input", SampleOf("language"), "--json"}).out);
  EXPECT_GT(calls, 10);
  EXPECT_EQ(calls, code["calls"].size());
  const Result dot = Run(base + Arguments{"dot"});
  EXPECT_THAT(dot.out, StartsWith("digraph"));
  const std::string page = Path("graph.html");
  const Result html = Run(base + Arguments{"html", "--out", page});
  ASSERT_EQ(html.code, 0) << html.err;
  EXPECT_THAT(html.out, HasSubstr("Written: " + page));
  EXPECT_THAT(ReadFile(page), HasSubstr("</html>"));
}

TEST_F(AddendTest, SavedProgramsAreModels) {
  const std::string folder = Path("program");
  const Arguments input = {"--input", SampleOf("digits") + ":dim=2,3", "--baseline", "0", "--json"};
  const Result saved = Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--save", folder});
  ASSERT_EQ(saved.code, 0) << saved.err;
  const Result of_model = Run(Arguments{"decompose", ModelOf("digits")} + input);
  const Result of_program = Run(Arguments{"decompose", folder} + input);
  ASSERT_EQ(of_program.code, 0) << of_program.err;
  EXPECT_EQ(Json::parse(of_program.out)["targets"], Json::parse(of_model.out)["targets"]);
  // Its trace is that of the model, source lines included.
  const Result again = Run({"trace", folder, "--input", SampleOf("digits")});
  EXPECT_EQ(again.out + "Written: " + folder + "\n", saved.out);
  EXPECT_EQ(Run(Arguments{"attribute", folder} + input).code, 0);
  const Arguments wide = Arguments{"--dtype", "float64"} + input;
  const Json wide_program = Json::parse(Run(Arguments{"decompose", folder} + wide).out);
  const Json wide_model = Json::parse(Run(Arguments{"decompose", ModelOf("digits")} + wide).out);
  EXPECT_EQ(wide_program["targets"], wide_model["targets"]);
  std::ofstream(folder + "/program.json") << "{\"version\": 99}";
  ExpectError(Arguments{"decompose", folder} + input, "has no \"format\"");
}

TEST_F(AddendTest, TraceChecksTheRecording) {
  const Arguments check = {"trace", ModelOf("breast_cancer"), "--input", SampleOf("breast_cancer"), "--check"};
  const std::string other = Save("other.safetensors", at::ones({1, 30}));
  const Result good = Run(check + Arguments{"--with", other});
  EXPECT_EQ(good.code, 0) << good.out << good.err;
  EXPECT_THAT(good.out, HasSubstr("operators checked, 0 found"));
  const Json record = Json::parse(Run(check + Arguments{"--json"}).out);
  EXPECT_EQ(record["ok"], true);
  ExpectError(Arguments{"trace", ModelOf("breast_cancer"), "--input", SampleOf("breast_cancer"), "--with", other},
              "--with is for --check");
  const auto table = [&](double number) {
    return Save(absl::StrCat("table", number, ".safetensors"), at::full({2, 6}, number));
  };
  const Result bad = Run({"trace", kAwkward, "--input", table(1), "--check", "--with", table(-1)});
  EXPECT_EQ(bad.code, 1) << bad.out << bad.err;
  EXPECT_THAT(bad.out, HasSubstr("error: "));
  EXPECT_THAT(bad.out, HasSubstr("further input 0)"));
  const std::string file = Path("findings.txt");
  const Result written = Run(check + Arguments{"--out-of-place", "--out", file});
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("Written: " + file));
  EXPECT_THAT(ReadFile(file), HasSubstr("0 found"));
}

TEST_F(AddendTest, TraceExportsForPlainLibTorch) {
  const std::string path = Path("exported.pt");
  const Result exported = Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--export", path});
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_THAT(exported.out, testing::EndsWith("\nWritten: " + path + "\n"));
  // What other programs read holds nothing else.
  const Result data = Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--export", path, "--json"});
  EXPECT_TRUE(Json::accept(data.out)) << data.out;
  const Result dot =
      Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--export", path, "--graph", "dot"});
  EXPECT_THAT(dot.out, testing::Not(HasSubstr("Written")));
  const std::string graph = Path("graph.json");
  const Result both = Run(
      {"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--export", path, "--graph", "json", "--out", graph});
  EXPECT_EQ(both.out, "Written: " + path + "\nWritten: " + graph + "\n");
  // It is a model like the one that was recorded.
  const Arguments input = {"--input", SampleOf("digits") + ":dim=2,3", "--baseline", "0", "--json"};
  EXPECT_EQ(Json::parse(Run(Arguments{"decompose", path} + input).out)["targets"],
            Json::parse(Run(Arguments{"decompose", ModelOf("digits")} + input).out)["targets"]);
  const std::string table = Save("ones.safetensors", at::ones({2, 6}));
  ExpectError({"trace", kAwkward, "--input", table, "--export", path}, "cannot export");
}

TEST_F(AddendTest, TraceTellsWhatIsMissing) {
  const Result fine = Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--require"});
  EXPECT_EQ(fine.code, 0) << fine.out << fine.err;
  EXPECT_THAT(fine.out, HasSubstr("Nothing is missing"));
  const std::string wrong = Save("wrong.safetensors", at::ones({2, 6}));
  const Result few = Run({"trace", "tests/conformance/models/mixed.pt", "--input", wrong, "--require", "--json"});
  EXPECT_EQ(few.code, 1) << few.out << few.err;
  EXPECT_EQ(Json::parse(few.out)["unmet"][0]["kind"], "input");
  const std::string folder = Path("required");
  ASSERT_EQ(Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--save", folder}).code, 0);
  const Result shape = Run({"trace", folder, "--input", wrong, "--require"});
  EXPECT_EQ(shape.code, 1) << shape.out << shape.err;
  EXPECT_THAT(shape.out, HasSubstr("recorded was"));
  ExpectError({"trace", ModelOf("digits"), "--input", wrong, "--require", "--check"}, "runs nothing");
  ExpectError({"trace", ModelOf("digits"), "--input", wrong, "--method", "missing"}, "has no method missing");
}

TEST_F(AddendTest, TraceRefuses) {
  const Arguments base = {"trace", ModelOf("digits"), "--input", SampleOf("digits")};
  ExpectError(base + Arguments{"--graph", "html"}, "--out FILE");
  ExpectError(base + Arguments{"--graph", "json", "--json"}, "--graph json");
  ExpectError(base + Arguments{"--save", Save("file.safetensors", at::ones({1}))}, "is a file");
  ExpectError({"trace", ModelOf("digits"), "--input", SampleOf("digits") + ":dim=1"}, "nothing is split");
}

// ---- check, ops, help

// ---- attribute

// One sweep back gives what the decomposition gives, for all targets that are asked for.
TEST_F(AddendTest, AttributeGivesWhatDecomposeGives) {
  for (const Example& example : Examples()) {
    for (const std::string preset : {"preset=faithful", "preset=fast"}) {
      SCOPED_TRACE(example.name + " " + preset);
      const Arguments common = example.input + Arguments{"--policy", preset, "--dtype", "float64", "--json"};
      const Result forward = Run(Arguments{"decompose"} + common + Arguments{"--target", "1"});
      const Result back = Run(Arguments{"attribute"} + common + Arguments{"--target", "1", "--target", "1-0"});
      ASSERT_EQ(back.code, 0) << back.err;
      EXPECT_EQ(back.err, "");
      const Json whole = Json::parse(forward.out);
      const Json record = Json::parse(back.out);
      for (const char* same : {"components", "inputs", "policy", "model", "kind", "noun", "at"}) {
        EXPECT_EQ(record[same], whole[same]) << same;
      }
      ASSERT_EQ(record["targets"].size(), 2u);
      const Json& one = record["targets"][0];
      const Json& other = whole["targets"][0];
      EXPECT_EQ(one["name"], other["name"]);
      EXPECT_EQ(one["probability"], other["probability"]);
      const double scale = other["mass"];
      for (const char* number : {"value", "reference", "leftover", "recovery"}) {
        EXPECT_NEAR(one[number].get<double>(), other[number].get<double>(), 1e-10 * scale) << number;
      }
      ASSERT_EQ(one["contributions"].size(), example.parts);
      for (size_t k = 0; k < example.parts; ++k) {
        EXPECT_NEAR(one["contributions"][k].get<double>(), other["contributions"][k].get<double>(), 1e-10 * scale);
      }
      EXPECT_EQ(record["targets"][1]["index"], Json({0, 1}));
      EXPECT_EQ(record["targets"][1]["subtract"], Json({0, 0}));
      EXPECT_LT(RelativeError(record["targets"][1]), 1e-10);
      EXPECT_FALSE(record.contains("operators"));
    }
  }
}

TEST_F(AddendTest, AttributeShowsWhatPassesThroughOperators) {
  const Result result = Run(Arguments{"attribute"} + Examples()[1].input + Arguments{"--nodes", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  ASSERT_GT(record["operators"].size(), 3u);
  // The last operator of the model is a linear layer: all of the difference passes through it.
  const Json& last = record["operators"].back();
  const Json& target = record["targets"][0];
  EXPECT_EQ(last["op"], "aten::linear");
  EXPECT_NEAR(last["passed"][0].get<double>(), target["value"].get<double>() - target["reference"].get<double>(),
              1e-5 * target["mass"].get<double>());
  const Result table = Run(Arguments{"attribute"} + Examples()[1].input + Arguments{"--nodes", "--top", "11"});
  ExpectNarrow(table.out);
  EXPECT_THAT(table.out, AllOf(HasSubstr("passes"), HasSubstr("leaves over"), HasSubstr("aten::linear"),
                               HasSubstr("--top shows more")));
}

TEST_F(AddendTest, AttributeShowsTheGraphWithWhatPassesThroughIt) {
  const std::string page = Path("graph.html");
  const Result result = Run(Arguments{"attribute"} + Examples()[1].input +
                            Arguments{"--target", "3", "--target", "5", "--graph", page, "--top", "3"});
  ASSERT_EQ(result.code, 0) << result.err;
  ExpectNarrow(result.out);
  EXPECT_THAT(result.out, AllOf(HasSubstr("Page written: "), Not(HasSubstr("passes"))));
  const std::string text = ReadFile(page);
  EXPECT_THAT(text, AllOf(HasSubstr("passed to 3"), HasSubstr("passed to 5"), HasSubstr("aten::linear")));
  ExpectError(Arguments{"attribute"} + Examples()[1].input + Arguments{"--graph", ""}, "the path of a file");
}

TEST_F(AddendTest, AttributeWritesATensorForEachInput) {
  const std::string out = Path("out.safetensors");
  const Result result = Run(Arguments{"attribute"} + Examples()[1].input +
                            Arguments{"--target", "3", "--target", "5", "--target", "3-5", "--out", out});
  ASSERT_EQ(result.code, 0) << result.err;
  ExpectNarrow(result.out);
  EXPECT_THAT(result.out, AllOf(HasSubstr("\"3\""), HasSubstr("\"5\""), HasSubstr("3 minus 5")));
  const TensorFile file = ReadTensorFile(out);
  const at::Tensor contributions = *file.Find("contributions");
  const at::Tensor elements = *file.Find("input/elements");
  EXPECT_EQ(contributions.sizes(), at::IntArrayRef({3, 64}));
  EXPECT_EQ(elements.sizes(), at::IntArrayRef({3, 1, 1, 8, 8}));
  EXPECT_LE((elements.reshape({3, 64}) - contributions).abs().max().item<double>(), 1e-5);
  EXPECT_LE((contributions[0] - contributions[1] - contributions[2]).abs().max().item<double>(), 1e-4);
  const at::Tensor recovery = contributions.sum(1) + *file.Find("reference") + *file.Find("leftover");
  EXPECT_LE((recovery - *file.Find("value")).abs().max().item<double>(), 1e-4);
  EXPECT_EQ(Json::parse(file.metadata.at("targets")).size(), 3u);
}

TEST_F(AddendTest, AttributeRefusesWhatHasNoAdjoint) {
  for (const char* choice : {"nonlinearity=abs_affine", "bias=abs"}) {
    ExpectError(Arguments{"attribute"} + Examples()[1].input + Arguments{"--policy", choice},
                std::string(choice) + " looks at all components together");
  }
  ExpectError(Arguments{"attribute"} + Examples()[1].input + Arguments{"--target", "0,99"}, "target 0,99 does not fit");
  ExpectError(Arguments{"attribute"} + Examples()[1].input + Arguments{"--at", "nowhere"}, "called nowhere");
  ExpectError(Arguments{"attribute"} + Examples()[1].input + Arguments{"--top", "-1"}, "not negative");
}

TEST_F(AddendTest, CheckPassesOnTheThreeModels) {
  for (const Example& example : Examples()) {
    SCOPED_TRACE(example.name);
    const Result result = Run(Arguments{"check"} + example.input);
    EXPECT_EQ(result.code, 0) << result.out << result.err;
    EXPECT_THAT(result.out, HasSubstr(" operators checked, 0 failed; worst: #"));
    ExpectNarrow(result.out);
    const Json record = Json::parse(Run(Arguments{"check"} + example.input + Arguments{"--json"}).out);
    ASSERT_GT(record["operators"].size(), 5);
    for (const Json& one : record["operators"]) EXPECT_TRUE(one["ok"]) << one;
    EXPECT_THAT(record["operators"][0]["file"].get<std::string>(), HasSubstr(example.name + ".py"));
  }
}

TEST_F(AddendTest, CheckFailsWhereRoundingIsNotAllowed) {
  const Arguments strict = Arguments{"check"} + Examples()[1].input + Arguments{"--policy", "tolerance=1e-12"};
  const Result result = Run(strict);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("FAILED: its parts do not add up"));
  EXPECT_THAT(result.out, Not(HasSubstr(", 0 failed")));
  ExpectNarrow(result.out);
  // The worst come first, and failures before everything else.
  const Json operators = Json::parse(Run(strict + Arguments{"--json"}).out)["operators"];
  EXPECT_FALSE(operators[0]["ok"]);
  // As an error it is one line, but not the user's fault.
  const Result stopped = Run(strict + Arguments{"--policy", "on_failure=error"});
  EXPECT_EQ(stopped.code, 1);
  EXPECT_THAT(stopped.err, AllOf(StartsWith("addend: "), HasSubstr("digits.py:")));
}

TEST_F(AddendTest, OpsListsRulesWithTheirKinds) {
  const Result result = Run({"ops"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, MatchesRegex("(.|\n)*\naten::linear +Affine\n(.|\n)*"));
  EXPECT_THAT(result.out, MatchesRegex("(.|\n)*\n[0-9]+ operators with a rule\n"));
  const Json record = Json::parse(Run({"ops", "--json"}).out);
  EXPECT_THAT(result.out, HasSubstr(absl::StrCat("\n", record["operators"].size(), " operators ")));
}

TEST_F(AddendTest, HelpFitsATerminalAndWarns) {
  EXPECT_THAT(Run({"--version"}).out, MatchesRegex("addend [0-9.]+ \\(LibTorch .*\\)\n"));
  for (const Arguments& arguments : {Arguments{"--help"},
                                     {"decompose", "--help"},
                                     {"attribute", "--help"},
                                     {"check", "--help"},
                                     {"ops", "--help"}}) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 0);
    for (const auto line : absl::StrSplit(result.out, '\n'))
      EXPECT_LE(line.size(), 80) << std::string(line.data(), line.size());
    if (arguments[0] == "ops") continue;
    EXPECT_THAT(result.out, HasSubstr("A TorchScript file is a program: load only what you trust."));
  }
}

// ---- what users get wrong

TEST_F(AddendTest, CommandLinesThatAreWrong) {
  ExpectError({}, "no command is given; run addend --help");
  ExpectError({"explain"}, "there is no command explain");
  ExpectError({"decompose"}, "MODEL is required; run addend decompose --help");
  ExpectError({"decompose", ModelOf("digits")}, "--input is required");
  ExpectError(Table() + Arguments{"--colour"}, "--colour");
  ExpectError(Table() + Arguments{"--top", "many"}, "--top");
  ExpectError(Table() + Arguments{"--top", "-1"}, "--top");
  ExpectError(Table() + Arguments{"--memory", "much"}, "--memory");
  ExpectError(Table() + Arguments{"--memory", "-5"}, "--memory");
  ExpectError(Table() + Arguments{"--dtype", "float16"}, "float16");
  ExpectError({"ops", "all"}, "run addend ops --help");
}

TEST_F(AddendTest, ModelsThatAreNone) {
  const std::string text = Path("text.pt");
  std::ofstream(text) << "no model";
  const std::string empty = Path("empty.pt");
  std::ofstream(empty).close();
  const Arguments input = {"--input", SampleOf("digits")};
  ExpectError(Arguments{"decompose", Path("missing.pt")} + input, "cannot open");
  ExpectError(Arguments{"decompose", text} + input, "is not a TorchScript file");
  ExpectError(Arguments{"decompose", empty} + input, "is not a TorchScript file");
  ExpectError(Arguments{"decompose", Path("")} + input, "is not a TorchScript file");
  ExpectError(Arguments{"check", SampleOf("digits")} + input, "is not a TorchScript file");
}

TEST_F(AddendTest, InputsThatDoNotFit) {
  const auto expect = [&](const std::string& input, const std::string& message) {
    ExpectError({"decompose", ModelOf("breast_cancer"), "--input", input, "--html", Path("page.html")}, message);
  };
  const std::string text = Path("text.npy");
  std::ofstream(text) << "no tensor";
  expect(Path("missing.npy"), "cannot open");
  expect(text, "a .npy or .safetensors file is expected");
  expect(Path(""), "it is a folder");
  expect(Save("shape.safetensors", at::zeros({1, 7})), "The size of tensor a (7) must match the size of tensor b (30)");
  expect(Save("double.safetensors", at::zeros({1, 30}, at::kDouble)), "--dtype float32");
  expect(Save("number.safetensors", at::zeros({})), "cannot be split");
  ExpectError(
      {"decompose", ModelOf("language"), "--input", Save("token.safetensors", at::full({1, 96}, 100000, at::kLong))},
      "index out of range");
}

TEST_F(AddendTest, SplitsThatDoNotFit) {
  const auto expect = [&](const std::string& split, const std::string& message) {
    ExpectError({"decompose", ModelOf("breast_cancer"), "--input", SampleOf("breast_cancer") + split}, message);
  };
  expect(":dim=5", "has no dimension 5 to split along");
  expect(":dim=-3", "has no dimension -3");
  expect(":dim=1,1", "twice");
  expect(":dim=x", "is no split; use plain, dim=1");
  expect(":rows", "is no split; use plain, dim=1");
  expect(":plain", "no input is split");
  expect(":labels=nowhere", "has no tensor nowhere (it has input, label)");
  expect(":labels=input", "labels are integers");
  expect("#nowhere", "has no tensor nowhere; it has input, label");
}

TEST_F(AddendTest, RowsThatAreNotThere) {
  const Arguments batch = {"decompose", ModelOf("breast_cancer"), "--input", HeldoutOf("breast_cancer")};
  ExpectError(batch, "choose one with --row 0 to --row 199");
  ExpectError(batch + Arguments{"--row", "200"}, "--row 200 is out of range");
  ExpectError(batch + Arguments{"--row", "-1"}, "--row -1 is out of range");
  ExpectError(Table() + Arguments{"--row", "1"}, "has 1 row, number 0");
}

TEST_F(AddendTest, BaselinesThatDoNotFit) {
  const Arguments text = {"decompose", ModelOf("language"), "--input", SampleOf("language")};
  ExpectError(Table() + Arguments{"--baseline", "missing.npy"}, "there is no such file, and it is no number");
  ExpectError(Table() + Arguments{"--baseline", "nan"}, "not finite");
  ExpectError(Table() + Arguments{"--baseline", "mean:missing.npy"}, "there is no file missing.npy");
  ExpectError(Table() + Arguments{"--baseline", "mean"}, "it is for images");
  ExpectError(Table() + Arguments{"--baseline", "buffer:none"}, "the model holds no tensor of that name");
  const Result result =
      Run(Table() + Arguments{"--baseline", "mean:" + HeldoutOf("breast_cancer"), "--verify-reference", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  EXPECT_LE(record["report"]["reference_error"].get<double>(), 1e-4);
  EXPECT_EQ(record["inputs"][0]["baseline_sha256"].get<std::string>().size(), 64u);
  ExpectError(Table() + Arguments{"--baseline", "token:0"}, "holds numbers, not token ids");
  ExpectError(Table() + Arguments{"--baseline", "0", "--baseline", "1"}, "given 2 times, but 1 input is split");
  ExpectError(Table() + Arguments{"--baseline", Save("b.safetensors", at::zeros({1, 7}))},
              "baseline of shape f32[1, 7]");
  ExpectError(text + Arguments{"--baseline", "token:nothing"}, "nothing is neither a number nor a token");
  ExpectError(text + Arguments{"--baseline", "1.5"}, "is a token id, not 1.5");
  ExpectError(text + Arguments{"--baseline", "token:5000"}, "index out of range");
}

TEST_F(AddendTest, PoliciesTargetsAndNamesThatDoNotExist) {
  ExpectError(Table() + Arguments{"--policy", "colour=red"}, "policy has no field colour; choose one of preset");
  ExpectError(Table() + Arguments{"--policy", "preset=best"}, "choose one of auto, faithful, fast");
  ExpectError(Table() + Arguments{"--policy", "fast"}, "not of the form field=value");
  ExpectError({"check", ModelOf("digits"), "--input", SampleOf("digits"), "--policy", "check=off"}, "every operator");
  ExpectError(Table() + Arguments{"--target", "unknown"}, "or a class: malignant, benign");
  ExpectError(Table() + Arguments{"--target", "2"}, "target 2 does not fit an output of shape [1, 2]");
  ExpectError(Table() + Arguments{"--at", "nowhere"}, "nothing inside the model is called nowhere");
  ExpectError(Table() + Arguments{"--at", "output.1"}, "the model has no output.1; it has 1 output");
  ExpectError(Table() + Arguments{"--names", "a,b,c"}, "--names gives 3 names, but the input is split into 30 parts");
  ExpectError(Table() + Arguments{"--names", Path("missing")}, "there is no file");
  ExpectError(Table() + Arguments{"--classes", "a,b,c"}, "--classes gives 3 names, but output has 2 elements");
}

TEST_F(AddendTest, PathsThatCannotBeWritten) {
  for (const std::string option : {"--html", "--out"}) {
    ExpectError(Table() + Arguments{option, Path("no/where")}, "there is no folder");
    ExpectError(Table() + Arguments{option, Path("")}, "it is a folder");
    ExpectError(Table() + Arguments{option, ""}, option);
    // A run that fails leaves alone what was there.
    const std::string kept = Path("kept");
    std::ofstream(kept) << "kept";
    ExpectError(Table() + Arguments{option, kept, "--target", "7"}, "does not fit");
    EXPECT_EQ(ReadFile(kept), "kept");
  }
  const std::string copy = Path("sample.safetensors");
  fs::copy_file(SampleOf("breast_cancer"), copy);
  ExpectError({"decompose", ModelOf("breast_cancer"), "--input", copy + ":dim=1", "--out", copy}, "it is read as well");
  ExpectError(Table() + Arguments{"--out", Path("same"), "--html", Path("same")}, "the same file");
}

}  // namespace
}  // namespace addend
