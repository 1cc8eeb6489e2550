// Everything that the function of an operator is given: the node with its attributes, inputs and version.
//
// Values that an operator reads as numbers (sizes, axes) are Integers() and Reals() of an input. Where they are known
// they cost nothing; else they are read from the tensor by operators, which the trace sees. Operands that may be one
// constant number are Number(); see Note [Known values] in datum.h.
#ifndef ADDEND_CORE_ONNX_CONTEXT_H_
#define ADDEND_CORE_ONNX_CONTEXT_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/Optional.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/onnx/data_type.h"
#include "core/onnx/datum.h"
#include "core/onnx/placement.h"
#include "core/onnx/plan.h"

namespace addend::onnx {

// Looks up what a node cannot know: attributes of the function around it, constants, graphs.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  // The attribute of the function around the node; null where a call does not give it.
  virtual const Attribute* FunctionAttribute(absl::string_view name) const = 0;
  virtual const Datum& ConstantAt(size_t number) const = 0;
  virtual const Value& ValueAt(int number) const = 0;
  virtual std::vector<Datum> RunGraph(const GraphPlan& graph, std::vector<Datum> inputs) const = 0;
};

class Context {
 public:
  Context(const Step& step, const std::vector<Datum>& inputs, bool is_known, const Placement& placement,
          const Surroundings& surroundings)
      : step_(step), inputs_(inputs), is_known_(is_known), placement_(placement), surroundings_(surroundings) {}

  const NodeProto& node() const { return *step_.op->node; }
  int64_t version() const { return step_.op->version; }
  // Whether the results are known values: tensors are then on the CPU and in the file's types, and nothing is traced.
  bool is_known() const { return is_known_; }

  // ------------------------------------------------------------------------------------------------------- inputs

  size_t num_inputs() const { return inputs_.size(); }
  const std::vector<Datum>& inputs() const { return inputs_; }
  // Whether input k is there, and not none.
  bool Has(size_t k) const { return k < inputs_.size() && !inputs_[k].IsNone(); }
  // The value of input k; none where it is not there.
  const Datum& Input(size_t k) const;
  // Throws InvalidArgument where it is none or a sequence; Unimplemented where it holds integers that the operator
  // would not read as such.
  at::Tensor Tensor(size_t k) const;
  // The sources of all inputs.
  Descent descent() const;
  // Undefined where it is none.
  at::Tensor OptionalTensor(size_t k) const { return Has(k) ? Tensor(k) : at::Tensor(); }
  // Any value as a tensor of this node.
  at::Tensor TensorOf(const Datum& datum) const;
  std::vector<at::Tensor> Tensors() const;
  // The elements of a sequence. Throws InvalidArgument where it is none.
  const std::vector<Datum>& Sequence(size_t k) const;
  // The one number of input k, if it is known: a scalar of the tensor's kind.
  c10::optional<at::Scalar> Number(size_t k) const;
  // The elements of input k, row by row.
  std::vector<int64_t> Integers(size_t k) const;
  std::vector<double> Reals(size_t k) const;
  // The first element of input k, which has to have one only; `otherwise` where it is none.
  int64_t Integer(size_t k, std::optional<int64_t> otherwise = {}) const;
  double Real(size_t k, std::optional<double> otherwise = {}) const;
  // Whether the one element of a value is true.
  bool Holds(const Datum& datum) const;
  int64_t Rank(size_t k) const { return Tensor(k).dim(); }
  // An axis counted from the front. Throws InvalidArgument where a tensor of this rank has no such axis.
  int64_t Axis(int64_t axis, int64_t rank) const;
  std::vector<int64_t> Axes(std::vector<int64_t> axes, int64_t rank) const;

  // --------------------------------------------------------------------------------------------------- attributes

  bool HasAttribute(absl::string_view name) const { return Find(name) != nullptr; }
  // Each throws InvalidArgument where the attribute is of another type; or, without `otherwise`, is not there.
  int64_t IntAttribute(absl::string_view name, std::optional<int64_t> otherwise = {}) const;
  bool FlagAttribute(absl::string_view name, bool otherwise) const {
    return IntAttribute(name, otherwise ? 1 : 0) != 0;
  }
  double FloatAttribute(absl::string_view name, std::optional<double> otherwise = {}) const;
  std::string TextAttribute(absl::string_view name, std::optional<std::string> otherwise = {}) const;
  // Empty lists where the attribute is not there.
  std::vector<int64_t> IntsAttribute(absl::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> FloatsAttribute(absl::string_view name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> TextsAttribute(absl::string_view name, std::vector<std::string> otherwise = {}) const;
  const Datum& TensorAttribute(absl::string_view name) const;
  // A type of elements that a number stands for.
  DataType NamedType(absl::string_view name) const;
  // That type as LibTorch computes with it here.
  c10::ScalarType TypeAttribute(absl::string_view name, std::optional<DataType> otherwise = {}) const;

  // A tensor that the operator has prepared; see OperatorRow::PreparedBy().
  const at::Tensor& Prepared(size_t k) const { return surroundings_.ConstantAt(step_.prepared.at(k)).tensor; }
  // The tensor that the operator made before the run, see OperatorRow::MakesOnce(); undefined where it made none.
  at::Tensor MadeOnce() const {
    return step_.made_once ? surroundings_.ConstantAt(*step_.made_once).tensor : at::Tensor();
  }

  // ---------------------------------------------------------------------------------------------- results, graphs

  size_t num_outputs() const { return step_.op->outputs.size(); }
  // Whether something may read output k.
  bool Wants(size_t k) const { return k < num_outputs() && step_.op->outputs[k] != kNoValue; }
  // LibTorch's type for a type of the file, as the model, or known values, have it. Throws Unimplemented where LibTorch
  // has none.
  c10::ScalarType TypeOf(DataType type) const;
  // Options of new tensors: on the model's device, or where known values are.
  at::TensorOptions Options(c10::ScalarType type) const;
  const Placement& placement() const { return placement_; }
  // The graph of an attribute, for how many inputs and outputs it has, and of which types.
  const GraphPlan& GraphAttribute(absl::string_view name) const;
  // The name and type of a value of that graph, as the file tells them.
  const Value& ValueAt(int number) const { return surroundings_.ValueAt(number); }
  std::vector<Datum> RunGraph(const GraphPlan& graph, std::vector<Datum> inputs) const {
    return surroundings_.RunGraph(graph, std::move(inputs));
  }

  // ------------------------------------------------------------------------------------------------------- errors

  // "node /Clip (Clip): ...".
  Error Invalid(const std::string& what) const;
  Error Refused(const std::string& what) const;

 private:
  // Whether the operator reads the integers that a value holds.
  bool ReadsIntegersOf(const Datum& datum) const;
  const Attribute* Find(absl::string_view name) const;
  // Null where the attribute is not there. Throws InvalidArgument where it has another type.
  const Attribute* Find(absl::string_view name, AttributeType type) const;
  const Attribute& Required(absl::string_view name, AttributeType type) const;

  const Step& step_;
  const std::vector<Datum>& inputs_;
  const bool is_known_;
  const Placement& placement_;
  const Surroundings& surroundings_;
};

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_CONTEXT_H_
