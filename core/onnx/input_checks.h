// Checks of the inputs of an ONNX model against the types that its file gives them.
#ifndef ADDEND_CORE_ONNX_INPUT_CHECKS_H_
#define ADDEND_CORE_ONNX_INPUT_CHECKS_H_

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "core/onnx/graph.h"
#include "core/onnx/placement.h"

namespace addend::onnx {

// Lists what is wrong with these inputs of a graph: types, devices, integers beyond the range of their type, numbers of
// dimensions, fixed sizes, and sizes of one name that differ. Both numbers stand in each sentence. Empty: nothing.
std::vector<std::string> InputComplaints(const Body& body, const std::vector<c10::IValue>& inputs,
                                         const Placement& placement);

// Throws Unimplemented, with the name, for an input of a type that no value has here: strings, maps, integers of less
// than 8 bits.
void RequireKnownInputs(const Body& body);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_INPUT_CHECKS_H_
