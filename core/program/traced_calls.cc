#include "core/program/traced_calls.h"

#include <algorithm>

#include "core/base/tensor_text.h"

namespace addend {

bool CoversWhole(const Operand& operand, const StorageInfo& storage) {
  return operand.dtype == storage.dtype && !operand.conjugated && !operand.negated &&
         operand.geometry.CoversWhole(storage.numel);
}

bool ReadsRows(const Call& call) {
  return std::any_of(call.operands.begin(), call.operands.end(),
                     [](const Operand& operand) { return operand.decomposed; });
}

bool GivesNumbers(const Call& call) {
  return std::any_of(call.outputs.begin(), call.outputs.end(),
                     [](const Operand& output) { return output.storage >= 0 && Continuous(output.dtype); });
}

bool Call::Traced() const {
  for (const Operand& operand : operands) {
    if (operand.decomposed || operand.labelled) return true;
  }
  return false;
}

namespace {

std::string DescribeOperand(const Operand& operand) {
  return operand.storage < 0 ? "None" : TensorText(operand.dtype, operand.geometry.sizes);
}

}  // namespace

std::string DescribeCall(const Call& call) {
  CallText text;
  for (const Operand& operand : call.operands) text.operands.push_back({operand.argument, DescribeOperand(operand)});
  for (const Operand& output : call.outputs) text.results.push_back(DescribeOperand(output));
  return DescribeCall(call.op.schema(), call.arguments, text);
}

}  // namespace addend
