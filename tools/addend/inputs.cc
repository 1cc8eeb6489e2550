#include "tools/addend/inputs.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/audit/model_source.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/explain/baselines.h"
#include "core/load/load_model.h"
#include "core/model/program_model.h"
#include "core/program/program_dtype.h"
#include "core/program/program_file.h"
#include "core/program/tensor_io.h"
#include "core/program/traced_calls.h"
#include "tools/addend/files.h"
#include "tools/addend/input_file.h"

namespace addend::cli {
namespace {

// The tensor of a CSV file that tells the numbers of one column from those of another.
constexpr char kColumns[] = "columns";
constexpr char kSplits[] = "plain, dim=1, dim=2,3, labels=NAME_OR_FILE or parts=NAME_OR_FILE";

// A split as it was typed.
struct SplitText {
  Split::Kind kind = Split::Kind::kPlain;
  std::vector<int64_t> dims;
  std::string source;  // of labels or parts
};

std::optional<SplitText> ParseSplit(const std::string& text) {
  SplitText split;
  if (text == "plain") return split;
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) return std::nullopt;
  const std::string key = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  if (key == "dim" || key == "dims") {
    split.kind = Split::Kind::kDims;
    for (const auto piece : absl::StrSplit(value, ',')) {
      int64_t dim = 0;
      if (!absl::SimpleAtoi(piece, &dim)) return std::nullopt;
      split.dims.push_back(dim);
    }
  } else if (key == "labels" || key == "parts") {
    split.kind = key == "labels" ? Split::Kind::kLabels : Split::Kind::kParts;
    split.source = value;
  } else {
    return std::nullopt;
  }
  return split;
}

struct InputText {
  TensorPlace file;
  std::optional<SplitText> split;
};

InputText ParseInput(const std::string& text) {
  // Colons occur in file names as well: only what reads as a split is one.
  for (size_t colon = text.rfind(':'); colon != std::string::npos && colon > 0; colon = text.rfind(':', colon - 1)) {
    auto split = ParseSplit(text.substr(colon + 1));
    if (split) return {ParseTensorPlace(text.substr(0, colon)), std::move(split)};
  }
  const InputText whole = {ParseTensorPlace(text), std::nullopt};
  const size_t colon = text.rfind(':');
  if (colon != std::string::npos && !FileExists(whole.file.path) &&
      FileExists(ParseTensorPlace(text.substr(0, colon)).path)) {
    throw InvalidArgument(
        absl::StrCat("\"", text.substr(colon + 1), "\" in --input ", text, " is no split; use ", kSplits));
  }
  return whole;
}

// Labels or parts: a tensor of the input's own file, or of another one.
at::Tensor LoadBeside(const std::string& source, const TensorFile& file, const std::string& path,
                      const std::string& what, const FileFormat& format) {
  if (const at::Tensor* own = file.Find(source)) return *own;
  const TensorPlace other = ParseTensorPlace(source);
  if (!FileExists(other.path)) {
    throw NotFound(absl::StrCat(path, " has no tensor ", source, " (it has ", file.Names(), "), and there is no file ",
                                source, " to read the ", what, " from"));
  }
  return SelectTensor(ReadInputFile(other.path, format), other, {what}).second;
}

Split DefaultSplit(const std::string& name, const at::Tensor& value) {
  if (value.scalar_type() == at::kBool) return Split::Plain();
  if (value.dim() == 0) throw InvalidArgument(absl::StrCat(name, " is a single number, which cannot be split"));
  if (!at::isFloatingType(value.scalar_type())) return Split::AlongDims({value.dim() - 1});
  switch (value.dim()) {
    case 1:
      return Split::AlongDims({0});
    case 2:
    case 3:
      return Split::AlongDims({1});
    case 4:
      return Split::AlongDims({2, 3});
    default:
      throw InvalidArgument(
          absl::StrCat(name, " has ", value.dim(), " dimensions; say which to split, as in ", name, ":dim=1"));
  }
}

// "token 0 [mask]" where the file says what its tokens stand for.
std::string DescribeToken(const LoadedInput& loaded, int64_t id) {
  const auto entry = loaded.metadata.find("vocabulary");
  const std::vector<std::string> vocabulary =
      entry == loaded.metadata.end() ? std::vector<std::string>() : ParseJsonList(entry->second);
  const bool known = id >= 0 && id < static_cast<int64_t>(vocabulary.size());
  return absl::StrCat("token ", id, known ? " " + vocabulary[id] : "");
}

// One sample along dimension 0, which stays.
at::Tensor PickRow(const at::Tensor& tensor, int64_t row, int64_t dim = 0) {
  return tensor.narrow(dim, row, 1).contiguous();
}

void PickRow(int64_t row, LoadedInput& loaded) {
  Input& input = loaded.input;
  if (input.value.dim() == 0) throw InvalidArgument(absl::StrCat("--row: ", input.name, " has no rows"));
  const int64_t batch = input.value.size(0);
  if (row < 0 || row >= batch) {
    throw InvalidArgument(absl::StrCat("--row ", row, " is out of range: ", input.name, " has ", batch,
                                       batch == 1 ? " row, number 0" : " rows, counted from 0"));
  }
  at::Tensor& labels = input.split.labels;
  if (labels.defined() && AreUnclear(labels, input.value.sizes())) {
    throw InvalidArgument(absl::StrCat("--row ", row, ": the labels of ", input.name, " are ",
                                       ShapeText(labels.sizes()),
                                       ", which may be those of its rows or of its last dimensions; give them as many ",
                                       "dimensions as it has, [1, 3] in place of [3] for columns"));
  }
  const bool leading = labels.defined() && labels.dim() <= input.value.dim() &&
                       labels.sizes() == input.value.sizes().slice(0, labels.dim());
  if (labels.defined() && labels.dim() > 0 && labels.size(0) == batch &&
      (leading || labels.dim() == input.value.dim())) {
    labels = PickRow(labels, row);
  }
  at::Tensor& parts = input.split.parts;
  if (parts.defined() && parts.dim() > 1 && parts.size(1) == batch) parts = PickRow(parts, row, 1);
  at::Tensor& baseline = input.baseline.tensor;
  if (baseline.defined() && baseline.dim() == input.value.dim() && baseline.size(0) == batch) {
    baseline = PickRow(baseline, row);
    if (batch > 1 && baseline.equal(input.value.narrow(0, row, 1))) {
      throw InvalidArgument(absl::StrCat("--row ", row, ": row ", row, " of the baseline of ", input.name,
                                         " is that row itself, from which nothing moves; --baseline mean:FILE takes ",
                                         "the mean of all rows"));
    }
  }
  input.value = PickRow(input.value, row);
  std::vector<OtherNumber> others;
  std::copy_if(loaded.others.begin(), loaded.others.end(), std::back_inserter(others),
               [&](const OtherNumber& own) { return own.row == row; });
  loaded.others = std::move(others);
}

// `whole`: no input may be split; `inside`: something inside the model is, so that inputs are plain unless they say
// otherwise. `first`: what stands for the file; null: it is read.
LoadedInput LoadInput(const InputText& text, std::optional<at::ScalarType> dtype, const FileFormat& format, bool whole,
                      bool inside, const TensorFile* first = nullptr) {
  LoadedInput loaded;
  loaded.path = text.file.path;
  const TensorFile file = first != nullptr ? *first : ReadInputFile(loaded.path, format, &loaded.others);
  const auto& [name, value] = SelectTensor(file, first != nullptr ? TensorPlace() : text.file, {"input"});
  loaded.name = name;
  loaded.metadata = file.metadata;
  if (first == nullptr) loaded.sha256 = Sha256OfFile(loaded.path);
  Input& input = loaded.input;
  input.name = loaded.path;
  input.value = dtype && at::isFloatingType(value.scalar_type()) ? value.to(*dtype) : value;
  SplitText split = text.split.value_or(SplitText());
  if (whole) {
    if (text.split && split.kind != Split::Kind::kPlain) {
      throw InvalidArgument(absl::StrCat("--input ", loaded.path, ": nothing is split into parts here"));
    }
    input.split = Split::Plain();
  } else if (!text.split) {
    // All numbers of a column of a table are one component.
    const at::Tensor* columns = IsCsvPath(loaded.path) && !inside ? file.Find(kColumns) : nullptr;
    if (columns != nullptr) split.source = kColumns;
    input.split = inside ? Split::Plain() : columns ? Split::ByLabels(*columns) : DefaultSplit(input.name, value);
  } else if (split.kind == Split::Kind::kDims) {
    input.split = Split::AlongDims(split.dims);
  } else if (split.kind == Split::Kind::kLabels) {
    input.split = Split::ByLabels(LoadBeside(split.source, file, loaded.path, "labels", format));
  } else if (split.kind == Split::Kind::kParts) {
    input.split = Split::Parts(LoadBeside(split.source, file, loaded.path, "parts", format));
  }
  loaded.split = DescribeSplit(input.split, split.source);
  return loaded;
}

// SELECTOR:SPLIT; colons occur in selectors as well.
LoadedInput LoadInside(const std::string& text) {
  const size_t colon = text.rfind(':');
  const std::string selector = text.substr(0, colon);
  const auto split = colon == std::string::npos ? std::nullopt : ParseSplit(text.substr(colon + 1));
  if (!split || selector.empty()) {
    throw InvalidArgument(absl::StrCat("--inside ", text, " does not say how the tensor is split: end it with :dim=1, ",
                                       ":dim=1,2 or :labels=FILE"));
  }
  LoadedInput loaded;
  loaded.name = loaded.path = loaded.input.name = loaded.input.inside = selector;
  if (split->kind == Split::Kind::kDims) {
    loaded.input.split = Split::AlongDims(split->dims);
  } else if (split->kind == Split::Kind::kLabels) {
    const TensorPlace file = ParseTensorPlace(split->source);
    if (!FileExists(file.path)) throw NotFound(absl::StrCat("--inside ", text, ": there is no file ", file.path));
    loaded.input.split = Split::ByLabels(SelectTensor(ReadTensorFile(file.path), file, {"labels"}).second);
  } else {
    throw InvalidArgument(
        absl::StrCat("--inside ", text, ": what is inside the model is split along dimensions or by labels"));
  }
  loaded.split = DescribeSplit(loaded.input.split, split->source);
  return loaded;
}

// A table as baseline has the columns of the input, in their order.
void CheckColumns(const std::string& text, const TensorFile& baseline, const LoadedInput& loaded) {
  const auto own = loaded.metadata.find("names");
  const auto other = baseline.metadata.find("names");
  if (own == loaded.metadata.end() || other == baseline.metadata.end() || own->second == other->second) return;
  throw InvalidArgument(absl::StrCat("--baseline ", text, ": its columns are ", other->second, ", and those of ",
                                     loaded.path, " are ", own->second));
}

void LoadBaseline(const std::string& text, const FileFormat& format, LoadedInput& loaded) {
  loaded.baseline_given = true;
  double number = 0;
  if (absl::StartsWith(text, "token:")) {
    const std::string token = text.substr(6);
    int64_t id = 0;
    if (!absl::SimpleAtoi(token, &id)) {
      const auto entry = loaded.metadata.find(token);
      if (entry == loaded.metadata.end() || !absl::SimpleAtoi(entry->second, &id)) {
        throw InvalidArgument(absl::StrCat("--baseline ", text, ": ", token,
                                           " is neither a number nor a token that the metadata of ", loaded.path,
                                           " names"));
      }
    }
    if (!loaded.ids()) {
      throw InvalidArgument(absl::StrCat("--baseline ", text, ": ", loaded.path, " holds numbers, not token ids"));
    }
    loaded.input.baseline = Baseline::Token(id);
    loaded.baseline = DescribeToken(loaded, id);
  } else if (absl::SimpleAtod(text, &number)) {
    loaded.input.baseline = Baseline::Of(number);
    loaded.baseline = loaded.ids() ? DescribeToken(loaded, static_cast<int64_t>(number)) : text;
  } else if ((IsBaselineWord(text) || IsSeveralBaselinesWord(text)) && !FileExists(text)) {
    const bool several = IsSeveralBaselinesWord(text);
    if (several) loaded.several.word = text;
    if (!several) loaded.input.baseline = Baseline::Named(text);
    loaded.baseline = text;
    loaded.baseline_path = several ? FileOfSeveralBaselinesWord(text) : FileOfBaselineWord(text);
    if (!loaded.baseline_path.empty()) {
      if (!FileExists(loaded.baseline_path)) {
        throw NotFound(absl::StrCat("--baseline ", text, ": there is no file ", loaded.baseline_path));
      }
      loaded.baseline_sha256 = Sha256OfFile(loaded.baseline_path);
    }
    if (IsCsvPath(loaded.baseline_path)) {
      const TensorFile rows = ReadInputFile(loaded.baseline_path, format, &loaded.baseline_others);
      CheckColumns(text, rows, loaded);
      loaded.input.baseline = Baseline::Of(BaselineOfRows(text, *rows.Find("input")));
    }
  } else {
    const TensorPlace file = ParseTensorPlace(text);
    if (!FileExists(file.path)) {
      throw NotFound(absl::StrCat("--baseline ", text, ": there is no such file, and it is no number, token:ID, ",
                                  kBaselineWords, ", ", kSeveralBaselinesWords));
    }
    const TensorFile tensors = ReadInputFile(file.path, format, &loaded.baseline_others);
    if (IsCsvPath(file.path)) CheckColumns(text, tensors, loaded);
    loaded.input.baseline = Baseline::Of(SelectTensor(tensors, file, {"baseline", "input"}).second);
    loaded.baseline = text;
    loaded.baseline_path = file.path;
    loaded.baseline_sha256 = Sha256OfFile(file.path);
  }
}

void LoadBaselines(const std::vector<std::string>& texts, const FileFormat& format, std::vector<LoadedInput>& inputs) {
  std::vector<LoadedInput*> split;
  for (LoadedInput& input : inputs) {
    if (!input.plain()) split.push_back(&input);
  }
  if (!texts.empty() && texts.size() != split.size()) {
    throw InvalidArgument(absl::StrCat("--baseline is given ", texts.size(), texts.size() == 1 ? " time" : " times",
                                       ", but ", split.size(), split.size() == 1 ? " input is" : " inputs are",
                                       " split into parts; each of them takes one"));
  }
  for (size_t k = 0; k < split.size(); ++k) {
    if (!texts.empty()) {
      LoadBaseline(texts[k], format, *split[k]);
    } else if (split[k]->input.split.kind == Split::Kind::kParts) {
      split[k]->baseline = "what the parts leave over";
    } else {
      split[k]->baseline = split[k]->ids() ? DescribeToken(*split[k], 0) : "0";
    }
  }
}

std::optional<at::ScalarType> ParseDtype(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text == "float64" ? at::kDouble : at::kFloat;
}

// From run.model_path, which may also be a folder that addend trace --save wrote.
void LoadModel(std::optional<at::ScalarType> dtype, LoadedRun& run) {
  if (!FolderExists(run.model_path)) {
    ScriptOptions options;
    options.dtype = dtype;
    run.model = addend::LoadModel(run.model_path, options);
    run.model_sha256 = Sha256OfModel(run.model_path);
    return;
  }
  if (!FileExists(run.model_path + "/program.json")) {
    throw InvalidArgument(
        absl::StrCat(run.model_path,
                     " is not a TorchScript file, no exported program (.pt2), no ONNX model, and no folder of addend "
                     "trace --save"));
  }
  RecordedProgram program = LoadProgram(run.model_path);
  if (dtype) program = InDtype(program, *dtype);
  run.program = std::make_shared<const RecordedProgram>(std::move(program));
  run.model = FromProgram(run.program);
  run.model_sha256 = Sha256OfModel(run.model_path);
}

// Labels, parts and baselines follow the values.
void MoveTo(const at::Device& device, LoadedRun& run) {
  run.model = run.model->To(device);
  for (LoadedInput& loaded : run.inputs) {
    if (!loaded.inside()) loaded.input.value = loaded.input.value.to(device);
  }
}

}  // namespace

