#include "core/audit/recompute.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/audit/canonical_json.h"
#include "core/audit/environment.h"
#include "core/audit/model_source.h"
#include "core/audit/record.h"
#include "core/audit/request.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/explain/attribute.h"
#include "core/load/load_model.h"
#include "core/program/sha256.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

// Something that the caller can do nothing about, or has to give: why a record is not computed.
[[noreturn]] void NotComputed(const std::string& why) { throw FailedPrecondition(why); }

bool SameBits(double a, double b) {
  if (a == 0 && b == 0) return true;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

// How far the numbers of a record are from those that were computed again.
class Comparison {
 public:
  void Add(const Json& recorded, double computed) {
    const double then = NumberOf(recorded);
    same_ = same_ && SameBits(then, computed);
    const double apart = SameBits(then, computed) ? 0 : std::abs(then - computed);
    // A NaN or infinity in one of them counts as the largest distance.
    largest_ = std::max(largest_, std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart);
    if (std::isfinite(then)) magnitude_ = std::max(magnitude_, std::abs(then));
  }
  // Lists of other lengths, or anything else that cannot be compared.
  void AddOther() {
    same_ = false;
    largest_ = std::numeric_limits<double>::infinity();
  }

  Json Result() const {
    return {{"result", same_ ? "same" : "different"},
            {"reason", nullptr},
            {"largest_difference", RecordedNumber(largest_)},
            {"relative_difference", RecordedNumber(largest_ == 0 ? 0 : largest_ / magnitude_)}};
  }

 private:
  bool same_ = true;
  double largest_ = 0;
  double magnitude_ = 0;
};

Json NoResult(const std::string& why) {
  return {
      {"result", "not_computed"}, {"reason", why}, {"largest_difference", nullptr}, {"relative_difference", nullptr}};
}

void Compare(const Json& recorded, const ExplainedTarget& computed, Comparison* comparison) {
  const Contributions& numbers = computed.numbers;
  comparison->Add(recorded.at("value"), numbers.value);
  comparison->Add(recorded.at("reference"), numbers.reference);
  comparison->Add(recorded.at("leftover"), numbers.leftover);
  comparison->Add(recorded.at("recovery_error"), computed.recovery_error());
  const Json& contributions = recorded.at("contributions");
  if (contributions.size() != numbers.contributions.size()) return comparison->AddOther();
  for (size_t k = 0; k < contributions.size(); ++k) comparison->Add(contributions[k], numbers.contributions[k]);
}

// A tensor in the dtype of an input, to which floating-point numbers may have been converted; undefined where it is of
// another kind.
at::Tensor InDtypeOf(const at::Tensor& tensor, at::ScalarType dtype) {
  if (tensor.scalar_type() == dtype) return tensor;
  const bool numbers = at::isFloatingType(tensor.scalar_type()) && at::isFloatingType(dtype);
  return numbers ? tensor.to(dtype) : at::Tensor();
}

// Rows of a tensor that have the shape of an input, from `row` on; the whole tensor where it has that shape; undefined
// where it does not fit.
at::Tensor Fitting(const at::Tensor& tensor, at::IntArrayRef shape, int64_t row) {
  if (!tensor.defined()) return {};
  if (tensor.sizes() == shape) return tensor;
  if (tensor.dim() == 0) return {};
  if (tensor.sizes().slice(1) == shape) return row < tensor.size(0) ? tensor.select(0, row) : at::Tensor();
  const bool rows = !shape.empty() && tensor.sizes().slice(1) == shape.slice(1);
  return rows && row + shape[0] <= tensor.size(0) ? tensor.narrow(0, row, shape[0]) : at::Tensor();
}

}  // namespace

Recomputer::Recomputer(std::map<std::string, std::string> models, const std::vector<TensorFile>& inputs, Writer writer)
    : files_(std::move(models)), writer_(std::move(writer)) {
  for (const TensorFile& file : inputs) tensors_.insert(tensors_.end(), file.tensors.begin(), file.tensors.end());
}

