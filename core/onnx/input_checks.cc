#include "core/onnx/input_checks.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/base/text.h"
#include "core/intercept/tracing_scope.h"
#include "core/onnx/data_type.h"
#include "core/onnx/to_tensor.h"

namespace addend::onnx {
namespace {

std::string Shown(absl::string_view text) { return Quoted(std::string(text)); }

// Whether a name of a size says that sizes are equal. Paddle writes "?" for every size that it does not know.
bool NamesASize(absl::string_view name) {
  return std::any_of(name.begin(), name.end(), [](char letter) { return absl::ascii_isalnum(letter); });
}

class Checks {
 public:
  explicit Checks(const Placement& placement) : placement_(placement) {}

  void CheckInput(const Value& value, const c10::IValue& input) {
    if (value.type != nullptr) Check(*value.type, input, absl::StrCat("input ", Shown(value.name)));
  }

  std::vector<std::string> Take() { return std::move(complaints_); }

 private:
  struct Size {
    int64_t size = 0;
    std::string where;
  };

  void Complain(std::string what) { complaints_.push_back(std::move(what)); }

  void Check(const TypeProto& type, const c10::IValue& input, const std::string& where) {
    switch (type.kind) {
      case TypeProto::Kind::kTensor:
        return CheckTensor(type, input, where);
      case TypeProto::Kind::kSequence:
        return CheckSequence(type, input, where);
      case TypeProto::Kind::kOptional:
        if (!input.isNone() && type.element != nullptr) Check(*type.element, input, where);
        return;
      default:
        return;
    }
  }

  void CheckSequence(const TypeProto& type, const c10::IValue& input, const std::string& where) {
    if (!input.isList()) return Complain(absl::StrCat(where, " is no list"));
    if (type.element == nullptr) return;
    const auto elements = input.toList().vec();
    for (size_t k = 0; k < elements.size(); ++k) {
      // A size of one name may be another one in each element.
      Checks inside(placement_);
      inside.Check(*type.element, elements[k], absl::StrCat(where, "[", k, "]"));
      for (std::string& complaint : inside.complaints_) Complain(std::move(complaint));
    }
  }

  void CheckTensor(const TypeProto& type, const c10::IValue& input, const std::string& where) {
    if (!input.isTensor() || !input.toTensor().defined()) return Complain(absl::StrCat(where, " is no tensor"));
    const at::Tensor& tensor = input.toTensor();
    const auto dtype = HolderOf(type.data_type);
    if (dtype && tensor.scalar_type() != placement_.TypeFor(*dtype)) {
      Complain(absl::StrCat(where, " is ", DtypeWord(tensor.scalar_type()), ", the model takes ",
                            DtypeWord(placement_.TypeFor(*dtype)),
                            IsWidened(type.data_type) ? absl::StrCat(", for its ", NameOf(type.data_type)) : ""));
    } else {
      CheckRange(type.data_type, tensor, where);
    }
    if (tensor.device() != placement_.device) {
      Complain(absl::StrCat(where, " is on ", tensor.device().str(), ", the model on ", placement_.device.str()));
    }
    if (!type.has_shape) return;
    if (tensor.dim() != static_cast<int64_t>(type.dims.size())) {
      return Complain(absl::StrCat(where, " has ", tensor.dim(), " dimensions, the model takes ", type.dims.size()));
    }
    for (size_t d = 0; d < type.dims.size(); ++d) {
      CheckSize(type.dims[d], tensor.size(static_cast<int64_t>(d)), absl::StrCat(where, ", dimension ", d));
    }
  }

  // Integers of a type without sign that a wider type holds.
  void CheckRange(DataType type, const at::Tensor& tensor, const std::string& where) {
    if (!IsWidened(type) || tensor.numel() == 0 || tensor.is_meta()) return;
    const TracingPause pause;
    const int64_t least = tensor.min().item<int64_t>(), greatest = tensor.max().item<int64_t>();
    if (least >= 0 && greatest <= GreatestOf(type)) return;
    Complain(absl::StrCat(where, " holds ", least < 0 ? least : greatest, ", the model takes ", NameOf(type),
                          " from 0 to ", GreatestOf(type)));
  }

  void CheckSize(const Dimension& dimension, int64_t size, const std::string& where) {
    if (dimension.value >= 0 && dimension.value != size) {
      return Complain(absl::StrCat(where, ": ", size, ", the model takes ", dimension.value, " only"));
    }
    if (!NamesASize(dimension.name)) return;
    const auto [known, is_new] = sizes_.try_emplace(std::string(dimension.name), Size{size, where});
    if (is_new || known->second.size == size) return;
    Complain(absl::StrCat(where, ": ", size, ", the model takes the same size ", Shown(dimension.name), " as ",
                          known->second.where, ", which is ", known->second.size));
  }

  const Placement& placement_;
  std::map<std::string, Size> sizes_;  // by name
  std::vector<std::string> complaints_;
};

void RequireKnownType(const TypeProto& type, absl::string_view name) {
  const auto refuse = [&](const std::string& what) {
    throw Unimplemented(absl::StrCat("the input ", Shown(name), " of the model is ", what,
                                     ", which is not supported; convert the model to one without it"));
  };
  switch (type.kind) {
    case TypeProto::Kind::kTensor:
      if (!ScalarTypeOf(type.data_type) && !IsWidened(type.data_type))
        refuse(absl::StrCat("of type ", NameOf(type.data_type)));
      return;
    case TypeProto::Kind::kSequence:
    case TypeProto::Kind::kOptional:
      if (type.element != nullptr) RequireKnownType(*type.element, name);
      return;
    case TypeProto::Kind::kMap:
      return refuse("a map");
    case TypeProto::Kind::kSparseTensor:
      return refuse("a sparse tensor");
    case TypeProto::Kind::kOpaque:
      return refuse("of a type of its own");
    case TypeProto::Kind::kNotSaid:
      return;
  }
}

}  // namespace

std::vector<std::string> InputComplaints(const Body& body, const std::vector<c10::IValue>& inputs,
                                         const Placement& placement) {
  const std::vector<int>& numbers = body.graph.inputs;
  if (inputs.size() != numbers.size()) {
    std::vector<std::string> names;
    for (const int number : numbers) names.emplace_back(body.values[static_cast<size_t>(number)].name);
    return {absl::StrCat("the model takes ", numbers.size(), " inputs (", Listed(names), "), not ", inputs.size())};
  }
  Checks checks(placement);
  for (size_t k = 0; k < inputs.size(); ++k) {
    checks.CheckInput(body.values[static_cast<size_t>(numbers[k])], inputs[k]);
  }
  return checks.Take();
}

void RequireKnownInputs(const Body& body) {
  for (const int number : body.graph.inputs) {
    const Value& value = body.values[static_cast<size_t>(number)];
    if (value.type != nullptr) RequireKnownType(*value.type, value.name);
  }
}

}  // namespace addend::onnx
