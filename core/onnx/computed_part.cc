#include "core/onnx/computed_part.h"

#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "core/onnx/operators.h"

namespace addend::onnx {
namespace {

bool HoldsNumbers(const TypeProto& type) {
  switch (type.kind) {
    case TypeProto::Kind::kTensor:
      return type.data_type != DataType::kString;
    case TypeProto::Kind::kSequence:
    case TypeProto::Kind::kOptional:
      return type.element == nullptr || HoldsNumbers(*type.element);
    case TypeProto::Kind::kMap:
      return false;
    default:
      return true;
  }
}

bool GivesTensorForMaps(const Operator& op) {
  return op.domain == kMachineLearningDomain && op.node->op_type == "ZipMap" && Operators().Has(op);
}

// Calls `read` with each value that an operator reads, also in the graphs inside.
template <typename Read>
void ForEachRead(const Operator& op, const Read& read) {
  for (const int value : op.inputs) {
    if (value != kNoValue) read(value);
  }
  for (const Graph& inner : op.graphs) {
    for (const int value : inner.captured) read(value);
  }
}

}  // namespace

ComputedPart ComputedPartOf(const Body& body) {
  const Graph& graph = body.graph;
  absl::flat_hash_set<int> tensors_for_maps;
  absl::flat_hash_map<int, int> readers;
  for (const Operator& op : graph.operators) {
    if (GivesTensorForMaps(op)) tensors_for_maps.insert(op.outputs.begin(), op.outputs.end());
    ForEachRead(op, [&](int value) { ++readers[value]; });
  }
  ComputedPart part;
  for (const int value : graph.outputs) {
    const Value& output = body.values[static_cast<size_t>(value)];
    if (output.type == nullptr || HoldsNumbers(*output.type) || tensors_for_maps.contains(value)) {
      ++readers[value];
      part.outputs.push_back(value);
    } else {
      part.values.insert(value);
      part.left_out.emplace_back(output.name);
    }
  }
  // Readers of a value stand behind its maker.
  for (size_t k = graph.operators.size(); k-- > 0;) {
    const Operator& op = graph.operators[k];
    bool lost_a_reader = false, is_read = false;
    for (const int value : op.outputs) {
      lost_a_reader |= part.values.contains(value);
      is_read |= value != kNoValue && readers[value] > 0;
    }
    if (!lost_a_reader || is_read) continue;
    part.operators.insert(static_cast<int>(k));
    ForEachRead(op, [&](int value) {
      if (--readers[value] == 0) part.values.insert(value);
    });
  }
  for (auto value = part.values.begin(); value != part.values.end();) {
    if (readers[*value] > 0) {
      part.values.erase(value++);
    } else {
      ++value;
    }
  }
  return part;
}

}  // namespace addend::onnx
