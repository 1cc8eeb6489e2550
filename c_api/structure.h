// Structures of requests: how the inputs of an example, which are tensors, make up the arguments of a model.
#ifndef ADDEND_C_API_STRUCTURE_H_
#define ADDEND_C_API_STRUCTURE_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "c_api/bodies.h"
#include "core/model/model.h"

namespace addend::c_api {

// From what addend_request_set_structure takes. Throws InvalidArgument that says where it is wrong.
std::shared_ptr<const RequestStructure> ParseStructure(const std::string& json);

// Structure of one of the request's examples; null: every input is an argument.
std::shared_ptr<const RequestStructure> StructureOfExample(const RequestBody& request, size_t example = 0);

// The arguments in the order of a model's, which are called `names`, from the tensors of the inputs in the order in
// which they were added. Throws InvalidArgument where the structure names another input than there is, or leaves one
// out.
std::vector<c10::IValue> PutTogether(const RequestStructure& structure, const std::vector<std::string>& names,
                                     const std::vector<at::Tensor>& inputs);

// Inputs in the order in which the arguments of a model hold them, whatever order the request names arguments in.
struct OrderedStructure {
  std::shared_ptr<const RequestStructure> structure;  // numbers its tensors in that order
  std::vector<int> inputs;                            // of the request, by that order
};
// Throws what PutTogether() throws of numbers and names.
OrderedStructure InOrderOfArguments(const RequestStructure& structure, const std::vector<std::string>& names,
                                    size_t inputs);

// The structure of a request without one: each input is an argument, in the order of a model's.
RequestStructure TensorsAlone(size_t inputs);

// Maps each input of a structure that a plan was made with to the input in its place in the structure of a later
// request, which has `inputs`. Throws InvalidArgument that names the place where the two differ: an argument, a
// container, a key or a plain value.
std::vector<int> InPlacesOf(const RequestStructure& planned, const RequestStructure& given, size_t inputs,
                            std::vector<std::string> names);

// The model as one of the tensors alone.
std::shared_ptr<Model> OfTensors(std::shared_ptr<Model> model, std::shared_ptr<const RequestStructure> structure,
                                 const std::vector<std::string>& names);

}  // namespace addend::c_api

#endif  // ADDEND_C_API_STRUCTURE_H_
