#include "tools/addend/describe.h"

#include <ATen/TensorOperators.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/release.h"
#include "core/program/tensor_io.h"
#include "third_party/torch/version.h"
#include "tools/addend/files.h"

namespace addend::cli {
namespace {

// The file's metadata under a key; "" if there is none.
std::string Meta(const LoadedInput& input, const std::string& key) {
  const auto entry = input.metadata.find(key);
  return entry == input.metadata.end() ? "" : entry->second;
}

std::string SentenceOf(const LoadedInput& loaded, std::optional<int64_t> row) {
  const std::vector<std::string> all = ParseJsonList(Meta(loaded, "texts"));
  if (row && *row < static_cast<int64_t>(all.size())) return all[*row];
  return Meta(loaded, "text");
}

// Words that the ids of each component spell; empty if there is no vocabulary.
std::vector<std::string> SpelledBy(const LoadedInput& loaded, const PreparedInput& prepared, int64_t first,
                                   int64_t numc) {
  // Words of several samples would run into each other.
  const bool one_sample = loaded.input.value.dim() < 2 || loaded.input.value.size(0) == 1;
  if (!loaded.ids() || !one_sample) return {};
  const std::vector<std::string> vocabulary = ParseJsonList(Meta(loaded, "vocabulary"));
  if (vocabulary.empty()) return {};
  std::vector<std::string> words(numc);
  const at::Tensor ids = prepared.value.to(at::kCPU, at::kLong).contiguous();
  const at::Tensor labels = prepared.labels.to(at::kCPU).contiguous();
  for (int64_t i = 0; i < ids.numel(); ++i) {
    const int64_t label = labels.data_ptr<int64_t>()[i];
    if (label < 0) continue;
    const int64_t id = ids.data_ptr<int64_t>()[i];
    const bool known = id >= 0 && id < static_cast<int64_t>(vocabulary.size());
    words[label - first] += known ? vocabulary[id] : absl::StrCat("[", id, "]");
  }
  return words;
}

ExplainedInput DescribeLoaded(const LoadedInput& loaded, std::optional<int64_t> row) {
  ExplainedInput own = DescribeInput(loaded.input);
  own.name = loaded.name;
  if (!loaded.inside()) {
    own.path = loaded.path;
    own.row = row;
  }
  own.sha256 = loaded.sha256;
  own.split = loaded.split;
  own.baseline = loaded.baseline;
  own.baseline_given = loaded.baseline_given;
  own.baseline_sha256 = loaded.baseline_sha256;
  return own;
}

}  // namespace

Writer ThisProgram() {
  Writer writer = {kRelease, "", LibTorchVersion()};
  try {
    writer.sha256 = Sha256OfFile("/proc/self/exe");
  } catch (const Error&) {
    // Not Linux, or /proc is not mounted.
  }
  return writer;
}

ExplainedRun DescribeFiles(const LoadedRun& run, const Report& report) {
  ExplainedRun explained;
  explained.report = report;
  explained.preset = run.policy.preset;
  explained.model_path = run.model_path;
  explained.model_sha256 = run.model_sha256;
  for (const LoadedInput& loaded : run.inputs) explained.inputs.push_back(DescribeLoaded(loaded, run.row));
  return explained;
}

ExplainedRun DescribeRun(const LoadedRun& run, const std::string& names, const std::string& classes) {
  ExplainedRun explained = DescribeFiles(run, Report());
  const PreparedInputs prepared = Prepare(run.Inputs(), run.model->NamedTensors());
  std::vector<std::string> asked;
  if (!names.empty()) {
    asked = ReadList("--names", names);
    if (static_cast<int64_t>(asked.size()) != prepared.numc) {
      throw InvalidArgument(absl::StrCat("--names gives ", asked.size(), " names, but the input is split into ",
                                         prepared.numc, " parts"));
    }
  }
  int64_t first = 0;
  for (size_t k = 0; k < run.inputs.size(); ++k) {
    const LoadedInput& loaded = run.inputs[k];
    if (loaded.plain()) continue;
    ExplainedInput& own = explained.inputs[k];
    // The description has the word; only the model knows what it stands for.
    if (absl::StartsWith(loaded.input.baseline.word, "buffer:")) {
      own.input.baseline = Baseline::Of(prepared.inputs[k].reference);
    }
    const int64_t numc = NumComponents(loaded.input);
    if (!asked.empty()) own.names.assign(asked.begin() + first, asked.begin() + first + numc);
    own.own_names = ParseJsonList(Meta(loaded, "names"));
    // Components that are columns of several numbers are named by the columns.
    if (static_cast<int64_t>(own.own_names.size()) != numc) own.own_names = ParseJsonList(Meta(loaded, "columns"));
    if (static_cast<int64_t>(own.own_names.size()) != numc) {
      own.own_names = SpelledBy(loaded, prepared.inputs[k], first, numc);
    }
    own.stated_kind = Meta(loaded, "kind");
    own.sentence = SentenceOf(loaded, run.row);
    if (explained.classes.empty()) explained.classes = ParseJsonList(Meta(loaded, "classes"));
    first += numc;
  }
  explained.components = NameComponents(explained.inputs, prepared.numc);
  AddValues(explained.inputs, prepared, explained.components);
  if (!classes.empty()) explained.classes = ReadList("--classes", classes);
  return explained;
}

std::map<std::string, std::string> MetadataOf(const Json& record) {
  Json names = Json::array();
  for (const Json& component : record["components"]) names.push_back(component["name"]);
  return {{"names", Dump(names)},
          {"model", Dump(record["model"])},
          {"inputs", Dump(record["inputs"])},
          {"preset", record["preset"].get<std::string>()},
          {"policy", Dump(record["policy"])},
          {"libtorch", Dump(record["libtorch"])},
          {"addend", Dump(record["addend"])}};
}

}  // namespace addend::cli
