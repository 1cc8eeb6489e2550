#include "tools/addend/parts.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "tools/addend/files.h"

namespace addend::cli {
namespace {

// What the file says under a key, "" where it says nothing.
std::string Meta(const LoadedInput& input, const std::string& key) {
  const auto entry = input.metadata.find(key);
  return entry == input.metadata.end() ? "" : entry->second;
}

// The components of one input, from its elements.
struct Elements {
  std::vector<int64_t> count;  // how many of the input's elements are of a component
  std::vector<double> sum;
  std::vector<double> baseline_sum;
  std::vector<std::string> words;  // where ids have a vocabulary: what they spell
};

Elements Collect(const PreparedInput& input, int64_t first, int64_t numc, const std::vector<std::string>& vocabulary) {
  Elements elements;
  elements.count.resize(numc);
  elements.sum.resize(numc);
  elements.baseline_sum.resize(numc);
  if (!vocabulary.empty()) elements.words.resize(numc);
  if (!input.labels.defined()) return elements;
  const at::Tensor values = input.value.to(at::kDouble);
  const at::Tensor baselines = input.reference.to(at::kDouble);
  const double* value = values.data_ptr<double>();
  const double* baseline = baselines.data_ptr<double>();
  const int64_t* label = input.labels.data_ptr<int64_t>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    if (label[i] < 0) continue;
    const int64_t c = label[i] - first;
    ++elements.count[c];
    elements.sum[c] += value[i];
    elements.baseline_sum[c] += baseline[i];
    if (elements.words.empty()) continue;
    const auto id = static_cast<size_t>(value[i]);
    elements.words[c] += id < vocabulary.size() ? vocabulary[id] : absl::StrCat("[", id, "]");
  }
  return elements;
}

// The dimensions of a split, counted from the front.
std::vector<int64_t> DimsOf(const Input& input) {
  std::vector<int64_t> dims = input.split.dims;
  for (int64_t& d : dims) d += d < 0 ? input.value.dim() : 0;
  return dims;
}

bool IsImage(const Input& input, int64_t numc) {
  const int64_t rank = input.value.dim();
  if (input.split.kind != Split::Kind::kDims || rank < 3 || rank > 4 || (rank == 4 && input.value.size(0) != 1)) {
    return false;
  }
  return DimsOf(input) == std::vector<int64_t>{rank - 2, rank - 1} && numc > 1;
}

std::string KindOf(const LoadedInput& loaded, int64_t numc, bool named) {
  if (loaded.inside()) return "list";
  const std::string said = Meta(loaded, "kind");
  if (loaded.ids()) return named && (said.empty() || said == "text") ? "text" : "list";
  const bool image = IsImage(loaded.input, numc);
  if (image && (said == "image" || (said.empty() && loaded.input.value.dim() == 4))) return "image";
  const bool columns = loaded.input.split.kind == Split::Kind::kDims && loaded.input.value.dim() == 2 &&
                       DimsOf(loaded.input) == std::vector<int64_t>{1};
  return columns && (said.empty() || said == "table") ? "table" : "list";
}

std::string NounOf(const std::string& kind, const Split& split) {
  if (kind == "text") return split.kind == Split::Kind::kLabels ? "word" : "token";
  return kind == "table" ? "feature" : kind == "image" ? "pixel" : "part";
}

// Names where nobody gave any: positions, counted from 0.
std::string PositionName(const LoadedInput& loaded, const std::string& kind, int64_t c) {
  if (loaded.input.split.kind != Split::Kind::kDims) return absl::StrCat("part ", c);
  std::vector<int64_t> dims = DimsOf(loaded.input);
  std::vector<int64_t> index(dims.size());
  for (size_t k = dims.size(); k-- > 0;) {
    index[k] = c % loaded.input.value.size(dims[k]);
    c /= loaded.input.value.size(dims[k]);
  }
  if (kind == "image") return absl::StrCat("row ", index[0], ", column ", index[1]);
  if (index.size() > 1) return absl::StrCat("[", absl::StrJoin(index, ", "), "]");
  return absl::StrCat(kind == "table" ? "column " : "position ", index[0]);
}

// Words with the spaces that follow them in the sentence; as they are where they are not its words.
std::vector<std::string> WithSpaces(const std::vector<std::string>& words, const std::string& sentence) {
  std::vector<std::string> spaced;
  size_t at = 0;
  for (const std::string& word : words) {
    if (sentence.compare(at, word.size(), word) != 0) return words;
    size_t end = at + word.size();
    while (end < sentence.size() && sentence[end] == ' ') ++end;
    spaced.push_back(sentence.substr(at, end - at));
    at = end;
  }
  return at == sentence.size() ? spaced : words;
}

std::string SentenceOf(const LoadedInput& loaded, std::optional<int64_t> row) {
  const std::vector<std::string> all = ParseJsonList(Meta(loaded, "texts"));
  if (row && *row < static_cast<int64_t>(all.size())) return all[*row];
  return Meta(loaded, "text");
}

Image MakeImage(const Input& input, const Elements& elements) {
  Image image;
  const int64_t rank = input.value.dim();
  image.height = input.value.size(rank - 2);
  image.width = input.value.size(rank - 1);
  image.channels = input.value.size(rank - 3);
  for (size_t i = 0; i < elements.sum.size(); ++i) {
    const double baseline = elements.baseline_sum[i] / elements.count[i];
    image.values.push_back(elements.sum[i] / elements.count[i]);
    if (i == 0) image.value_min = image.value_max = image.values[0];
    image.value_min = std::min({image.value_min, image.values[i], baseline});
    image.value_max = std::max({image.value_max, image.values[i], baseline});
  }
  return image;
}

}  // namespace

