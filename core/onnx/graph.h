// Checked ONNX models: every name resolved to a number, every operator to its operator set or its function.
//
// Whatever a file says of its structure is checked here, at load, so that who runs a model need not: names are made
// once and before they are read, also across graphs inside of others; functions do not call themselves, and what they
// expand to is bounded. Whether an operator is known, and has the attributes and inputs that it needs, is the matter of
// the table of operators.
#ifndef ADDEND_CORE_ONNX_GRAPH_H_
#define ADDEND_CORE_ONNX_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/onnx/model_proto.h"

namespace addend::onnx {

inline constexpr int64_t kOldestIrVersion = 3;
inline constexpr int kDeepestCall = 64;         // of functions that call functions
inline constexpr int64_t kMostNodes = 1000000;  // with functions in place of their calls

// Stands for an optional input or output that is left out, in place of a value's number.
inline constexpr int kNoValue = -1;

// A value that a body makes or is given. Values have numbers, which are unique within a body.
struct Value {
  absl::string_view name;
  const TypeProto* type = nullptr;  // as the file tells it; null where it does not
};

struct Graph;

// A node.
struct Operator {
  const NodeProto* node = nullptr;
  absl::string_view domain;  // empty: the default one, which "ai.onnx" also names
  int64_t version = 0;       // of the domain's operator set; 0 where it calls a function
  int function = -1;         // which it calls: an index into CheckedModel::functions
  std::vector<int> inputs;   // values, or kNoValue
  std::vector<int> outputs;
  std::vector<Graph> graphs;  // of its attributes, in their order
};

// A tensor of the file, as a value.
struct Initializer {
  int value = 0;
  const TensorProto* tensor = nullptr;
};

struct Graph {
  std::vector<int> inputs;  // without those that have an initializer
  std::vector<int> outputs;
  std::vector<Initializer> initializers;
  std::vector<Operator> operators;
  // Values of the graphs around it which it reads, or a graph in it; each once.
  std::vector<int> captured;
};

// The model's graph or a function, with all graphs inside.
struct Body {
  std::vector<Value> values;
  Graph graph;
};

struct Function {
  const FunctionProto* proto = nullptr;
  Body body;
  int64_t num_nodes = 0;  // with functions in place of their calls
  int depth = 1;          // of the functions that it calls, with itself
};

struct CheckedModel {
  std::shared_ptr<const ModelProto> proto;  // which everything here points into
  Body body;
  std::vector<Function> functions;
  int64_t num_nodes = 0;           // with functions in place of their calls
  std::vector<std::string> notes;  // what a reader has to know: "the inputs a, b have values in the file, ..."
};

// Checks a model. Throws InvalidArgument, with the node, for whatever no model may be; Unimplemented for versions that
// are too old.
CheckedModel CheckModel(ModelProto proto);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_GRAPH_H_