std::vector<at::Tensor> Recomputer::FindInputs(const Json& recorded) const {
  const Json& tensors = recorded.at("tensors");
  const std::string salt = recorded.at("salt").get<std::string>();
  const std::string digest = recorded.at("sha256").get<std::string>();
  std::vector<DigestedTensor> asked;
  std::vector<at::ScalarType> dtypes;
  std::vector<std::vector<int64_t>> shapes;
  bool kept = true;
  for (const Json& tensor : tensors) {
    asked.push_back({tensor.at("name").get<std::string>(), {}, {}});
    dtypes.push_back(DtypeOfWord(tensor.at("dtype").get<std::string>()));
    shapes.push_back(tensor.at("shape").get<std::vector<int64_t>>());
    kept = kept && tensor.contains("data");
    if (tensor.contains("parts")) asked.back().parts = TensorOfJson(tensor["parts"]);
  }
  const auto found = [&] {
    std::vector<at::Tensor> values;
    for (const DigestedTensor& tensor : asked) values.push_back(tensor.value.contiguous());
    return values;
  };
  if (kept) {
    for (size_t k = 0; k < asked.size(); ++k) asked[k].value = TensorOfJson(tensors[k]);
    if (SaltedDigest(salt, asked) != digest)
      NotComputed("the inputs that it holds do not have the digest that it holds");
    return found();
  }
  // The only input may be in any tensor; several inputs are found by their names.
  const size_t choices = asked.size() == 1 ? tensors_.size() : 1;
  for (size_t choice = 0; choice < choices; ++choice) {
    std::vector<at::Tensor> sources;
    int64_t rows = 1;
    for (const DigestedTensor& tensor : asked) {
      const auto own = asked.size() == 1 ? tensors_.begin() + static_cast<std::ptrdiff_t>(choice)
                                         : std::find_if(tensors_.begin(), tensors_.end(),
                                                        [&](const auto& entry) { return entry.first == tensor.name; });
      if (own == tensors_.end()) {
        NotComputed(absl::StrCat("no file of inputs has a tensor ", tensor.name,
                                 ", and a model of several inputs finds them by their names"));
      }
      sources.push_back(InDtypeOf(own->second, dtypes[sources.size()]));
      if (own->second.dim() > 0) rows = std::max(rows, own->second.size(0));
    }
    for (int64_t row = 0; row < rows; ++row) {
      bool fits = true;
      for (size_t k = 0; fits && k < asked.size(); ++k) {
        asked[k].value = Fitting(sources[k], shapes[k], row);
        fits = asked[k].value.defined();
      }
      if (!fits) break;
      if (SaltedDigest(salt, asked) == digest) return found();
    }
  }
  NotComputed(tensors_.empty() ? "it does not hold its inputs, and no file of inputs is given"
                               : "no file of inputs holds tensors with its digest");
}

std::shared_ptr<Model> Recomputer::ModelOf(const Json& recorded, const std::string& device) {
  std::shared_ptr<Model>& model = loaded_[CanonicalJson(recorded) + device];
  if (model != nullptr) return model;
  const auto file = files_.find(recorded.at("sha256").get<std::string>());
  if (file == files_.end()) NotComputed("it is of another model");
  ModelSource source;
  if (!recorded.at("dtype").is_null()) source.dtype = DtypeOfWord(recorded["dtype"].get<std::string>());
  if (!recorded.at("methods").is_null()) source.methods = recorded["methods"].get<std::vector<std::string>>();
  source.device = device;
  std::shared_ptr<Model> loaded = LoadModelAs(file->second, source);
  // The file may have been exchanged since its digest was taken.
  if (Sha256OfModel(file->second) != file->first) NotComputed(absl::StrCat(file->second, " changed meanwhile"));
  model = std::move(loaded);
  return model;
}

Json Recomputer::Compute(const Json& record, const Json& content) {
  Json result;
  std::string device = "cpu";
  try {
    if (record.at("version").get<int64_t>() > kRecordVersion) NotComputed("it is of a newer version of Addend");
    device = record.at("libtorch").at("device").get<std::string>();
    if (content.is_null()) NotComputed("no whole record of the log says what its request consists of");
    if (Sha256(CanonicalJson(content)) != record.at("request").at("sha256").get<std::string>()) {
      NotComputed("its request does not have the digest that it holds");
    }
    const at::Device where(device);
    AskedRequest asked = RequestOfJson(content, record.at("inputs").at("tensors"), where);
    const std::vector<at::Tensor> values = FindInputs(record.at("inputs"));
    const std::shared_ptr<Model> model = ModelOf(record.at("model"), device);
    size_t argument = 0;
    for (Input& input : asked.inputs) {
      if (!input.inside.empty()) continue;
      input.name = record["inputs"]["tensors"].at(argument).at("name").get<std::string>();
      input.value = values.at(argument++).to(where);
    }
    const Attribution attribution = Attribute(TracedModel(model), asked.inputs, asked.options);
    const Json& targets = record.at("targets");
    Comparison comparison;
    if (targets.size() != attribution.targets.size()) comparison.AddOther();
    for (size_t t = 0; t < std::min(targets.size(), attribution.targets.size()); ++t) {
      ExplainedTarget computed;
      computed.numbers = attribution.targets[t];
      Compare(targets[t], computed, &comparison);
    }
    result = comparison.Result();
  } catch (const Error& error) {
    result = NoResult(error.what());
  } catch (const Json::exception&) {
    result = NoResult("it lacks something that records hold");
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    result = NoResult(message.substr(0, message.find('\n')));
  }
  const Json now = {{"addend", {{"version", writer_.version}}}, {"libtorch", LibTorchJson(writer_, device)}};
  result["differences"] = Differences(record, now);
  return result;
}

}  // namespace addend
