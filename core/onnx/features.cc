// Features of ai.onnx.ml: scaled, chosen, filled in and encoded before a model reads them.
//
// Note [Encoded numbers]
// An encoder asks whether a number is one of its keys. Written as a mask, the answer would be a condition, and the
// number's components would end there. Steps say it too: at or above the key, and not above it. Steps have a slope
// between any two numbers, so that components pass, and sum to what the encoder changes by.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/text.h"
#include "core/intercept/tracing_scope.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/operands.h"
#include "core/onnx/scores.h"

namespace addend::onnx {
namespace {

using at::Tensor;

bool IsFloat(const Tensor& x) { return c10::isFloatingType(x.scalar_type()); }

Tensor Zero(const Tensor& x) { return at::zeros({}, x.options()); }

// 1 where numbers are above a threshold.
Tensor Above(const Tensor& x, const Tensor& threshold) { return at::heaviside(at::sub(x, threshold), Zero(x)); }

// 1 where numbers are one of the keys, which broadcast; see Note [Encoded numbers].
Tensor Equal(const Tensor& x, const Tensor& key) {
  const Tensor above = at::sub(x, key);
  return at::sub(at::heaviside(above, at::ones({}, x.options())), at::heaviside(above, Zero(x)));
}

// Input 0 as floating-point numbers, compared with keys. Integers become numbers of the type that they mostly were cast
// from, because components then pass through the cast. Those that single precision does not hold are no small key.
Tensor Numbers(const Context& context, const Tensor& keys) {
  const Tensor x = context.Tensor(0);
  if (IsFloat(x)) return x;
  constexpr double kExact = 1 << 24;
  const bool are_small = [&] {
    const TracingPause pause;
    return keys.numel() == 0 || keys.abs().max().item<double>() < kExact;
  }();
  return x.to(are_small ? context.TypeOf(DataType::kFloat) : at::kDouble);
}

// A prepared tensor in the type of another.
Tensor PreparedLike(const Context& context, size_t k, const Tensor& x) {
  return InType(context.Prepared(k), x.scalar_type());
}

// --------------------------------------------------------------------------------------------------- scaled, filled in

std::vector<Tensor> PrepareScaler(const Context& context) {
  const Tensor offset = FloatsTensor(context, "offset"), scale = FloatsTensor(context, "scale");
  if (offset.numel() == 0 || offset.numel() != scale.numel()) {
    throw context.Invalid(absl::StrCat("it has ", offset.numel(), " offsets and ", scale.numel(), " scales"));
  }
  return {offset, scale};
}

Results Scaler(const Context& context) {
  const Tensor x = InType(context.Tensor(0), context.TypeOf(DataType::kFloat));
  return at::mul(at::sub(x, context.Prepared(0)), context.Prepared(1));
}

// Rows of zeros stay zeros: they are divided by 1.
Results Normalizer(const Context& context) {
  const Tensor x = InType(context.Tensor(0), context.TypeOf(DataType::kFloat));
  const std::string norm = context.TextAttribute("norm", "MAX");
  Tensor size;
  if (norm == "MAX") {
    size = at::amax(x, {-1}, /*keepdim=*/true);
  } else if (norm == "L1" || norm == "L2") {
    size = at::linalg_vector_norm(x, norm == "L1" ? 1 : 2, at::IntArrayRef{-1}, /*keepdim=*/true);
  } else {
    throw context.Invalid(absl::StrCat("the norm ", Quoted(norm), " is none"));
  }
  return at::div(x, at::masked_fill(size, at::eq(size, 0), 1));
}

std::vector<Tensor> PrepareImputer(const Context& context) {
  const Tensor floats = FloatsTensor(context, "imputed_value_floats");
  const Tensor integers = at::tensor(context.IntsAttribute("imputed_value_int64s"), at::kLong);
  if ((floats.numel() == 0) == (integers.numel() == 0)) throw context.Invalid("it has not one list of imputed values");
  return {floats.numel() > 0 ? floats : integers};
}

Results Imputer(const Context& context) {
  const Tensor x = context.Tensor(0);
  const Tensor& imputed = context.Prepared(0);
  if (IsFloat(x) != IsFloat(imputed)) throw context.Invalid("the imputed values are of another type than the input");
  const int64_t width = x.dim() == 0 ? 1 : x.size(-1);
  if (imputed.numel() != 1 && imputed.numel() != width) {
    throw context.Invalid(absl::StrCat("it has ", imputed.numel(), " imputed values for ", width, " features"));
  }
  const Tensor values = InType(imputed, x.scalar_type());
  if (!IsFloat(x)) return at::where(at::eq(x, context.IntAttribute("replaced_value_int64", 0)), values, x);
  const double replaced = context.FloatAttribute("replaced_value_float", 0);
  // A number that is missing is missing on each baseline too, so that the mask is the same there. Nothing moves from
  // infinity either.
  if (std::isnan(replaced)) return at::where(at::isnan(x), values, x);
  if (std::isinf(replaced)) return at::where(at::eq(x, replaced), values, x);
  const Tensor is_replaced = Equal(x, at::full({}, replaced, x.options()));
  return at::add(at::mul(x, at::rsub(is_replaced, 1)), at::mul(values, is_replaced));
}

Results Binarizer(const Context& context) {
  const Tensor x = context.Tensor(0);
  const double threshold = context.FloatAttribute("threshold", 0);
  if (!IsFloat(x)) return at::gt(x, threshold).to(x.scalar_type());
  return Above(x, at::full({}, threshold, x.options()));
}

// ------------------------------------------------------------------------------------------------------ chosen, joined

Results FeatureVectorizer(const Context& context) {
  const std::vector<int64_t> widths = context.IntsAttribute("inputdimensions");
  if (!widths.empty() && widths.size() != context.num_inputs()) {
    throw context.Invalid("inputdimensions has not one number for each input");
  }
  std::vector<Tensor> columns;
  for (size_t k = 0; k < context.num_inputs(); ++k) {
    Tensor x = InType(context.Tensor(k), context.TypeOf(DataType::kFloat));
    if (x.dim() == 1) x = at::unsqueeze(x, 0);
    if (x.dim() != 2 || (!widths.empty() && x.size(1) != widths[k])) {
      throw context.Invalid(absl::StrCat("input ", k, " is not [rows, inputdimensions]"));
    }
    columns.push_back(x);
  }
  return at::cat(columns, 1);
}

Results ArrayFeatureExtractor(const Context& context) {
  Tensor x = context.Tensor(0);
  if (x.dim() == 0) throw context.Invalid("the input is a single number");
  if (x.dim() == 1) x = at::unsqueeze(x, 0);
  return at::index_select(x, -1, at::reshape(InType(context.Tensor(1), at::kLong), {-1}));
}

// ------------------------------------------------------------------------------------------------------------- encoded

[[noreturn]] void RefuseTexts(const Context& context, const char* name) {
  throw context.Refused(absl::StrCat("it reads texts (", name, "), which are no numbers that could be explained; ",
                                     "encode them before the model, and export the model behind the encoder"));
}

std::vector<Tensor> PrepareOneHotEncoder(const Context& context) {
  if (context.HasAttribute("cats_strings")) RefuseTexts(context, "cats_strings");
  const std::vector<int64_t> categories = context.IntsAttribute("cats_int64s");
  if (categories.empty()) throw context.Invalid("it has no categories");
  return {at::tensor(categories, at::kLong)};
}

Results OneHotEncoder(const Context& context) {
  // Fractions do not count.
  const Tensor numbers = Numbers(context, context.Prepared(0));
  const Tensor x = IsFloat(context.Tensor(0)) ? at::trunc(numbers) : numbers;
  const Tensor hot = Equal(at::unsqueeze(x, -1), InType(context.Prepared(0), x.scalar_type()));
  if (context.IntAttribute("zeros", 1) == 0) {
    const TracingPause pause;
    if (hot.numel() > 0 && at::eq(at::sum(hot, -1), 0).any().item<bool>()) {
      throw context.Invalid("the input holds a number that is none of the categories");
    }
  }
  return InType(hot, context.TypeOf(DataType::kFloat));
}

// The numbers of attributes: name_floats, name_int64s, or name_tensor from version 4 on; undefined where none is there.
Tensor ListOf(const Context& context, const std::string& name) {
  if (context.HasAttribute(name + "_tensor")) return at::reshape(context.TensorAttribute(name + "_tensor").known, {-1});
  if (context.HasAttribute(name + "_floats")) return FloatsTensor(context, (name + "_floats").c_str());
  if (context.HasAttribute(name + "_int64s")) return at::tensor(context.IntsAttribute(name + "_int64s"), at::kLong);
  return {};
}

// The number for what is no key.
Tensor DefaultOf(const Context& context, const Tensor& values) {
  if (context.HasAttribute("default_tensor")) return at::reshape(context.TensorAttribute("default_tensor").known, {-1});
  const double number = IsFloat(values) ? context.FloatAttribute("default_float", -0.0)
                                        : static_cast<double>(context.IntAttribute("default_int64", -1));
  return at::full({1}, number, values.options());
}

// Keys, and the numbers for them; the last one is for all that is no key.
std::vector<Tensor> PrepareLabelEncoder(const Context& context) {
  for (const char* name : {"keys_strings", "values_strings", "classes_strings"}) {
    if (context.HasAttribute(name)) RefuseTexts(context, name);
  }
  const Tensor keys = ListOf(context, "keys"), values = ListOf(context, "values");
  if (!keys.defined() || !values.defined() || keys.numel() != values.numel()) {
    throw context.Invalid("it has not one value for each key");
  }
  if (IsFloat(keys) && at::isnan(keys).any().item<bool>()) {
    throw context.Refused("a key is NaN; use Imputer for missing numbers");
  }
  if (std::get<0>(at::_unique(keys)).numel() != keys.numel()) throw context.Invalid("two of its keys are the same");
  const Tensor none = DefaultOf(context, values);
  if (none.numel() != 1) throw context.Invalid("default_tensor is not one number");
  const Tensor all = at::cat({values, none.to(values.scalar_type())});
  if (IsFloat(all) && !at::isfinite(all).all().item<bool>()) {
    throw context.Refused("a value is NaN or infinite, which has no components");
  }
  return {keys, all};
}

Results LabelEncoder(const Context& context) {
  const Tensor x = Numbers(context, context.Prepared(0));
  const Tensor& values = context.Prepared(1);
  const Tensor hot = Equal(at::unsqueeze(x, -1), PreparedLike(context, 0, x));
  const Tensor other = at::rsub(at::sum(hot, -1, /*keepdim=*/true), 1);
  const at::ScalarType compute = IsFloat(values) ? values.scalar_type() : at::kDouble;
  const Tensor y = at::matmul(InType(at::cat({hot, other}, -1), compute), InType(values, compute));
  return InType(y, values.scalar_type());
}

// --------------------------------------------------------------------------------------------------------- maps, texts

Results ZipMap(const Context& context) { return context.Input(0); }

}  // namespace

void RegisterFeatures(OperatorTable& table) {
  const auto add = [&](const char* name, OperatorFunction function, int64_t since = 1) -> OperatorRow& {
    return table.AddTo(kMachineLearningDomain, name, since, function);
  };
  add("Scaler", Scaler).Attributes({"offset", "scale"}).PreparedBy(PrepareScaler, {"offset", "scale"});
  add("Normalizer", Normalizer).Attributes({"norm"});
  add("Imputer", Imputer)
      .Attributes({"imputed_value_floats", "imputed_value_int64s", "replaced_value_float", "replaced_value_int64"})
      .PreparedBy(PrepareImputer, {"imputed_value_floats", "imputed_value_int64s"});
  add("Binarizer", Binarizer).Attributes({"threshold"});
  add("FeatureVectorizer", FeatureVectorizer).InputsFrom(1).Attributes({"inputdimensions"});
  add("ArrayFeatureExtractor", ArrayFeatureExtractor).Inputs(2);
  add("OneHotEncoder", OneHotEncoder)
      .Attributes({"cats_int64s", "cats_strings", "zeros"})
      .PreparedBy(PrepareOneHotEncoder, {"cats_int64s"});
  const std::vector<std::string> lists = {"keys_floats",    "keys_int64s",   "keys_strings",   "keys_tensor",
                                          "values_floats",  "values_int64s", "values_strings", "values_tensor",
                                          "default_tensor", "default_float", "default_int64",  "default_string",
                                          "classes_strings"};
  for (const int64_t since : {int64_t{1}, int64_t{2}}) {
    add("LabelEncoder", LabelEncoder, since).Attributes(lists).PreparedBy(PrepareLabelEncoder, lists);
  }
  add("ZipMap", ZipMap)
      .Attributes({"classlabels_int64s", "classlabels_strings"})
      .Note("instead of maps from classes to scores, the model gives the scores, in the order of the classes");
}

}  // namespace addend::onnx
