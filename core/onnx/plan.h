// Plans: ONNX models made ready to run. Operators are found in the table, attributes decoded, last uses known.
#ifndef ADDEND_CORE_ONNX_PLAN_H_
#define ADDEND_CORE_ONNX_PLAN_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/intercept/script_frames.h"
#include "core/onnx/external_files.h"
#include "core/onnx/graph.h"
#include "core/onnx/operators.h"

namespace addend::onnx {

// A tensor of the file, or one that a node makes once.
struct ConstantTensor {
  at::Tensor tensor;       // on the CPU, in the file's type; undefined where a node makes it of others
  absl::string_view name;  // of an initializer of the model's graph; else empty
  // Its type in the file, where that is one of integers which LibTorch lacks; see Datum::integers.
  DataType integers = DataType::kUndefined;
};

// An attribute of a node, decoded. Texts that are views are those of the model's file.
struct Attribute {
  absl::string_view name;
  absl::string_view reference;  // the attribute of the function around the node that it stands for; empty: none
  AttributeType type = AttributeType::kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<size_t> tensors;  // indices into Plan::constants
  int graph = -1;               // the first of its graphs: an index into Step::graphs
};

struct GraphPlan;

// A node.
struct Step {
  const Operator* op = nullptr;
  const OperatorRow* row = nullptr;  // null: it calls a function
  std::vector<Attribute> attributes;
  std::vector<GraphPlan> graphs;
  std::vector<size_t> prepared;  // tensors made of the attributes: indices into Plan::constants
  // The tensor that the node makes of its constant inputs before the model runs; none where it makes none.
  std::optional<size_t> made_once;
  std::vector<std::optional<size_t>> constant_inputs;
  CodePlace place;
  std::vector<int> dead;  // values that nothing reads afterwards
};

struct GraphPlan {
  const Graph* graph = nullptr;
  std::vector<int> outputs;                       // the graph's, but for those of the model that hold no numbers
  std::vector<std::pair<int, size_t>> constants;  // values that are constants, and which
  std::vector<Step> steps;
  std::vector<int> dead;  // values of its own that are there at its end
};

struct BodyPlan {
  const Body* body = nullptr;
  GraphPlan graph;
  std::vector<Attribute> defaults;  // of a function's attributes
};

struct Plan {
  CheckedModel model;
  ExternalFiles files;
  std::vector<ConstantTensor> constants;
  BodyPlan body;
  std::deque<Operator> own_operators;  // each in place of several nodes
  std::vector<BodyPlan> functions;     // those that nothing calls have no steps
  std::vector<std::string> notes;      // on the file and its operators
};

// Makes the plan of a model. Outputs that hold no numbers are left out, which a note says. Throws Unimplemented where
// no other is left, and for an operator, attribute or type that is not supported, with the node; and what
// ReadTensorData() throws.
std::shared_ptr<const Plan> MakePlan(CheckedModel model, ExternalFiles files);

// Calls `visit` with each step of a graph and of the graphs inside.
template <typename Visit>
void ForEachStep(const GraphPlan& graph, const Visit& visit) {
  for (const Step& step : graph.steps) {
    visit(step);
    for (const GraphPlan& inner : step.graphs) ForEachStep(inner, visit);
  }
}

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_PLAN_H_