std::vector<SeveralBaselines> LoadedRun::Several() const {
  std::vector<SeveralBaselines> several;
  bool any = false;
  for (const LoadedInput& loaded : inputs) {
    several.push_back(loaded.several);
    any = any || loaded.several.given();
  }
  return any ? several : std::vector<SeveralBaselines>();
}

std::vector<Input> LoadedRun::Inputs() const {
  std::vector<Input> all;
  for (const LoadedInput& loaded : inputs) all.push_back(loaded.input);
  return all;
}

std::vector<std::string> LoadedRun::Notes() const {
  std::vector<std::string> notes;
  for (const LoadedInput& loaded : inputs) {
    for (std::string& note : NotesOn(loaded.others, "")) notes.push_back(std::move(note));
    for (std::string& note : NotesOn(loaded.baseline_others, loaded.baseline_path)) notes.push_back(std::move(note));
  }
  return notes;
}

std::vector<at::Tensor> LoadedRun::Values() const {
  std::vector<at::Tensor> all;
  for (const LoadedInput& loaded : inputs) {
    if (!loaded.inside()) all.push_back(loaded.input.value.clone());
  }
  return all;
}

Policy ParsePolicy(const std::vector<std::string>& fields) {
  Policy policy;
  for (const std::string& field : fields) {
    const size_t equals = field.find('=');
    if (equals == std::string::npos) {
      throw InvalidArgument(absl::StrCat("--policy ", field, " is not of the form field=value, as preset=fast is"));
    }
    SetPolicyField(policy, field.substr(0, equals), field.substr(equals + 1));
  }
  return policy;
}

