// Exported programs made by hand, for tests.
#ifndef ADDEND_CORE_EXPORTED_PROGRAM_TESTING_H_
#define ADDEND_CORE_EXPORTED_PROGRAM_TESTING_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/exported/exported_model.h"
#include "core/exported/program.h"

namespace addend::exported {

inline Argument Value(const std::string& name, const std::string& tag = "as_tensor") {
  Argument argument;
  argument.kind = Argument::Kind::kValue;
  argument.tag = tag;
  argument.name = name;
  return argument;
}

inline Argument Constant(c10::IValue value, const std::string& tag = "") {
  Argument argument;
  argument.tag = tag;
  argument.constant = std::move(value);
  return argument;
}

inline Argument List(std::vector<Argument> elements) {
  Argument argument;
  argument.kind = Argument::Kind::kList;
  argument.elements = std::move(elements);
  return argument;
}

inline Argument Sub(Graph graph) {
  Argument argument;
  argument.kind = Argument::Kind::kGraph;
  argument.graph = std::make_shared<const Graph>(std::move(graph));
  return argument;
}

// Arguments by name; those of higher-order operators and of numbers have none.
using Given = std::vector<std::pair<std::string, Argument>>;

inline Node Call(const std::string& target, const Given& given, std::vector<Argument> outputs) {
  Node node;
  node.target = target;
  for (const auto& [name, argument] : given) node.inputs.push_back({name, argument, NamedArgument::Pass::kNotSaid});
  node.outputs = std::move(outputs);
  if (!node.outputs.empty()) node.name = node.outputs[0].name;
  return node;
}

inline Graph GraphOf(const std::vector<std::string>& inputs, std::vector<Node> nodes, std::vector<Argument> outputs) {
  Graph graph;
  for (const std::string& input : inputs) graph.inputs.push_back(Value(input));
  graph.nodes = std::move(nodes);
  graph.outputs = std::move(outputs);
  return graph;
}

inline SymbolicInt Fixed(int64_t size) {
  SymbolicInt result;
  result.value = size;
  return result;
}

inline SymbolicInt Symbolic(const std::string& expression) {
  SymbolicInt result;
  result.expression = expression;
  return result;
}

inline TreeSpec Tuple(size_t leaves) {
  TreeSpec spec;
  spec.kind = TreeSpec::Kind::kTuple;
  spec.children.resize(leaves);
  return spec;
}

// A program that grows input by input and node by node. By default it gives its single output alone.
class TestProgram {
 public:
  TestProgram() { program_.schema_major = 8; }

  Program& operator*() { return program_; }
  Program* operator->() { return &program_; }

  TestProgram& Input(const std::string& name, c10::ScalarType dtype, std::vector<SymbolicInt> sizes) {
    TensorMeta meta;
    meta.dtype = dtype;
    meta.sizes = std::move(sizes);
    program_.graph.tensors[name] = meta;
    program_.forward_arg_names.push_back(name);
    return Add(InputSpec::Kind::kUserInput, name, "");
  }
  TestProgram& Parameter(const std::string& name, const std::string& placeholder, const at::Tensor& tensor) {
    program_.state[name] = tensor;
    return Add(InputSpec::Kind::kParameter, placeholder, name);
  }
  TestProgram& Buffer(const std::string& name, const std::string& placeholder, const at::Tensor& tensor) {
    program_.state[name] = tensor;
    return Add(InputSpec::Kind::kBuffer, placeholder, name);
  }
  TestProgram& Node(exported::Node node) {
    program_.graph.nodes.push_back(std::move(node));
    return *this;
  }
  TestProgram& Output(const Argument& argument, OutputSpec::Kind kind = OutputSpec::Kind::kUserOutput,
                      const std::string& name = "") {
    OutputSpec spec;
    spec.kind = kind;
    spec.argument = argument;
    spec.name = name;
    program_.outputs.push_back(spec);
    program_.graph.outputs.push_back(argument);
    return *this;
  }

  std::shared_ptr<Model> Load(const ScriptOptions& options = {}) const {
    Program program = program_;
    size_t leaves = 0;
    for (const InputSpec& input : program.inputs) {
      const bool user = input.kind == InputSpec::Kind::kUserInput || input.kind == InputSpec::Kind::kConstantInput;
      leaves += user ? 1 : 0;
    }
    if (program.in_spec.children.empty()) {
      program.in_spec = Tuple(2);
      program.in_spec.children[0] = Tuple(leaves);
      program.in_spec.children[1].kind = TreeSpec::Kind::kDict;
    }
    size_t outputs = 0;
    for (const OutputSpec& output : program.outputs) outputs += output.kind == OutputSpec::Kind::kUserOutput ? 1 : 0;
    if (outputs != 1 && program.out_spec.children.empty()) program.out_spec = Tuple(outputs);
    return ModelOf(std::make_shared<const Program>(std::move(program)), options);
  }

 private:
  TestProgram& Add(InputSpec::Kind kind, const std::string& placeholder, const std::string& name) {
    InputSpec spec;
    spec.kind = kind;
    spec.argument = Value(placeholder);
    spec.name = name;
    program_.inputs.push_back(spec);
    program_.graph.inputs.push_back(spec.argument);
    return *this;
  }

  Program program_;
};

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_PROGRAM_TESTING_H_
