#include "core/onnx/context.h"

#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/is_nonzero.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/select.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/tensor_text.h"
#include "core/intercept/tracing_scope.h"
#include "core/onnx/node_name.h"
#include "core/onnx/node_place.h"
#include "core/onnx/to_tensor.h"

namespace addend::onnx {
namespace {

// The most numbers that are read off a tensor that is traced, one by one.
constexpr int64_t kMostNumbersRead = 10000;

template <typename T>
std::vector<T> Numbers(const at::Tensor& numbers, c10::ScalarType type) {
  const at::Tensor flat = numbers.to(type).contiguous();
  const T* data = flat.data_ptr<T>();
  return std::vector<T>(data, data + flat.numel());
}

}  // namespace

// --------------------------------------------------------------------------------------------------------- inputs

const Datum& Context::Input(size_t k) const {
  static const Datum& none = *new Datum();
  return k < inputs_.size() ? inputs_[k] : none;
}

Descent Context::descent() const {
  Descent descent = Descent::kConstants;
  for (const Datum& input : inputs_) descent = std::max(descent, input.descent);
  return descent;
}

bool Context::ReadsIntegersOf(const Datum& datum) const {
  return step_.row->reads_integers() || (step_.row->reads_unsigned() && datum.IsWidened());
}

at::Tensor Context::TensorOf(const Datum& datum) const {
  if (!datum.IsTensor()) throw Invalid(datum.IsNone() ? "an input is missing" : "an input is a sequence, not a tensor");
  if (datum.HoldsIntegers() && !ReadsIntegersOf(datum)) {
    const char* kind = datum.IsWidened()
                           ? ", which stand in a wider type here; that is not supported, a cast before it is"
                           : ", which a quantized model rounds from its input; that is not supported";
    throw Refused(absl::StrCat("it computes with integers of type ", NameOf(datum.integers), kind));
  }
  return is_known_ ? datum.known : placement_.TensorOf(datum);
}

at::Tensor Context::Tensor(size_t k) const {
  if (!Has(k)) throw Invalid(absl::StrCat("input ", k, " is missing"));
  return TensorOf(inputs_[k]);
}

std::vector<at::Tensor> Context::Tensors() const {
  std::vector<at::Tensor> tensors;
  for (size_t k = 0; k < num_inputs(); ++k) tensors.push_back(Tensor(k));
  return tensors;
}

const std::vector<Datum>& Context::Sequence(size_t k) const {
  if (!Input(k).IsSequence()) throw Invalid(absl::StrCat("input ", k, " is no sequence"));
  return *Input(k).elements;
}

c10::optional<at::Scalar> Context::Number(size_t k) const {
  if (!Has(k) || !inputs_[k].IsKnown() || inputs_[k].known.numel() != 1) return c10::nullopt;
  const TracingPause pause;
  return inputs_[k].known.item();
}

std::vector<int64_t> Context::Integers(size_t k) const {
  const at::Tensor tensor = Tensor(k);
  if (!c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/true)) {
    throw Invalid(absl::StrCat("input ", k, " is ", TensorText(tensor), ", where integers are needed"));
  }
  if (inputs_[k].IsKnown()) {
    const TracingPause pause;
    return Numbers<int64_t>(inputs_[k].known, at::kLong);
  }
  if (tensor.numel() > kMostNumbersRead) throw Invalid(absl::StrCat("input ", k, " holds too many numbers"));
  std::vector<int64_t> numbers;
  const at::Tensor flat = at::reshape(tensor, {-1});
  for (int64_t i = 0; i < flat.numel(); ++i) {
    numbers.push_back(at::_local_scalar_dense(at::select(flat, 0, i)).toLong());
  }
  return numbers;
}

std::vector<double> Context::Reals(size_t k) const {
  const at::Tensor tensor = Tensor(k);
  if (inputs_[k].IsKnown()) {
    const TracingPause pause;
    return Numbers<double>(inputs_[k].known, at::kDouble);
  }
  if (tensor.numel() > kMostNumbersRead) throw Invalid(absl::StrCat("input ", k, " holds too many numbers"));
  std::vector<double> numbers;
  const at::Tensor flat = at::reshape(tensor, {-1});
  for (int64_t i = 0; i < flat.numel(); ++i) {
    numbers.push_back(at::_local_scalar_dense(at::select(flat, 0, i)).toDouble());
  }
  return numbers;
}

int64_t Context::Integer(size_t k, std::optional<int64_t> otherwise) const {
  if (!Has(k) && otherwise) return *otherwise;
  const std::vector<int64_t> numbers = Integers(k);
  if (numbers.size() != 1) throw Invalid(absl::StrCat("input ", k, " has ", numbers.size(), " elements, not one"));
  return numbers[0];
}

double Context::Real(size_t k, std::optional<double> otherwise) const {
  if (!Has(k) && otherwise) return *otherwise;
  const std::vector<double> numbers = Reals(k);
  if (numbers.size() != 1) throw Invalid(absl::StrCat("input ", k, " has ", numbers.size(), " elements, not one"));
  return numbers[0];
}

bool Context::Holds(const Datum& datum) const {
  if (!datum.IsTensor()) throw Invalid("a condition is no tensor");
  if (datum.IsKnown()) {
    const TracingPause pause;
    return at::is_nonzero(datum.known);
  }
  // An operator of its own, which recordings guard.
  return at::is_nonzero(datum.tensor);
}