void AddModelFiles(const std::string& model, std::vector<std::string>* files) {
  files->push_back(model);
  if (!FolderExists(model)) return;
  for (const char* name : {"/program.json", "/weights.safetensors"}) files->push_back(model + name);
}

std::vector<std::string> SourcesOf(const RunArguments& arguments, const std::vector<std::string>& others) {
  std::vector<std::string> sources;
  AddModelFiles(arguments.model, &sources);
  const auto add_split = [&](const std::optional<SplitText>& split) {
    if (split && !split->source.empty()) sources.push_back(ParseTensorPlace(split->source).path);
  };
  for (const std::string& input : arguments.inputs) {
    const InputText text = ParseInput(input);
    sources.push_back(text.file.path);
    add_split(text.split);
  }
  for (const std::string& inside : arguments.inside) {
    const size_t colon = inside.rfind(':');
    if (colon != std::string::npos) add_split(ParseSplit(inside.substr(colon + 1)));
  }
  for (const std::string& baseline : arguments.baselines) {
    const std::string file =
        IsSeveralBaselinesWord(baseline) ? FileOfSeveralBaselinesWord(baseline) : FileOfBaselineWord(baseline);
    sources.push_back(file.empty() ? ParseTensorPlace(baseline).path : file);
  }
  if (!arguments.mapping.empty()) sources.push_back(arguments.mapping);
  // Lists of names need not be files.
  for (const std::string& other : others) {
    if (!other.empty()) sources.push_back(other);
  }
  return sources;
}