Parts DescribeParts(const LoadedRun& run, const std::string& names, const std::string& classes) {
  const PreparedInputs prepared = Prepare(run.Inputs(), run.model->NamedTensors());
  Parts result;
  std::vector<std::string> asked;
  if (!names.empty()) {
    asked = ReadList("--names", names);
    if (static_cast<int64_t>(asked.size()) != prepared.numc) {
      throw InvalidArgument(absl::StrCat("--names gives ", asked.size(), " names, but the input is split into ",
                                         prepared.numc, " parts"));
    }
  }
  const auto split = std::count_if(run.inputs.begin(), run.inputs.end(), [](const auto& i) { return !i.plain(); });
  std::vector<std::string> kinds;
  std::string noun;
  int64_t first = 0;
  for (size_t k = 0; k < run.inputs.size(); ++k) {
    const LoadedInput& loaded = run.inputs[k];
    if (loaded.plain()) continue;
    const int64_t numc = NumComponents(loaded.input);
    std::vector<std::string> vocabulary;
    // Words of several samples would run into each other.
    const bool one_sample = loaded.input.value.dim() < 2 || loaded.input.value.size(0) == 1;
    if (loaded.ids() && one_sample) vocabulary = ParseJsonList(Meta(loaded, "vocabulary"));
    const Elements elements = Collect(prepared.inputs[k], first, numc, vocabulary);
    const std::string sentence = SentenceOf(loaded, run.row);
    std::vector<std::string> own;
    if (!asked.empty()) own.assign(asked.begin() + first, asked.begin() + first + numc);
    if (own.empty()) own = ParseJsonList(Meta(loaded, "names"));
    if (static_cast<int64_t>(own.size()) != numc) own = elements.words;
    const std::string kind = KindOf(loaded, numc, !own.empty());
    if (kind == "text" && !sentence.empty()) own = WithSpaces(own, sentence);
    for (int64_t c = 0; c < numc; ++c) {
      Part part;
      part.name = own.empty() ? PositionName(loaded, kind, c) : own[c];
      if (split > 1 && asked.empty()) part.name = absl::StrCat(loaded.name, ": ", part.name);
      if (!loaded.ids() && !loaded.inside() && elements.count[c] == 1) {
        part.value = elements.sum[c];
        part.baseline = elements.baseline_sum[c];
      }
      result.parts.push_back(std::move(part));
    }
    if (split == 1) {
      if (kind == "image") result.image = MakeImage(loaded.input, elements);
      result.text = sentence.empty() && kind == "text" ? absl::StrJoin(own, "") : sentence;
    }
    if (result.classes.empty()) result.classes = ParseJsonList(Meta(loaded, "classes"));
    kinds.push_back(kind);
    noun = NounOf(kind, loaded.input.split);
    first += numc;
  }
  // Several inputs make one list, unless all are tables.
  const bool same = std::all_of(kinds.begin(), kinds.end(), [&](const std::string& kind) { return kind == kinds[0]; });
  result.kind = same && (split == 1 || kinds[0] == "table") ? kinds[0] : "list";
  result.noun = result.kind == "list" ? "part" : noun;
  if (!classes.empty()) {
    result.classes = ReadList("--classes", classes);
    result.classes_asked = true;
  }
  return result;
}

}  // namespace addend::cli