int64_t Context::Axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) {
    throw Invalid(absl::StrCat("axis ", axis, " is none of a tensor of ", rank, " dimensions"));
  }
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> Context::Axes(std::vector<int64_t> axes, int64_t rank) const {
  for (int64_t& axis : axes) axis = Axis(axis, rank);
  return axes;
}

// ----------------------------------------------------------------------------------------------------- attributes

const Attribute* Context::Find(absl::string_view name) const {
  const auto found = std::find_if(step_.attributes.begin(), step_.attributes.end(),
                                  [&](const Attribute& attribute) { return attribute.name == name; });
  if (found == step_.attributes.end()) return nullptr;
  return found->reference.empty() ? &*found : surroundings_.FunctionAttribute(found->reference);
}

const Attribute* Context::Find(absl::string_view name, AttributeType type) const {
  const Attribute* attribute = Find(name);
  if (attribute != nullptr && attribute->type != type) {
    throw Invalid(
        absl::StrCat("the attribute ", name, " is of type ", NameOf(attribute->type), ", not ", NameOf(type)));
  }
  return attribute;
}

const Attribute& Context::Required(absl::string_view name, AttributeType type) const {
  const Attribute* attribute = Find(name, type);
  if (attribute == nullptr) throw Invalid(absl::StrCat("the attribute ", name, " is missing"));
  return *attribute;
}

int64_t Context::IntAttribute(absl::string_view name, std::optional<int64_t> otherwise) const {
  if (otherwise && !HasAttribute(name)) return *otherwise;
  return Required(name, AttributeType::kInt).i;
}

double Context::FloatAttribute(absl::string_view name, std::optional<double> otherwise) const {
  if (otherwise && !HasAttribute(name)) return *otherwise;
  return Required(name, AttributeType::kFloat).f;
}

std::string Context::TextAttribute(absl::string_view name, std::optional<std::string> otherwise) const {
  if (otherwise && !HasAttribute(name)) return *otherwise;
  return Required(name, AttributeType::kString).s;
}

std::vector<int64_t> Context::IntsAttribute(absl::string_view name, std::vector<int64_t> otherwise) const {
  const Attribute* attribute = Find(name, AttributeType::kInts);
  return attribute == nullptr ? otherwise : attribute->ints;
}

std::vector<double> Context::FloatsAttribute(absl::string_view name, std::vector<double> otherwise) const {
  const Attribute* attribute = Find(name, AttributeType::kFloats);
  if (attribute == nullptr) return otherwise;
  return std::vector<double>(attribute->floats.begin(), attribute->floats.end());
}

std::vector<std::string> Context::TextsAttribute(absl::string_view name, std::vector<std::string> otherwise) const {
  const Attribute* attribute = Find(name, AttributeType::kStrings);
  return attribute == nullptr ? otherwise : attribute->strings;
}

const Datum& Context::TensorAttribute(absl::string_view name) const {
  return surroundings_.ConstantAt(Required(name, AttributeType::kTensor).tensors.at(0));
}

DataType Context::NamedType(absl::string_view name) const {
  const int64_t number = IntAttribute(name);
  if (number < 1 || number > std::numeric_limits<int32_t>::max() || !IsDataType(static_cast<int32_t>(number))) {
    throw Invalid(absl::StrCat("the attribute ", name, " is ", number, ", which is no type of elements"));
  }
  return static_cast<DataType>(number);
}

c10::ScalarType Context::TypeAttribute(absl::string_view name, std::optional<DataType> otherwise) const {
  return TypeOf(otherwise && !HasAttribute(name) ? *otherwise : NamedType(name));
}

// ------------------------------------------------------------------------------------------------ results, graphs

c10::ScalarType Context::TypeOf(DataType type) const {
  const std::optional<c10::ScalarType> own = ScalarTypeOf(type);
  if (!own) throw Refused(absl::StrCat("elements of type ", NameOf(type), " are not computed with"));
  return is_known_ ? placement_.KnownTypeFor(*own) : placement_.TypeFor(*own);
}

at::TensorOptions Context::Options(c10::ScalarType type) const {
  return at::TensorOptions().dtype(type).device(is_known_ ? c10::Device(c10::kCPU) : placement_.device);
}

const GraphPlan& Context::GraphAttribute(absl::string_view name) const {
  for (const Attribute& attribute : step_.attributes) {
    if (attribute.name != name || attribute.graph < 0) continue;
    return step_.graphs[static_cast<size_t>(attribute.graph)];
  }
  throw HasAttribute(name) ? Refused(absl::StrCat("the graph ", name, " is an attribute of the function around it"))
                           : Invalid(absl::StrCat("the graph ", name, " is missing"));
}

// --------------------------------------------------------------------------------------------------------- errors

Error Context::Invalid(const std::string& what) const {
  return Error(absl::StatusCode::kInvalidArgument, absl::StrCat(NameOf(node()), ": ", what), PositionOf(node()));
}

Error Context::Refused(const std::string& what) const {
  return Error(absl::StatusCode::kUnimplemented, absl::StrCat(NameOf(node()), ": ", what), PositionOf(node()));
}

}  // namespace addend::onnx