std::vector<TensorPlace> InputPlaces(const RunArguments& arguments) {
  std::vector<TensorPlace> places;
  for (const std::string& input : arguments.inputs) places.push_back(ParseInput(input).file);
  return places;
}

LoadedRun Load(const RunArguments& arguments, const std::vector<TensorFile>* first) {
  LoadedRun run;
  run.policy = ParsePolicy(arguments.policy);
  run.request = arguments.request;
  run.row = arguments.row;
  const std::optional<at::ScalarType> dtype = ParseDtype(arguments.dtype);
  const FileFormat format = ReadFormat(arguments);
  for (const std::string& text : arguments.inputs) {
    const TensorFile* own = first == nullptr ? nullptr : &first->at(run.inputs.size());
    run.inputs.push_back(LoadInput(ParseInput(text), dtype, format, arguments.whole, !arguments.inside.empty(), own));
  }
  for (const std::string& text : arguments.inside) run.inputs.push_back(LoadInside(text));
  LoadBaselines(arguments.baselines, format, run.inputs);
  for (size_t k = 0; k < run.inputs.size(); ++k) {
    LoadedInput& loaded = run.inputs[k];
    if (loaded.inside()) continue;
    if (run.row) PickRow(*run.row, loaded);
    if (run.inputs.size() > 1 || loaded.name.empty()) loaded.name = absl::StrCat("input ", k);
  }
  run.model_path = arguments.model;
  LoadModel(dtype, run);
  if (arguments.device != "cpu") MoveTo(DeviceOfWord(arguments.device), run);
  return run;
}

at::Tensor LoadTensor(const std::string& text, const RunArguments& arguments) {
  LoadedInput loaded = LoadInput(ParseInput(text), ParseDtype(arguments.dtype), ReadFormat(arguments), /*whole=*/true,
                                 /*inside=*/false);
  if (arguments.row) PickRow(*arguments.row, loaded);
  return loaded.input.value.to(DeviceOfWord(arguments.device));
}

}  // namespace addend::cli
