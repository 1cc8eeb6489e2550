#include "core/program/program.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/tensor_text.h"

namespace addend {

int64_t Geometry::numel() const {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  return n;
}

bool Geometry::CoversWhole(int64_t storage_numel) const {
  if (offset != 0) return false;
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1 && strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return expected == storage_numel;
}

bool Continuous(at::ScalarType dtype) { return at::isFloatingType(dtype) || at::isComplexType(dtype); }

at::ScalarType RowDtype(at::ScalarType dtype) {
  if (at::isComplexType(dtype)) return dtype == at::kComplexDouble ? at::kComplexDouble : at::kComplexFloat;
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

at::ScalarType RealDtype(at::ScalarType dtype) {
  switch (dtype) {
    case at::kComplexDouble:
      return at::kDouble;
    case at::kComplexFloat:
      return at::kFloat;
    case at::kComplexHalf:
      return at::kHalf;
    default:
      return dtype;
  }
}

bool SameNumbers(at::ScalarType storage, at::ScalarType view) { return RealDtype(storage) == RealDtype(view); }

bool CoversWhole(const Operand& operand, const StorageInfo& storage) {
  return operand.dtype == storage.dtype && !operand.conjugated && !operand.negated &&
         operand.geometry.CoversWhole(storage.numel);
}

bool Call::Traced() const {
  for (const Operand& operand : operands) {
    if (operand.decomposed || operand.labelled) return true;
  }
  return false;
}

std::string RuleName(const std::string& schema_name) {
  // "__iand__" and its kind end in underscores without being in-place forms of a functional name.
  const bool in_place =
      schema_name.size() > 1 && schema_name.back() == '_' && schema_name[schema_name.size() - 2] != '_';
  return in_place ? schema_name.substr(0, schema_name.size() - 1) : schema_name;
}

std::string FullName(const c10::FunctionSchema& schema) {
  return schema.overload_name().empty() ? schema.name() : absl::StrCat(schema.name(), ".", schema.overload_name());
}

namespace {

std::string DescribeOperand(const Operand& operand) {
  if (operand.storage < 0) return "None";
  return TensorText(operand.dtype, operand.geometry.sizes);
}

}  // namespace

std::string DescribeCall(const Call& call) {
  std::vector<std::string> parts;
  for (size_t a = 0; a < call.arguments.size(); ++a) {
    std::vector<std::string> tensors;
    for (const Operand& operand : call.operands) {
      if (operand.argument == static_cast<int16_t>(a)) tensors.push_back(DescribeOperand(operand));
    }
    const bool list = call.op.schema().arguments()[a].type()->kind() == c10::TypeKind::ListType;
    if (tensors.empty()) {
      std::ostringstream text;
      text << call.arguments[a];
      parts.push_back(list && call.arguments[a].isNone() ? "[]" : text.str());
    } else if (list) {
      parts.push_back(absl::StrCat("[", absl::StrJoin(tensors, ", "), "]"));
    } else {
      parts.push_back(tensors.front());
    }
  }
  std::vector<std::string> results;
  for (const Operand& output : call.outputs) results.push_back(DescribeOperand(output));
  std::string name = FullName(call.op.schema());
  if (name.rfind("aten::", 0) == 0) name = name.substr(6);
  return absl::StrCat(name, "(", absl::StrJoin(parts, ", "), ") -> ",
                      results.size() == 1 ? results[0] : absl::StrCat("(", absl::StrJoin(results, ", "), ")"));
}

}  // namespace addend
