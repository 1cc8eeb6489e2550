#include "core/linearize/rounding.h"

#include <algorithm>

#include "core/linearize/settle.h"
#include "core/program/view.h"

namespace addend {
namespace {

bool HasSinglePrecision(const Operand& operand) { return RealDtype(operand.dtype) != at::kDouble; }

}  // namespace

double ToleranceFor(const Policy& policy, bool single, int64_t components, int64_t depth) {
  return policy.tolerance.value_or(RecoveryTolerance(single, components, depth));
}

Rounding::Rounding(const Linearization& linearization)
    : linearization_(linearization),
      depth_(linearization.trace->storages.size(), 0),
      single_(linearization.trace->storages.size(), false) {}

void Rounding::Begin(const Start& start) {
  depth_[start.operand.storage] = start.depth;
  single_[start.operand.storage] = start.single || HasSinglePrecision(start.operand);
}

void Rounding::Follow(const Node& node) {
  const Call& call = linearization_.trace->calls[node.call];
  int64_t depth = 0;
  bool single = false;
  for (const int input : node.inputs) {
    depth = std::max(depth, depth_[call.operands[input].storage]);
    single = single || single_[call.operands[input].storage];
  }
  for (const Operand& output : call.outputs) {
    if (!CarriesRows(output)) continue;
    depth_[output.storage] = std::max(depth_[output.storage], depth + 1);
    single_[output.storage] = single_[output.storage] || single || HasSinglePrecision(output);
  }
}

void Rounding::FollowAll() {
  for (const Start& start : linearization_.trace->starts) Begin(start);
  for (const Node& node : NodesOf(linearization_)) Follow(node);
}

int64_t Rounding::Depth(const Operand& operand) const { return operand.storage < 0 ? 0 : depth_[operand.storage]; }

bool Rounding::IsSingle(const Operand& operand) const {
  return HasSinglePrecision(operand) || (operand.storage >= 0 && single_[operand.storage]);
}

double Rounding::Tolerance(const Operand& operand, int64_t components) const {
  return ToleranceFor(linearization_.policy, IsSingle(operand), components, Depth(operand));
}

}  // namespace addend
